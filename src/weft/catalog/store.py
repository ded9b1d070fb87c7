"""The operations on the catalog's relations."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from weft.algebra import codec
from weft.algebra.query import StreamSchema
from weft.catalog import registrations
from weft.catalog.database import Database
from weft.catalog.migrations import check_not_newer, newest, upgrade, version_of
from weft.catalog.names import check_name
from weft.catalog.network.index import CatalogIndex
from weft.catalog.tables import about as _about
from weft.catalog.tables import queries as _queries
from weft.catalog.tables import statistics as _statistics
from weft.catalog.tables import streams as _streams
from weft.errors import CatalogError, CheckpointError
from weft.stats import StreamStatistics

__all__ = ["ACTIVE", "FALLBACK", "QUARANTINED", "REJECTED", "Catalog", "QueryRecord", "check_name"]

ACTIVE, FALLBACK, QUARANTINED, REJECTED = "active", "fallback", "quarantined", "rejected"

_RECORD = [_queries.c[name] for name in registrations.RECORD]
_NEXT_REVISION = sa.update(_about).values(revision=_about.c.revision + 1)


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
    emit: str | None = None
    """What an aggregation join emits, as it was registered: full, changes, or nothing said."""
    backfill: bool = False
    """Whether a filter or join sees the rows that history held when it was added."""

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
        self._database = Database(url)
        with self._database.reading() as connection:
            version = version_of(connection)
        check_not_newer(version, self._database.url)
        if version != newest():
            with self._database.writing() as connection:
                upgrade(connection, self._database.url)

    def network(self) -> CatalogIndex:
        """The query network's relations, for the network generator."""
        return CatalogIndex(self._database)

    def close(self) -> None:
        """Let go of the database; using the catalog afterwards raises `CLOSED`."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Many changes as one, all or none; nested uses join the outer one."""
        with self._database.writing():
            yield

    @property
    def in_transaction(self) -> bool:
        """Whether the calling thread is inside `transaction`, and so sees what is not committed."""
        return self._database.in_transaction

    def revision(self) -> int:
        """A number that rises with every registration, drop and change of status."""
        with self._database.reading() as connection:
            return int(connection.execute(sa.select(_about.c.revision)).scalar_one())

    def last_change(self) -> int:
        """The number of the newest registration, 0 before the first."""
        newest_change = sa.select(sa.func.coalesce(sa.func.max(_queries.c.change), 0))
        with self._database.reading() as connection:
            return int(connection.execute(newest_change).scalar_one())

    def put_stream(self, schema: StreamSchema) -> None:
        with self._database.writing() as connection:
            _put(connection, _streams, "name", name=schema.name, schema=codec.dumps(schema))

    def streams(self) -> dict[str, StreamSchema]:
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(_streams)).all()
        return {row.name: self._schema(row.name, row.schema) for row in rows}

    def _schema(self, stream: str, text: str) -> StreamSchema:
        try:
            schema = codec.loads(text)
            if not isinstance(schema, StreamSchema):
                raise TypeError(f"a {type(schema).__name__} is not a schema")
        except (KeyError, TypeError, ValueError) as error:
            detail = f"the schema of stream '{stream}': {error}"
            raise CheckpointError(
                "CATALOG_DAMAGED", url=self._database.url, detail=detail
            ) from error
        return schema

    def put_statistics(self, stream: str, statistics: StreamStatistics) -> None:
        """Replace what is known of a stream."""
        body = json.dumps(statistics.to_json(), separators=(",", ":"))
        with self._database.writing() as connection:
            _put(connection, _statistics, "stream", stream=stream, body=body, updated=_now())

    def statistics(self, stream: str) -> StreamStatistics:
        """What is known of a stream. Statistics are advisory: those of another format count as
        none."""
        chosen = sa.select(_statistics.c.body).where(_statistics.c.stream == stream)
        with self._database.reading() as connection:
            body = connection.execute(chosen).scalar()
        try:
            return StreamStatistics.from_json(json.loads(body)) if body else StreamStatistics()
        except (KeyError, TypeError, ValueError, zlib.error):
            return StreamStatistics()

    def add_query(
        self,
        name: str,
        sql: str,
        status: str = ACTIVE,
        detail: str = "",
        emit: str | None = None,
        backfill: bool = False,
    ) -> QueryRecord:
        """Register a name; refused if a live query has it."""
        row = {"name": name, "sql": sql, "status": status, "detail": detail, "registered": _now()}
        row |= {"emit": emit, "backfill": backfill}
        with self._database.writing() as connection:
            self.check_free(name)
            try:
                change = registrations.add(connection, row)
            except IntegrityError as error:  # another process was faster
                raise _taken(name) from error
        return QueryRecord(change, name, sql, status, detail, None, 0, emit, backfill)

    def check_free(self, name: str) -> None:
        """Refuse a name that is malformed or that a live query has."""
        check_name(name, "query")
        with self._database.reading() as connection:
            if registrations.is_live(connection, name):
                raise _taken(name)

    def drop_query(self, name: str) -> QueryRecord:
        with self._database.writing() as connection:
            record = self.find(name)
            connection.execute(
                sa.update(_queries).where(_queries.c.change == record.change).values(dropped=_now())
            )
            _count_change(connection)
        return record

    def find(self, name: str) -> QueryRecord:
        """The live query of a name."""
        for record in self._select(_queries.c.name == name, _queries.c.dropped.is_(None)):
            return record
        known = ", ".join(sorted(record.name for record in self.live())) or "none"
        raise CatalogError("UNKNOWN_QUERY", name=name, known=known)

    def live(self) -> list[QueryRecord]:
        """All queries that are not dropped, in the order of registration."""
        with self._database.reading() as connection:
            return [QueryRecord(*row) for row in registrations.live(connection)]

    def set_status(self, change: int, status: str, detail: str = "") -> None:
        with self._database.writing() as connection:
            self._update(change, status=status, detail=detail)
            _count_change(connection)

    def resume(self, name: str) -> QueryRecord:
        """Make a quarantined or rejected query active; whoever runs the project takes it up."""
        with self._database.writing() as connection:
            record = self.find(name)
            if record.status not in (QUARANTINED, REJECTED):
                raise CatalogError("NOTHING_TO_RESUME", name=name, status=record.status)
            self._update(record.change, status=ACTIVE, detail="", complete_from=None)
            _count_change(connection)
            return self.find(name)

    def set_complete_from(self, times: Mapping[int, int]) -> None:
        """From which time on queries are complete, by change."""
        self._update_many("complete_from", times)

    def set_late(self, pairs: Mapping[int, int]) -> None:
        """How many (row, window) pairs came too late for queries so far, by change."""
        self._update_many("late", pairs)

    def restore(self, records: list[QueryRecord], last: int) -> None:
        """Put back queries with the changes they had: rebuilds a lost catalog. Changes up to
        `last` are never given again, so old results stay apart."""
        with self._database.writing() as connection:
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
                        emit=record.emit,
                        backfill=record.backfill,
                        registered=_now(),
                    )
                )
            if connection.dialect.name == "postgresql":  # it numbers by a sequence of its own
                sequence = sa.func.pg_get_serial_sequence(_queries.name, _queries.c.change.name)
                connection.execute(sa.select(sa.func.setval(sequence, last)))
            _count_change(connection)

    def _update(self, change: int, **values: Any) -> None:
        with self._database.writing() as connection:
            connection.execute(
                sa.update(_queries).where(_queries.c.change == change).values(**values)
            )

    def _update_many(self, column: str, values: Mapping[int, int]) -> None:
        """One column of many queries, in one statement: a statement for each would take SQLAlchemy a hundred
        microseconds."""
        if not values:
            return
        update = sa.update(_queries).where(_queries.c.change == sa.bindparam("of_change"))
        rows = [{"of_change": change, "value": value} for change, value in values.items()]
        with self._database.writing() as connection:
            connection.execute(update.values({column: sa.bindparam("value")}), rows)

    def _select(self, *conditions: sa.ColumnElement[bool]) -> Iterator[QueryRecord]:
        statement = sa.select(*_RECORD).where(*conditions).order_by(_queries.c.change)
        with self._database.reading() as connection:
            rows = connection.execute(statement).all()
        for row in rows:
            yield QueryRecord(*row)


def _count_change(connection: Connection) -> None:
    connection.execute(_NEXT_REVISION)


def _put(connection: Connection, table: sa.Table, key: str, **row: Any) -> None:
    """Write a row, replacing the one of the same key. Both databases do it in one statement, so
    two processes may do the same at once."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    others = {name: value for name, value in row.items() if name != key}
    insert = dialect.insert(table).values(**row)
    connection.execute(insert.on_conflict_do_update(index_elements=[key], set_=others))


def _taken(name: str) -> CatalogError:
    return CatalogError("DUPLICATE_NAME", query=name, kind="query", name=name)


def _now() -> datetime:
    return datetime.now(UTC)
