"""The catalog's versions: a database of an older one is brought up to date, a newer one refused.

`MIGRATIONS[0]` leads from version 1 to version 2, and so on. All that a database needs run in one
transaction, so it is either of the old version or of the newest. A migration never uses
`weft.catalog.tables`, which later versions change: it describes what it needs itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from weft.catalog import tables
from weft.catalog.network import tables as network_tables
from weft.catalog.version_3 import to_version_3
from weft.catalog.version_4 import to_version_4
from weft.catalog.version_5 import to_version_5
from weft.catalog.version_6 import to_version_6
from weft.errors import CheckpointError

_ADVISORY_LOCK: Final = 0x77656674
"""Any number that weft alone uses: PostgreSQL lets one holder at a time create tables."""


def to_version_2(connection: Connection) -> None:
    """Version 1 has no number, names stored classes after Python's, and has no revision."""
    metadata = sa.MetaData()
    streams = sa.Table(
        "streams", metadata, sa.Column("name", sa.String), sa.Column("schema", sa.Text)
    )
    about = sa.Table(
        "weft_catalog",
        metadata,
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    statistics = sa.Table(
        "statistics",
        metadata,
        sa.Column("stream", sa.String, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("updated", sa.DateTime(timezone=True), nullable=False),
    )
    metadata.create_all(connection, tables=[about, statistics])
    connection.execute(sa.insert(about).values(version=2, revision=0))
    names = {"StreamSchema": "stream", "Field": "field"}
    for row in connection.execute(sa.select(streams)).all():
        schema = json.dumps(_renamed(json.loads(row.schema), names), separators=(",", ":"))
        connection.execute(
            sa.update(streams).where(streams.c.name == row.name).values(schema=schema)
        )


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    if isinstance(value, dict):
        renamed = {key: _renamed(item, names) for key, item in value.items()}
        if "is" in renamed:
            renamed["is"] = names.get(renamed["is"], renamed["is"])
        return renamed
    return value


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    to_version_2,
    to_version_3,
    to_version_4,
    to_version_5,
    to_version_6,
)


def newest() -> int:
    """The version that this weft writes."""
    return len(MIGRATIONS) + 1


def version_of(connection: Connection) -> int | None:
    """The version of a database; None if it holds no catalog."""
    names = set(sa.inspect(connection).get_table_names())
    if tables.about.name in names:
        return int(connection.execute(sa.select(tables.about.c.version)).scalar_one())
    return 1 if {"streams", "queries"} <= names else None


def check_not_newer(version: int | None, url: str) -> None:
    """Refuse the catalog of a newer weft."""
    if version is not None and version > newest():
        raise CheckpointError("NEWER_FORMAT", path=url, found=version, known=newest())


def upgrade(connection: Connection, url: str) -> None:
    """Create the catalog, or bring it up to date. The caller's transaction keeps others out of a
    SQLite database; PostgreSQL is asked for a lock."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
    version = version_of(connection)
    check_not_newer(version, url)
    if version is None:
        assert network_tables.about.metadata is tables.metadata
        tables.metadata.create_all(connection)
        connection.execute(sa.insert(tables.about).values(version=newest(), revision=0))
        return
    for migrate in MIGRATIONS[version - 1 :]:
        migrate(connection)
    connection.execute(sa.update(tables.about).values(version=newest()))
