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
    8. sample     now and then, statistics for later plans; no result depends on them
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weft.algebra.plan import SharedPlan, Sharing
from weft.algebra.query import Query, StreamSchema
from weft.errors import CheckpointError, RunError
from weft.kernel.program import Program, compile_program
from weft.kernel.weave import Step
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import WindowWeaving
from weft.runtime import resultfiles, statefiles
from weft.runtime.failpoints import reach
from weft.runtime.lease import Lease
from weft.runtime.log import Commit, Entry, Intent, StreamLog
from weft.runtime.openstate import OpenState
from weft.runtime.placement import Outcome, use_lanes, weave_here, weave_in_lanes
from weft.runtime.projection import project
from weft.runtime.replanning import (
    drifted,
    group_counts,
    groups_drifted,
    measured_sharing,
    pays,
    updated_measures,
)
from weft.runtime.settings import Settings, session_settings
from weft.runtime.sinks import ResultStore, RouteSink, Sink, StepResults
from weft.runtime.step import Halted, Hooks, Progress, StepFailed, StepWork
from weft.runtime.subaggregate import subaggregate
from weft.runtime.versions import next_plan, updated_history
from weft.stats import StreamStatistics

BASE_EVERY = 50
CLEAN_EVERY = 10
_MILLISECOND = 1000
_LOCK_POLL_SECONDS = 0.05


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
        owner: str,
        hooks: Hooks,
    ) -> None:
        self.log, self.stream = log, stream
        self._lease, self._sink, self._settings = lease, sink, settings
        self._lanes, self._owner, self._hooks = lanes, owner, hooks
        self._lock = threading.RLock()
        self._last = log.last()
        self._open: OpenState | None = None
        self._program: Program | None = None
        self._in_lanes = False
        self._resuming = True
        self._planned_for: Sharing | None = None
        """What the weave groups were last chosen for, or found to be still right for."""
        self._planned_with = StreamStatistics.unknown()
        """What was known of groups at that time."""
        self._session: SparkSession | None = None
        """Spark's own copy of the session for the stream: later changes to the user's session
        do not reach it."""
        self._follower: Loom | None = None

    def lead(self, follower: Loom) -> None:
        """Let another loom take every step after this one, on the same batches."""
        self._follower = follower

    @property
    def last(self) -> Commit | None:
        return self._last

    @property
    def spark_checkpoint(self) -> str:
        return self.log.folder("spark")

    @property
    def flush_pending(self) -> bool:
        """Whether the data so far made windows due that no step has emitted, and Spark has not
        planned a batch that belongs before the flush (such as one to be replayed)."""
        following = self._follower is not None and self._follower.flush_pending
        return self._own_flush_pending or following

    @property
    def _own_flush_pending(self) -> bool:
        last = self._last
        if last is None or self._watermark() <= last.watermark:
            return False
        return not self._planned_by_spark(last.batch + 1)

    def _planned_by_spark(self, batch: int) -> bool:
        return self.log.storage.exists(f"{self.spark_checkpoint}/offsets/{batch}")

    def check(self, spark: SparkSession) -> None:
        """Refuse to start on a checkpoint that does not fit."""
        storage, name = self.log.storage, self.stream.name
        offsets = [n for n in storage.names(f"{self.spark_checkpoint}/offsets") if n.isdigit()]
        done = [n for n in storage.names(f"{self.spark_checkpoint}/commits") if n.isdigit()]
        last = self._last
        if last is None:
            if done:
                detail = f"Spark has finished batches of '{name}', weft has none"
                raise CheckpointError("SPARK_CHECKPOINT", detail=detail)
            return
        check_settings(last, spark)
        if not offsets:
            detail = f"that of stream '{name}' is gone, weft is at batch {last.batch}"
            raise CheckpointError("SPARK_CHECKPOINT", detail=detail)
        self._check_spark_query(last)
        for entry in last.state:
            storage.verify(entry)

    def batch(self, rows: DataFrame, batch: int, wanted: Callable[[], bool]) -> None:
        """Run a micro-batch; `wanted` turns false when Spark's query is being stopped."""
        while not self._lock.acquire(timeout=_LOCK_POLL_SECONDS):
            if not wanted():
                raise Halted
        try:
            if not wanted():
                raise Halted
            self._lease.check()
            self._session = rows.sparkSession
            offsets = self._offsets(batch)
            if self._admit(batch, offsets):
                self._run(StepWork(batch, "data", rows.sparkSession, rows), offsets)
            if self._follower is not None:
                self._follower.batch(rows, batch, wanted)
        finally:
            self._lock.release()

    def flush(self, spark: SparkSession) -> bool:
        """Emit what the last batch's data made due, as Spark does in a batch without data."""
        with self._lock:
            flushed = self._flush(spark)
            return (self._follower is not None and self._follower.flush(spark)) or flushed

    def _flush(self, spark: SparkSession) -> bool:
        if self._last is None or not self._own_flush_pending:
            return False
        self._lease.check()
        spark = self._session or spark
        check_settings(self._last, spark)
        self._run(StepWork(self._last.batch, "flush", spark, None), self._last.offsets)
        return True

    @contextmanager
    def between_steps(self) -> Iterator[None]:
        """Waits for the step under way; none begins inside the block."""
        with self._lock:
            yield

    @property
    def _sequence(self) -> int:
        """The id of the step under way as sinks see it: as in Spark, a flush counts as a batch."""
        return self._last.sequence + 1 if self._last else 0

    # 1. admit

    def _admit(self, batch: int, offsets: str) -> bool:
        """Whether the batch is to be run; False if it is committed already."""
        last = self._last
        expected = last.batch + 1 if last else 0
        if last is not None:
            self._check_spark_query(last)
        if batch == expected:
            return True
        if last is not None and batch == last.batch and offsets == last.offsets:
            return False
        raise CheckpointError(
            "SPARK_CHECKPOINT",
            detail=f"Spark wants to run batch {batch}, weft expects batch {expected}",
        )

    def _check_spark_query(self, last: Commit) -> None:
        if last.spark_query != self._spark_query():
            raise CheckpointError(
                "SPARK_CHECKPOINT", detail="it belongs to another streaming query"
            )

    def _spark_query(self) -> str:
        """The id of Spark's streaming query, from its own checkpoint."""
        return str(self.log.storage.read_json(f"{self.spark_checkpoint}/metadata")["id"])

    def _offsets(self, batch: int) -> str:
        data = self.log.storage.read(f"{self.spark_checkpoint}/offsets/{batch}")
        return hashlib.sha256(data).hexdigest()

    def _watermark(self) -> int:
        """The stream's watermark after all data so far (DESIGN section 4.1)."""
        last = self._last
        if last is None:
            return 0
        if last.max_event_time is None:
            return last.watermark
        floored = last.max_event_time // _MILLISECOND * _MILLISECOND
        return max(last.watermark, floored - self.stream.delay)

    # 2. intent

    def _run(self, work: StepWork, offsets: str) -> None:
        if self._resuming:
            self._remove_orphans(work)
            self._resuming = False
        intent = self._intend(work)
        while True:
            reach("after_intent")
            try:
                return self._execute(work, intent, offsets)
            except StepFailed as failed:
                for query_id, failure in failed.failures.items():
                    self._hooks.quarantine(query_id, str(failure))
                intent = self._without(failed, work, intent)
                self._remove_orphans(work)
                work = work.again()
            except BaseException:
                self._resuming = True
                raise

    def _intend(self, work: StepWork) -> Intent:
        """The step's intent: the one an earlier attempt left, or a new one."""
        found = self.log.intent(work.batch) if work.kind == "data" else None
        if found is not None:
            return found
        intent = Intent(
            batch=work.batch,
            plan_version=self._current_plan(work).version,
            watermark_before=self._last.watermark if self._last else 0,
            watermark=self._watermark(),
            settings=session_settings(work.spark),
        )
        self._put_intent(work, intent)
        return intent

    def _put_intent(self, work: StepWork, intent: Intent) -> None:
        if work.kind == "data":
            self.log.put_intent(intent)

    def _current_plan(self, work: StepWork) -> SharedPlan:
        """The last plan if the queries are the same and its groups still pay, else a new version."""
        queries = self._hooks.queries()
        if self._last is not None:
            plan = self.log.plan(self._last.plan_version)
            if [query.id for query in plan.queries] == [query.id for query in queries]:
                return self._replanned(plan, self._last)
        self._look(work, queries)
        return self._new_plan(queries)

    def _look(self, work: StepWork, queries: Sequence[Query]) -> None:
        """Before the first plan of a stream with several nodes: a sample of its first rows, so that
        their tree is chosen by what they are."""
        sampling = self._hooks.sampling
        if self._last is not None or work.rows is None or sampling.known.known:
            return
        draft = share(0, self.stream, queries, {})
        if len(draft.nodes) > 1:
            with work.timed("statistics"):
                sampling.look(work.rows, draft)

    def _replanned(self, plan: SharedPlan, last: Commit) -> SharedPlan:
        """The same queries under other weave groups, if the stream has drifted so far that these
        pay; between two steps, without touching state."""
        sharing = measured_sharing(self._settings, last)
        factor, known = self._settings.replan_drift, self._hooks.sampling.known
        if not self._planned_with.known:
            self._planned_with = known
        then = self._planned_for or plan.sharing
        if not drifted(then, sharing, factor) and not groups_drifted(
            self._planned_with, known, plan, factor
        ):
            return plan
        self._planned_for, self._planned_with = sharing, known
        if not pays(plan, sharing, known):
            return plan
        return self._new_plan(plan.queries)

    def _new_plan(self, queries: Sequence[Query]) -> SharedPlan:
        known = self._hooks.sampling.known
        sharing = measured_sharing(self._settings, self._last)
        if not sharing.measured and known.rate.source != "assumed":
            sharing = replace(sharing, rate=known.rate.value)
        self._planned_for, self._planned_with = sharing, known
        weaving = WindowWeaving(sharing, group_counts(known))
        plan = next_plan(self.log, self.stream, queries, self._last, weaving)
        self.log.put_plan(plan)
        reach("after_plan")
        return plan

    def _without(self, failed: StepFailed, work: StepWork, intent: Intent) -> Intent:
        """A new intent for the same step, without the queries that failed."""
        queries = self.log.plan(intent.plan_version).queries
        plan = self._new_plan([q for q in queries if q.id not in failed.failures])
        intent = replace(intent, plan_version=plan.version)
        self._put_intent(work, intent)
        return intent

    def _remove_orphans(self, work: StepWork) -> None:
        """Delete what an earlier attempt at this step left behind."""
        for kind in ("state", "handoff"):
            folder = self.log.folder(kind)
            for name in self.log.storage.names(folder):
                if name.startswith(f"{work.name}-"):
                    self.log.storage.delete(f"{folder}/{name}")
        named = {(entry["root"], entry["name"]) for entry in self.log.all_result_files()}
        merging = self._last.name if self._last else ""
        for store in _stores(self._sink):
            for step in (work.name, f"merged~{merging}"):
                for name in store.own_files(self.stream.name, step):
                    if (store.place, name) not in named:
                        store.storage.delete(name)

    # 3. to 7.

    def _execute(self, work: StepWork, intent: Intent, offsets: str) -> None:
        plan = self.log.plan(intent.plan_version)
        program = self._compiled(plan)
        files = self._last.state if self._last else ()
        if work.rows is not None:
            with work.timed("level1"):
                lanes = self._lanes if self._in_lanes else None
                subaggregate(work, self.log, program, intent.watermark_before, self._lanes, lanes)
            reach("after_state")
        self._in_lanes = use_lanes(self._settings, self.log, [*files, *work.new_files])
        with work.timed("kernel"):
            outcome = self._weave(work, program, intent, files)
        with work.timed("sink"):
            results = outcome.written + self._deliver(work, outcome, plan)
        reach("after_results")
        known = self._last.horizons if self._last else {}
        horizons = statefiles.horizons(program, intent.watermark, known)
        kept, gone = statefiles.live([*files, *work.new_files], horizons)
        with work.timed("compact"):
            kept, replaced = self._compact(work, kept, horizons)
        commit = self._commit_of(work, intent, plan, offsets, outcome, results, kept, horizons)
        reach("before_commit")
        with work.timed("commit"):
            self._lease.check()
            self.log.put_commit(commit)
        reach("after_commit")
        self._last = commit
        self._keep_open(outcome, program, intent.watermark)
        self._clean_up(work, commit, [*gone, *replaced, *work.passing_files])
        self._hooks.planned(plan, commit.late)
        self._sample(work, plan, commit)
        self._hooks.progress(self._progress(work, commit, plan, outcome))

    def _compiled(self, plan: SharedPlan) -> Program:
        """The plan's program. State in memory is for one version: another one reads afresh,
        since it may need partials that the last one did not keep."""
        if self._program is None or self._program.plan.version != plan.version:
            self._program = compile_program(plan)
            self._open = None
        return self._program

    def _weave(
        self, work: StepWork, program: Program, intent: Intent, files: Sequence[Entry]
    ) -> Outcome:
        ansi = intent.settings["ansi"].lower() == "true"
        step = Step(intent.watermark_before, intent.watermark, ansi)
        if self._in_lanes:
            self._open = None
            outcome = weave_in_lanes(
                work, self.log, program, step, files, self._lanes, self._sink, self._sequence
            )
        else:
            if self._open is None:
                opened, rows = OpenState().read(self.log, files)
                self._open = opened.with_rows(program, rows)
            outcome = weave_here(work, self.log, program, step, self._open)
        for shape, raw in outcome.unfinished:
            table, failures = project(work.spark, shape, raw)
            outcome.failures.update(failures)
            if table.num_rows:
                outcome.families.setdefault(shape.family, []).append(table)
        if outcome.failures:
            raise StepFailed(outcome.failures)
        return outcome

    def _deliver(self, work: StepWork, outcome: Outcome, plan: SharedPlan) -> list[Entry]:
        """Hand the results to the sink, trying again if it fails."""
        families = {name: pa.concat_tables(found) for name, found in outcome.families.items()}
        results = StepResults(
            stream=self.stream.name,
            step=work.name,
            batch=self._sequence,
            attempt=work.attempt,
            families=families,
            queries=plan.query_by_id,
            spark=work.spark,
        )
        tries = self._settings.sink_tries
        for attempt in range(1, tries):
            try:
                return self._sink.write(results)
            except Exception:
                time.sleep(self._settings.sink_pause_seconds * attempt)
        try:
            return self._sink.write(results)
        except Exception as error:
            raise RunError(
                "SINK_FAILED",
                sink=self._sink.name,
                tries=tries,
                batch=self._sequence,
                detail=f"{type(error).__name__}: {error}",
            ) from error

    def _compact(
        self, work: StepWork, kept: list[Entry], horizons: dict[str, int]
    ) -> tuple[list[Entry], list[Entry]]:
        """Many small state files as few; the files that they replace."""
        replaced: list[Entry] = []
        for number, files in enumerate(statefiles.due_for_compaction(kept)):
            folder = f"{work.name}-{work.attempt}-compact-{number}"
            horizon = horizons[files[0]["node"]]
            merged = statefiles.compact(work.spark, self.log, folder, files, horizon)
            names = {entry["name"] for entry in files}
            kept = [entry for entry in kept if entry["name"] not in names] + merged
            replaced += files
        return kept, replaced

    def _commit_of(
        self,
        work: StepWork,
        intent: Intent,
        plan: SharedPlan,
        offsets: str,
        outcome: Outcome,
        results: list[Entry],
        kept: list[Entry],
        horizons: dict[str, int],
    ) -> Commit:
        last = self._last
        seen = work.counted.get("max_event")
        times = [t for t in (seen, last.max_event_time if last else None) if t is not None]
        work.counted["results"] = outcome.rows
        totals = dict(last.metrics) if last else {}
        for name in ("rows", "null_times", "late_rows", "results"):
            totals[name] = totals.get(name, 0) + work.count(name)
        for name, count in outcome.operations.items():
            totals[name] = totals.get(name, 0) + count
        advance = seen - last.max_event_time if seen and last and last.max_event_time else 0
        fragments = sum(entry["rows"] for entry in work.new_files)
        totals |= updated_measures(totals, advance, work.count("rows"), fragments, plan)
        totals["seconds"] = totals.get("seconds", 0.0) + time.perf_counter() - work.started
        if seen is not None and "first_event" not in totals:
            totals |= {"first_event": seen, "first_rows": totals["rows"]}
        return Commit(
            stream=self.stream.name,
            kind=work.kind,
            batch=work.batch,
            sequence=self._sequence,
            spark_query=self._spark_query(),
            offsets=offsets,
            epoch=self._lease.epoch,
            plan_version=plan.version,
            watermark=intent.watermark,
            max_event_time=max(times, default=None),
            settings=intent.settings,
            state=tuple(kept),
            results=tuple(results),
            results_base=self._results_base(work),
            history=updated_history(last, plan, seen, kept),
            horizons=horizons,
            late=self._late(plan, outcome),
            metrics=totals,
        )

    def _late(self, plan: SharedPlan, outcome: Outcome) -> dict[str, int]:
        """Per query, the (row, window) pairs that came too late so far."""
        before = self._last.late if self._last else {}
        late = {name: before.get(name, 0) + outcome.late.get(name, 0) for name in plan.query_by_id}
        return {name: pairs for name, pairs in late.items() if pairs}

    def _results_base(self, work: StepWork) -> str | None:
        """The base that lists older results; a new one every so many batches."""
        last = self._last
        if last is None:
            return None
        if work.kind == "data" and work.batch % BASE_EVERY == 0:
            resultfiles.new_base(self.log, last.name, work.attempt, self._owner)
            return last.name
        return last.results_base

    def _keep_open(self, outcome: Outcome, program: Program, watermark: int) -> None:
        opened = outcome.state.after(program, watermark) if outcome.state is not None else None
        self._open = None if opened is None or opened.crowded else opened

    def _clean_up(self, work: StepWork, commit: Commit, dead: Sequence[Entry]) -> None:
        for entry in dead:
            self.log.storage.delete(entry["name"])
        reach("after_cleanup")
        if work.kind == "data" and work.batch % CLEAN_EVERY == 0:
            self.log.prune(commit)
            self._remove_empty_folders(commit)

    def _remove_empty_folders(self, commit: Commit) -> None:
        folder = self.log.folder("state")
        used = {entry["name"].removeprefix(f"{folder}/").split("/")[0] for entry in commit.state}
        for name in self.log.storage.names(folder):
            if name not in used and name < f"{commit.batch:012d}":
                self.log.storage.delete(f"{folder}/{name}")

    def _sample(self, work: StepWork, plan: SharedPlan, commit: Commit) -> None:
        sampling, rows = self._hooks.sampling, work.count("rows")
        if work.rows is None:
            return
        if not sampling.due(work.batch, rows, time.perf_counter() - work.started):
            return
        with work.timed("statistics"):
            sampling.collect(work.rows, plan, rows, commit.metrics)

    def _progress(
        self, work: StepWork, commit: Commit, plan: SharedPlan, outcome: Outcome
    ) -> Progress:
        return Progress(
            stream=self.stream.name,
            batch=work.batch,
            kind=work.kind,
            rows=work.count("rows"),
            results=outcome.rows,
            seconds=time.perf_counter() - work.started,
            watermark=commit.watermark,
            late_rows=work.count("late_rows"),
            null_times=work.count("null_times"),
            state_rows=sum(entry["rows"] for entry in commit.state),
            state_bytes=sum(entry["size"] for entry in commit.state),
            plan_version=plan.version,
            queries=len(plan.queries),
            placement="lanes" if self._in_lanes else "driver",
            durations=work.durations,
        )


def check_settings(last: Commit, spark: SparkSession) -> None:
    for setting, now in session_settings(spark).items():
        found = last.settings[setting]
        if found != now:
            raise CheckpointError("SETTINGS_CHANGED", setting=setting, found=found, now=now)


def _stores(sink: Sink) -> list[ResultStore]:
    if isinstance(sink, ResultStore):
        return [sink]
    if isinstance(sink, RouteSink):
        inner = (sink.default, *sink.routes.values())
        return [store for each in inner for store in _stores(each)]
    return []
