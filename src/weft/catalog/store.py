"""The catalog's relations and the operations on them."""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from weft.algebra import codec
from weft.algebra.query import StreamSchema
from weft.errors import CatalogError
from weft.stats import StreamStatistics

ACTIVE, FALLBACK, QUARANTINED, REJECTED = "active", "fallback", "quarantined", "rejected"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_metadata = sa.MetaData()

_streams = sa.Table(
    "streams",
    _metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("schema", sa.Text, nullable=False),
)

_queries = sa.Table(
    "queries",
    _metadata,
    sa.Column("change", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("sql", sa.Text, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("detail", sa.Text, nullable=False, default=""),
    sa.Column("complete_from", sa.BigInteger, nullable=True),
    sa.Column("late", sa.BigInteger, nullable=False, default=0),
    sa.Column("registered", sa.DateTime(timezone=True), nullable=False),
    sa.Column("dropped", sa.DateTime(timezone=True), nullable=True),
    sa.Index("queries_by_name", "name"),
    sa.Index(
        "queries_live_name",
        "name",
        unique=True,
        sqlite_where=sa.text("dropped IS NULL"),
        postgresql_where=sa.text("dropped IS NULL"),
    ),
    sqlite_autoincrement=True,
)

_statistics = sa.Table(
    "statistics",
    _metadata,
    sa.Column("stream", sa.String, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("updated", sa.DateTime(timezone=True), nullable=False),
)


@dataclass(frozen=True)
class QueryRecord:
    """A registered query as the catalog knows it."""

    change: int
    name: str
    sql: str
    status: str
    detail: str
    complete_from: int | None
    late: int

    @property
    def id(self) -> str:
        return f"{self.name}@{self.change}"


class Catalog:
    """Streams, queries and statistics of one checkpoint.

    >>> catalog = Catalog("sqlite://")
    >>> catalog.add_query("hot", "SELECT 1").id
    'hot@1'
    >>> [record.name for record in catalog.live()]
    ['hot']
    """

    def __init__(self, url: str) -> None:
        self._engine = _engine(url)
        self._current = threading.local()
        _metadata.create_all(self._engine)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction; nested uses join the outer one."""
        current: Connection | None = getattr(self._current, "connection", None)
        if current is not None:
            yield current
            return
        with self._engine.begin() as connection:
            self._current.connection = connection
            try:
                yield connection
            finally:
                self._current.connection = None

    def fingerprint(self) -> tuple[int, int, int]:
        """A value that changes with every registration and drop."""
        columns = (
            sa.func.count(_queries.c.change),
            sa.func.coalesce(sa.func.max(_queries.c.change), 0),
            sa.func.count(_queries.c.dropped),
        )
        with self.transaction() as connection:
            total, last, dropped = connection.execute(sa.select(*columns)).one()
        return int(total), int(last), int(dropped)

    def put_stream(self, schema: StreamSchema) -> None:
        with self.transaction() as connection:
            connection.execute(sa.delete(_streams).where(_streams.c.name == schema.name))
            connection.execute(
                sa.insert(_streams).values(name=schema.name, schema=codec.dumps(schema))
            )

    def streams(self) -> dict[str, StreamSchema]:
        with self.transaction() as connection:
            rows = connection.execute(sa.select(_streams)).all()
        return {row.name: codec.loads(row.schema) for row in rows}

    def put_statistics(self, stream: str, statistics: StreamStatistics) -> None:
        """Replace what is known of a stream."""
        body = json.dumps(statistics.to_json(), separators=(",", ":"))
        with self.transaction() as connection:
            connection.execute(sa.delete(_statistics).where(_statistics.c.stream == stream))
            connection.execute(
                sa.insert(_statistics).values(stream=stream, body=body, updated=_now())
            )

    def statistics(self, stream: str) -> StreamStatistics:
        """What is known of a stream. Statistics are advisory: those of another format count as
        none."""
        chosen = sa.select(_statistics.c.body).where(_statistics.c.stream == stream)
        with self.transaction() as connection:
            body = connection.execute(chosen).scalar()
        try:
            return StreamStatistics.from_json(json.loads(body)) if body else StreamStatistics()
        except (KeyError, TypeError, ValueError, zlib.error):
            return StreamStatistics()

    def add_query(self, name: str, sql: str, status: str = ACTIVE, detail: str = "") -> QueryRecord:
        """Register a name; refused if a live query has it."""
        with self.transaction() as connection:
            self.check_free(name)
            result = connection.execute(
                sa.insert(_queries).values(
                    name=name, sql=sql, status=status, detail=detail, registered=_now()
                )
            )
            key = result.inserted_primary_key
            assert key is not None
        return QueryRecord(int(key[0]), name, sql, status, detail, None, 0)

    def check_free(self, name: str) -> None:
        """Refuse a name that is malformed or that a live query has."""
        check_name(name, "query")
        with self.transaction() as connection:
            taken = connection.execute(
                sa.select(_queries.c.change).where(
                    _queries.c.name == name, _queries.c.dropped.is_(None)
                )
            ).first()
        if taken:
            raise CatalogError("DUPLICATE_NAME", query=name, kind="query", name=name)

    def drop_query(self, name: str) -> QueryRecord:
        with self.transaction() as connection:
            record = self.find(name)
            connection.execute(
                sa.update(_queries).where(_queries.c.change == record.change).values(dropped=_now())
            )
        return record

    def find(self, name: str) -> QueryRecord:
        """The live query of a name."""
        for record in self._select(_queries.c.name == name, _queries.c.dropped.is_(None)):
            return record
        known = ", ".join(sorted(record.name for record in self.live())) or "none"
        raise CatalogError("UNKNOWN_QUERY", name=name, known=known)

    def live(self) -> list[QueryRecord]:
        """All queries that are not dropped, in the order of registration."""
        return list(self._select(_queries.c.dropped.is_(None)))

    def set_status(self, change: int, status: str, detail: str = "") -> None:
        self._update(change, status=status, detail=detail)

    def set_complete_from(self, change: int, time: int) -> None:
        self._update(change, complete_from=time)

    def set_late(self, change: int, pairs: int) -> None:
        """How many (row, window) pairs came too late for a query so far."""
        self._update(change, late=pairs)

    def restore(self, records: list[QueryRecord], last: int) -> None:
        """Put back queries with the changes they had: rebuilds a lost catalog. Changes up to
        `last` are never given again, so old results stay apart."""
        with self.transaction() as connection:
            if last not in {record.change for record in records}:
                gone = sa.insert(_queries).values(
                    change=last, name="", sql="", status=REJECTED, registered=_now(), dropped=_now()
                )
                connection.execute(gone)
            for record in records:
                connection.execute(
                    sa.insert(_queries).values(
                        change=record.change,
                        name=record.name,
                        sql=record.sql,
                        status=record.status,
                        detail=record.detail,
                        complete_from=record.complete_from,
                        registered=_now(),
                    )
                )

    def _update(self, change: int, **values: Any) -> None:
        with self.transaction() as connection:
            connection.execute(
                sa.update(_queries).where(_queries.c.change == change).values(**values)
            )

    def _select(self, *conditions: sa.ColumnElement[bool]) -> Iterator[QueryRecord]:
        statement = sa.select(_queries).where(*conditions).order_by(_queries.c.change)
        with self.transaction() as connection:
            rows = connection.execute(statement).all()
        for row in rows:
            yield QueryRecord(
                row.change, row.name, row.sql, row.status, row.detail, row.complete_from, row.late
            )


def check_name(name: str, kind: str) -> None:
    """Names stand in paths and result columns, so they are plain words."""
    if not _NAME.fullmatch(str(name)):
        detail = "use letters, digits, '_', '-' and '.', beginning with a letter or '_'"
        raise CatalogError("BAD_NAME", kind=kind, name=name, detail=detail)


def _now() -> datetime:
    return datetime.now(UTC)


def _engine(url: str) -> Engine:
    if not url.startswith("sqlite"):
        return sa.create_engine(url)
    memory = url in ("sqlite://", "sqlite:///:memory:")
    engine = (
        sa.create_engine(
            url, connect_args={"check_same_thread": False}, poolclass=sa.pool.StaticPool
        )
        if memory
        else sa.create_engine(url, connect_args={"timeout": 30})
    )

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.close()

    return engine
