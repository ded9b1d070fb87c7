"""What users see: `Weft`, its query handles and its runs (DESIGN section 1.2)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlalchemy.exc import DatabaseError, SQLAlchemyError

from weft.algebra.numbered import numbered, numbered_name, source_name
from weft.algebra.plan import SharedPlan
from weft.algebra.query import Query, quote
from weft.catalog.store import ACTIVE, FALLBACK, REJECTED, Catalog, QueryRecord, check_name
from weft.errors import CatalogError, CheckpointError, RunError
from weft.explain import Explanation, FallbackNote, explain
from weft.kernel.windows.program import family
from weft.kernel.windows.results import QUERY_COLUMN, output_names
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import WindowWeaving, check_sharing
from weft.runtime.api.assembly import Assembly
from weft.runtime.api.handle import QueryHandle
from weft.runtime.api.registry import Registry
from weft.runtime.api.session import sql_session
from weft.runtime.api.sources import Source, fallback_frame, source
from weft.runtime.planning.replanning import group_counts, measured_sharing
from weft.runtime.planning.versions import ALWAYS
from weft.runtime.protocol.checkpoint import open_checkpoint
from weft.runtime.protocol.lease import Lease
from weft.runtime.protocol.log import StreamLog
from weft.runtime.protocol.storage import Storage, to_json
from weft.runtime.rows.engine import row_settings
from weft.runtime.run.fallback import FallbackRun, fallback_results
from weft.runtime.run.run import Run
from weft.runtime.settings import settings_of
from weft.runtime.sinks.sinks import (
    MemorySink,
    ResultStore,
    Sink,
    destination,
    results_folder,
    stores_of,
)
from weft.sql.fallback import Fallback
from weft.stats import StreamStatistics

_TRIGGERS = ("availableNow", "processingTime")


class Weft:
    """Many continuous queries over shared streams, run as one."""

    def __init__(
        self,
        spark: SparkSession,
        checkpoint: str | os.PathLike[str],
        *,
        catalog: str | None = None,
        project: str | None = None,
        **settings: Any,
    ) -> None:
        self._spark = spark
        self._settings = settings_of(settings)
        check_sharing(measured_sharing(self._settings, None))
        self._storage = Storage(os.fspath(checkpoint))
        lanes = self._settings.lanes or max(2, spark.sparkContext.defaultParallelism)
        self._identity = open_checkpoint(self._storage, project, lanes)
        if catalog is None:
            if not self._storage.local:
                raise CheckpointError(
                    "DAMAGED",
                    path=self._storage.uri,
                    detail="a remote checkpoint needs catalog=, the URL of a database",
                )
            catalog = f"sqlite:///{self._storage.path('catalog.db')}"
        try:
            self._catalog = Catalog(catalog)
        except DatabaseError as error:
            detail = f"{error.orig}; if it is SQLite's file, delete it: it will be rebuilt"
            raise CheckpointError("DAMAGED", path=catalog, detail=detail) from error
        allow_unsafe = self._settings.allow_unsafe_sql
        self._registry = Registry(spark, self._catalog, allow_unsafe_sql=allow_unsafe)
        self._logs: dict[str, StreamLog] = {}
        self._run: Run | None = None
        self._sink: Sink = ResultStore()
        self._bind_stores(self._sink)
        self._lock = threading.RLock()
        self._trigger: dict[str, Any] = {}
        self._synced: Sequence[QueryRecord] | None = None
        self._recorded: set[tuple[str, int]] = set()
        self._late: dict[int, int] = {}
        self._assembly = Assembly(
            self._registry,
            self._catalog,
            self._settings,
            self._identity,
            self._log,
            self._planned,
        )
        self._recover()

    # streams and tables

    def add_stream(
        self,
        name: str,
        df: DataFrame,
        time: str | None = None,
        watermark: str | None = None,
    ) -> None:
        """Add a streaming DataFrame; time and watermark are inferred if it has a watermark."""
        check_name(name, "stream")
        self._check_free(name)
        added = source(name, df, time, watermark)
        known = self._catalog.streams().get(name)
        if known is not None:
            _check_unchanged(known, added)
        self._registry.sources[name] = added
        self._catalog.put_stream(added.schema)

    def add_table(self, name: str, df: DataFrame) -> None:
        """Add a relation that queries may join."""
        check_name(name, "table")
        self._check_free(name)
        self._registry.tables[name] = df

    def _check_free(self, name: str) -> None:
        taken = {*self._registry.sources, *self._registry.tables}
        if name.lower() in {known.lower() for known in taken}:
            raise CatalogError("DUPLICATE_NAME", kind="stream or table", name=name)

    # queries

    def register(self, name: str, sql: str) -> QueryHandle:
        """Register a query, before `start` or while running.

        Registering a query again that this checkpoint holds already, with the same text,
        gives its handle: so a program can be restarted as it is.
        """
        with self._lock:
            again = self._claim(name, sql)
            if again is not None:
                return QueryHandle(self, self._catalog, again)
            self._catalog.check_free(name)
            bound = self._registry.bind(name, sql, query_id="")
            if isinstance(bound, Fallback):
                record = self._catalog.add_query(name, sql, FALLBACK, bound.detail)
            else:
                record = self._catalog.add_query(name, sql)
                bound = replace(bound, id=record.id)
            self._registry.put(record, bound)
            self._registry.forget_live()
            return QueryHandle(self, self._catalog, record)

    def _claim(self, name: str, sql: str) -> QueryRecord | None:
        """The record of an earlier process for the same name and text, once."""
        known = self._inherited.get(name)
        if known is None or known.sql.strip() != sql.strip():
            return None
        del self._inherited[name]
        live = {record.change: record for record in self._catalog.live()}
        record = live.get(known.change)
        if record is not None and record.status == REJECTED:
            self._catalog.set_status(record.change, ACTIVE)
            self._registry.forget_live()
            self._registry.of(self._catalog.find(name))
        return record

    def drop(self, name: str) -> None:
        """Drop a query, before `start` or while running; its results stay readable no more."""
        with self._lock:
            self._catalog.drop_query(name)
            self._inherited.pop(name, None)
            self._registry.forget_live()

    @contextmanager
    def changes(self) -> Iterator[None]:
        """Many registrations and drops as one: all take effect at one micro-batch, or none."""
        with self._lock, self._catalog.transaction():
            yield

    def query(self, name: str) -> QueryHandle:
        """The handle of a registered query."""
        return QueryHandle(self, self._catalog, self._catalog.find(name))

    @property
    def queries(self) -> list[QueryHandle]:
        """Handles of all registered queries, in the order of registration."""
        return [QueryHandle(self, self._catalog, record) for record in self._registry.live()]

    # plans

    def plan(self, stream: str) -> SharedPlan:
        """The shared plan of a stream's queries as they are registered now; that of its row
        windows is under the name `stream@rows`."""
        queries = self._registry.shared(stream)
        log = self._log(stream)
        last = log.last()
        schema = self._registry.sources[source_name(stream)].schema
        settings = self._settings
        if stream != schema.name:
            schema, settings = numbered(schema), row_settings(settings)
        if last is not None:
            plan = log.plan(last.plan_version)
            if [query.id for query in plan.queries] == [query.id for query in queries]:
                return plan
        counts = group_counts(self._catalog.statistics(stream))
        weaving = WindowWeaving(measured_sharing(settings, last), counts)
        return share(0, schema, queries, {query.id: ALWAYS for query in queries}, weaving)

    def counted(self, stream: str) -> dict[str, Any]:
        """What a stream's steps have counted so far: rows, results, aggregate operations of each
        level, late rows; empty before the first."""
        last = self._log(stream).last()
        return dict(last.metrics) if last is not None else {}

    def statistics(self, stream: str) -> StreamStatistics:
        """What is known of a stream: its rate, groups and skew of keys, selectivities, each with
        where it comes from; assumed before anything is measured."""
        if stream not in self._registry.sources:
            known = ", ".join(self._registry.sources) or "none"
            raise CatalogError("UNKNOWN_STREAM", name=stream, known=known)
        found = self._catalog.statistics(stream)
        last = self._log(stream).last()
        if last is None and not found.known:
            return StreamStatistics.unknown(self._settings.assumed_rate)
        return found.counted(last.metrics) if last is not None else found

    def explain(self, name: str | None = None) -> Explanation:
        """The shared plan, who shares what, and what it saves; of one query, if named."""
        if name is not None:
            self._catalog.find(name)
        names = [(name, numbered_name(name)) for name in self._registry.sources]
        plans = [self.plan(name) for pair in names for name in pair]
        notes = [
            FallbackNote(record.name, bound.stream, bound.detail)
            for record, bound in self._registry.fallbacks()
        ]
        shown = explain([plan for plan in plans if plan.queries], notes, only=name)
        return shown.with_statistics(
            {each: self.statistics(each) for each in self._registry.sources}
        )

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    # running

    def start(
        self,
        sink: Sink | None = None,
        *,
        availableNow: bool | None = None,
        processingTime: str | None = None,
    ) -> Run:
        """Run all queries; without a sink, into the result store."""
        with self._lock:
            if self._run is not None:
                if self._run.isActive:
                    raise RunError("ALREADY_RUNNING", owner="this process")
                self._run.finish()
            trigger = _trigger(availableNow, processingTime)
            self._check_sources()
            lease = Lease(self._storage)
            lease.acquire()
            try:
                return self._start(sink or ResultStore(), trigger, lease)
            except BaseException:
                if self._run is not None:
                    self._run.stop()
                lease.release()
                self._run = None
                raise

    def _start(self, sink: Sink, trigger: dict[str, Any], lease: Lease) -> Run:
        self._sink = sink
        self._bind_stores(sink)
        run = Run(lease.release, self._sync, self._registry.quarantine)
        assembled = [
            self._assembly.steppers(name, lease, sink, run) for name in self._streams_to_run()
        ]
        for stream in assembled:
            for member in (stream.leader, stream.rows):
                member.check(self._spark)
                if member.last is not None:
                    plan = member.stepper.log.plan(member.last.plan_version)
                    self._planned(plan, member.last.late)
        if not assembled and not self._registry.fallbacks():
            raise RunError("NOTHING_TO_RUN")
        self._trigger, self._lease, self._run = trigger, lease, run
        self._synced = None
        for stream in assembled:
            self._assembly.add_to(run, stream, trigger, self._spark)
        self._sync()
        run.watch()
        return run

    def _streams_to_run(self) -> list[str]:
        """Streams with queries to share, or with windows still open."""
        return [
            name
            for name in self._registry.sources
            if self._registry.shared(name)
            or self._registry.shared(numbered_name(name))
            or self._log(name).begun
        ]

    def _planned(self, plan: SharedPlan, late: Mapping[str, int]) -> None:
        """Keep the catalog up to date after a step. The step is committed whatever becomes of
        this: if another process holds the database, the next step tries again."""
        counts = {_change(name): pairs for name, pairs in late.items()}
        version = (plan.stream.name, plan.version)
        try:
            with self._catalog.transaction():
                for change, pairs in counts.items():
                    if self._late.get(change) != pairs:
                        self._catalog.set_late(change, pairs)
                if version not in self._recorded:
                    for name, time in plan.complete_from.items():
                        self._catalog.set_complete_from(_change(name), time)
                    self._save_catalog()
        except SQLAlchemyError:
            return
        self._late |= counts
        self._recorded.add(version)

    def _save_catalog(self) -> None:
        """A copy of the live queries in the checkpoint, from which a lost catalog is rebuilt."""
        body = {
            "last": self._catalog.fingerprint()[1],
            "queries": [asdict(record) for record in self._catalog.live()],
        }
        self._storage.put("catalog.json", to_json(body))

    def _sync(self) -> None:
        """Start and stop streams and plain queries as queries are registered and dropped."""
        with self._lock:
            run = self._run
            if run is None or not run.open:
                return
            live = self._registry.live()
            if live is self._synced:
                return
            for name in set(self._streams_to_run()) - run.stream_names:
                assembled = self._assembly.steppers(name, self._lease, self._sink, run)
                self._assembly.add_to(run, assembled, self._trigger, self._spark)
            self._sync_fallbacks(run)
            self._save_catalog()
            self._synced = self._registry.live()

    def _sync_fallbacks(self, run: Run) -> None:
        wanted = {record.id: (record, bound) for record, bound in self._registry.fallbacks()}
        for query_id in run.fallback_ids - wanted.keys():
            run.stop_fallback(query_id)
        for query_id, (record, bound) in wanted.items():
            if query_id in run.fallback_ids:
                continue
            frame = self._fallback_frame(bound)
            try:
                run.start_fallback(
                    FallbackRun(record, frame, self._storage, self._sink), self._trigger
                )
            except PySparkException as error:
                self._registry.quarantine(query_id, str(error).split("\n", 1)[0])

    def _fallback_frame(self, bound: Fallback) -> DataFrame:
        registry = self._registry
        return fallback_frame(self._spark, bound, registry.sources, registry.tables)

    # results

    def results(self, name: str) -> DataFrame:
        """A query's results so far, in its own columns."""
        record = self._catalog.find(name)
        bound = self._registry.of(record)
        sink = destination(self._sink, name)
        if isinstance(sink, MemorySink):
            return self._memory_results(record, bound, sink)
        if not isinstance(sink, ResultStore):
            raise RunError("NO_RESULTS", name=name, sink=sink.name)
        if isinstance(bound, Fallback):
            frame = self._fallback_frame(bound)
            return fallback_results(self._spark, self._storage, record.id, frame)
        if bound is None:
            raise RunError("QUERY_FAILED", query=name, detail=record.detail)
        return self._stored_results(bound)

    def _stored_results(self, query: Query) -> DataFrame:
        wanted = family(query.output_types)
        files = [
            f"{_spark_root(results_folder(self._storage, entry['root']))}/{entry['name']}"
            for entry in self._log(query.stream).result_files()
            if entry["family"] == wanted
        ]
        names = output_names(len(query.columns))
        types = [
            f"{name} {type_}" for name, type_ in zip(names[1:], query.output_types, strict=True)
        ]
        schema = ", ".join([f"{QUERY_COLUMN} string", *types])
        if files:
            rows = self._spark.read.schema(schema).parquet(*files)
        else:
            rows = self._spark.createDataFrame([], schema)
        chosen = rows.where(F.col(QUERY_COLUMN) == query.id)
        return chosen.select(
            *(
                F.col(c).alias(column.name)
                for c, column in zip(names[1:], query.columns, strict=True)
            )
        )

    def _memory_results(
        self, record: QueryRecord, bound: Query | Fallback | None, sink: MemorySink
    ) -> DataFrame:
        import pyarrow as pa

        tables = sink.tables(record.id)
        if tables:
            return self._spark.createDataFrame(pa.concat_tables(tables))
        if isinstance(bound, Query):
            ddl = ", ".join(f"{quote(c.name)} {c.type}" for c in bound.columns)
            return self._spark.createDataFrame([], ddl)
        assert isinstance(bound, Fallback)
        return self._spark.createDataFrame([], self._fallback_frame(bound).schema)

    # the checkpoint

    def _recover(self) -> None:
        """Take over what the checkpoint holds; rebuild a catalog that is lost."""
        streams = [name for name in self._storage.names("streams") if name[0] != "."]
        empty = self._catalog.fingerprint()[0] == 0
        for name in streams:
            log = self._log(name)
            last = log.last()
            step = log.staged(last) or last
            if step is not None:
                self._registry.remember(log.plan(step.plan_version))
        if empty and self._storage.exists("catalog.json"):
            saved = self._storage.read_json("catalog.json")
            records = [QueryRecord(**record) for record in saved["queries"]]
            self._catalog.restore(records, saved["last"])
        self._inherited = {record.name: record for record in self._catalog.live()}

    def _log(self, stream: str) -> StreamLog:
        if stream not in self._logs:
            self._logs[stream] = StreamLog(self._storage, stream)
        return self._logs[stream]

    def _check_sources(self) -> None:
        """Every registered query must have its stream, and the session must read SQL as it did."""
        sql_session(self._spark)
        for record in self._registry.live():
            if record.status not in (ACTIVE, FALLBACK):
                continue
            bound = self._registry.of(record)
            if bound is None and self._catalog.find(record.name).status != REJECTED:
                self._registry.bind(record.name, record.sql, record.id)
            name = source_name(bound.stream) if bound is not None else None
            if name is not None and name not in self._registry.sources:
                known = ", ".join(self._registry.sources) or "none"
                raise CatalogError("UNKNOWN_STREAM", query=record.name, name=name, known=known)

    def _bind_stores(self, sink: Sink) -> None:
        for store in stores_of(sink):
            store.bind(self._storage, self._identity.owner)


def _check_unchanged(known: Any, added: Source) -> None:
    name = added.schema.name
    now = {field.name: field.type for field in added.schema.fields}
    for field in known.fields:
        if now.get(field.name) != field.type:
            found = now.get(field.name, "missing")
            detail = f"column '{field.name}' was {field.type} and is {found}"
            raise CheckpointError("STREAM_CHANGED", name=name, detail=detail)
    if known.time != added.schema.time:
        detail = f"the event time was '{known.time}' and is '{added.schema.time}'"
        raise CheckpointError("STREAM_CHANGED", name=name, detail=detail)


def _trigger(available_now: bool | None, processing_time: str | None) -> dict[str, Any]:
    if available_now and processing_time:
        raise RunError("QUERY_FAILED", detail="give availableNow or processingTime, not both")
    if available_now:
        return {"availableNow": True}
    return {"processingTime": processing_time or "0 seconds"}


def _change(query_id: str) -> int:
    return int(query_id.rsplit("@", 1)[1])


def _spark_root(root: str) -> str:
    return root if "://" in root else f"file://{root}"
