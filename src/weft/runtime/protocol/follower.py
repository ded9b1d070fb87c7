"""A stepper whose input is what other logs have published (DESIGN section 4.5).

A step consumes everything that its input logs have committed since the last step. That may be one
batch or many, so a follower that lags catches up. Its intent names the position in every input log.
Its own commit makes its state and results visible. It does not need the rows of Spark's micro-batches:
after a crash the step runs again from the published files. Its watermark is the least watermark of the
positions that it has consumed.

A follower may be followed, too. Its engine publishes files in `compute`; it waits like a stream while its
slowest follower lags.

A follower without queries rests: it consumes nothing, and nothing is published for it. When its last
query is dropped, it takes one more step, which releases what it retains. It takes further steps while
there is something that was published for it before: otherwise the stream would wait for it for ever.

If its last query is dropped and another one registered, steps in between may have published nothing.
A follower that cannot go on across such a gap ends a step at the gap, and what it retains is released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from weft.errors import CheckpointError
from weft.runtime.checkpoint.commits import (
    Commit,
    Edition,
    Entry,
    Intent,
    Position,
    editions,
    step_name,
)
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.spark_checkpoint import check_session
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.protocol.step import StepWork
from weft.runtime.protocol.stepper import Origin, Stepper
from weft.runtime.settings import session_settings


@dataclass(frozen=True)
class InputLog:
    """A log that a follower consumes."""

    log: StreamLog
    last: Callable[[], Commit | None]
    """The log's last commit, as its own stepper has it."""
    released: Callable[[], None]
    """To be called after a commit of the follower: what it no longer needs may be deleted."""
    published: Callable[[], bool]
    """Whether the log has published files for the follower that it has not consumed."""
    asked: Callable[[], bool]
    """Whether a query of the follower reads the log."""
    without_gap: str = ""
    """A publication that the follower needs of every step. Its own step ends where the log last stopped
    publishing it. Empty if gaps do not matter."""
    delay: int = 0
    """How far the follower's watermark stays behind that of the log."""
    leads: Callable[[], bool] = lambda: True
    """Whether the follower's watermark waits for the log, if a query reads it. If it waits for none, it waits for all that are read."""


@dataclass(frozen=True)
class Gap:
    """A step with rows that did not publish what a follower needs."""

    position: Position
    watermark: int


def last_gap(log: StreamLog, publication: str, after: Position | None) -> Gap | None:
    """The last gap after a position."""
    for step in reversed(log.steps_after(after)):
        if step["kind"] == "data" and publication not in step["publications"]:
            position = Position(step["sequence"], step_name(step["batch"], step["kind"]))
            return Gap(position, step["watermark"])
    return None


def consumed_steps(
    log: StreamLog, after: Position | None, upto: Position, publication: str
) -> Sequence[Mapping[str, Any]]:
    """The steps of a log that a follower's step consumes, as stored in the log's commits. A gap is
    refused, unless it is at the beginning and the step after it does not publish for the follower:
    while a follower rests, commits that it has not consumed are pruned."""
    steps = [step for step in log.steps_after(after) if step["sequence"] <= upto.sequence]
    previous = after.sequence if after is not None else -1
    for index, step in enumerate(steps):
        rested = index == 0 and publication not in step["publications"]
        if step["sequence"] != previous + 1 and not rested:
            detail = f"step {step['previous']} is missing, which a follower has not consumed"
            raise CheckpointError("DAMAGED", path=log.folder("commits"), detail=detail)
        previous = step["sequence"]
    return steps


@dataclass(frozen=True)
class Consumed:
    """A step of an input log that a follower's step consumes."""

    relation: str
    """The input log."""
    step: Mapping[str, Any]
    """As its commit has it."""
    files: tuple[Entry, ...]
    """What it has published for the follower."""

    def edition(self, publication: str) -> Edition | None:
        """For whom it has published."""
        return editions(self.step).get(publication)

    def require_files(self, storage: Storage) -> None:
        """Refuse a published file that is gone, before Spark does so in its own words."""
        for entry in self.files:
            if not storage.exists(entry["name"]):
                raise CheckpointError("DAMAGED", path=entry["name"], detail="the file is missing")


def consumed(
    intent: Intent,
    last: Commit | None,
    log: Callable[[str], StreamLog],
    *publications: str,
) -> Iterator[Consumed]:
    """All steps of its input logs that a follower's step consumes, with the files of its publications; of the last one
    of these no step may be missing (`consumed_steps`)."""
    for relation, position in intent.inputs.items():
        after = last.inputs.get(relation) if last else None
        for step in consumed_steps(log(relation), after, position, publications[-1]):
            files = [e for e in step["published"] if e["publication"] in publications]
            yield Consumed(relation, step, tuple(files))


class Follower:
    """Takes steps over what its input logs have published."""

    def __init__(
        self,
        stepper: Stepper,
        inputs: Sequence[InputLog] = (),
        most_unconsumed: int = 0,
        due: Callable[[], bool] = lambda: False,
    ) -> None:
        """`due`: whether it has something to do though nothing is published."""
        self._stepper, self._inputs = stepper, tuple(inputs)
        self._most_unconsumed, self._due = most_unconsumed, due

    def add_input(self, source: InputLog) -> None:
        """Follow one more log. A step under way goes on with those it began with."""
        self._inputs = (*self._inputs, source)

    @property
    def name(self) -> str:
        return self._stepper.log.stream

    @property
    def stepper(self) -> Stepper:
        return self._stepper

    @property
    def last(self) -> Commit | None:
        return self._stepper.last

    @property
    def resting(self) -> bool:
        """Whether it has nothing to do, even if its inputs publish something."""
        if not self.let_go or self._begun is not None:
            return False
        return not any(source.asked() or source.published() for source in self._inputs)

    @property
    def let_go(self) -> bool:
        """Whether its last step had no queries, so that it retains nothing."""
        last = self._stepper.last
        return last is None or not self._stepper.log.any_plan(last.plan_version).queries

    @property
    def _begun(self) -> Intent | None:
        """The intent of a step that an earlier process began."""
        return self._stepper.log.intent(self._next_batch)

    @property
    def _next_batch(self) -> int:
        last = self._stepper.last
        return last.batch + 1 if last else 0

    def check(self, spark: SparkSession) -> None:
        """Refuse to start on a checkpoint that does not fit."""
        if self._stepper.last is not None:
            check_session(self._stepper.last, spark)
            self._stepper.verify()

    @property
    def behind(self) -> bool:
        """Whether there is something to consume, or to do without."""
        if self.resting:
            return False
        return any(self._new_position(source) for source in self._in_use) or self._due()

    @property
    def waiting(self) -> bool:
        """Whether it waits for a follower of its own that lags too far behind."""
        publisher = self._stepper.publisher
        return publisher is not None and publisher.unconsumed() > self._most_unconsumed

    @property
    def _in_use(self) -> list[InputLog]:
        """The inputs that a step consumes: those that a query reads, or has read before."""
        last = self._stepper.last
        consumed = last.inputs if last is not None and not self.let_go else {}
        return [
            source
            for source in self._inputs
            if source.asked() or source.published() or source.log.stream in consumed
        ]

    def _new_position(self, source: InputLog) -> Position | None:
        """The position of an input's last commit; None if there is nothing new."""
        last = source.last()
        if last is None:
            return None
        consumed = self._consumed(source)
        return last.position if consumed is None or last.sequence > consumed.sequence else None

    def _consumed(self, source: InputLog) -> Position | None:
        last = self._stepper.last
        return last.inputs.get(source.log.stream) if last is not None else None

    def advance(self, session: Callable[[], SparkSession]) -> bool:
        """Take a step if there is something to consume and nobody to wait for; whether it took one."""
        stepper = self._stepper
        with stepper.lock, stepper.stepping():
            if not self.behind or self.waiting:
                return False
            spark = session()
            if stepper.last is not None:
                check_session(stepper.last, spark)
            work = StepWork(self._next_batch, "data", spark, None)
            stepper.run(work, self._intended(work), lambda intent: Origin(inputs=intent.inputs))
        for source in self._inputs:
            source.released()
        return True

    def _intended(self, work: StepWork) -> Callable[[int], Intent]:
        # What the step consumes is fixed before its plan is made, for the plan depends on gaps in it.
        in_use = self._in_use
        ends = {source.log.stream: self._end(source) for source in in_use}

        def intent(plan_version: int) -> Intent:
            head, publisher = self._stepper.last, self._stepper.publisher
            positions = dict(head.inputs) if head else {}
            watermarks: list[int | None] = []
            asked = [source for source in in_use if source.asked()] or in_use
            read = [source for source in asked if source.leads()] or asked
            for source in in_use:
                last = ends[source.log.stream]
                if last is not None:
                    positions[source.log.stream] = last.position
                if source in read:
                    watermarks.append(last.watermark - source.delay if last is not None else None)
            before = head.watermark if head else 0
            reached = [watermark for watermark in watermarks if watermark is not None]
            complete = len(reached) == len(watermarks) > 0
            return Intent(
                batch=work.batch,
                plan_version=plan_version,
                watermark_before=before,
                watermark=max(before, min(reached)) if complete else before,
                settings=session_settings(work.spark),
                publications=publisher.wanted if publisher is not None else (),
                inputs=positions,
            )

        return intent

    def _end(self, source: InputLog) -> Commit | Gap | None:
        """The step of an input up to which the follower's next step consumes it."""
        last = source.last()
        if last is None or not source.without_gap or self.let_go:
            return last
        return last_gap(source.log, source.without_gap, self._consumed(source)) or last
