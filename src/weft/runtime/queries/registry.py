"""The queries of a weft, bound: the catalog's records as algebra.

A query that a plan snapshot holds is taken from there, so that a restart runs what ran before.
Queries that another process registered are bound when they are first seen; one that cannot be
bound is rejected in the catalog with its error, and disturbs no other.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sources import source_of
from weft.algebra.network.bounds import NEVER, warning
from weft.algebra.network.derived import DerivedQuery, published_join
from weft.algebra.network.query import JoinQuery
from weft.algebra.network.sets import NetworkQuery, backfilled
from weft.algebra.numbered import source_name
from weft.algebra.plan import columns_by_query, query_tables
from weft.algebra.query import Field, Query, StreamSchema
from weft.catalog.store import FALLBACK, QUARANTINED, REJECTED, Catalog, QueryRecord
from weft.errors import CatalogError, SqlError, WeftError
from weft.optimizer.joinagg.possible import fixed_inputs
from weft.runtime.checkpoint.commits import Edition
from weft.runtime.checkpoint.log import Plan
from weft.runtime.queries.analyzer import SparkAnalyzer
from weft.runtime.queries.live import LiveQueries
from weft.runtime.queries.session import SqlSession, SqlSessions
from weft.runtime.queries.sources import StreamSource, check_columns, fallback_frame
from weft.runtime.queries.streaming_rules import StreamingRules
from weft.runtime.quiet import quiet_sql_errors
from weft.sql.binding.bind import bind
from weft.sql.binding.safety import Guard
from weft.sql.binding.templates import Templates
from weft.sql.fallback import Fallback
from weft.sql.scopes.inputs import Inputs
from weft.sql.typing.analyzer import remembering

Bound = Query | NetworkQuery | AggregationJoin | Fallback
"""A registered query after binding."""

_NO_PLAN = (
    "the join cannot be run with approx_percentile: all inputs but the one that it reads must be joined row by "
    "row, and their expressions must not raise errors; sketches of a table's rows have no form"
)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+[^.]*$")
_MOST_CHARACTERS = 500


@dataclass(frozen=True)
class _Running:
    """The queries that run, in the order of registration, and those of each kind."""

    records: Sequence[QueryRecord]
    """The live records that this was made of, running or not."""
    queries: tuple[tuple[QueryRecord, Bound | None], ...]
    by_stream: Mapping[str, tuple[Query, ...]]
    joins: tuple[NetworkQuery, ...]
    """The join queries, and the joins that windowed aggregates run over, each for its own query."""
    aggregations: tuple[AggregationJoin, ...]
    derived: Mapping[str, JoinQuery]
    """By derived stream: the join that is published for all queries over it."""
    idle: tuple[str, ...]
    """The ids of the live queries that do not run."""

    @cached_property
    def backfilled(self) -> tuple[NetworkQuery, ...]:
        return tuple(query for query in self.joins if query.backfill)


@dataclass(frozen=True)
class _BoundWith:
    """What bound queries have in common, and the streams, tables and settings that they were bound with."""

    sources: Mapping[str, StreamSource]
    tables: Mapping[str, DataFrame]
    session: SqlSession
    templates: Templates


class Registry:
    """Bound queries by catalog record."""

    def __init__(
        self, spark: SparkSession, catalog: Catalog, *, allow_unsafe_sql: bool = False
    ) -> None:
        self._spark = spark
        self._allow_unsafe = allow_unsafe_sql
        self._analyzer = SparkAnalyzer(spark)
        self._sessions = SqlSessions(spark)
        self._rules = StreamingRules(spark)
        self._live = LiveQueries(catalog)
        self._lock = threading.Lock()
        """Guards the values below. Nobody asks the catalog or Spark while holding it, for who holds
        the catalog may be waiting for it."""
        self._bound: dict[str, Bound] = {}
        self._grouped: _Running | None = None
        """What `_running` gave last, as long as neither records nor bound queries change."""
        self._pruned: Sequence[QueryRecord] = ()
        self._kept_templates: _BoundWith | None = None
        self.sources: Mapping[str, StreamSource] = MappingProxyType({})
        self.tables: Mapping[str, DataFrame] = MappingProxyType({})

    def add_source(self, source: StreamSource) -> None:
        """Add a stream. Whoever goes through the streams meanwhile sees those from before."""
        with self._lock:
            self._grouped = None
            self.sources = MappingProxyType({**self.sources, source.schema.name: source})

    def add_table(self, name: str, frame: DataFrame) -> None:
        check_columns(name, frame, "table")
        with self._lock:
            self._grouped = None
            self.tables = MappingProxyType({**self.tables, name: frame})

    def remember(self, plan: Plan) -> None:
        """Take the queries of a plan snapshot as they were bound."""
        with self._lock:
            self._grouped = None
            for query in plan.queries:
                joined_for_others = isinstance(query, JoinQuery) and query.members
                hidden = isinstance(query, Query) and query.publishes
                if not joined_for_others and not hidden:
                    self._bound.setdefault(query.id, query)

    @property
    def schemas(self) -> Mapping[str, StreamSchema]:
        return {name: source.schema for name, source in self.sources.items()}

    @property
    def table_fields(self) -> Mapping[str, tuple[Field, ...]]:
        """The columns of the tables."""
        return {
            name: tuple(Field(f.name, f.dataType.simpleString()) for f in frame.schema.fields)
            for name, frame in self.tables.items()
        }

    def one_session(self) -> AbstractContextManager[None]:
        """In the block, queries are bound by the same settings of the session."""
        return self._sessions.one()

    def bind(
        self,
        name: str,
        sql: str,
        query_id: str,
        emit: str | None = None,
        *,
        backfill: bool = False,
    ) -> Bound:
        """Bind a query, or raise `SqlError`. `emit` is for aggregation joins: full or changes; `backfill` for
        filters and joins."""
        try:
            session = self._sessions.now()
            templates = self._templates_for(session)
            plain = emit is None and not backfill
            by_template = templates.bound(name, sql, query_id) if plain else None
            if by_template is not None:
                return by_template
            with quiet_sql_errors():
                bound = bind(
                    name,
                    sql,
                    self.schemas,
                    self._analyzer,
                    query_id=query_id,
                    ansi=session.ansi,
                    double_quoted_names=session.double_quoted_names,
                    tables=self.table_fields,
                    time_zone=session.time_zone,
                    emit=emit,
                    guard=None if self._allow_unsafe else Guard(self._spark.catalog.tableExists),
                )
                if isinstance(bound, AggregationJoin) and fixed_inputs(bound) is None:
                    raise SqlError("UNSUPPORTED", detail=_NO_PLAN)
                if backfill:
                    bound = backfilled(bound)
                if isinstance(bound, Fallback):
                    self._check_fallback(bound)
        except WeftError as error:
            raise error.in_query(name) from None
        return templates.learn(bound) if isinstance(bound, Query) else bound

    def _templates_for(self, session: SqlSession) -> Templates:
        """The templates of queries that are bound with the streams, tables and settings of now."""
        kept, sources, tables = self._kept_templates, self.sources, self.tables
        if kept is not None and kept.sources is sources and kept.tables is tables:
            if kept.session == session:
                return kept.templates
        inputs = Inputs(self.schemas, self.table_fields)
        asked = remembering(self._analyzer, session.ansi)
        templates = Templates(inputs, asked, session.ansi, session.double_quoted_names)
        self._kept_templates = _BoundWith(sources, tables, session, templates)
        return templates

    def bind_record(self, record: QueryRecord) -> Bound:
        """Bind a query as it was registered."""
        return self.bind(record.name, record.sql, record.id, record.emit, backfill=record.backfill)

    def warning(self, bound: Query | NetworkQuery | AggregationJoin) -> str:
        """What a user should know of a shared query; empty if there is nothing."""
        if isinstance(bound, DerivedQuery):
            text = f"over {bound.derived.described}"
            return f"{text}; {NEVER}" if bound.derived.predicates.never else text
        return warning(bound, self.schemas) if isinstance(bound, NetworkQuery) else ""

    def _check_fallback(self, bound: Fallback) -> None:
        """Let Spark judge a query that weft does not share: its SQL, and its use of streams."""
        try:
            names = self.fallback_frame(bound).columns
            self._rules.check(bound, self.sources, self.tables)
        except PySparkException as error:
            detail = f"{_sentence(error).removesuffix('.')}. weft does not share it: {bound.why}"
            raise SqlError("INVALID_QUERY", detail=detail) from None
        lowered = [name.lower() for name in names]
        twice = next((name for name in names if lowered.count(name.lower()) > 1), None)
        if twice is not None:
            detail = f"two result columns are called '{twice}'; give one of them an alias"
            raise SqlError("DUPLICATE_COLUMN", detail=detail)

    def fallback_frame(self, bound: Fallback) -> DataFrame:
        """A query that weft does not share, as a plain streaming DataFrame."""
        return fallback_frame(self._spark, bound, self.sources, self.tables)

    def require_streams(self) -> None:
        """Refuse to start while a registered query lacks its stream, or the session reads SQL in
        another way than weft."""
        self._sessions.now()
        for record, bound in self._running().queries:
            if bound is None:
                statuses = {live.change: live.status for live in self.live()}
                if statuses.get(record.change) != REJECTED:
                    self.bind_record(record)
                continue
            for name in _relations(bound):
                if name not in self.sources and name not in self.tables:
                    known = ", ".join(self.sources) or "none"
                    raise CatalogError("UNKNOWN_STREAM", query=record.name, name=name, known=known)

    def put(self, record: QueryRecord, bound: Bound) -> None:
        with self._lock:
            self._grouped = None
            self._bound[record.id] = bound

    def forget(self, record: QueryRecord) -> None:
        """The query is dropped."""
        with self._lock:
            self._grouped = None
            self._bound.pop(record.id, None)

    def of(self, record: QueryRecord) -> Bound | None:
        """A record's query, bound now if need be; None if it is rejected."""
        with self._lock:
            bound = self._bound.get(record.id)
        if bound is not None and bound.sql == record.sql:
            return bound
        if record.status == REJECTED:
            return None
        try:
            bound = self.bind_record(record)
        except WeftError as error:
            if error.error_class not in ("UNKNOWN_STREAM", "SESSION_SETTING"):
                self._live.set_status(record.change, REJECTED, str(error))
            return None
        if isinstance(bound, Fallback) and (record.status, record.detail) != (
            FALLBACK,
            bound.detail,
        ):
            self._live.set_status(record.change, FALLBACK, bound.detail)
        self.put(record, bound)
        return bound

    def live(self) -> Sequence[QueryRecord]:
        """The live records; the same object as long as nothing changed."""
        records = self._live.now()
        self._forget_dropped(records)
        return records

    def look(self) -> None:
        """Read the catalog now: a step is about to take up what is registered."""
        self._live.look()

    def changed(self) -> None:
        """Read the catalog at the next question: this process has changed it."""
        self._live.changed()

    def _forget_dropped(self, records: Sequence[QueryRecord]) -> None:
        """Forget the bound queries that were dropped. Younger ones than the youngest record may be
        part of a change that is not committed yet."""
        if records is self._pruned:
            return
        wanted = {record.id for record in records}
        youngest = max((record.change for record in records), default=0)
        with self._lock:
            self._pruned = records
            self._bound = {
                query_id: bound
                for query_id, bound in self._bound.items()
                if query_id in wanted or change_of(query_id) > youngest
            }

    def shared(self, stream: str, columns: set[str] | None = None) -> list[Query]:
        """The shared queries of a stream; with `columns`, those that need no others."""
        queries = self._running().by_stream.get(stream, ())
        if columns is None:
            return list(queries)
        needed = columns_by_query(queries)
        return [query for query, own in zip(queries, needed, strict=True) if own <= columns]

    def joins(self) -> tuple[NetworkQuery, ...]:
        """What streams publish rows for: the join queries, and the joins of windowed aggregates."""
        return self._running().joins

    def network(self, published: Collection[str] | None = None) -> tuple[NetworkQuery, ...]:
        """What the network computes: the join queries, and a join for each derived stream that is
        published; None: for all."""
        running = self._running()
        over_joins = {query_id for join in running.derived.values() for query_id in join.members}
        plain = (join for join in running.joins if join.id not in over_joins)
        joins = (
            join for name, join in running.derived.items() if published is None or name in published
        )
        return (*plain, *joins)

    @property
    def derived(self) -> tuple[str, ...]:
        """The derived streams that queries read."""
        return tuple(self._running().derived)

    @property
    def backfilled(self) -> tuple[NetworkQuery, ...]:
        """The filters and joins that see what history held when they were added."""
        return self._running().backfilled

    def aggregations(self) -> tuple[AggregationJoin, ...]:
        """The aggregation joins."""
        return self._running().aggregations

    def edition(self, ready: Callable[[NetworkQuery], bool]) -> Edition:
        """Up to which registration rows are published now, and for which queries they are not: those
        that do not run, and those that the publisher is not ready for."""
        running = self._running()
        last = max((record.change for record in running.records), default=0)
        unready = (query.id for query in running.joins if not ready(query))
        return Edition(last, (*running.idle, *unready))

    def fallbacks(self) -> list[tuple[QueryRecord, Fallback]]:
        """The queries that run as plain streaming queries."""
        queries = self._running().queries
        return [(record, bound) for record, bound in queries if isinstance(bound, Fallback)]

    def _running(self) -> _Running:
        """The queries that run, bound. Asked many times a second, so kept until something changes."""
        records = self.live()
        running = self._grouped
        if running is not None and running.records is records:
            return running
        queries: list[tuple[QueryRecord, Bound | None]] = []
        by_stream: dict[str, list[Query]] = {}
        for record in records:
            if record.status in (QUARANTINED, REJECTED):
                continue
            bound = self.of(record)
            if isinstance(bound, Fallback) and record.status != FALLBACK:
                # It was resumed; who did so need not have known that it falls back.
                self._live.set_status(record.change, FALLBACK, bound.detail)
            if isinstance(bound, Query):
                by_stream.setdefault(bound.stream, []).append(bound)
            queries.append((record, bound))
        ran = {record.change for record, bound in queries if bound is not None}
        over_joins = {
            stream: [query for query in of_stream if isinstance(query, DerivedQuery)]
            for stream, of_stream in by_stream.items()
        }
        running = _Running(
            records,
            tuple(queries),
            {stream: tuple(of_stream) for stream, of_stream in by_stream.items()},
            tuple(join for _, bound in queries for join in _joins(bound)),
            tuple(bound for _, bound in queries if isinstance(bound, AggregationJoin)),
            {stream: published_join(over) for stream, over in over_joins.items() if over},
            tuple(record.id for record in records if record.change not in ran),
        )
        if all(bound is not None for _, bound in queries):
            self._grouped = running
        return running

    def quarantine(self, query_id: str, error: str) -> None:
        """Take a query out of the run. Of an aggregation set: the queries that it is for."""
        for name in self._behind(query_id):
            self._live.set_status(change_of(name), QUARANTINED, error)

    def _behind(self, query_id: str) -> list[str]:
        if not is_hidden(query_id):
            return [query_id]
        return [
            join.id
            for join in self.aggregations()
            if any(source_of(join, slot).id == query_id for slot in range(len(join.inputs)))
        ]


def _joins(bound: Bound | None) -> tuple[NetworkQuery, ...]:
    """What a query needs of the network."""
    if isinstance(bound, DerivedQuery):
        return (bound.join,)
    return (bound,) if isinstance(bound, NetworkQuery) else ()


def _relations(bound: Bound) -> tuple[str, ...]:
    """The streams and tables that a query reads."""
    if isinstance(bound, AggregationJoin):
        return bound.relations
    joins = _joins(bound)
    if joins:
        return joins[0].relations
    assert not isinstance(bound, NetworkQuery)
    tables = query_tables(bound) if isinstance(bound, Query) else ()
    return (source_name(bound.stream), *tables)


def is_hidden(query_id: str) -> bool:
    """Whether a query is part of others, and nobody has registered it."""
    return query_id.startswith("#")


def change_of(query_id: str) -> int:
    """The number of the registration that a query's id names.

    >>> change_of("hot@12")
    12
    """
    return int(query_id.rsplit("@", 1)[1])


def _sentence(error: PySparkException) -> str:
    """What Spark objects to, without its plan, its stack and the place in weft's own text."""
    text = str(error).split("\n\nJVM stacktrace", 1)[0].split(";\n", 1)[0]
    lines = [line.strip() for line in text.split("\n== SQL", 1)[0].splitlines()]
    sentence = " ".join(line for line in lines if line and not line.startswith(("~", "+-", "'")))
    return _SQLSTATE.sub("", sentence)[:_MOST_CHARACTERS]
