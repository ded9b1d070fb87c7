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

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from weft.algebra.plan import SharedPlan
from weft.algebra.query import StreamSchema
from weft.errors import CheckpointError
from weft.kernel.windows.program import Program, compile_program
from weft.kernel.windows.weave import Step
from weft.runtime.level1 import statefiles
from weft.runtime.level1.subaggregate import derive, subaggregate
from weft.runtime.planning.planner import Planner
from weft.runtime.planning.versions import updated_history
from weft.runtime.protocol.failpoints import reach
from weft.runtime.protocol.finishing import Finisher
from weft.runtime.protocol.lease import Lease
from weft.runtime.protocol.log import Commit, Entry, Intent, Staged, StreamLog
from weft.runtime.protocol.orphans import remove_fragments, remove_old_folders, remove_results
from weft.runtime.protocol.spark_checkpoint import SparkCheckpoint, check_session
from weft.runtime.protocol.step import Halted, Hooks, Progress, StepFailed, StepWork
from weft.runtime.settings import Settings, session_settings
from weft.runtime.sinks.resultfiles import base_for
from weft.runtime.sinks.sinks import Sink, StepResults, deliver
from weft.runtime.windows.openstate import OpenState
from weft.runtime.windows.projection import project
from weft.runtime.windows.totals import late_after, totals_after
from weft.runtime.windows.weaving import Outcome, use_lanes, weave_here, weave_in_lanes

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
        self._staged = log.staged(self._last)
        """The step that is not finished yet: under way, or left by a process that ended."""
        self._finisher = Finisher(f"weft-finish-{stream.name}")
        self._threads: set[int] = set()
        """Those on which a step, or the end of one, is under way."""
        self._committed_at = 0.0
        self._open: OpenState | None = None
        self._open_version = 0
        self._programs: dict[int, Program] = {}
        self._in_lanes = settings.kernel == "lanes"
        self._resuming = True
        """Until its first step: an earlier process may have left something behind. A loom that fails
        is not used again."""
        self.spark_checkpoint = SparkCheckpoint(log.storage, log.folder("spark"), stream.name)
        self._planner = Planner(log, stream, settings, hooks.sampling)
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
    def head(self) -> Commit | Staged | None:
        """Where the stream stands: the step that the next one goes by, finished or not."""
        return self._staged or self._last

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
        return not self.spark_checkpoint.planned(head.batch + 1)

    def check(self, spark: SparkSession) -> None:
        """Refuse to start on a checkpoint that does not fit."""
        head = self.head
        if head is None:
            self.spark_checkpoint.check_unused()
            return
        check_session(head, spark)
        self.spark_checkpoint.check(head)
        for entry in (*self._state, *(self._staged.files if self._staged else ())):
            self.log.storage.verify(entry)

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
        offsets = self.spark_checkpoint.offsets(batch)
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
        check_session(self._last, spark)
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

    def _remove_orphans(self, work: StepWork) -> None:
        """Delete what an earlier attempt at a step left behind, but for what it staged."""
        remove_fragments(self.log, work)
        remove_results(self.log, self._sink, work, self._last)

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
            self.spark_checkpoint.check_query(head)
        if batch == expected:
            return True
        if head is not None and batch == head.batch and offsets == head.offsets:
            return False
        raise CheckpointError(
            "SPARK_CHECKPOINT",
            detail=f"Spark wants to run batch {batch}, weft expects batch {expected}",
        )

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
        plan = self._asked_for()
        if plan is None:
            self._settle()  # the step under way may be leaving out the same queries
            plan = self._asked_for()
        if plan is not None and not self._planner.outgrown(plan, self._last):
            return plan
        self._settle()
        queries = self._hooks.queries()
        if self._last is None and work.rows is not None:
            with work.timed("statistics"):
                self._planner.look(work.rows, queries)
        return self._planner.new_plan(queries, self._last)

    def _asked_for(self) -> SharedPlan | None:
        """The plan of the last step, if it has the queries that are registered now."""
        if self.head is None:
            return None
        plan = self.log.plan(self.head.plan_version)
        now = [query.id for query in self._hooks.queries()]
        return plan if [query.id for query in plan.queries] == now else None

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
                left = [query for query in queries if query.id not in failed.failures]
                plan = self._planner.new_plan(left, self._last)
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
            spark_query=self.spark_checkpoint.query,
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
                remove_results(self.log, self._sink, work, self._last)
                work.attempt = StepWork.new_attempt()

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
            folder = f"{work.name}-{work.attempt}-compact"
            kept, replaced = statefiles.compacted(work.spark, self.log, folder, kept, horizons)
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
        return deliver(
            self._sink, results, self._settings.sink_tries, self._settings.sink_pause_seconds
        )

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
        return Commit(
            stream=self.stream.name,
            kind=work.kind,
            batch=work.batch,
            sequence=self._sequence,
            spark_query=self.spark_checkpoint.query,
            offsets=offsets,
            epoch=self._lease.epoch,
            plan_version=plan.version,
            watermark=intent.watermark,
            max_event_time=self._latest(work),
            settings=intent.settings,
            state=tuple(kept),
            results=tuple(results),
            results_base=base_for(self.log, self._last, work, self._owner),
            history=updated_history(self._last, plan, work.counted.get("max_event"), kept),
            horizons=horizons,
            late=late_after(self._last, self._late(plan, outcome), plan),
            metrics=totals_after(self._last, work, outcome, plan),
        )

    def _late(self, plan: SharedPlan, outcome: Outcome) -> dict[str, int]:
        """Per query, the (row, window) pairs that come too late in a step."""
        return outcome.late

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
            remove_old_folders(self.log, commit)

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
