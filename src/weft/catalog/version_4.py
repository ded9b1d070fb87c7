"""Version 4 of the catalog: the unions of a query network."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

_metadata = sa.MetaData()

sa.Table(
    "network_unions",
    _metadata,
    sa.Column("node", sa.String, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("parent", sa.String, nullable=False),
    sa.Column("parents", sa.Integer, nullable=False),
    sa.Index("network_unions_by_parent", "parent"),
)


def to_version_4(connection: Connection) -> None:
    """Networks of version 3 have no unions."""
    _metadata.create_all(connection)
