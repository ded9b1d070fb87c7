"""Where levels 2 and 3 run: on the driver while the open state is small, else in lanes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from weft.kernel.failure import QueryFailure
from weft.kernel.fragments.state import FRAGMENT_END, ROW_COUNT
from weft.kernel.windows.program import Program, Shape
from weft.kernel.windows.weave import Step, counted_operations, late, weave
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.level1.subaggregate import Derived
from weft.runtime.level1.tiles import ALL_TIMES, Extract, Span, StateFile
from weft.runtime.protocol.step import StepWork
from weft.runtime.settings import Settings
from weft.runtime.sinks.delivery import Sink
from weft.runtime.sinks.store import ResultStore
from weft.runtime.windows.lanes import LaneWork, run_lanes
from weft.runtime.windows.memory import needed_bytes
from weft.runtime.windows.openstate import OpenState
from weft.runtime.windows.placement import Placement
from weft.runtime.windows.spans import due_spans, late_spans

_FEW = 100_000
"""Up to this many new fragments are looked at on the driver, to count what came too late."""


@dataclass
class WindowOutcome:
    """What the kernel computed for a step: tables by family, files that lanes have already written,
    rows that Spark must still project, and the state for the next step."""

    families: dict[str, list[pa.Table]]
    unfinished: list[tuple[Shape, pa.Table]]
    failures: dict[str, QueryFailure]
    late: dict[str, int]
    operations: dict[str, int]
    state: OpenState | None = None
    derived: Derived = field(default_factory=Derived)
    written: list[Entry] = field(default_factory=list)
    placement: Placement | None = None
    """What each lane computed, if the kernel ran in lanes."""
    lane_seconds: Mapping[int, float] = field(default_factory=dict)
    """How long each of them took."""

    @property
    def rows(self) -> int:
        tables = [table for tables in self.families.values() for table in tables]
        return sum(int(t.num_rows) for t in tables) + sum(int(e["rows"]) for e in self.written)


def use_lanes(settings: Settings, log: StreamLog, files: Sequence[Entry]) -> bool:
    """Whether the fragments of these files need too much memory for the driver."""
    if settings.kernel != "auto":
        return settings.kernel == "lanes"
    return needed_bytes(log, files) > settings.driver_cap_bytes


def weave_here(
    log: StreamLog, program: Program, step: Step, opened: OpenState, derived: Derived
) -> WindowOutcome:
    """Run the kernel on the driver, on state that stays in memory between steps."""
    opened, new = opened.read(log, _files(log, derived.new_files))
    counted = late(program, new, opened.encoders, step.before)
    state, due = opened.with_rows(program, new).due(program, step)
    woven = weave(program, due, state.encoders, step)
    operations = counted_operations(program, new, woven)
    operations["level1"] += _passed_on(log, program, derived)
    return WindowOutcome(
        woven.families, woven.unfinished, woven.failures, counted, operations, state, derived
    )


def _files(log: StreamLog, entries: Iterable[Entry]) -> list[StateFile]:
    return [StateFile(log.storage, entry) for entry in entries]


def _passed_on(log: StreamLog, program: Program, derived: Derived) -> int:
    """The rows that went into intermediates of the first level, which no query reads."""
    first = {node.id for node in program.plan.nodes if node.intermediate and node.parent is None}
    rows = 0
    for entry in derived.passing_files:
        if entry["node"] in first:
            rows += _rows_in(log, entry)[0]
    return rows


def _rows_in(log: StreamLog, entry: Entry) -> tuple[int, int]:
    """How many rows went into the fragments of a file, and how many fragments there are."""
    rows = fragments = 0
    for table in StateFile(log.storage, entry).read(Extract(), [FRAGMENT_END, ROW_COUNT]):
        timed = table.filter(table.column(FRAGMENT_END).is_valid())
        rows += pc.sum(timed.column(ROW_COUNT)).as_py() or 0
        fragments += timed.num_rows
    return rows, fragments


def _operations(log: StreamLog, program: Program, derived: Derived) -> dict[str, int]:
    """The operations of levels 1 and 2, as `counted_operations` has them, from the files of a step."""
    operations = {"level1": _passed_on(log, program, derived), "level2": 0}
    first = {node.id for node in program.plan.nodes if node.parent is None}
    coarse = Counter(pool.node for pool in program.pools.values() if pool.fragments is not None)
    for entry in derived.new_files:
        if entry["node"] in first or entry["node"] in coarse:
            rows, fragments = _rows_in(log, entry)
            operations["level1"] += rows if entry["node"] in first else 0
            operations["level2"] += coarse[entry["node"]] * fragments
    return operations


def weave_in_lanes(
    work: StepWork,
    log: StreamLog,
    program: Program,
    step: Step,
    files: Sequence[Entry],
    derived: Derived,
    placement: Placement,
    cap_bytes: int,
    sink: Sink,
    batch: int,
) -> WindowOutcome:
    """Run the kernel in Spark tasks. They write results directly into a result store. For other sinks
    the results come back to the driver in files. If no window is due, there is no task."""
    operations = _operations(log, program, derived)
    spans = due_spans(program, step.before, step.now)
    needed = [entry for entry in files if _holds(spans, entry)]
    new_needed = [entry for entry in derived.new_files if _holds(spans, entry)]
    tardy = _files(
        log, (e for e in derived.new_files if _holds(late_spans(program, step.before), e))
    )
    passed = Extract((ALL_TIMES[0], step.before))
    if not needed and not new_needed and sum(file.rows(passed) for file in tardy) <= _FEW:
        opened, new = OpenState().read(log, tardy, lambda node: passed)
        counted = late(program, new, opened.encoders, step.before)
        return WindowOutcome({}, [], {}, counted, {**operations, "level3": 0}, derived=derived)
    folder = f"{log.folder('handoff')}/{work.name}-{work.attempt}"
    store = sink if isinstance(sink, ResultStore) else None
    target = store or ResultStore(f"{log.storage.uri}/{folder}")
    lane_outcome = run_lanes(
        work.spark,
        LaneWork(
            checkpoint=log.storage.uri,
            stream=program.plan.stream.name,
            plan_version=program.plan.version,
            files=needed,
            new_files=list(derived.new_files),
            before=step.before,
            now=step.now,
            ansi=step.ansi,
            shares=placement.shares,
            cap_bytes=cap_bytes,
            step=work.name,
            batch=batch,
            attempt=work.attempt,
            results_root=target.storage.uri,
            owner=target.owner,
        ),
    )
    outcome = WindowOutcome(
        {},
        lane_outcome.unfinished,
        lane_outcome.failures,
        lane_outcome.late,
        {**operations, "level3": lane_outcome.operations},
        derived=derived,
        placement=placement,
        lane_seconds=lane_outcome.seconds,
    )
    if store is not None:
        outcome.written = [{**entry, "root": store.place} for entry in lane_outcome.results]
        return outcome
    for entry in lane_outcome.results:
        table = target.storage.read_table(entry["name"]).drop_columns(["batch"])
        outcome.families.setdefault(entry["family"], []).append(table)
    log.storage.delete(folder)
    return outcome


def _holds(spans: Mapping[str, Span], entry: Entry) -> bool:
    """Whether a file may have fragments in the span of its node."""
    span = spans.get(entry["node"])
    return span is not None and Extract(span).may_hold(entry)
