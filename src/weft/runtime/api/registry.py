"""The queries of a weft, bound: the catalog's records as algebra.

A query that a plan snapshot holds is taken from there, so that a restart runs what ran before.
Queries that another process registered are bound when they are first seen; one that cannot be
bound is rejected in the catalog with its error, and disturbs no other.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weft.algebra.plan import SharedPlan, query_columns
from weft.algebra.query import Query, StreamSchema
from weft.catalog.store import FALLBACK, QUARANTINED, REJECTED, Catalog, QueryRecord
from weft.errors import SqlError, WeftError
from weft.runtime.api.analyzer import SparkAnalyzer
from weft.runtime.api.session import sql_session
from weft.runtime.api.sources import Source, fallback_frame
from weft.runtime.api.streaming_rules import StreamingRules
from weft.runtime.quiet import quiet_sql_errors
from weft.sql.binding.bind import bind
from weft.sql.binding.safety import Guard
from weft.sql.fallback import Fallback

_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+[^.]*$")
_MOST_CHARACTERS = 500


class Registry:
    """Bound queries by catalog record."""

    def __init__(
        self, spark: SparkSession, catalog: Catalog, *, allow_unsafe_sql: bool = False
    ) -> None:
        self._spark, self._catalog = spark, catalog
        self._allow_unsafe = allow_unsafe_sql
        self._analyzer = SparkAnalyzer(spark)
        self._rules = StreamingRules(spark)
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
        try:
            session = sql_session(self._spark)
            with quiet_sql_errors():
                bound = bind(
                    name,
                    sql,
                    self.schemas,
                    self._analyzer,
                    query_id=query_id,
                    ansi=session.ansi,
                    double_quoted_names=session.double_quoted_names,
                    tables=tuple(self.tables),
                    guard=None if self._allow_unsafe else Guard(self._spark.catalog.tableExists),
                )
                if isinstance(bound, Fallback):
                    self._check_fallback(bound)
        except WeftError as error:
            raise error.in_query(name) from None
        return bound

    def _check_fallback(self, bound: Fallback) -> None:
        """Let Spark judge a query that weft does not share: its SQL, and its use of streams."""
        try:
            names = fallback_frame(self._spark, bound, self.sources, self.tables).columns
            self._rules.check(bound, self.sources, self.tables)
        except PySparkException as error:
            raise SqlError("INVALID_QUERY", detail=_sentence(error)) from None
        lowered = [name.lower() for name in names]
        twice = next((name for name in names if lowered.count(name.lower()) > 1), None)
        if twice is not None:
            detail = f"two result columns are called '{twice}'; give one of them an alias"
            raise SqlError("DUPLICATE_COLUMN", detail=detail)

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
                    if error.error_class in ("UNKNOWN_STREAM", "SESSION_SETTING"):
                        return None
                    self._catalog.set_status(record.change, REJECTED, str(error))
                    self._seen = None
                    return None
                if isinstance(bound, Fallback):
                    self._catalog.set_status(record.change, FALLBACK, bound.detail)
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


def _sentence(error: PySparkException) -> str:
    """What Spark objects to, without its plan, its stack and the place in weft's own text."""
    text = str(error).split("\n\nJVM stacktrace", 1)[0].split(";\n", 1)[0]
    lines = [line.strip() for line in text.split("\n== SQL", 1)[0].splitlines()]
    sentence = " ".join(line for line in lines if line and not line.startswith(("~", "+-", "'")))
    return _SQLSTATE.sub("", sentence)[:_MOST_CHARACTERS]
