"""The loom of one stream: runs its shared plan, step by step.

A step is a micro-batch or a flush. In this order, so that a crash at any moment loses nothing
and repeats nothing (DESIGN section 4.2):

    1. admit      the lease is ours; the batch is the next one, or committed already (skip)
    2. intent     plan version, watermarks and settings of the step are fixed
    3. level 1    Spark tasks write the fragments of first-level nodes as state files
    4. stage      all that is needed from here on is written down, the rows are no longer needed
    5. tree       the fragments of all other nodes are computed from these
    6. kernel     levels 2 and 3 give the rows of all due windows, here or in lanes
    7. sink       results are written; files stay invisible
    8. commit     one file, put in place atomically, makes state and results visible
    9. clean up   expired files go, old commits are pruned
    10. sample    now and then, statistics for later plans; no result depends on them

From 5 on a step runs beside 1 to 3 of the next one (docs/decisions/0008). It need not: where it
does not, there is no 4, and a crash before the commit runs the step again from its rows.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

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
from weft.runtime.finishing import Finisher
from weft.runtime.lease import Lease
from weft.runtime.log import Commit, Entry, Intent, Staged, StreamLog
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
from weft.runtime.subaggregate import derive, subaggregate
from weft.runtime.versions import next_plan, updated_history
from weft.stats import StreamStatistics

BASE_EVERY = 50
CLEAN_EVERY = 10
_MILLISECOND = 1000
_LOCK_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Head:
    """Where a stream stands after its last step, finished or staged: what the next one goes by."""

    batch: int
    spark_query: str
    offsets: str
    plan_version: int
    watermark: int
    max_event_time: int | None

    @staticmethod
    def of(step: Commit | Staged) -> Head:
        return Head(
            step.batch,
            step.spark_query,
            step.offsets,
            step.plan_version,
            step.watermark,
            step.max_event_time,
        )


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
        self._staged = log.staged(self._last)
        """The step that is not finished yet: under way, or left by a process that ended."""
        self._finisher = Finisher(f"weft-finish-{stream.name}")
        self._threads: set[int] = set()
        """Those on which a step, or the end of one, is under way."""
        self._committed_at = 0.0
        self._open: OpenState | None = None
        self._open_version = 0
        self._programs: dict[int, Program] = {}
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
        self._followed = False
        """Whether the follower runs the batch under way."""

    def lead(self, follower: Loom) -> None:
        """Let another loom take every step after this one, on the same batches."""
        self._follower = follower

    @property
    def last(self) -> Commit | None:
        return self._last

    @property
    def head(self) -> Head | None:
        step = self._staged or self._last
        return None if step is None else Head.of(step)

    @property
    def inside(self) -> bool:
        """Whether the caller is part of a step, in a sink or callback."""
        return threading.get_ident() in self._threads

    @contextmanager
    def _stepping(self) -> Iterator[None]:
        own = threading.get_ident()
        known = own in self._threads
        self._threads.add(own)
        try:
            yield
        finally:
            if not known:
                self._threads.discard(own)

    def takes(self, batch: int) -> bool:
        """Whether a micro-batch is run at all."""
        return True

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
        if self._staged is not None and not self._finisher.begun:
            return True
        head = self.head
        if head is None or self._watermark() <= head.watermark:
            return False
        return not self._planned_by_spark(head.batch + 1)

    def _planned_by_spark(self, batch: int) -> bool:
        return self.log.storage.exists(f"{self.spark_checkpoint}/offsets/{batch}")

    def check(self, spark: SparkSession) -> None:
        """Refuse to start on a checkpoint that does not fit."""
        storage, name = self.log.storage, self.stream.name
        offsets = [n for n in storage.names(f"{self.spark_checkpoint}/offsets") if n.isdigit()]
        done = [n for n in storage.names(f"{self.spark_checkpoint}/commits") if n.isdigit()]
        step = self._staged or self._last
        if step is None:
            if done:
                detail = f"Spark has finished batches of '{name}', weft has none"
                raise CheckpointError("SPARK_CHECKPOINT", detail=detail)
            if not offsets:
                # Spark refuses a checkpoint in which it was killed before its first batch.
                storage.delete(self.spark_checkpoint)
            return
        check_settings(step, spark)
        if not offsets:
            detail = f"that of stream '{name}' is gone, weft is at batch {step.batch}"
            raise CheckpointError("SPARK_CHECKPOINT", detail=detail)
        self._check_spark_query(step)
        for entry in (*self._state, *(self._staged.files if self._staged else ())):
            storage.verify(entry)

    @property
    def _state(self) -> tuple[Entry, ...]:
        return self._last.state if self._last else ()

    def batch(self, rows: DataFrame, batch: int, wanted: Callable[[], bool]) -> None:
        """Run a micro-batch; `wanted` turns false when Spark's query is being stopped."""
        while not self._lock.acquire(timeout=_LOCK_POLL_SECONDS):
            if not wanted():
                raise Halted
        try:
            if not wanted():
                raise Halted
            self.raise_failed()
            with self._stepping():
                self._batch(rows, batch, wanted)
        finally:
            self._lock.release()

    def _batch(self, rows: DataFrame, batch: int, wanted: Callable[[], bool]) -> None:
        self._lease.check()
        self._session = rows.sparkSession
        self._resume(rows.sparkSession)
        offsets = self._offsets(batch)
        self._followed = self._follower is not None and self._follower.takes(batch)
        if self._admit(batch, offsets):
            self._run(StepWork(batch, "data", rows.sparkSession, rows), offsets)
        if self._follower is not None and self._followed:
            self._follower.batch(rows, batch, wanted)

    def flush(self, spark: SparkSession) -> bool:
        """Emit what the last batch's data made due, as Spark does in a batch without data."""
        with self._lock, self._stepping():
            flushed = self._flush(spark)
            return (self._follower is not None and self._follower.flush(spark)) or flushed

    def _flush(self, spark: SparkSession) -> bool:
        spark = self._session or spark
        self._resume(spark)
        self._settle()
        if self._last is None or not self._own_flush_pending:
            return False
        self._lease.check()
        check_settings(self._last, spark)
        self._run(StepWork(self._last.batch, "flush", spark, None), self._last.offsets)
        return True

    @contextmanager
    def between_steps(self) -> Iterator[None]:
        """Waits for the steps under way; none begins inside the block."""
        with self._lock:
            self._finisher.join()
            yield

    def settle(self) -> None:
        """Wait until all steps are finished; raises what ended the last one, if it failed."""
        with self._lock:
            self._settle()

    def raise_failed(self) -> None:
        """Raise what ended a step that was being finished beside others, if it failed."""
        if self._finisher.error is not None:
            raise self._finisher.error

    def _settle(self) -> None:
        if self._finisher.begun:
            self._finisher.wait()
            self._staged = None

    def _resume(self, spark: SparkSession) -> None:
        """Finish the step that an ended process left staged."""
        staged = self._staged
        if staged is None or self._finisher.begun:
            return
        work = StepWork(staged.batch, "data", spark, None)
        work.counted, work.first_files = staged.counted, list(staged.files)
        self._remove_orphans(work)
        self._finish(work, staged.intent, staged.offsets)
        self._staged = None

    @property
    def _sequence(self) -> int:
        """The id of the step under way as sinks see it: as in Spark, a flush counts as a batch."""
        return self._last.sequence + 1 if self._last else 0

    # 1. admit

    def _admit(self, batch: int, offsets: str) -> bool:
        """Whether the batch is to be run; False if it is committed already."""
        head = self.head
        expected = head.batch + 1 if head else 0
        if head is not None:
            self._check_spark_query(head)
        if batch == expected:
            return True
        if head is not None and batch == head.batch and offsets == head.offsets:
            return False
        raise CheckpointError(
            "SPARK_CHECKPOINT",
            detail=f"Spark wants to run batch {batch}, weft expects batch {expected}",
        )

    def _check_spark_query(self, last: Commit | Staged | Head) -> None:
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
        head = self.head
        if head is None:
            return 0
        if head.max_event_time is None:
            return head.watermark
        floored = head.max_event_time // _MILLISECOND * _MILLISECOND
        return max(head.watermark, floored - self.stream.delay)

    # 2. intent

    def _run(self, work: StepWork, offsets: str) -> None:
        if self._resuming:
            self._remove_orphans(work)
            if self._last is not None:
                self.log.delete_staged(self._last.batch)
            self._resuming = False
        try:
            work, intent = self._level1(work, self._intend(work))
            with work.timed("wait"):
                self._settle()
            work.started = max(work.started, self._committed_at)
            intent = self._up_to_date(work, intent)
            if self._overlaps(work):
                self._stage(work, intent, offsets)
                self._finisher.begin(lambda: self._finish_beside(work, intent, offsets))
            else:
                self._finish(work, intent, offsets)
        except BaseException:
            self._resuming = True
            raise

    def _intend(self, work: StepWork) -> Intent:
        """The step's intent: the one an earlier attempt left, or a new one."""
        found = self.log.intent(work.batch) if work.kind == "data" else None
        if found is not None:
            return self._up_to_date(work, found)
        plan = self._current_plan(work)
        head = self.head
        intent = Intent(
            batch=work.batch,
            plan_version=plan.version,
            watermark_before=head.watermark if head else 0,
            watermark=self._watermark(),
            settings=session_settings(work.spark),
        )
        self._put_intent(work, intent)
        return intent

    def _up_to_date(self, work: StepWork, intent: Intent) -> Intent:
        """The intent under the plan of the step before, if that had to leave out queries while this
        one was begun; its nodes are the same."""
        if self._last is None or intent.plan_version >= self._last.plan_version:
            return intent
        intent = replace(intent, plan_version=self._last.plan_version)
        self._put_intent(work, intent)
        return intent

    def _put_intent(self, work: StepWork, intent: Intent) -> None:
        if work.kind == "data":
            self.log.put_intent(intent)

    def _current_plan(self, work: StepWork) -> SharedPlan:
        """The last plan if the queries are the same and its groups still pay, else a new version."""
        head, last = self.head, self._last
        if head is not None:
            plan = self.log.plan(head.plan_version)
            same = _ids(plan.queries) == _ids(self._hooks.queries())
            if same and (last is None or not self._drifts(plan, last)):
                return plan
        self._settle()
        queries = self._hooks.queries()
        if self._last is not None:
            plan = self.log.plan(self._last.plan_version)
            if _ids(plan.queries) == _ids(queries):
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

    def _drifts(self, plan: SharedPlan, last: Commit) -> bool:
        """Whether the stream is no longer what the weave groups were chosen for."""
        sharing = measured_sharing(self._settings, last)
        factor, known = self._settings.replan_drift, self._hooks.sampling.known
        if not self._planned_with.known:
            self._planned_with = known
        then = self._planned_for or plan.sharing
        return drifted(then, sharing, factor) or groups_drifted(
            self._planned_with, known, plan, factor
        )

    def _replanned(self, plan: SharedPlan, last: Commit) -> SharedPlan:
        """The same queries under other weave groups, if the stream has drifted so far that these
        pay; between two steps, without touching state."""
        if not self._drifts(plan, last):
            return plan
        sharing, known = measured_sharing(self._settings, last), self._hooks.sampling.known
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

    def _remove_orphans(self, work: StepWork) -> None:
        """Delete what an earlier attempt at this step left behind, but for what it staged."""
        folder = self.log.folder("state")
        staged = tuple(entry["name"] for entry in work.first_files)
        for name in self.log.storage.names(folder):
            own = f"{folder}/{name}"
            if name.startswith(f"{work.name}-") and not any(f.startswith(own) for f in staged):
                self.log.storage.delete(own)
        self._remove_results(work)

    def _remove_results(self, work: StepWork) -> None:
        folder = self.log.folder("handoff")
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

    # 3. and 4.

    def _level1(self, work: StepWork, intent: Intent) -> tuple[StepWork, Intent]:
        """Write the fragments of the step; without queries that fail on its rows."""
        while True:
            reach("after_intent")
            if work.rows is None:
                return work, intent
            program = self._program(self.log.plan(intent.plan_version))
            lanes = self._lanes if self._in_lanes else None
            before = intent.watermark_before
            try:
                with work.timed("level1"):
                    subaggregate(work, self.log, program, before, self._lanes, lanes)
            except StepFailed as failed:
                self._settle()
                self._quarantine(failed)
                intent = self._up_to_date(work, intent)
                queries = self.log.plan(intent.plan_version).queries
                plan = self._new_plan([q for q in queries if q.id not in failed.failures])
                intent = replace(intent, plan_version=plan.version)
                self._put_intent(work, intent)
                self._remove_orphans(work)
                work = work.again()
                continue
            reach("after_state")
            seconds = time.perf_counter() - work.started
            work.sampled = self._hooks.sampling.due(work.batch, work.count("rows"), seconds)
            return work, intent

    def _overlaps(self, work: StepWork) -> bool:
        """Whether the step may be finished beside the next one: not if something needs its rows, or
        its commit, at once."""
        needed = work.sampled or self._followed or self._in_lanes
        return self._settings.overlap and work.kind == "data" and not needed

    def _stage(self, work: StepWork, intent: Intent, offsets: str) -> None:
        """Write down all that is needed to finish the step, whatever happens to this process."""
        self._staged = staged = Staged(
            batch=work.batch,
            spark_query=self._spark_query(),
            offsets=offsets,
            plan_version=intent.plan_version,
            watermark_before=intent.watermark_before,
            watermark=intent.watermark,
            settings=intent.settings,
            max_event_time=self._latest(work),
            counted=work.counted,
            files=tuple(work.first_files),
        )
        self.log.put_staged(staged)
        reach("after_staged")

    def _latest(self, work: StepWork) -> int | None:
        """The latest event time of all rows so far."""
        seen: int | None = work.counted.get("max_event")
        before = self._last.max_event_time if self._last else None
        return max((time for time in (seen, before) if time is not None), default=None)

    def _quarantine(self, failed: StepFailed) -> None:
        for query_id, failure in failed.failures.items():
            self._hooks.quarantine(query_id, str(failure))

    # 5. to 10.

    def _finish(self, work: StepWork, intent: Intent, offsets: str) -> None:
        """From the fragments to the commit; without queries that fail on their windows."""
        while True:
            try:
                return self._finish_once(work, intent, offsets)
            except StepFailed as failed:
                self._quarantine(failed)
                plan = self.log.plan(intent.plan_version)
                version = max(self.log.plan_versions()) + 1
                self.log.put_plan(plan.without(failed.failures, version))
                intent = replace(intent, plan_version=version)
                self._put_intent(work, intent)
                if self._staged is not None:
                    self._staged = replace(self._staged, plan_version=version)
                    self.log.put_staged(self._staged)
                self._remove_results(work)
                work.attempt = StepWork.new_attempt()
            except BaseException:
                self._resuming = True
                raise

    def _finish_beside(self, work: StepWork, intent: Intent, offsets: str) -> None:
        with self._stepping():
            self._finish(work, intent, offsets)

    def _finish_once(self, work: StepWork, intent: Intent, offsets: str) -> None:
        plan = self.log.plan(intent.plan_version)
        program = self._program(plan)
        files = self._state
        if work.first_files and not work.derived:
            with work.timed("tree"):
                derive(work, self.log, plan, self._lanes if self._in_lanes else None)
            work.derived = True
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
        self._committed_at = time.perf_counter()
        self._keep_open(outcome, program, intent.watermark)
        self._clean_up(work, commit, [*gone, *replaced, *work.passing_files])
        self._hooks.planned(plan, commit.late)
        self._sample(work, plan, commit)
        self._hooks.progress(self._progress(work, commit, plan, outcome))

    def _program(self, plan: SharedPlan) -> Program:
        found = self._programs.get(plan.version)
        if found is None:
            found = compile_program(plan)
            self._programs = {plan.version: found}
        return found

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
            if self._open is None or self._open_version != program.plan.version:
                # Another version may need partials that the last one did not keep.
                opened, rows = OpenState().read(self.log, files)
                self._open = opened.with_rows(program, rows)
                self._open_version = program.plan.version
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
            max_event_time=self._latest(work),
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
        if self._staged is not None:
            self.log.delete_staged(work.batch)
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
        if work.rows is not None and work.sampled:
            with work.timed("statistics"):
                rows = work.count("rows")
                self._hooks.sampling.collect(work.rows, plan, rows, commit.metrics)

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


def _ids(queries: Sequence[Query]) -> list[str]:
    return [query.id for query in queries]


def check_settings(last: Commit | Staged, spark: SparkSession) -> None:
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
