"""Where levels 2 and 3 run: on the driver while the open state is small, else in lanes."""

from __future__ import annotations

from collections.abc import Sequence
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
from weft.runtime.protocol.step import StepWork
from weft.runtime.settings import Settings
from weft.runtime.sinks.delivery import Sink
from weft.runtime.sinks.store import ResultStore
from weft.runtime.windows.lanes import LaneWork, run_lanes
from weft.runtime.windows.openstate import OpenState

_BYTES_PER_ROW = 48
_BYTES_PER_COLUMN = 16


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

    @property
    def rows(self) -> int:
        tables = [table for tables in self.families.values() for table in tables]
        return sum(int(t.num_rows) for t in tables) + sum(int(e["rows"]) for e in self.written)


def use_lanes(settings: Settings, log: StreamLog, files: Sequence[Entry]) -> bool:
    """Whether the fragments of these files need too much memory for the driver."""
    if settings.kernel != "auto":
        return settings.kernel == "lanes"
    return sum(_bytes_in_memory(log, entry) for entry in files) > settings.driver_cap_bytes


def _bytes_in_memory(log: StreamLog, entry: Entry) -> int:
    node = log.plan(entry["version"]).node_by_id[entry["node"]]
    columns = len(node.partials) + len(node.keys)
    return int(entry["rows"]) * (_BYTES_PER_ROW + _BYTES_PER_COLUMN * columns)


def weave_here(
    log: StreamLog, program: Program, step: Step, opened: OpenState, derived: Derived
) -> WindowOutcome:
    """Run the kernel on the driver, on state that stays in memory between steps."""
    opened, new = opened.read(log, derived.new_files)
    counted = late(program, new, opened.encoders, step.before)
    state, due = opened.with_rows(program, new).due(program, step)
    woven = weave(program, due, state.encoders, step)
    operations = counted_operations(program, new, woven)
    operations["level1"] += _passed_on(log, program, derived)
    return WindowOutcome(
        woven.families, woven.unfinished, woven.failures, counted, operations, state, derived
    )


def _passed_on(log: StreamLog, program: Program, derived: Derived) -> int:
    """The rows that went into intermediates of the first level, which no query reads."""
    first = {node.id for node in program.plan.nodes if node.intermediate and node.parent is None}
    rows = 0
    for entry in derived.passing_files:
        if entry["node"] in first:
            table = log.storage.read_table(entry["name"], [FRAGMENT_END, ROW_COUNT])
            timed = table.filter(table.column(FRAGMENT_END).is_valid())
            rows += pc.sum(timed.column(ROW_COUNT)).as_py() or 0
    return rows


def weave_in_lanes(
    work: StepWork,
    log: StreamLog,
    program: Program,
    step: Step,
    files: Sequence[Entry],
    derived: Derived,
    lanes: int,
    sink: Sink,
    batch: int,
) -> WindowOutcome:
    """Run the kernel in Spark tasks. They write results directly into a result store. For other sinks
    the results come back to the driver in files."""
    folder = f"{log.folder('handoff')}/{work.name}-{work.attempt}"
    store = sink if isinstance(sink, ResultStore) else None
    target = store or ResultStore(f"{log.storage.uri}/{folder}")
    lane_outcome = run_lanes(
        work.spark,
        LaneWork(
            checkpoint=log.storage.uri,
            stream=program.plan.stream.name,
            plan_version=program.plan.version,
            files=list(files),
            new_files=list(derived.new_files),
            before=step.before,
            now=step.now,
            ansi=step.ansi,
            lanes=lanes,
            step=work.name,
            batch=batch,
            attempt=work.attempt,
            results_root=target.storage.uri,
            owner=target.owner,
        ),
    )
    operations = {**lane_outcome.operations}
    operations["level1"] = operations.get("level1", 0) + _passed_on(log, program, derived)
    outcome = WindowOutcome(
        {},
        lane_outcome.unfinished,
        lane_outcome.failures,
        lane_outcome.late,
        operations,
        derived=derived,
    )
    if store is not None:
        outcome.written = [{**entry, "root": store.place} for entry in lane_outcome.results]
        return outcome
    for entry in lane_outcome.results:
        table = target.storage.read_table(entry["name"]).drop_columns(["batch"])
        outcome.families.setdefault(entry["family"], []).append(table)
    log.storage.delete(folder)
    return outcome
