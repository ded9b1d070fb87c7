"""The loom of a numbered stream: runs the row windows of a stream, in step with its own loom.

The stream's loom is the clock: it runs every micro-batch first, and its intent and commits say what
the event-time watermark is. This one numbers the rows that the watermark has passed (`numbering`) and
runs its own shared plan over them, by the same steps and the same commit protocol; a window is due
when its last number is given. Its commit names the pending rows beside the open fragments.

A crash between the two commits of a batch leaves the batch to Spark, which runs it again: the loom
that has it skips it, the other one runs it. Numbers depend only on the rows, on the pending files of
the last commit and on the clock's intent, so a step that is run again gives the same ones.

Rows have numbers while the stream has a row window: with the last one dropped, one more step lets go
of the pending rows, and the loom rests. The next row window goes on with the next number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.algebra.plan import SharedPlan
from weft.errors import CheckpointError
from weft.runtime.protocol.failpoints import reach
from weft.runtime.protocol.log import Commit, Entry, Intent
from weft.runtime.protocol.spark_checkpoint import check_session
from weft.runtime.protocol.step import StepWork
from weft.runtime.rows.numbering import MOST_FILES, NUMBERED, PENDING, Numbering
from weft.runtime.settings import Settings, session_settings
from weft.runtime.windows.loom import Loom
from weft.runtime.windows.weaving import Outcome

ROWS_PER_SECOND = 1_000_000.0
"""What the cost models see as a second is a million of a window's units: here, of rows."""


@dataclass(frozen=True)
class Numbered:
    """What numbering gave for a step."""

    watermark: int = 0
    count: int = 0
    pending: tuple[Entry, ...] = ()
    counted: dict[str, int] = field(default_factory=dict)


class RowLoom(Loom):
    """Runs the row windows of a stream after its clock, the stream's own loom."""

    def __init__(self, clock: Loom, numbering: Numbering, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._clock, self._numbering = clock, numbering
        self._numbered = Numbered()
        self.spark_checkpoint = clock.spark_checkpoint
        clock.lead(self)

    @property
    def needs_rows(self) -> bool:
        """Whether a step to come needs whole rows, whatever is registered now."""
        after = self._clock.last.batch + 1 if self._clock.last else 0
        return not self._resting or self.log.intent(after) is not None

    @property
    def _resting(self) -> bool:
        return self._last is None or not self.log.plan(self._last.plan_version).queries

    @property
    def _own_flush_pending(self) -> bool:
        last, clock = self._last, self._clock.last
        if last is None or clock is None or self._resting or last.batch != clock.batch:
            return False
        behind = last.numbering["watermark"] < clock.watermark
        return behind and not self.spark_checkpoint.planned(last.batch + 1)

    def check(self, spark: SparkSession) -> None:
        if self._last is None:
            return
        check_session(self._last, spark)
        self.spark_checkpoint.check_query(self._last)
        for entry in (*self._last.state, *self._last.numbering["files"]):
            self.log.storage.verify(entry)

    def takes(self, batch: int) -> bool:
        wanted = not self._resting or self.log.intent(batch) is not None
        return wanted or bool(self._hooks.queries())

    def batch(self, rows: DataFrame, batch: int, wanted: Callable[[], bool]) -> None:
        if self.takes(batch):
            super().batch(rows, batch, wanted)

    def _overlaps(self, work: StepWork) -> bool:
        """Numbers are given in the order of steps, each from what the one before has committed."""
        return False

    def _admit(self, batch: int, offsets: str) -> bool:
        """The clock has run the batch, so its order is right; a loom that rested joins in."""
        last = self._last
        if last is None or (self._resting and batch > last.batch):
            return True
        return super()._admit(batch, offsets)

    def _watermark(self) -> int:
        return self._last.watermark if self._last else 0

    # numbering, before the intent

    def _intend(self, work: StepWork) -> Intent:
        """Number the rows, then fix the plan and the numbers of the step."""
        found = self.log.intent(work.batch) if work.kind == "data" else None
        plan = self._current_plan(work) if found is None else self.log.plan(found.plan_version)
        with work.timed("numbering"):
            work.rows = self._number(work, plan)
        reach("after_numbering")
        first = self._watermark()
        end = first + self._numbered.count
        if found is not None:
            if found.watermark != end:
                detail = f"batch {work.batch} gives numbers up to {end}, before {found.watermark}"
                raise CheckpointError("SPARK_CHECKPOINT", detail=detail)
            return found
        settings = session_settings(work.spark)
        intent = Intent(work.batch, plan.version, first, end, settings)
        self._put_intent(work, intent)
        return intent

    def _number(self, work: StepWork, plan: SharedPlan) -> DataFrame | None:
        """The rows that get their numbers in this step; None if there are none."""
        self._remove_unnamed()
        before, now = self._marks(work)
        if not plan.queries:
            self._numbered = Numbered(now)
            return None
        folder = f"{work.name}-{work.attempt}"
        since, files = before, list[Entry]()
        if self._last is not None:
            since, files = self._last.numbering["watermark"], [*self._last.numbering["files"]]
        counted: dict[str, int] = {}
        if work.rows is not None:
            new, seen = self._numbering.admit(work.rows, before, folder)
            files += new
            counted = {name: seen[name] for name in ("late_rows", "null_times")}
        rows, count = self._numbering.number(
            work.spark, files, since, now, self._watermark(), plan.columns, folder
        )
        waiting = [entry for entry in files if entry["last"] >= now]
        if len(waiting) > MOST_FILES:
            target = f"{folder}-compact"
            waiting = self._numbering.compacted(work.spark, waiting, now, target)
        self._numbered = Numbered(now, count, tuple(waiting), counted)
        return rows

    def _marks(self, work: StepWork) -> tuple[int, int]:
        """The event-time watermarks before and of the step, as the clock had them."""
        clock = self._clock.last
        assert clock is not None, "the clock runs first"
        if work.kind == "flush":
            return clock.watermark, clock.watermark
        intent = self._clock.log.intent(work.batch)
        if intent is None:
            path = f"{self._clock.log.folder('intents')}/{work.batch:012d}.json"
            raise CheckpointError("DAMAGED", path=path, detail="it is missing")
        return intent.watermark_before, intent.watermark

    def _remove_unnamed(self) -> None:
        """Delete numbered rows, which serve one step, and pending ones that no commit names."""
        storage = self.log.storage
        files = self._last.numbering["files"] if self._last else ()
        named = {entry["name"].rsplit("/", 2)[1] for entry in files}
        storage.delete(self.log.folder(NUMBERED))
        for name in storage.names(self.log.folder(PENDING)):
            if name not in named:
                storage.delete(f"{self.log.folder(PENDING)}/{name}")

    # the commit

    def _commit_of(self, work: StepWork, *args: Any) -> Commit:
        work.counted |= self._numbered.counted
        commit = super()._commit_of(work, *args)
        files = list(self._numbered.pending)
        numbering = {"watermark": self._numbered.watermark, "files": files}
        return replace(commit, numbering=numbering)

    def _late(self, plan: SharedPlan, outcome: Outcome) -> dict[str, int]:
        """A late row has no number and is in no window: it counts once for every query."""
        return dict.fromkeys(plan.query_by_id, self._numbered.counted.get("late_rows", 0))

    def _clean_up(self, work: StepWork, commit: Commit, dead: Sequence[Entry]) -> None:
        super()._clean_up(work, commit, dead)
        self._remove_unnamed()


def row_settings(settings: Settings) -> Settings:
    """The settings of a row loom: there is one row to a number."""
    return replace(settings, assumed_rate=ROWS_PER_SECOND)
