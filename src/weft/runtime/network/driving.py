"""A step of the network on the driver, with all history in memory.

The state in memory is that of the last commit. After a restart, after a step in tasks, or for another plan it
is restored from the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from weft.kernel.network import Limits, Program, State, advance, restored
from weft.kernel.network.passing import FromSteps
from weft.runtime.checkpoint.commits import Commit, Intent
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.network import history
from weft.runtime.network.history import HistoryFiles, Published, published_file
from weft.runtime.network.outcome import NetworkOutcome
from weft.runtime.network.projection import finished
from weft.runtime.protocol.step import StepFailed, StepWork
from weft.runtime.tables import TableVersions, absent_bits


class DriverComputing:
    """Computes steps on the driver."""

    def __init__(self, log: StreamLog, tables: TableVersions) -> None:
        self._log, self._tables = log, tables
        self._version = -1
        """The plan version that the state is for."""
        self._state: State | None = None
        self._joined_tables: Mapping[str, str] = {}
        """The versions of the tables in the state."""

    def run(
        self,
        work: StepWork,
        program: Program,
        intent: Intent,
        last: Commit | None,
        new: Sequence[Published],
        from_steps: FromSteps,
        limits: Limits,
        attempt: str | None = None,
    ) -> NetworkOutcome:
        """Compute a step. `attempt`: under which name its files are written, if not that of the work."""
        attempt = work.attempt if attempt is None else attempt
        with work.timed("history"):
            state = self._opened(program, intent, last, limits)
        with work.timed("rows"):
            deltas = history.delta(self._log.storage, new)
        before, after = intent.watermark_before, intent.watermark
        with work.timed("kernel"):
            outcome = advance(program, state, deltas, before, after, from_steps, limits)
        with work.timed("projection"):
            shown = finished(work.spark, program, outcome)
        if shown.failures:
            raise StepFailed(shown.failures)
        files = HistoryFiles(self._log, work.name, attempt, program, intent.tables)
        with work.timed("write"):
            written = files.all_of(outcome.joined, shown.shown)
        published = [
            published_file(self._log, f"{work.name}-{attempt}", name, "part-0", tables)
            for name, tables in shown.derived.items()
        ]
        state = replace(outcome.state, emitted=shown.emitted)
        return NetworkOutcome(
            shown.families, written, outcome.counters, published=published, state=state
        )

    def _opened(
        self, program: Program, intent: Intent, last: Commit | None, limits: Limits
    ) -> State:
        if (
            self._state is None
            or self._version != program.version
            or self._joined_tables != intent.tables
        ):
            self._state = None
            live = last.live if last else {}
            files = history.restored(self._log.storage, live, intent.tables)
            contents = {name: self._tables.rows(v) for name, v in intent.tables.items()}
            self._joined_tables, self._version = intent.tables, program.version
            self._state = restored(
                program,
                {**files.base, **{name: [rows] for name, rows in contents.items()}},
                files.joined,
                stale=files.stale,
                shown=files.shown,
                absent=absent_bits(contents.values()),
                watermark=intent.watermark_before,
                limits=limits,
            )
        return self._state

    def keep(self, state: State | None) -> None:
        """The step is committed: the state after it; None: it was computed in tasks."""
        self._state = state
