"""Version 5 of the catalog: what aggregation joins emit."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def to_version_5(connection: Connection) -> None:
    """Queries of version 4 emit as they always did."""
    connection.execute(sa.text("ALTER TABLE queries ADD COLUMN emit VARCHAR"))
