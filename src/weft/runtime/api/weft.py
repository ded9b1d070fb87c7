"""What users see: `Weft`, its query handles and its runs (DESIGN section 1.2)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from weft.algebra.network.sets import NetworkQuery
from weft.algebra.plan import SharedPlan
from weft.algebra.query import Query, StreamSchema
from weft.catalog.store import ACTIVE, FALLBACK, REJECTED, QueryRecord, check_name
from weft.errors import CatalogError, CheckpointError, RunError, WeftError
from weft.explain import Explanation
from weft.optimizer.weaving import check_sharing
from weft.runtime.api.assembly import Assembly
from weft.runtime.api.bookkeeping import Bookkeeping
from weft.runtime.api.handle import QueryHandle
from weft.runtime.api.inspection import Inspection
from weft.runtime.api.opening import open_catalog, take_over
from weft.runtime.api.reading import ResultReader
from weft.runtime.api.supervision import Supervisor
from weft.runtime.checkpoint.identity import open_checkpoint
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.planning.replanning import measured_sharing
from weft.runtime.queries.registry import Registry
from weft.runtime.queries.sources import source
from weft.runtime.run.run import Run
from weft.runtime.settings import settings_of, trigger_of
from weft.runtime.sinks.delivery import Sink
from weft.runtime.sinks.routes import stores_of
from weft.runtime.sinks.store import ResultStore
from weft.sql.fallback import Fallback
from weft.stats import StreamStatistics


class Weft:
    """Many continuous queries over shared streams, run as one.

    A context manager: its end is `close`. What a weft does is done by its parts: a registry binds
    queries, a supervisor runs them, bookkeeping tells the catalog, readers answer questions.
    """

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
        lanes = len(self._settings.lane_weights(spark.sparkContext.defaultParallelism))
        self._identity = open_checkpoint(self._storage, project, lanes)
        self._catalog = open_catalog(self._storage, catalog)
        self._closed = False
        self._lock = threading.RLock()
        self._logs: dict[str, StreamLog] = {}
        allow_unsafe = self._settings.allow_unsafe_sql
        self._registry = Registry(spark, self._catalog, allow_unsafe_sql=allow_unsafe)
        bookkeeping = Bookkeeping(self._catalog, self._storage)
        assembly = Assembly(
            self._storage,
            self._registry,
            self._catalog,
            self._settings,
            self._identity,
            self._log,
            bookkeeping.planned,
        )
        self._supervisor = Supervisor(
            spark,
            self._storage,
            self._registry,
            assembly,
            bookkeeping,
            self._log,
            self._lock,
            self._settings,
        )
        self._inspection = Inspection(
            self._registry,
            self._catalog,
            self._settings,
            self._log,
            assembly.choices,
            self._identity.lanes,
        )
        self._reader = ResultReader(spark, self._storage, self._registry, self._log)
        self._sink: Sink = ResultStore()
        self._bind_stores(self._sink)
        self._inherited = take_over(
            self._storage, self._catalog, self._registry, bookkeeping, self._log
        )
        """Queries of earlier processes that this one has not claimed, by name."""

    def close(self) -> None:
        """Stop what runs, give back the checkpoint's lease, let go of the catalog."""
        with self._lock:
            self._closed = True
        try:
            self._supervisor.stop()
        finally:
            self._catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise RunError("CLOSED")

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
        with self._lock:
            self._require_open()
            self._check_free(name)
            added = source(name, df, time, watermark)
            recorded = self._catalog.streams().get(name)
            if recorded is not None:
                _check_unchanged(recorded, added.schema)
            if recorded != added.schema:
                self._catalog.put_stream(added.schema)
            self._registry.add_source(added)

    def add_table(self, name: str, df: DataFrame) -> None:
        """Add a relation that queries may join."""
        check_name(name, "table")
        with self._lock:
            self._require_open()
            self._check_free(name)
            self._registry.add_table(name, df)

    def _check_free(self, name: str) -> None:
        names = {*self._registry.sources, *self._registry.tables}
        if name.lower() in {existing.lower() for existing in names}:
            raise CatalogError("DUPLICATE_NAME", kind="stream or table", name=name)

    # queries

    def register(
        self, name: str, sql: str, *, emit: str | None = None, backfill: bool = False
    ) -> QueryHandle:
        """Register a query, before `start` or while running. `emit` is for aggregation joins: the "full" result of
        every instant, as without it, or only "changes". With `backfill` a filter or join also sees the rows that
        the history of other queries still holds (docs/joins.md).

        Registering a query again that this checkpoint holds already, with the same text,
        gives its handle: so a program can be restarted as it is.
        """
        with self._lock:
            self._require_open()
            record = self._claim(name, sql, emit, backfill)
            if record is None:
                self._catalog.check_free(name)
                bound = self._registry.bind(name, sql, query_id="", emit=emit, backfill=backfill)
                if isinstance(bound, Fallback):
                    record = self._catalog.add_query(name, sql, FALLBACK, bound.detail)
                else:
                    detail = self._registry.warning(bound)
                    record = self._catalog.add_query(name, sql, ACTIVE, detail, emit, backfill)
                    bound = replace(bound, id=record.id)
                self._registry.put(record, bound)
                self._registry.changed()
            return QueryHandle(self, self._catalog, record)

    def _claim(self, name: str, sql: str, emit: str | None, backfill: bool) -> QueryRecord | None:
        """The record of an earlier process for the same name and text, once."""
        inherited = self._inherited.get(name)
        if inherited is None or inherited.sql.strip() != sql.strip():
            return None
        if (inherited.emit or "full") != (emit or "full") or inherited.backfill != backfill:
            return None
        del self._inherited[name]
        live = {record.change: record for record in self._catalog.live()}
        record = live.get(inherited.change)
        if record is not None and record.status == REJECTED:
            self._catalog.set_status(record.change, ACTIVE)
            self._registry.changed()
            self._registry.of(self._catalog.find(name))
        return record

    def drop(self, name: str) -> None:
        """Drop a query, before `start` or while running; its results stay readable no more."""
        with self._lock:
            self._require_open()
            record = self._catalog.drop_query(name)
            self._inherited.pop(name, None)
            self._registry.forget(record)
            self._registry.changed()

    def resume(self, name: str) -> QueryHandle:
        """Bring back a query that was quarantined or rejected, before `start` or while running.

        A shared query begins with the first window of which every row is in state that it can use
        (`QueryHandle.complete_from`); a fallback goes on at the batch on which it failed. Of a
        rejected query this raises what is still wrong with it.
        """
        with self._lock:
            self._require_open()
            record = self._catalog.find(name)
            if record.status == REJECTED:
                rebound = self._registry.bind_record(record)
                self._registry.put(record, rebound)
            resumed = self._catalog.resume(name)
            bound = self._registry.of(resumed)
            if isinstance(bound, Query | NetworkQuery):
                self._catalog.set_status(
                    resumed.change, resumed.status, self._registry.warning(bound)
                )
            self._registry.changed()
            return QueryHandle(self, self._catalog, self._catalog.find(name))

    @contextmanager
    def changes(self) -> Iterator[None]:
        """Many registrations and drops as one: all take effect at one micro-batch, or none."""
        with self._lock:
            self._require_open()
            inherited = dict(self._inherited)
            try:
                with self._catalog.transaction(), self._registry.one_session():
                    yield
            except BaseException:
                self._inherited = inherited
                raise
            finally:
                self._registry.changed()

    def query(self, name: str) -> QueryHandle:
        """The handle of a registered query."""
        self._require_open()
        return QueryHandle(self, self._catalog, self._catalog.find(name))

    @property
    def queries(self) -> list[QueryHandle]:
        """Handles of all registered queries, in the order of registration."""
        self._require_open()
        return [QueryHandle(self, self._catalog, record) for record in self._catalog.live()]

    # plans

    def plan(self, stream: str) -> SharedPlan:
        """The shared plan of a stream's queries as they are registered now; that of its row
        windows is under the name `stream@rows`."""
        self._require_open()
        return self._inspection.plan(stream)

    def counted(self, stream: str) -> dict[str, Any]:
        """What a stream's steps have counted so far: rows, results, aggregate operations of each
        level, late rows; empty before the first."""
        self._require_open()
        return self._inspection.counted(stream)

    def statistics(self, stream: str) -> StreamStatistics:
        """What is known of a stream: its rate, groups and skew of keys, selectivities, each with
        where it comes from; assumed before anything is measured."""
        self._require_open()
        return self._inspection.statistics(stream)

    def explain(self, name: str | None = None) -> Explanation:
        """The shared plan, who shares what, and what it saves; of one query, if named."""
        self._require_open()
        return self._inspection.explain(name)

    def _repr_html_(self) -> str | None:
        """The plan, for notebooks; a closed weft is shown by its `repr`."""
        return None if self._closed else self.explain()._repr_html_()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "running" if self._supervisor.running else "stopped"
        counts = f"{len(self._registry.sources)} streams, "
        try:
            counts += f"{len(self._registry.live())} queries, "
        except WeftError:  # a closed or unreachable catalog must not make printing fail
            counts = ""
        return f"<Weft {self._storage.uri!r}: {counts}{state}>"

    # running

    def start(
        self,
        sink: Sink | None = None,
        *,
        availableNow: bool | None = None,
        processingTime: str | None = None,
    ) -> Run:
        """Run all queries; without a sink, into the result store."""
        trigger = trigger_of(availableNow, processingTime)
        chosen = ResultStore() if sink is None else sink
        _check_sink(chosen)
        with self._lock:
            self._require_open()
            self._supervisor.require_stopped()
            self._registry.require_streams()
            self._bind_stores(chosen)
            self._sink = chosen
            return self._supervisor.start(chosen, trigger)

    def results(self, name: str) -> DataFrame:
        """A query's results so far, in its own columns."""
        self._require_open()
        return self._reader.read(self._catalog.find(name), self._sink)

    # the checkpoint

    def _log(self, stream: str) -> StreamLog:
        return self._logs.setdefault(stream, StreamLog(self._storage, stream))

    def _bind_stores(self, sink: Sink) -> None:
        for store in stores_of(sink):
            store.bind(self._storage, self._identity.owner)


def _check_sink(sink: object) -> None:
    if not callable(getattr(sink, "write", None)) or not hasattr(sink, "name"):
        detail = "give a sink, such as weft.sinks.parquet('out')"
        raise RunError("BAD_SETTING", name="sink", value=sink, detail=detail)


def _check_unchanged(recorded: StreamSchema, now: StreamSchema) -> None:
    types = {field.name: field.type for field in now.fields}
    for field in recorded.fields:
        if types.get(field.name) != field.type:
            type_now = types.get(field.name, "missing")
            detail = f"column '{field.name}' was {field.type} and is {type_now}"
            raise CheckpointError("STREAM_CHANGED", name=now.name, detail=detail)
    if recorded.time != now.time:
        detail = f"the event time was '{recorded.time}' and is '{now.time}'"
        raise CheckpointError("STREAM_CHANGED", name=now.name, detail=detail)
