"""The statements of a registration, and the live queries, as SQLite takes them.

A statement costs SQLite microseconds, and SQLAlchemy a hundred; a row of a result one, and SQLAlchemy ten: with many
queries that is most of the time. So on SQLite these statements, and only these, go to the driver's cursor, in the transaction that is open. What
fails there is done again by SQLAlchemy, which gives the error its usual form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Connection

from weft.catalog.tables import about, queries

_ADD = sa.insert(queries)
_NAMED = sa.select(queries.c.change).where(
    queries.c.name == sa.bindparam("name"), queries.c.dropped.is_(None)
)
_COUNT = sa.update(about).values(revision=about.c.revision + 1)
RECORD = (
    "change",
    "name",
    "sql",
    "status",
    "detail",
    "complete_from",
    "late",
    "emit",
    "backfill",
)
"""The columns of a record, in its order."""
_LIVE = sa.select(*(queries.c[name] for name in RECORD)).where(queries.c.dropped.is_(None))
_COLUMNS = ("name", "sql", "status", "detail", "late", "registered", "emit", "backfill")


def is_live(connection: Connection, name: str) -> bool:
    """Whether a live query has the name."""
    cursor = _cursor(connection)
    if cursor is not None:
        try:
            return cursor.execute(_text("named"), (name,)).fetchone() is not None
        except _failure(connection):
            pass
    return connection.execute(_NAMED, {"name": name}).first() is not None


def live(connection: Connection) -> Iterable[tuple[Any, ...]]:
    """The columns of all live queries' records, in the order of registration."""
    cursor = _cursor(connection)
    if cursor is not None:
        try:
            rows = cursor.execute(_text("live")).fetchall()
            return [(*row[:-1], bool(row[-1])) for row in rows]  # SQLite has no booleans
        except _failure(connection):
            pass
    return connection.execute(_LIVE.order_by(queries.c.change)).all()


def add(connection: Connection, row: Mapping[str, Any]) -> int:
    """Add a query and count the change; the number of the registration."""
    change = _added(connection, row)
    cursor = _cursor(connection)
    if cursor is not None:
        try:
            cursor.execute(_text("count"))
            return change
        except _failure(connection):
            pass
    connection.execute(_COUNT)
    return change


def _added(connection: Connection, row: Mapping[str, Any]) -> int:
    cursor = _cursor(connection)
    if cursor is not None:
        stored = {**row, "late": 0, "registered": _time_writer()(row["registered"])}
        try:
            cursor.execute(_text("add"), tuple([stored[column] for column in _COLUMNS]))
            return int(cursor.lastrowid)
        except _failure(connection):
            pass
    key = connection.execute(_ADD, dict(row)).inserted_primary_key
    assert key is not None
    return int(key[0])


def _cursor(connection: Connection) -> Any:
    """The driver's cursor within the connection's transaction; None for other databases."""
    return connection.connection.cursor() if connection.dialect.name == "sqlite" else None


def _failure(connection: Connection) -> type[Exception]:
    error: type[Exception] = connection.dialect.loaded_dbapi.Error
    return error


@cache
def _text(statement: str) -> str:
    """A statement as SQLite's text, with its values as question marks."""
    if statement == "add":
        return (
            f"INSERT INTO {queries.name} ({', '.join(_COLUMNS)}) "
            f"VALUES ({', '.join('?' * len(_COLUMNS))})"
        )
    if statement == "live":
        columns = ", ".join(f'"{name}"' for name in RECORD)
        return f"SELECT {columns} FROM {queries.name} WHERE dropped IS NULL ORDER BY change"
    if statement == "count":
        return f"UPDATE {about.name} SET revision = revision + 1"
    return f"SELECT change FROM {queries.name} WHERE name = ? AND dropped IS NULL"


@cache
def _time_writer() -> Callable[[Any], Any]:
    """How SQLAlchemy writes a time on SQLite."""
    dialect = sqlite.dialect()
    writer = queries.c.registered.type.dialect_impl(dialect).bind_processor(dialect)
    assert writer is not None
    return writer
