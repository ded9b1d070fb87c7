"""The engine of windows: fragments at level 1, windows from open fragments (DESIGN section 4.4).

In `read`, Spark turns rows into the fragments of first-level nodes. In `compute`, the other nodes are
derived from these, and the kernel assembles every due window, on the driver or in lanes. The plan says
which nodes there are and which queries read them. Time is the time column of the plan's stream: event
time in microseconds, or the numbers of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from weft.algebra.joinagg.sets import PANES
from weft.algebra.plan import SharedPlan
from weft.algebra.query import Query
from weft.kernel.windows.program import Program, compile_program
from weft.kernel.windows.weave import Step
from weft.runtime.checkpoint.commits import STATE, Commit, Entry, Intent, Staged
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.level1 import statefiles
from weft.runtime.level1.subaggregate import Derived, derive, subaggregate
from weft.runtime.level1.tiles import StateFile
from weft.runtime.planning.planner import Planner
from weft.runtime.planning.sampling import Sampling
from weft.runtime.planning.versions import updated_versions
from weft.runtime.protocol.engine import Retained
from weft.runtime.protocol.step import StepFailed, StepWork
from weft.runtime.settings import Settings
from weft.runtime.sinks.delivery import Sink
from weft.runtime.tables import Bits, TableVersions
from weft.runtime.windows.openstate import OpenState
from weft.runtime.windows.panes import publish_panes
from weft.runtime.windows.placement import Placement, placed
from weft.runtime.windows.projection import project
from weft.runtime.windows.totals import late_after, totals_after
from weft.runtime.windows.weaving import WindowOutcome, use_lanes, weave_here, weave_in_lanes


@dataclass(frozen=True)
class Surroundings:
    """What the engine is given: its log, its sink (lanes write directly into a result store), its
    settings and lanes, the registered queries, its planner and its sampling, and the run's tables."""

    log: StreamLog
    sink: Sink
    settings: Settings
    lanes: int
    queries: Callable[[], Sequence[Query]]
    planner: Planner
    sampling: Sampling
    tables: TableVersions


class WindowsEngine:
    """Runs the shared plan of one stream."""

    def __init__(self, given: Surroundings) -> None:
        self._log, self._sink, self._settings = given.log, given.sink, given.settings
        self._lanes, self._queries = given.lanes, given.queries
        self._planner, self._sampling = given.planner, given.sampling
        self._tables = given.tables
        self._open: OpenState | None = None
        self._open_version = 0
        self._program: Program | None = None
        self._placement: tuple[int, Placement] | None = None
        self._in_lanes = given.settings.kernel == "lanes"

    @property
    def where(self) -> str:
        return "lanes" if self._in_lanes else "driver"

    def may_overlap(self, work: StepWork) -> bool:
        """Not with lanes: they are Spark tasks, and would compete with those of the next step."""
        return self._settings.overlap and not self._in_lanes

    # plans

    def serves(self, head: Commit | Staged) -> bool:
        plan = self._log.plan(head.plan_version)
        registered = [query.id for query in self._queries()]
        return [query.id for query in plan.queries] == registered

    def outgrown(self, head: Commit | Staged, last: Commit | None) -> bool:
        return self._planner.outgrown(self._log.plan(head.plan_version), last)

    def new_plan(self, work: StepWork, last: Commit | None) -> int:
        queries = self._queries()
        if last is None and work.rows is not None:
            with work.timed("statistics"):
                self._planner.look(work.rows, queries)
        with work.timed("planning"):
            return self._planner.new_plan(queries, last).version

    def replanned(self, failures: Sequence[str], version: int, last: Commit | None) -> int:
        queries = self._log.plan(version).queries
        remaining = [query for query in queries if query.id not in failures]
        return self._planner.new_plan(remaining, last).version

    def left_out(self, failures: Sequence[str], version: int) -> int:
        new_version = max(self._log.plan_versions()) + 1
        self._log.put_plan(self._log.plan(version).without(failures, new_version))
        return new_version

    def tables(self, version: int) -> dict[str, str]:
        wanted: Bits = dict.fromkeys(self._log.plan(version).tables, ())
        return self._tables.versions(self._log.stream, wanted)

    # a step

    def read(self, work: StepWork, intent: Intent, last: Commit | None) -> None:
        if work.rows is None:
            return
        with work.timed("planning"):
            program = self._compiled(self._log.plan(intent.plan_version))
        before = intent.watermark_before

        def table(name: str) -> DataFrame:
            return self._tables.frame(work.spark, intent.tables[name])

        with work.timed("level1"):
            subaggregate(
                work,
                self._log,
                program,
                before,
                self._lanes,
                table,
                published=bool(intent.publications),
            )
        seconds = time.perf_counter() - work.started
        work.keeps_rows = self._sampling.due(work.batch, work.count("rows"), seconds)

    def compute(
        self, work: StepWork, intent: Intent, last: Commit | None, sequence: int
    ) -> WindowOutcome:
        plan = self._log.plan(intent.plan_version)
        files = last.state if last else ()
        derived = self._derived(work, plan)
        every_file = [*files, *derived.new_files]
        self._in_lanes = use_lanes(self._settings, self._log, every_file)
        with work.timed("kernel"):
            outcome = self._weave(work, self._compiled(plan), intent, files, derived, sequence)
        work.published = [
            *(entry for entry in work.published if entry["publication"] != PANES),
            *publish_panes(self._log, work, outcome, self._sink),
        ]
        return outcome

    def _derived(self, work: StepWork, plan: SharedPlan) -> Derived:
        """All fragments of the step. They are computed once, even if the kernel runs again on them."""
        if isinstance(work.scratch, Derived):
            return work.scratch
        if not work.files:
            return Derived()
        with work.timed("tree"):
            derived = derive(work, self._log, plan)
        work.scratch = derived
        return derived

    def _compiled(self, plan: SharedPlan) -> Program:
        if self._program is None or self._program.plan.version != plan.version:
            self._program = compile_program(plan)
        return self._program

    def _weave(
        self,
        work: StepWork,
        program: Program,
        intent: Intent,
        files: Sequence[Entry],
        derived: Derived,
        sequence: int,
    ) -> WindowOutcome:
        ansi = intent.settings["ansi"].lower() == "true"
        step = Step(intent.watermark_before, intent.watermark, ansi)
        if self._in_lanes:
            self._open = None
            outcome = weave_in_lanes(
                work,
                self._log,
                program,
                step,
                files,
                derived,
                self._placed(program),
                self._settings.lane_cap_bytes,
                self._sink,
                sequence,
            )
        else:
            opened = self._opened(program, files)
            outcome = weave_here(self._log, program, step, opened, derived)
        for shape, raw in outcome.unfinished:
            table, failures = project(work.spark, shape, raw)
            outcome.failures.update(failures)
            if table.num_rows:
                outcome.families.setdefault(shape.family, []).append(table)
        if outcome.failures:
            raise StepFailed(outcome.failures)
        return outcome

    def _opened(self, program: Program, files: Sequence[Entry]) -> OpenState:
        """The open fragments in memory. They are loaded again for another plan version, which may need
        partials that the last one did not keep."""
        if self._open is None or self._open_version != program.plan.version:
            stored = [StateFile(self._log.storage, entry) for entry in files]
            opened, rows = OpenState().read(self._log, stored)
            self._open = opened.with_rows(program, rows)
            self._open_version = program.plan.version
        return self._open

    def _placed(self, program: Program) -> Placement:
        """What each lane computes; it changes with the plan."""
        version = program.plan.version
        if self._placement is None or self._placement[0] != version:
            self._placement = (version, placed(program, self._settings.lane_weights(self._lanes)))
        return self._placement[1]

    def retain(
        self, work: StepWork, intent: Intent, outcome: WindowOutcome, last: Commit | None
    ) -> Retained:
        plan = self._log.plan(intent.plan_version)
        horizons_before = last.engine["horizons"] if last else {}
        horizons = statefiles.horizons(self._compiled(plan), intent.watermark, horizons_before)
        files = [*(last.state if last else ()), *outcome.derived.new_files]
        kept, expired = statefiles.live(files, horizons)
        folder = f"{work.name}-{work.attempt}-compact"
        kept, replaced = statefiles.compacted(work.spark, self._log, folder, kept, horizons)
        seen = work.counted.get("max_event")
        section: dict[str, Any] = {
            "versions": list(updated_versions(last, plan, seen, kept)),
            "horizons": horizons,
            "mark": intent.watermark,
            "sets": {q.id: plan.complete_from[q.id] for q in plan.queries if q.publishes},
            "latest": _later(last.engine["latest"] if last else None, seen),
        }
        return Retained(
            live={STATE: tuple(kept)},
            dead=(*expired, *replaced, *outcome.derived.passing_files),
            section=section,
            late=late_after(last, outcome.late, plan),
            metrics=totals_after(last, work, outcome, plan),
        )

    def committed(
        self, work: StepWork, intent: Intent, outcome: WindowOutcome, commit: Commit
    ) -> None:
        plan = self._log.plan(intent.plan_version)
        self._tables.clean()
        state = outcome.state
        opened = None if state is None else state.after(self._compiled(plan), intent.watermark)
        self._open = None if opened is None or opened.crowded else opened
        if work.rows is not None and work.keeps_rows:
            with work.timed("statistics"):
                self._sampling.collect(work.rows, plan, work.count("rows"), commit.metrics)


def _later(first: int | None, second: int | None) -> int | None:
    return max((time for time in (first, second) if time is not None), default=None)
