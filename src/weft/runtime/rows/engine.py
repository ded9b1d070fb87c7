"""The engine of row windows: numbers for the rows that are published, windows over the numbers.

It follows the stream's log. Every step consumes the rows that the stream has published, and the rows
that still wait for their number. It numbers those that the watermark has passed (`numbering`). Then an
engine of windows runs on the numbered rows, whose time is the number (`algebra/numbered`). A window is
due when its last number has been given.

Numbers depend only on the published rows and on the position that the intent names, so a step that runs
again gives the same numbers. Rows get numbers while the stream has a row window. When the last one is
dropped, one more step releases the waiting rows and the state. The next row window continues with the
next number. That step is taken even if the next row window is registered before it: in between the
stream may have committed rows without publishing them, and no window may span this gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from weft.runtime.checkpoint.commits import RETAINED, Commit, Entry, Intent, Staged
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.protocol.engine import Engine, OutcomeT, Retained
from weft.runtime.protocol.follower import consumed, last_gap
from weft.runtime.protocol.preparing import Preparing
from weft.runtime.protocol.step import StepWork
from weft.runtime.rows.numbering import MOST_FILES, PENDING, Numbering
from weft.runtime.settings import Settings

ROWS = "rows"
"""The name of the publication for row windows."""

ROWS_PER_SECOND = 1_000_000.0
"""For the cost models a second is a million units of a window's time, and here a unit is a row."""


@dataclass(frozen=True)
class Numbered:
    """The numbered and the waiting rows of a step."""

    first: int = 0
    count: int = 0
    waiting: tuple[Entry, ...] = ()
    """Published files with rows that still wait for their number."""
    compacted: tuple[Entry, ...] = ()
    """Files with such rows that were written together from many published files."""
    counted: Mapping[str, int] = field(default_factory=dict)


class RowsEngine(Preparing[OutcomeT]):
    """Numbers rows, and lets an engine of windows run on them."""

    def __init__(
        self, windows: Engine[OutcomeT], numbering: Numbering, log: StreamLog, stream: StreamLog
    ) -> None:
        super().__init__(windows)
        self._numbering, self._log, self._stream = numbering, log, stream
        self._numbered = Numbered()

    def serves(self, head: Commit | Staged) -> bool:
        return self._inner.serves(head) and not self._interrupted(head)

    def new_plan(self, work: StepWork, last: Commit | None) -> int:
        """A plan for the registered queries; one without queries if the step ends at a gap."""
        if last is not None and self._interrupted(last):
            queries = [query.id for query in self._log.plan(last.plan_version).queries]
            return self._inner.replanned(queries, last.plan_version, last)
        return self._inner.new_plan(work, last)

    def _interrupted(self, head: Commit | Staged) -> bool:
        """Whether there is state, and the stream has stopped publishing since. State and rows after a
        gap must not serve one query."""
        if not isinstance(head, Commit) or not self._log.plan(head.plan_version).queries:
            return False
        consumed = head.inputs.get(self._stream.stream)
        return last_gap(self._stream, ROWS, consumed) is not None

    def read(self, work: StepWork, intent: Intent, last: Commit | None) -> None:
        """Number the rows that the watermark has passed, and let the engine of windows read them."""
        with work.timed("numbering"):
            self._number(work, intent, last)
        self._inner.read(work, self._by_number(intent), last)
        work.counted |= self._numbered.counted

    def _number(self, work: StepWork, intent: Intent, last: Commit | None) -> None:
        first = last.engine["mark"] if last else 0
        self._numbering.remove_numbered()
        work.rows = None
        plan = self._log.plan(intent.plan_version)
        if not plan.queries:
            self._numbered = Numbered(first)
            return
        waiting = [] if last is None else [*last.live.get(PENDING, ()), *last.retained]
        published, counted = self._published(intent, last)
        files = [*waiting, *published]
        since, now = intent.watermark_before, intent.watermark
        folder = f"{work.name}-{work.attempt}"
        work.rows, count = self._numbering.number(
            work.spark, files, since, now, first, plan.columns, folder
        )
        self._numbered = self._waiting(work, files, now, Numbered(first, count, counted=counted))

    def _published(self, intent: Intent, last: Commit | None) -> tuple[list[Entry], dict[str, int]]:
        """The files that the step consumes, and what their steps counted. If the stream stopped
        publishing in between, nothing waits from before, and only what came after counts."""
        files: list[Entry] = []
        counted = {"late_rows": 0, "null_times": 0}
        for consumed_step in consumed(intent, last, lambda _: self._stream, ROWS):
            step = consumed_step.step
            if step["kind"] != "data":
                continue
            if ROWS not in step["publications"]:
                files = []
                counted = dict.fromkeys(counted, 0)
                continue
            consumed_step.require_files(self._stream.storage)
            files += consumed_step.files
            for measure in counted:
                counted[measure] += int(step["counted"].get(measure) or 0)
        return files, counted

    def _waiting(
        self, work: StepWork, files: Sequence[Entry], now: int, numbered: Numbered
    ) -> Numbered:
        """The files that hold rows without a number. Many small files are replaced by few."""
        waiting = [entry for entry in files if entry["last"] >= now]
        if len(waiting) > MOST_FILES:
            folder = f"{work.name}-{work.attempt}-compact"
            compacted = self._numbering.compacted(work.spark, waiting, now, folder)
            return replace(numbered, compacted=tuple(compacted))
        folder = f"{self._log.folder(PENDING)}/"
        return replace(
            numbered,
            waiting=tuple(entry for entry in waiting if not entry["name"].startswith(folder)),
            compacted=tuple(entry for entry in waiting if entry["name"].startswith(folder)),
        )

    def _by_number(self, intent: Intent) -> Intent:
        """The intent for the numbered stream, whose watermark is the number of numbered rows."""
        first = self._numbered.first
        return replace(intent, watermark_before=first, watermark=first + self._numbered.count)

    def compute(
        self, work: StepWork, intent: Intent, last: Commit | None, sequence: int
    ) -> OutcomeT:
        return self._inner.compute(work, self._by_number(intent), last, sequence)

    def retain(
        self, work: StepWork, intent: Intent, outcome: OutcomeT, last: Commit | None
    ) -> Retained:
        """What the windows retain, the waiting rows, and how many rows have a number. A late row is in
        no window, so it counts once for every query."""
        retained = self._inner.retain(work, self._by_number(intent), outcome, last)
        numbered = self._numbered
        if not self._log.plan(intent.plan_version).queries:  # all have failed in `compute`
            numbered = replace(numbered, waiting=(), compacted=())
        late_rows = numbered.counted.get("late_rows", 0)
        before = last.late if last else {}
        queries = self._log.plan(intent.plan_version).query_by_id
        late = {name: before.get(name, 0) + late_rows for name in queries}
        live: dict[str, tuple[Entry, ...]] = {
            **retained.live,
            RETAINED: numbered.waiting,
            PENDING: numbered.compacted,
        }
        return replace(
            retained,
            live=live,
            late={name: rows for name, rows in late.items() if rows},
        )

    def committed(self, work: StepWork, intent: Intent, outcome: OutcomeT, commit: Commit) -> None:
        self._inner.committed(work, self._by_number(intent), outcome, commit)
        self._numbering.remove_numbered()
        self._numbering.remove_compacted(commit.live.get(PENDING, ()))


def row_settings(settings: Settings) -> Settings:
    """The settings of the engine of windows on numbered rows: every number is one row."""
    return replace(settings, assumed_rate=ROWS_PER_SECOND)
