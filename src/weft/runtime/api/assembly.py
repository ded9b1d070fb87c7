"""How the steppers of a stream are put together: its leader, its followers, and what runs them.

Nothing here starts: `Weft.start` and its supervision decide when a stream runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from weft.algebra.joinagg.matches import (
    PUBLISHED_MATCHES,
    aggregation_of,
    is_matches,
    matching,
)
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sets import set_of
from weft.algebra.joinagg.sources import Source, source_of
from weft.algebra.network.derived import DerivedQuery, schema_of
from weft.algebra.network.query import JoinQuery
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.numbered import numbered
from weft.algebra.plan import query_columns
from weft.algebra.query import NUMBER, Query, StreamSchema
from weft.catalog.store import Catalog, QueryRecord
from weft.errors import WeftError
from weft.optimizer.network.options import Options
from weft.runtime.checkpoint.commits import Edition
from weft.runtime.checkpoint.identity import Identity
from weft.runtime.checkpoint.lease import Lease
from weft.runtime.checkpoint.log import Plan, StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.derived.engine import DerivedEngine, Membership
from weft.runtime.derived.publication import DerivedPublication
from weft.runtime.fallbacks.log import remove_dropped
from weft.runtime.fallbacks.run import FallbackRun, fallback_run
from weft.runtime.joinagg.choices import Choices
from weft.runtime.joinagg.engine import LOG as AGGREGATIONS_LOG
from weft.runtime.joinagg.engine import JoinAggEngine
from weft.runtime.joinagg.lanes.computing import Lanes as AggregationLanes
from weft.runtime.joinagg.lanes.computing import on_spark as aggregations_on_spark
from weft.runtime.joinagg.publication import LateRowsPublication, PanesPublication
from weft.runtime.network.backfill import waiting
from weft.runtime.network.engine import LOG as NETWORK_LOG
from weft.runtime.network.engine import NetworkEngine
from weft.runtime.network.lanes.computing import Lanes, on_spark
from weft.runtime.network.planner import NetworkPlanner
from weft.runtime.network.publication import NetworkPublication
from weft.runtime.network.unseen import UNSEEN
from weft.runtime.planning.planner import Planner
from weft.runtime.planning.sampling import Sampling
from weft.runtime.protocol.follower import Follower, InputLog
from weft.runtime.protocol.leader import Leader
from weft.runtime.protocol.publishing import Consumer, Publisher, RowPublication
from weft.runtime.protocol.step import Hooks
from weft.runtime.protocol.stepper import Stepper
from weft.runtime.queries.registry import Registry
from weft.runtime.rows.engine import ROWS, RowsEngine, row_settings
from weft.runtime.rows.numbering import Numbering
from weft.runtime.rows.publication import RowsPublication
from weft.runtime.run.follower_run import FollowerRun
from weft.runtime.run.run import Run
from weft.runtime.run.stream_run import StreamRun
from weft.runtime.settings import Settings
from weft.runtime.sinks.delivery import Sink
from weft.runtime.sinks.outlet import SinkOutlet
from weft.runtime.sinks.routes import stores_of
from weft.runtime.tables import TableVersions
from weft.runtime.windows.engine import Surroundings, WindowsEngine
from weft.sql.fallback import Fallback
from weft.stats import StreamStatistics

_logger = logging.getLogger("weft")
QueriesT = TypeVar("QueriesT", bound=Sequence[Query | NetworkQuery | AggregationJoin])


@dataclass(frozen=True)
class Assembled:
    """The steppers of one stream: the one that Spark's micro-batches drive, that of its row windows,
    which follows it, and the stream as the network of join queries and the aggregation joins follow it."""

    leader: Leader
    rows: Follower
    for_network: InputLog
    for_aggregations: InputLog


@dataclass(frozen=True)
class Shared:
    """What all steppers of a run share."""

    lease: Lease
    sink: Sink
    run: Run
    tables: TableVersions


@dataclass(frozen=True)
class _Matching:
    """The network's queries for late inputs of aggregation joins, made of some queries with a version of their choices."""

    queries: tuple[AggregationJoin, ...] = ()
    version: int = -1
    slots: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    joins: tuple[JoinQuery, ...] = ()


class Assembly:
    """Makes the steppers of streams, and the runs of these steppers."""

    def __init__(
        self,
        storage: Storage,
        registry: Registry,
        catalog: Catalog,
        settings: Settings,
        identity: Identity,
        log: Callable[[str], StreamLog],
        planned: Callable[[str, Plan, Mapping[str, int]], None],
    ) -> None:
        self._storage, self._registry, self._catalog = storage, registry, catalog
        self._settings, self._identity = settings, identity
        self._log, self._planned = log, planned
        self._columns: dict[str, set[str]] = {}
        self._matching = _Matching()
        self._for_network: tuple[tuple[NetworkQuery, ...], ...] = (), (), ()
        """What streams publish rows for: registered queries, those for matches, and both."""
        self.choices = Choices(storage, settings, catalog.statistics, AGGREGATIONS_LOG)

    def fallback(
        self, record: QueryRecord, bound: Fallback, sink: Sink, trigger: Mapping[str, Any]
    ) -> FallbackRun:
        """The run of a query that weft does not share."""
        return fallback_run(
            record,
            self._registry.fallback_frame(bound),
            self._storage,
            sink,
            self._identity.owner,
            self._settings,
            trigger,
            self._registry.quarantine,
        )

    def remove_dropped_fallbacks(self, sink: Sink) -> None:
        """Delete what fallbacks have left that were dropped, here or by another process."""
        live = {record.id for record in self._catalog.live()}
        places = {store.place for store in stores_of(sink)}
        last, owner = self._catalog.last_change(), self._identity.owner
        remove_dropped(self._storage, live, last, owner, places)

    def shared(self, lease: Lease, sink: Sink, run: Run) -> Shared:
        """What the steppers of a run share. The run reads every table once."""
        tables = TableVersions(self._storage, lambda: self._registry.tables, self._logs)
        return Shared(lease, sink, run, tables)

    def _logs(self) -> list[StreamLog]:
        """The logs of all steppers that have ever run here."""
        return [self._log(name) for name in self._storage.names("streams")]

    def network(self, around: Shared) -> Follower:
        """The follower of join queries, before it follows any stream."""
        log = self._log(NETWORK_LOG)
        index = self._catalog.network()
        planner = NetworkPlanner(log, lambda: self._registry.schemas, index, Options())
        publisher = Publisher(log)
        queries = self._at_a_step(
            lambda: (*self._registry.network(publisher.names), *self._matches())
        )
        weights = self._settings.lane_weights(self._identity.lanes)
        lanes = Lanes(weights, self._settings, around.sink, on_spark)
        engine = NetworkEngine(log, self._log, queries, planner, around.tables, lanes)
        stepper = self._stepper(log, engine, around, publisher)

        def backfill_is_due() -> bool:
            return bool(waiting(self._registry.backfilled, stepper.last))

        return Follower(
            stepper, most_unconsumed=self._settings.most_unconsumed, due=backfill_is_due
        )

    def aggregations(self, around: Shared, network: Follower) -> Follower:
        """The follower of aggregation joins, before it follows any stream. It follows the network, which publishes matches for it."""
        publisher = network.stepper.publisher
        assert publisher is not None
        log = self._log(AGGREGATIONS_LOG)
        queries = self._at_a_step(self._registry.aggregations)
        schemas = lambda: self._registry.schemas  # noqa: E731
        weights = self._settings.lane_weights(self._identity.lanes)
        lanes = AggregationLanes(weights, self._settings, aggregations_on_spark)
        engine = JoinAggEngine(log, self._log, queries, self.choices, schemas, around.tables, lanes)
        stepper = self._stepper(log, engine, around)
        publication = DerivedPublication(PUBLISHED_MATCHES, lambda: bool(self._matches()))
        source = _published_by(network, publisher, Consumer(publication, lambda: stepper.last))
        return Follower(stepper, [replace(source, leads=lambda: False)])

    def _matches(self) -> tuple[JoinQuery, ...]:
        """The joins of late inputs that the network runs; the same object as long as nothing changes."""
        queries, version = self._registry.aggregations(), self.choices.version
        known = self._matching
        if known.queries is not queries or known.version != version:
            slots = {query.id: self.choices.matched(query) for query in queries}
            wanted = {name: of_query for name, of_query in slots.items() if of_query}
            joins = known.joins
            if wanted != known.slots:
                schemas = self._registry.schemas
                chosen = [query for query in queries if query.id in wanted]
                joins = tuple(matching(query, wanted[query.id], schemas) for query in chosen)
            self._matching = known = _Matching(queries, version, wanted, joins)
        return known.joins

    def _joins(self) -> tuple[NetworkQuery, ...]:
        """What streams publish rows for; the same object as long as nothing changes."""
        registered, matches = self._registry.joins(), self._matches()
        known = self._for_network
        if known[0] is not registered or known[1] is not matches:
            self._for_network = known = registered, matches, (*registered, *matches)
        return known[2]

    def _edition(self, ready: Callable[[NetworkQuery], bool]) -> Edition:
        """For whom rows are published now."""
        names = tuple(join.id for join in self._matches() if ready(join))
        return replace(self._registry.edition(ready), names=names)

    def derived(self, name: str, around: Shared, network: Follower) -> Follower:
        """The follower of the network that runs the windowed aggregates over one join. From now on
        the network publishes for it."""
        publisher = network.stepper.publisher
        assert publisher is not None

        def queries() -> list[Query]:
            return self._registry.shared(name)

        def unseen() -> Mapping[str, Mapping[str, int]]:
            return network.last.engine.get(UNSEEN, {}) if network.last is not None else {}

        log = self._log(name)
        members, schema = Membership(queries, unseen), self._derived_schema(log)
        settings, sampling = self._settings, Sampling(every=0)
        planner = Planner(log, schema, settings, sampling, members.complete_from)
        windows = self._windows(log, settings, around, members.queries, sampling, planner)
        engine = DerivedEngine(windows, members, log, network.stepper.log)
        stepper = self._stepper(log, engine, around)
        publication = DerivedPublication(name, lambda: bool(queries()))
        consumer = Consumer(publication, lambda: stepper.last)
        source = _published_by(network, publisher, consumer, delay=schema.delay)
        return Follower(stepper, [source])

    def _derived_schema(self, log: StreamLog) -> StreamSchema:
        """A derived stream as its queries see it, or as it ran last."""
        queries = self._registry.shared(log.stream)
        derived = [query for query in queries if isinstance(query, DerivedQuery)]
        if derived:
            return schema_of(derived)
        last = log.last()
        if last is not None:
            return log.plan(last.plan_version).stream
        return StreamSchema(log.stream, (), "", 0)

    def steppers(
        self, name: str, around: Shared, network: Follower, aggregations: Follower
    ) -> Assembled:
        """The stream's own stepper, that of its row windows, and what other followers follow."""
        schema = self._registry.sources[name].schema
        row = self._stored_row(name)

        def queries() -> list[Query]:
            return [*self._registry.shared(name, self._columns[name]), *sets()]

        def sets() -> list[Query]:
            """The aggregation sets of early inputs."""
            return [set_of(source, schema) for source in self._sources(name, early=True)]

        def late_sources() -> list[Source]:
            return self._sources(name, early=False)

        def aggregated() -> bool:
            return any(name in query.relations for query in self._registry.aggregations())

        def row_queries() -> list[Query]:
            """None until the stream is read with all its columns."""
            read = self._columns[name]
            numbered_name = numbered(schema).name
            return self._registry.shared(numbered_name, read) if set(row.names) <= read else []

        def row_queries_exist() -> bool:
            return bool(row_queries())

        log = self._log(name)
        rows_stepper = self._rows_stepper(schema, row, around, row_queries)
        publication = RowsPublication(schema, row, row_queries_exist)
        for_joins = NetworkPublication(
            schema, self._joins, lambda: self._columns[name], self._edition
        )
        late_rows = LateRowsPublication(schema, late_sources)
        consumers = [
            Consumer(publication, lambda: rows_stepper.last),
            Consumer(for_joins, lambda: network.last),
            Consumer(late_rows, lambda: aggregations.last),
            Consumer(PanesPublication(aggregated), lambda: aggregations.last),
        ]
        rows_of: list[RowPublication] = [publication, for_joins, late_rows]
        publisher = Publisher(log, consumers, rows_of, self._identity.lanes)
        sampling = self._sampling(name)
        planner = Planner(log, schema, self._settings, sampling)
        engine = self._windows(log, self._settings, around, queries, sampling, planner)
        stepper = self._stepper(log, engine, around, publisher)
        leader = Leader(stepper, schema, self._settings.most_unconsumed)

        def joined() -> bool:
            """Matches alone must not change which rows join queries admit."""
            return any(name in query.relations for query in self._registry.joins())

        def followed_by(
            *consumers: Consumer, without_gap: str = "", leads: Callable[[], bool] = lambda: True
        ) -> InputLog:
            return InputLog(
                log,
                lambda: stepper.last,
                publisher.clean,
                lambda: any(publisher.published_for(consumer) for consumer in consumers),
                lambda: any(consumer.publication.wanted for consumer in consumers),
                without_gap,
                leads=leads,
            )

        rows = followed_by(consumers[0], without_gap=ROWS)
        return Assembled(
            leader,
            Follower(rows_stepper, [rows]),
            followed_by(consumers[1], leads=joined),
            followed_by(*consumers[2:]),
        )

    def _sources(self, stream: str, *, early: bool) -> list[Source]:
        """What early or late inputs of aggregation joins read of a stream, as far as its columns are read."""
        read = self._columns[stream]
        sources = self.choices.sources(self._registry.aggregations(), stream, early=early)
        return [source for source in sources if source.columns <= read]

    def _rows_stepper(
        self,
        schema: StreamSchema,
        row: StructType,
        around: Shared,
        queries: Callable[[], list[Query]],
    ) -> Stepper:
        rows = numbered(schema)
        log, settings = self._log(rows.name), row_settings(self._settings)
        sampling = Sampling(every=0)
        planner = Planner(log, rows, settings, sampling)
        windows = self._windows(log, settings, around, queries, sampling, planner)
        numbering = Numbering(log, schema, row, self._identity.lanes)
        engine = RowsEngine(windows, numbering, log, self._log(schema.name))
        return self._stepper(log, engine, around)

    def _stored_row(self, name: str) -> StructType:
        """The columns of a stream that files can hold."""
        added = self._registry.sources[name]
        stored = {field.name for field in numbered(added.schema).fields}
        fields = [field for field in added.frame.schema if field.name in stored]
        return StructType([StructField(field.name, field.dataType) for field in fields])

    def _windows(
        self,
        log: StreamLog,
        settings: Settings,
        around: Shared,
        queries: Callable[[], list[Query]],
        sampling: Sampling,
        planner: Planner,
    ) -> WindowsEngine:
        lanes, registered = self._identity.lanes, self._at_a_step(queries)
        return WindowsEngine(
            Surroundings(
                log, around.sink, settings, lanes, registered, planner, sampling, around.tables
            )
        )

    def _stepper(
        self,
        log: StreamLog,
        engine: Any,
        around: Shared,
        publisher: Publisher | None = None,
    ) -> Stepper:
        outlet = SinkOutlet(around.sink, self._settings, self._identity.owner)
        hooks = Hooks(self._quarantine, self._planned, around.run.report)
        return Stepper(log, engine, around.lease, outlet, hooks, publisher)

    def _quarantine(self, query_id: str, error: str) -> None:
        """Take a query out of the run. A published set is for the sources that it serves. Where the network fails at the matches of an
        aggregation join, these are found at instants."""
        if is_matches(query_id):
            self.choices.join_at_instants(aggregation_of(query_id), error)
            return
        for name in self.choices.serving.served_by(query_id) or [query_id]:
            self._registry.quarantine(name, error)

    def _at_a_step(self, queries: Callable[[], QueriesT]) -> Callable[[], QueriesT]:
        """The registered queries as they are when a step begins."""

        def registered() -> QueriesT:
            self._registry.look()
            return queries()

        return registered

    def _sampling(self, stream: str) -> Sampling:
        def keep(statistics: StreamStatistics) -> None:
            try:
                self._catalog.put_statistics(stream, statistics)
            except WeftError as error:  # statistics are advisory: the next sample replaces them
                _logger.info("the statistics of stream '%s' are not kept: %s", stream, error)

        statistics = self._catalog.statistics(stream)
        return Sampling(self._settings.statistics_every, statistics, keep)

    # runs

    def add_to(
        self,
        run: Run,
        assembled: Assembled,
        trigger: Mapping[str, Any],
        spark: SparkSession,
        network: FollowerRun,
        aggregations: FollowerRun,
    ) -> None:
        """Start a stream and its followers as part of a run."""
        stream = self._stream_run(assembled.leader, trigger)
        network.follow(stream, assembled.for_network)
        aggregations.follow(stream, assembled.for_aggregations)
        run.add_stream(stream)
        run.add_follower(FollowerRun(assembled.rows, [stream], spark))

    def _stream_run(self, leader: Leader, trigger: Mapping[str, Any]) -> StreamRun:
        added = self._registry.sources[leader.name]
        order = [field.name for field in added.schema.fields]
        cached: dict[str, Any] = {}

        def columns_in_use() -> tuple[str, ...]:
            live = self._registry.live()
            if cached.get("live") is not live:
                cached["live"] = live
                wanted = self._wanted_columns(leader)
                cached["columns"] = tuple(sorted(wanted, key=order.index))
            columns: tuple[str, ...] = cached["columns"]
            return columns

        def projected(columns: tuple[str, ...]) -> None:
            self._columns[leader.name] = set(columns)

        return StreamRun(
            leader, added.frame, trigger, columns_in_use, projected, self._settings.idle_seconds
        )

    def _wanted_columns(self, leader: Leader) -> set[str]:
        """The columns that registered queries read, and what a replay would use. The order of rows
        takes all columns, and so does what is published for row windows."""
        wanted = {leader.stream.time}
        rows = numbered(leader.stream)
        log = leader.stepper.log
        intents = log.intents_after(leader.last)
        if self._registry.shared(rows.name) or any(ROWS in i.publications for i in intents):
            wanted |= {field.name for field in rows.fields} - {NUMBER}
        for query in self._registry.shared(leader.name):
            wanted |= query_columns(query)
        for join in self._joins():
            wanted |= join.columns_of(leader.name)
        for aggregation in self._registry.aggregations():
            for slot, entry in enumerate(aggregation.inputs):
                if entry.relation == leader.name:
                    source = source_of(aggregation, slot)
                    # a set that serves several inputs stays as wide when some of them are dropped
                    wanted |= source.columns | (self.choices.provider(source) or source).columns
        for intent in intents:
            wanted |= set(log.plan(intent.plan_version).columns)
        return wanted


def _published_by(
    network: Follower, publisher: Publisher, consumer: Consumer, delay: int = 0
) -> InputLog:
    """The network as a follower of it sees it. From now on it publishes for the follower."""
    publisher.add(consumer)
    return InputLog(
        network.stepper.log,
        lambda: network.last,
        publisher.clean,
        lambda: publisher.published_for(consumer),
        lambda: consumer.publication.wanted,
        delay=delay,
    )
