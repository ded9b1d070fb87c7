"""The stepper of a stream: its steps are Spark's micro-batches, and flushes between them.

A micro-batch must be the one after the last. One that is already committed or staged is skipped.
Any other is refused: after its checkpoint is deleted, Spark would otherwise skip data silently. The
watermark is that of the whole stream, before any predicate (DESIGN section 4.1). A flush emits the
windows that the last batch's data made due, as Spark does in a batch without data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from weft.algebra.query import StreamSchema
from weft.errors import CheckpointError
from weft.runtime.checkpoint.commits import Commit, Intent
from weft.runtime.checkpoint.spark_checkpoint import SparkCheckpoint, check_session
from weft.runtime.protocol.step import Halted, StepWork
from weft.runtime.protocol.stepper import Origin, Stepper
from weft.runtime.settings import session_settings

_MILLISECOND = 1000
_POLL_SECONDS = 0.05


class Leader:
    """Runs a stream's micro-batches and flushes as steps."""

    def __init__(self, stepper: Stepper, stream: StreamSchema, most_unconsumed: int) -> None:
        self._stepper, self.stream = stepper, stream
        self._most_unconsumed = most_unconsumed
        log = stepper.log
        self.spark_checkpoint = SparkCheckpoint(log.storage, log.folder("spark"), stream.name)
        self.session: SparkSession | None = None
        """Spark's copy of the session for this stream. Later changes to the user's session do not
        affect it."""
        self.waiting = False
        """Whether it is waiting for a follower that lags."""

    @property
    def name(self) -> str:
        return self.stream.name

    @property
    def stepper(self) -> Stepper:
        return self._stepper

    @property
    def last(self) -> Commit | None:
        return self._stepper.last

    def check(self, spark: SparkSession) -> None:
        """Refuse to start on a checkpoint that does not fit."""
        head = self._stepper.head
        if head is None:
            self.spark_checkpoint.check_unused()
            return
        check_session(head, spark)
        self.spark_checkpoint.check(head)
        self._stepper.verify()

    # micro-batches

    def batch(self, rows: DataFrame, batch: int, wanted: Callable[[], bool]) -> None:
        """Run a micro-batch. `wanted` returns False once Spark's query is being stopped."""
        waited = self._wait_for_followers(wanted)
        with self._locked(wanted):
            self._stepper.raise_failed()
            with self._stepper.stepping():
                self.session = rows.sparkSession
                self._stepper.resume(rows.sparkSession)
                origin = self._origin(batch)
                if self._admit(batch, origin.offsets):
                    work = StepWork(batch, "data", rows.sparkSession, rows)
                    if waited:
                        work.durations["followers"] = waited
                    self._stepper.run(work, self._intended(work), lambda _: origin)

    @contextmanager
    def _locked(self, wanted: Callable[[], bool]) -> Iterator[None]:
        while not self._stepper.lock.acquire(timeout=_POLL_SECONDS):
            if not wanted():
                raise Halted
        try:
            if not wanted():
                raise Halted
            yield
        finally:
            self._stepper.lock.release()

    def _wait_for_followers(self, wanted: Callable[[], bool]) -> float:
        """Wait while a follower lags too far behind; the seconds waited."""
        publisher = self._stepper.publisher
        started = time.perf_counter()
        try:
            while publisher is not None and publisher.unconsumed() > self._most_unconsumed:
                self.waiting = True
                if not wanted():
                    raise Halted
                time.sleep(_POLL_SECONDS)
        finally:
            waited, self.waiting = self.waiting, False
        return time.perf_counter() - started if waited else 0.0

    def _admit(self, batch: int, offsets: str) -> bool:
        """Whether the batch is to be run; False if it is already committed or staged."""
        head = self._stepper.head
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

    def _origin(self, batch: int) -> Origin:
        return Origin(self.spark_checkpoint.query, self.spark_checkpoint.offsets(batch))

    def _intended(self, work: StepWork) -> Callable[[int], Intent]:
        def intent(plan_version: int) -> Intent:
            head, publisher = self._stepper.head, self._stepper.publisher
            editions = publisher.editions() if publisher and work.kind == "data" else {}
            return Intent(
                batch=work.batch,
                plan_version=plan_version,
                watermark_before=head.watermark if head else 0,
                watermark=self.watermark,
                settings=session_settings(work.spark),
                publications=tuple(editions),
                editions=editions,
            )

        return intent

    @property
    def watermark(self) -> int:
        """The stream's watermark after all data so far (DESIGN section 4.1)."""
        head = self._stepper.head
        if head is None:
            return 0
        if head.max_event_time is None:
            return head.watermark
        floored = head.max_event_time // _MILLISECOND * _MILLISECOND
        return max(head.watermark, floored - self.stream.delay)

    # flushes

    @property
    def flush_pending(self) -> bool:
        """Whether there is work for a flush: a staged step to finish, or due windows that no step has
        emitted. Due windows wait if Spark has planned a batch that must run first, such as one to
        be replayed."""
        if self._stepper.left_staged:
            return True
        head = self._stepper.head
        if head is None or self.watermark <= head.watermark:
            return False
        return not self.spark_checkpoint.planned(head.batch + 1)

    def flush(self, spark: SparkSession) -> bool:
        """Emit the windows that the last batch's data made due; whether a flush was run."""
        stepper = self._stepper
        with stepper.lock, stepper.stepping():
            spark = self.session or spark
            stepper.resume(spark)
            stepper.settle()
            last = stepper.last
            if last is None or not self.flush_pending:
                return False
            check_session(last, spark)
            work = StepWork(last.batch, "flush", spark, None, own_session=self.session is not None)
            origin = Origin(self.spark_checkpoint.query, last.offsets)
            stepper.run(work, self._intended(work), lambda _: origin)
            return True
