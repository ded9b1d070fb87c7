"""The queries of a weft, bound: the catalog's records as algebra.

A query that a plan snapshot holds is taken from there, so that a restart runs what ran before.
Queries that another process registered are bound when they are first seen; one that cannot be
bound is rejected in the catalog with its error, and disturbs no other.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weft.algebra.plan import SharedPlan, query_columns
from weft.algebra.query import Query, StreamSchema
from weft.catalog.store import FALLBACK, QUARANTINED, REJECTED, Catalog, QueryRecord
from weft.errors import SqlError, WeftError
from weft.runtime.api.analyzer import SparkAnalyzer
from weft.runtime.api.sources import Source, fallback_frame
from weft.runtime.settings import session_settings
from weft.sql.binding.bind import bind
from weft.sql.fallback import Fallback


class Registry:
    """Bound queries by catalog record."""

    def __init__(self, spark: SparkSession, catalog: Catalog) -> None:
        self._spark, self._catalog = spark, catalog
        self._analyzer = SparkAnalyzer(spark)
        self._bound: dict[str, Query | Fallback] = {}
        self._lock = threading.RLock()
        self._seen: tuple[int, int, int] | None = None
        self._live: list[QueryRecord] = []
        self.sources: dict[str, Source] = {}
        self.tables: dict[str, object] = {}

    def remember(self, plan: SharedPlan) -> None:
        """Take the queries of a plan snapshot as they were bound."""
        for query in plan.queries:
            self._bound.setdefault(query.id, query)

    @property
    def schemas(self) -> Mapping[str, StreamSchema]:
        return {name: source.schema for name, source in self.sources.items()}

    def bind(self, name: str, sql: str, query_id: str) -> Query | Fallback:
        """Bind a query, or raise `SqlError`."""
        ansi = session_settings(self._spark)["ansi"].lower() == "true"
        try:
            bound = bind(
                name,
                sql,
                self.schemas,
                self._analyzer,
                query_id=query_id,
                ansi=ansi,
                tables=tuple(self.tables),
            )
        except WeftError as error:
            raise error.in_query(name) from None
        if isinstance(bound, Fallback):
            self._check_fallback(bound)
        return bound

    def _check_fallback(self, bound: Fallback) -> None:
        """Let Spark analyse a query that weft does not share."""
        try:
            frame = fallback_frame(self._spark, bound.sql, self.sources, self.tables)
            names = frame.columns
        except PySparkException as error:
            detail = str(error).split("\n", 1)[0]
            raise SqlError("INVALID_QUERY", query=bound.name, detail=detail) from None
        if len(set(names)) != len(names):
            raise SqlError(
                "UNSUPPORTED", query=bound.name, detail="two result columns have one name"
            )

    def put(self, record: QueryRecord, bound: Query | Fallback) -> None:
        self._bound[record.id] = bound

    def of(self, record: QueryRecord) -> Query | Fallback | None:
        """A record's query, bound now if need be; None if it is rejected."""
        with self._lock:
            known = self._bound.get(record.id)
            if known is None or known.sql != record.sql:
                if record.status == REJECTED:
                    return None
                try:
                    bound = self.bind(record.name, record.sql, record.id)
                except WeftError as error:
                    if error.error_class == "UNKNOWN_STREAM":
                        return None
                    self._catalog.set_status(record.change, REJECTED, str(error))
                    self._seen = None
                    return None
                if isinstance(bound, Fallback):
                    self._catalog.set_status(record.change, FALLBACK, bound.reason)
                self._bound[record.id] = known = bound
            return known

    def live(self) -> Sequence[QueryRecord]:
        """The catalog's live records, read again only when something changed."""
        with self._lock:
            now = self._catalog.fingerprint()
            if now != self._seen:
                self._live = self._catalog.live()
                self._seen = now
            return self._live

    def forget_live(self) -> None:
        """Read the catalog again next time: a status has changed."""
        with self._lock:
            self._seen = None

    def shared(self, stream: str, columns: set[str] | None = None) -> list[Query]:
        """The shared queries of a stream; with `columns`, those that need no others."""
        found = []
        for record in self.live():
            if record.status in (QUARANTINED, REJECTED):
                continue
            query = self.of(record)
            if isinstance(query, Query) and query.stream == stream:
                if columns is None or query_columns(query) <= columns:
                    found.append(query)
        return found

    def fallbacks(self) -> list[tuple[QueryRecord, Fallback]]:
        found = []
        for record in self.live():
            if record.status in (QUARANTINED, REJECTED):
                continue
            bound = self.of(record)
            if isinstance(bound, Fallback):
                found.append((record, bound))
        return found

    def quarantine(self, query_id: str, error: str) -> None:
        self._catalog.set_status(int(query_id.rsplit("@", 1)[1]), QUARANTINED, error)
        self.forget_live()
