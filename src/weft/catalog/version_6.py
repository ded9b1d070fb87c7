"""Version 6 of the catalog: queries that see the rows of before their registration."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def to_version_6(connection: Connection) -> None:
    """Queries of version 5 see what came after them."""
    connection.execute(
        sa.text("ALTER TABLE queries ADD COLUMN backfill BOOLEAN NOT NULL DEFAULT FALSE")
    )
