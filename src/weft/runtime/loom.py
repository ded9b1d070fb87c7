"""The loom of one stream: runs its shared plan, step by step.

A step is a micro-batch or a flush. In this order, so that a crash at any moment loses nothing
and repeats nothing (DESIGN section 4.2):

    1. admit      the lease is ours; the batch is the next one, or committed already (skip)
    2. intent     plan version, watermarks and settings of the step are fixed
    3. level 1    Spark tasks write the batch's fragments as state files
    4. kernel     levels 2 and 3 give the rows of all due windows, here or in lanes
    5. sink       results are written; files stay invisible
    6. commit     one file, put in place atomically, makes state and results visible
    7. clean up   expired files go, old commits are pruned
"""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from weft.algebra.plan import SharedPlan
from weft.algebra.query import Query, StreamSchema, quote
from weft.errors import CheckpointError, RunError
from weft.kernel.failure import QueryFailure
from weft.kernel.program import Program, Shape, compile_program
from weft.kernel.weave import Step, late, weave
from weft.runtime import statefiles
from weft.runtime.failpoints import reach
from weft.runtime.lanes import LaneWork, run_lanes
from weft.runtime.lease import Lease
from weft.runtime.level1 import fragments
from weft.runtime.log import (
    RESULT_BASE_EVERY,
    Commit,
    Entry,
    Intent,
    StreamLog,
    step_name,
)
from weft.runtime.openstate import OpenState
from weft.runtime.projection import project
from weft.runtime.quarantine import culprits
from weft.runtime.settings import Settings, session_settings
from weft.runtime.sinks import ResultStore, Sink, StepResults
from weft.runtime.versions import next_plan, updated_history

_PARALLEL_JOBS = 2
_MILLISECOND = 1000


@dataclass
class Progress:
    """What a finished step reports."""

    stream: str
    batch: int
    kind: str
    rows: int
    results: int
    seconds: float
    watermark: int
    late_rows: int
    null_times: int
    state_rows: int
    state_bytes: int
    plan_version: int
    queries: int
    placement: str
    durations: dict[str, float] = field(default_factory=dict)


@dataclass
class Hooks:
    """What the loom needs from its surroundings."""

    queries: Callable[[], Sequence[Query]]
    quarantine: Callable[[str, str], None]
    planned: Callable[[SharedPlan, dict[str, int]], None]
    progress: Callable[[Progress], None]


class Halted(Exception):
    """Spark's query is being stopped; the batch is left for the next start."""


class _Failed(Exception):
    """Queries that failed on their own data; the step is run again without them."""

    def __init__(self, failures: dict[str, QueryFailure]) -> None:
        super().__init__(", ".join(failures))
        self.failures = failures


@dataclass
class _Work:
    """A step under way."""

    batch: int
    kind: Literal["data", "flush"]
    spark: SparkSession
    rows: DataFrame | None
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:12])
    durations: dict[str, float] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    new_files: list[Entry] = field(default_factory=list)

    @property
    def step(self) -> str:
        return step_name(self.batch, self.kind)


class Loom:
    """Runs one stream's shared plan."""

    def __init__(
        self,
        log: StreamLog,
        lease: Lease,
        stream: StreamSchema,
        sink: Sink,
        settings: Settings,
        lanes: int,
        hooks: Hooks,
    ) -> None:
        self.log, self.lease, self.stream = log, lease, stream
        self._sink, self._settings, self._lanes, self._hooks = sink, settings, lanes, hooks
        self._lock = threading.RLock()
        self._last = log.last()
        self._open: OpenState | None = None
        self._open_version = 0
        self._programs: dict[int, Program] = {}

    @property
    def last(self) -> Commit | None:
        return self._last

    @property
    def spark_checkpoint(self) -> str:
        return self.log.folder("spark")

    def check(self, spark: SparkSession) -> None:
        """Refuse to start on a checkpoint that does not fit."""
        last = self._last
        storage = self.log.storage
        offsets = storage.names(f"{self.spark_checkpoint}/offsets")
        has_spark = any(name.isdigit() for name in offsets)
        if last is None:
            if any(name.isdigit() for name in storage.names(f"{self.spark_checkpoint}/commits")):
                raise CheckpointError(
                    "SPARK_CHECKPOINT",
                    detail=f"Spark has finished batches of '{self.stream.name}', weft has none",
                )
            return
        for name, value in session_settings(spark).items():
            if last.settings[name] != value:
                raise CheckpointError(
                    "SETTINGS_CHANGED", setting=name, found=last.settings[name], now=value
                )
        if last.batch >= 0 and not has_spark:
            raise CheckpointError(
                "SPARK_CHECKPOINT",
                detail=f"that of stream '{self.stream.name}' is gone, weft is at batch "
                f"{last.batch}",
            )
        for entry in last.state:
            storage.verify(entry)

    @contextmanager
    def between_steps(self) -> Iterator[None]:
        """Waits for the step under way; none begins inside the block."""
        with self._lock:
            yield

    @property
    def flush_pending(self) -> bool:
        """Whether the data so far made windows due that no step has emitted."""
        last = self._last
        return last is not None and self._watermark(last) > last.watermark

    @property
    def spark_query_id(self) -> str:
        """The id of Spark's streaming query, from its own checkpoint."""
        return str(self.log.storage.read_json(f"{self.spark_checkpoint}/metadata")["id"])

    def batch(self, rows: DataFrame, batch: int, wanted: Callable[[], bool]) -> None:
        """Run a micro-batch; `wanted` turns false when Spark's query is being stopped."""
        while not self._lock.acquire(timeout=0.05):
            if not wanted():
                raise Halted
        try:
            if not wanted():
                raise Halted
            self.lease.check()
            offsets = self._offsets(batch)
            if self._admit(batch, offsets):
                self._run(_Work(batch, "data", rows.sparkSession, rows), offsets)
        finally:
            self._lock.release()

    def flush(self, spark: SparkSession) -> bool:
        """Emit what the last batch's data made due, as Spark does in a batch without data."""
        with self._lock:
            last = self._last
            if last is None or not self.flush_pending:
                return False
            self.lease.check()
            self._run(_Work(last.batch, "flush", spark, None), last.offsets)
            return True

    def _admit(self, batch: int, offsets: str) -> bool:
        """Whether the batch is to be run; False if it is committed already."""
        last = self._last
        expected = last.batch + 1 if last else 0
        if last is not None and last.spark_query != self.spark_query_id:
            raise CheckpointError(
                "SPARK_CHECKPOINT", detail="it belongs to another streaming query"
            )
        if batch == expected:
            return True
        if last is not None and batch == last.batch and offsets == last.offsets:
            return False
        raise CheckpointError(
            "SPARK_CHECKPOINT",
            detail=f"Spark wants to run batch {batch}, weft expects batch {expected}",
        )

    def _offsets(self, batch: int) -> str:
        data = self.log.storage.read(f"{self.spark_checkpoint}/offsets/{batch}")
        return hashlib.sha256(data).hexdigest()

    def _watermark(self, last: Commit | None) -> int:
        """The stream's watermark after all data so far (DESIGN section 4.1)."""
        if last is None:
            return 0
        if last.max_event_time is None:
            return last.watermark
        floored = last.max_event_time // _MILLISECOND * _MILLISECOND
        return max(last.watermark, floored - self.stream.delay)

    def _run(self, work: _Work, offsets: str) -> None:
        started = time.perf_counter()
        self._remove_orphans(work)
        while True:
            intent, plan = self._intend(work)
            reach("after_intent")
            try:
                self._execute(work, intent, plan, offsets, started)
                return
            except _Failed as failed:
                for query_id, failure in failed.failures.items():
                    self._hooks.quarantine(query_id, str(failure))
                left = [query for query in plan.queries if query.id not in failed.failures]
                self._replan(work, intent, left)
                work.attempt = uuid.uuid4().hex[:12]

    def _remove_orphans(self, work: _Work) -> None:
        """Delete what an earlier attempt at this step left behind."""
        for kind in ("state", "handoff"):
            for name in self.log.storage.names(self.log.folder(kind)):
                if name.startswith(f"{work.step}-"):
                    self.log.storage.delete(f"{self.log.folder(kind)}/{name}")
        for store in _stores(self._sink):
            for family in store.storage.names(""):
                for name in store.storage.names(family):
                    if name.startswith(f"{self.stream.name}-{work.step}-"):
                        store.storage.delete(f"{family}/{name}")

    def _intend(self, work: _Work) -> tuple[Intent, SharedPlan]:
        """The step's intent: the one an earlier attempt left, or a new one."""
        if work.kind == "data":
            found = self.log.intent(work.batch)
            if found is not None:
                return found, self.log.plan(found.plan_version)
        before = self._last.watermark if self._last else 0
        plan = self._current_plan()
        intent = Intent(
            batch=work.batch,
            plan_version=plan.version,
            watermark_before=before,
            watermark=self._watermark(self._last),
            settings=session_settings(work.spark),
        )
        if work.kind == "data":
            self.log.put_intent(intent)
        return intent, plan

    def _current_plan(self) -> SharedPlan:
        """The last plan if the queries are the same, else a new version."""
        queries = self._hooks.queries()
        if self._last is not None:
            plan = self.log.plan(self._last.plan_version)
            if [query.id for query in plan.queries] == [query.id for query in queries]:
                return plan
        plan = next_plan(self.log, self.stream, queries, self._last)
        self.log.put_plan(plan)
        reach("after_plan")
        return plan

    def _replan(self, work: _Work, intent: Intent, queries: Sequence[Query]) -> None:
        """A new intent for the same step, with fewer queries."""
        plan = next_plan(self.log, self.stream, queries, self._last)
        self.log.put_plan(plan)
        if work.kind == "data":
            self.log.put_intent(
                Intent(
                    batch=intent.batch,
                    plan_version=plan.version,
                    watermark_before=intent.watermark_before,
                    watermark=intent.watermark,
                    settings=intent.settings,
                )
            )

    def _program(self, plan: SharedPlan) -> Program:
        if plan.version not in self._programs:
            self._programs = {plan.version: compile_program(plan)}
        return self._programs[plan.version]

    def _execute(
        self, work: _Work, intent: Intent, plan: SharedPlan, offsets: str, started: float
    ) -> None:
        program = self._program(plan)
        last = self._last
        if self._open_version != plan.version:
            self._open, self._open_version = None, plan.version
        horizons = statefiles.horizons(plan, intent.watermark, dict(last.horizons) if last else {})
        in_lanes = self._in_lanes(last)
        if work.rows is not None:
            with _Timed(work, "level1"):
                self._level1(work, plan, self._lanes if in_lanes else None, intent)
            reach("after_state")
        step = Step(intent.watermark_before, intent.watermark, _is_ansi(intent.settings))
        with _Timed(work, "kernel"):
            if in_lanes:
                outcome = self._kernel_in_lanes(work, program, step, horizons)
            else:
                outcome = self._kernel_here(work, program, step)
            self._project(work, outcome, intent)
        if outcome.failures:
            raise _Failed(outcome.failures)
        with _Timed(work, "sink"):
            entries = outcome.written + self._write(work, outcome.families, plan)
            delivered = sum(t.num_rows for tables in outcome.families.values() for t in tables)
            work.seen["results"] = delivered + sum(entry["rows"] for entry in outcome.written)
        reach("after_results")
        kept, gone = statefiles.live([*(last.state if last else ()), *work.new_files], horizons)
        with _Timed(work, "compact"):
            kept, replaced = self._compact(work, kept, horizons)
        commit = self._commit(work, intent, plan, offsets, outcome, entries, kept, horizons)
        reach("before_commit")
        with _Timed(work, "commit"):
            self.lease.check()
            self.log.put_commit(commit)
        reach("after_commit")
        self._last = commit
        self._open = None if outcome.state is None else outcome.state.after(horizons, plan)
        if self._open is not None and self._open.crowded:
            self._open = None
        for entry in (*gone, *replaced):
            self.log.storage.delete(entry["name"])
        if work.batch % 10 == 0:
            self._clean(commit)
        reach("after_cleanup")
        self._hooks.planned(plan, outcome.late)
        self._report(work, commit, entries, plan, in_lanes, time.perf_counter() - started)

    def _in_lanes(self, last: Commit | None) -> bool:
        if self._settings.kernel != "auto":
            return self._settings.kernel == "lanes"
        if self._open is not None:
            return self._open.nbytes > self._settings.driver_cap_bytes
        files = last.state if last else ()
        expanded = sum(_memory_estimate(self.log, entry) for entry in files)
        return expanded > self._settings.driver_cap_bytes

    def _level1(self, work: _Work, plan: SharedPlan, lanes: int | None, intent: Intent) -> None:
        """Write the batch's fragments; count its rows and find its latest event time."""
        assert work.rows is not None
        work.new_files = []
        time_sql = self.stream.time_micros
        observation = Observation(f"weft_{work.attempt}")
        measures = [
            F.count(F.lit(1)).alias("rows"),
            F.max(F.expr(time_sql)).alias("max_event"),
            F.count_if(F.col(quote(self.stream.time)).isNull()).alias("null_times"),
            F.count_if(F.expr(f"{time_sql} < {intent.watermark_before}L")).alias("late_rows"),
        ]
        _fit_shuffle(work.spark, self._lanes)
        try:
            if not plan.nodes:
                work.seen = work.rows.agg(*measures).collect()[0].asDict()
                return
            observed = work.rows.observe(observation, *measures)

            def write(index: int) -> list[Entry]:
                node = plan.nodes[index]
                source = observed if index == 0 else work.rows
                assert source is not None
                frame = fragments(source, node, self.stream)
                folder = f"{work.step}-{work.attempt}-{node.id}"
                return statefiles.write(frame, self.log, folder, node, plan.version, lanes)

            with ThreadPoolExecutor(_PARALLEL_JOBS) as pool:
                for entries in pool.map(write, range(len(plan.nodes))):
                    work.new_files += entries
            work.seen = _observed(observation) or work.rows.agg(*measures).collect()[0].asDict()
        except PySparkException:
            found = culprits(work.rows, plan.queries, self.stream)
            if not found:
                raise
            self._remove_orphans(work)
            raise _Failed(found) from None

    def _kernel_here(self, work: _Work, program: Program, step: Step) -> _Outcome:
        opened = self._opened()
        opened, new = opened.read(self.log, work.new_files)
        counted = late(program, new, step.before)
        state = opened.with_rows(new)
        woven = weave(program, state.states, state.encoders, step)
        return _Outcome(
            families=woven.families,
            unfinished=woven.unfinished,
            failures=woven.failures,
            late=counted,
            state=state,
        )

    def _opened(self) -> OpenState:
        """The open state of the last commit, loaded if it is not in memory."""
        if self._open is None:
            opened, rows = OpenState().read(self.log, self._last.state if self._last else ())
            self._open = opened.with_rows(rows)
        return self._open

    def _kernel_in_lanes(
        self, work: _Work, program: Program, step: Step, horizons: dict[str, int]
    ) -> _Outcome:
        target = self._sink if isinstance(self._sink, ResultStore) else None
        folder = f"{self.log.folder('handoff')}/{work.step}-{work.attempt}"
        handoff = target or ResultStore(f"{self.log.storage.uri}/{folder}")
        outcome = run_lanes(
            work.spark,
            LaneWork(
                checkpoint=self.log.storage.uri,
                stream=self.stream.name,
                plan_version=program.plan.version,
                files=list(self._last.state) if self._last else [],
                new_files=work.new_files,
                horizons=horizons,
                before=step.before,
                now=step.now,
                ansi=step.ansi,
                lanes=self._lanes,
                step=work.step,
                batch=work.batch,
                attempt=work.attempt,
                results_root=handoff.storage.uri,
            ),
        )
        families: dict[str, list[pa.Table]] = {}
        written = outcome.results if target else []
        if not target:
            for entry in outcome.results:
                table = handoff.storage.read_table(entry["name"]).drop_columns(["batch"])
                families.setdefault(entry["family"], []).append(table)
            self.log.storage.delete(folder)
        return _Outcome(
            families=families,
            unfinished=outcome.unfinished,
            failures=outcome.failures,
            late=outcome.late,
            state=None,
            written=written,
        )

    def _project(self, work: _Work, outcome: _Outcome, intent: Intent) -> None:
        """HAVING and projection by Spark where the kernel's scalars do not reach."""
        for shape, raw in outcome.unfinished:
            table, failures = project(work.spark, shape, raw)
            outcome.failures.update(failures)
            if table.num_rows:
                outcome.families.setdefault(shape.family, []).append(table)

    def _write(
        self, work: _Work, families: dict[str, list[pa.Table]], plan: SharedPlan
    ) -> list[Entry]:
        """Hand the results to the sink, trying again if it fails."""
        results = StepResults(
            stream=self.stream.name,
            step=work.step,
            batch=work.batch,
            attempt=work.attempt,
            families={name: pa.concat_tables(tables) for name, tables in families.items()},
            queries=plan.query_by_id,
            spark=work.spark,
        )
        tries = self._settings.sink_tries
        for attempt in range(1, tries + 1):
            try:
                return self._sink.write(results)
            except Exception as error:
                if attempt == tries:
                    raise RunError(
                        "SINK_FAILED",
                        sink=self._sink.name,
                        tries=tries,
                        batch=work.batch,
                        detail=f"{type(error).__name__}: {error}",
                    ) from error
                time.sleep(self._settings.sink_pause_seconds * attempt)
        raise AssertionError("unreachable")

    def _compact(
        self, work: _Work, kept: list[Entry], horizons: dict[str, int]
    ) -> tuple[list[Entry], list[Entry]]:
        replaced: list[Entry] = []
        for number, files in enumerate(statefiles.due_for_compaction(kept)):
            folder = f"{work.step}-{work.attempt}-compact-{number}"
            horizon = horizons[files[0]["node"]]
            merged = statefiles.compact(work.spark, self.log, folder, files, horizon)
            names = {entry["name"] for entry in files}
            kept = [entry for entry in kept if entry["name"] not in names] + merged
            replaced += files
        return kept, replaced

    def _commit(
        self,
        work: _Work,
        intent: Intent,
        plan: SharedPlan,
        offsets: str,
        outcome: _Outcome,
        entries: list[Entry],
        kept: list[Entry],
        horizons: dict[str, int],
    ) -> Commit:
        last = self._last
        seen = work.seen.get("max_event")
        latest = last.max_event_time if last else None
        if seen is not None:
            latest = seen if latest is None else max(latest, seen)
        totals = dict(last.metrics) if last else {}
        for name in ("rows", "null_times", "late_rows"):
            totals[name] = totals.get(name, 0) + int(work.seen.get(name) or 0)
        totals["results"] = totals.get("results", 0) + work.seen["results"]
        base = last.results_base if last else None
        if work.batch and work.batch % RESULT_BASE_EVERY == 0 and last and base != last.name:
            base = last.name
            self.log.put_results_base(base, self.log.result_files())
        return Commit(
            stream=self.stream.name,
            kind=work.kind,
            batch=work.batch,
            spark_query=self.spark_query_id,
            offsets=offsets,
            epoch=self.lease.epoch,
            plan_version=plan.version,
            watermark=intent.watermark,
            max_event_time=latest,
            settings=intent.settings,
            state=tuple(kept),
            results=tuple(entries),
            results_base=base,
            history=updated_history(last, plan, seen, kept),
            horizons=horizons,
            late=outcome.late,
            metrics=totals,
        )

    def _clean(self, commit: Commit) -> None:
        self.log.prune(commit)
        named = {entry["name"].split("/")[3] for entry in commit.state}
        folder = self.log.folder("state")
        for name in self.log.storage.names(folder):
            if name not in named and name < f"{commit.batch:012d}":
                self.log.storage.delete(f"{folder}/{name}")

    def _report(
        self,
        work: _Work,
        commit: Commit,
        entries: list[Entry],
        plan: SharedPlan,
        in_lanes: bool,
        seconds: float,
    ) -> None:
        self._hooks.progress(
            Progress(
                stream=self.stream.name,
                batch=work.batch,
                kind=work.kind,
                rows=int(work.seen.get("rows") or 0),
                results=work.seen["results"],
                seconds=seconds,
                watermark=commit.watermark,
                late_rows=int(work.seen.get("late_rows") or 0),
                null_times=int(work.seen.get("null_times") or 0),
                state_rows=sum(entry["rows"] for entry in commit.state),
                state_bytes=sum(entry["size"] for entry in commit.state),
                plan_version=plan.version,
                queries=len(plan.queries),
                placement="lanes" if in_lanes else "driver",
                durations=work.durations,
            )
        )


@dataclass
class _Outcome:
    """What the kernel gave for a step."""

    families: dict[str, list[pa.Table]]
    unfinished: list[tuple[Shape, pa.Table]]
    failures: dict[str, QueryFailure]
    late: dict[str, int]
    state: OpenState | None
    written: list[Entry] = field(default_factory=list)


class _Timed:
    """Adds the time of a block to a step's durations."""

    def __init__(self, work: _Work, name: str) -> None:
        self._work, self._name = work, name

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._work.durations[self._name] = time.perf_counter() - self._started


def _observed(observation: Observation) -> dict[str, Any]:
    """What was counted on the way; nothing if Spark found the batch's plan to be empty and
    dropped the counting with it."""
    try:
        return dict(observation.get)
    except Exception as error:
        if "AssertionError" in str(error):
            return {}
        raise


def _is_ansi(settings: dict[str, str]) -> bool:
    return settings["ansi"].lower() == "true"


def _memory_estimate(log: StreamLog, entry: Entry) -> int:
    node = log.plan(entry["version"]).node_by_id[entry["node"]]
    return int(entry["rows"] * (48 + 16 * (len(node.partials) + len(node.keys))))


def _fit_shuffle(spark: SparkSession, parallelism: int) -> None:
    """Fragments are few: as many shuffle partitions as cores, in the stream's own session."""
    key = "spark.sql.shuffle.partitions"
    if int(spark.conf.get(key) or 200) > parallelism:
        spark.conf.set(key, str(parallelism))


def _stores(sink: Sink) -> list[ResultStore]:
    from weft.runtime.sinks import RouteSink

    if isinstance(sink, ResultStore):
        return [sink]
    if isinstance(sink, RouteSink):
        return [
            store for inner in (sink.default, *sink.routes.values()) for store in _stores(inner)
        ]
    return []
