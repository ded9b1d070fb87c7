"""The protocol of a step, once for every engine (DESIGN sections 4.2 and 4.5).

A step is a micro-batch, a flush, or what a follower consumes at once. Its parts run in this order, so
that a crash at any moment loses nothing and repeats nothing:

    1. admit      the lease is ours; the step is the next one (`leader`, `follower`)
    2. intent     plan version, watermarks, inputs and settings of the step are fixed
    3. read       the engine turns rows into files of its own; rows for followers are published
    4. stage      all that is needed to finish is written; the rows are no longer needed
    5. compute    the engine computes results from files alone
    6. sink       results are written; files stay invisible
    7. commit     one file, put in place atomically, makes state and results visible
    8. clean up   expired files and old commits are deleted, a base is written now and then

Parts 5 to 8 may run beside parts 1 to 3 of the next step (docs/decisions/0008). If they do not, part 4
is left out, and after a crash before the commit the step runs again from its rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import SparkSession

from weft.runtime.checkpoint.commits import Commit, Intent, Position, Staged, with_plan
from weft.runtime.checkpoint.failpoints import reach
from weft.runtime.checkpoint.lease import Lease
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.protocol.engine import Engine, Outcome, Outlet, Retained
from weft.runtime.protocol.finishing import Finisher
from weft.runtime.protocol.orphans import remove_attempts, remove_old_folders
from weft.runtime.protocol.publishing import Publisher
from weft.runtime.protocol.step import Hooks, Progress, StepFailed, StepWork

CLEAN_EVERY = 10
BASE_EVERY = 50


@dataclass(frozen=True)
class Origin:
    """Where the rows of a step come from."""

    spark_query: str = ""
    offsets: str = ""
    """A digest of Spark's offsets; equal digests mean equal rows."""
    inputs: Mapping[str, Position] = field(default_factory=dict)


class Stepper:
    """Runs the steps of one engine over one log."""

    def __init__(
        self,
        log: StreamLog,
        engine: Engine[Any],
        lease: Lease,
        outlet: Outlet,
        hooks: Hooks,
        publisher: Publisher | None = None,
    ) -> None:
        self.log, self.engine, self.publisher = log, engine, publisher
        self._lease, self._outlet, self._hooks = lease, outlet, hooks
        self.lock = threading.RLock()
        self.last = log.last()
        self.staged = log.staged(self.last)
        """The staged step that is not finished: under way, or left by a process that ended."""
        self._finisher = Finisher(f"weft-finish-{log.stream}")
        self._threads: set[int] = set()
        """The threads that run a step, or the second half of one."""
        self._committed_at = 0.0
        self._resuming = True
        """True until the first step, because an earlier process may have left files behind. A stepper
        that fails is not used again."""

    @property
    def head(self) -> Commit | Staged | None:
        """The step that the next one follows, finished or not."""
        return self.staged or self.last

    @property
    def inside(self) -> bool:
        """Whether the caller is part of a step, in a sink or callback."""
        return threading.get_ident() in self._threads

    @property
    def sequence(self) -> int:
        """The id of the step under way for sinks. As in Spark, a flush counts as a batch."""
        return self.last.sequence + 1 if self.last else 0

    @property
    def left_staged(self) -> bool:
        """Whether an earlier process left a staged step that nobody is finishing yet."""
        return self.staged is not None and not self._finisher.begun

    @contextmanager
    def stepping(self) -> Iterator[None]:
        """Marks the caller's thread as part of a step."""
        thread = threading.get_ident()
        nested = thread in self._threads
        self._threads.add(thread)
        try:
            yield
        finally:
            if not nested:
                self._threads.discard(thread)

    def verify(self) -> None:
        """Check that all files are the ones that the log names."""
        files = (
            [entry for entries in self.last.live.values() for entry in entries] if self.last else []
        )
        if self.staged is not None:
            files += [*self.staged.files, *self.staged.published]
        for entry in files:
            self.log.storage.verify(entry)

    # waiting

    @contextmanager
    def between_steps(self) -> Iterator[None]:
        """Waits for the steps under way. No step begins inside the block."""
        with self.lock:
            self._finisher.join()
            yield

    def settle(self) -> None:
        """Wait until all steps are finished. If the last one failed, its error is raised."""
        with self.lock:
            if self._finisher.begun:
                self._finisher.wait()
                self.staged = None

    def raise_failed(self) -> None:
        """Raise the error of a step that failed while it was finished beside the next one."""
        if self._finisher.error is not None:
            raise self._finisher.error

    # steps

    def resume(self, spark: SparkSession) -> None:
        """Finish the staged step that an earlier process left."""
        staged = self.staged
        if staged is None or self._finisher.begun:
            return
        work = StepWork(staged.batch, "data", spark, None, own_session=False)
        work.counted, work.files = dict(staged.counted), list(staged.files)
        work.published = list(staged.published)
        self._remove_attempts(work)
        self._finish(work, staged.intent, Origin(staged.spark_query, staged.offsets))
        self.staged = None

    def run(
        self, work: StepWork, intended: Callable[[int], Intent], origin: Callable[[Intent], Origin]
    ) -> None:
        """Run a step. If it has no intent yet, `intended` makes one for a plan version."""
        self._lease.check()
        if self._resuming:
            self._remove_attempts(work)
            if self.last is not None:
                self.log.delete_staged(self.last.batch)
            self._resuming = False
        work, intent = self._read(work, self._intend(work, intended))
        with work.timed("wait"):
            self.settle()
        work.started = max(work.started, self._committed_at)
        intent = self._up_to_date(work, intent)
        if work.kind == "data" and not work.keeps_rows and self.engine.may_overlap(work):
            self._stage(work, intent, origin(intent))
            self._finisher.begin(lambda: self._finish_beside(work, intent, origin(intent)))
        else:
            self._finish(work, intent, origin(intent))

    def _remove_attempts(self, work: StepWork) -> None:
        """Delete what an earlier attempt at a step left behind, except what it staged."""
        remove_attempts(self.log, work)
        self._remove_results(work)

    def _remove_results(self, work: StepWork) -> None:
        self._outlet.remove_unnamed(self.log, work.name, self.last.name if self.last else "")

    # 2. intent

    def _intend(self, work: StepWork, intended: Callable[[int], Intent]) -> Intent:
        """The step's intent: the one an earlier attempt left, or a new one."""
        earlier = self.log.intent(work.batch) if work.kind == "data" else None
        if earlier is not None:
            return self._up_to_date(work, earlier)
        intent = intended(self._plan_version(work))
        intent = replace(intent, tables=self.engine.tables(intent.plan_version))
        self._put_intent(work, intent)
        return intent

    def _plan_version(self, work: StepWork) -> int:
        """The head's plan if it is still right, else a new one."""
        head = self.head
        if head is None or not self.engine.serves(head):
            self.settle()  # the step under way may leave out the same queries
            head = self.head
        if head is not None and self.engine.serves(head):
            if not self.engine.outgrown(head, self.last):
                return head.plan_version
        self.settle()
        version = self.engine.new_plan(work, self.last)
        reach("after_plan")
        return version

    def _up_to_date(self, work: StepWork, intent: Intent) -> Intent:
        """The intent with the plan of the last step, if that is newer: the last step left out queries
        after this one had begun. The nodes of both plans are the same."""
        if self.last is None or intent.plan_version >= self.last.plan_version:
            return intent
        return self._with_plan(work, intent, self.last.plan_version)

    def _with_plan(self, work: StepWork, intent: Intent, version: int) -> Intent:
        intent = replace(intent, plan_version=version)
        self._put_intent(work, intent)
        return intent

    def _put_intent(self, work: StepWork, intent: Intent) -> None:
        if work.kind == "data":
            self.log.put_intent(intent)

    # 3. and 4.

    def _read(self, work: StepWork, intent: Intent) -> tuple[StepWork, Intent]:
        """Let the engine read the step's rows. Queries that fail on them are left out."""
        while True:
            reach("after_intent")
            if work.kind == "flush":
                return work, intent
            try:
                self.engine.read(work, intent, self.last)
            except StepFailed as failed:
                self.settle()
                self._quarantine(work, failed)
                intent = self._up_to_date(work, intent)
                names = list(failed.failures)
                version = self.engine.replanned(names, intent.plan_version, self.last)
                intent = self._with_plan(work, intent, version)
                self._remove_attempts(work)
                work = work.again()
                continue
            reach("after_read")
            if self.publisher is not None and intent.publications:
                with work.timed("publish"):
                    work.count_published(seen=self.publisher.write(work, intent))
                reach("after_published")
            work.count_published(seen=False)
            return work, intent

    def _stage(self, work: StepWork, intent: Intent, origin: Origin) -> None:
        """Write all that is needed to finish the step, even by another process."""
        self.staged = staged = Staged(
            intent=intent,
            spark_query=origin.spark_query,
            offsets=origin.offsets,
            max_event_time=self._latest(work),
            counted=dict(work.counted),
            files=tuple(work.files),
            published=tuple(work.published),
        )
        self.log.put_staged(staged)
        reach("after_staged")

    def _latest(self, work: StepWork) -> int | None:
        """The latest event time of all rows so far."""
        seen: int | None = work.counted.get("max_event")
        before = self.last.max_event_time if self.last else None
        return max((time for time in (seen, before) if time is not None), default=None)

    def _quarantine(self, work: StepWork, failed: StepFailed) -> None:
        for query_id, failure in failed.failures.items():
            work.failed[query_id] = str(failure)
            self._hooks.quarantine(query_id, str(failure))

    # 5. to 8.

    def _finish_beside(self, work: StepWork, intent: Intent, origin: Origin) -> None:
        with self.stepping():
            self._finish(work, intent, origin)

    def _finish(self, work: StepWork, intent: Intent, origin: Origin) -> None:
        """Compute from the files, and commit. Queries that fail in the engine are left out."""
        while True:
            try:
                return self._finish_once(work, intent, origin)
            except StepFailed as failed:
                self._quarantine(work, failed)
                version = self.engine.left_out(list(failed.failures), intent.plan_version)
                intent = self._with_plan(work, intent, version)
                if self.staged is not None:
                    self.staged = with_plan(self.staged, version)
                    self.log.put_staged(self.staged)
                self._remove_results(work)
                work.attempt = StepWork.new_attempt()

    def _finish_once(self, work: StepWork, intent: Intent, origin: Origin) -> None:
        outcome = self.engine.compute(work, intent, self.last, self.sequence)
        with work.timed("sink"):
            results = self._outlet.deliver(self.log, work, intent, outcome, self.sequence)
        reach("after_results")
        with work.timed("retain"):
            retained = self.engine.retain(work, intent, outcome, self.last)
        commit = Commit(
            stream=self.log.stream,
            kind=work.kind,
            batch=work.batch,
            sequence=self.sequence,
            previous=self.last.name if self.last else None,
            spark_query=origin.spark_query,
            offsets=origin.offsets,
            epoch=self._lease.epoch,
            plan_version=intent.plan_version,
            watermark=intent.watermark,
            max_event_time=self._latest(work),
            settings=intent.settings,
            inputs=dict(origin.inputs),
            live=retained.live,
            results=(*outcome.written, *results),
            published=tuple(work.published),
            publications=intent.publications if work.kind == "data" else (),
            editions=intent.editions if work.kind == "data" else {},
            counted=dict(work.counted),
            engine=retained.section,
            late=retained.late,
            statuses=dict(work.failed),
            metrics=retained.metrics,
        )
        reach("before_commit")
        with work.timed("commit"):
            self._lease.guarded(lambda: self.log.put_commit(commit, self.last))
        reach("after_commit")
        self.last = commit
        self._committed_at = time.perf_counter()
        self.engine.committed(work, intent, outcome, commit)
        with work.timed("clean"):
            self._clean_up(work, commit, retained)
        plan = self.log.any_plan(intent.plan_version)
        self._hooks.planned(self.log.stream, plan, commit.late)
        self._hooks.progress(self._progress(work, commit, outcome))

    def _clean_up(self, work: StepWork, commit: Commit, retained: Retained) -> None:
        for entry in retained.dead:
            self.log.storage.delete(entry["name"])
        if self.staged is not None:
            self.log.delete_staged(work.batch)
        if self.publisher is not None:
            self.publisher.clean()
        reach("after_cleanup")
        if work.kind != "data":
            return
        if work.batch % BASE_EVERY == BASE_EVERY - 1:
            self._outlet.base(self.log, commit, work.attempt)
            reach("after_base")
        if work.batch % CLEAN_EVERY == 0:
            passed = self.publisher.passed() if self.publisher is not None else None
            self.log.prune(commit, passed)
            remove_old_folders(self.log, commit)
            reach("after_prune")

    def _progress(self, work: StepWork, commit: Commit, outcome: Outcome) -> Progress:
        return Progress(
            stream=self.log.stream,
            batch=work.batch,
            kind=work.kind,
            rows=work.count("rows"),
            results=outcome.rows,
            seconds=time.perf_counter() - work.started,
            watermark=commit.mark,
            late_rows=work.count("late_rows"),
            null_times=work.count("null_times"),
            state_rows=sum(entry["rows"] for entry in commit.state),
            state_bytes=sum(entry["size"] for entry in commit.state),
            plan_version=commit.plan_version,
            queries=len(self.log.any_plan(commit.plan_version).queries),
            where=self.engine.where,
            durations=dict(work.durations),
            unconsumed=self.publisher.unconsumed() if self.publisher is not None else 0,
            waits_for=commit.metrics.get("waits_for", {}),
        )
