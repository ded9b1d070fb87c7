"""The kernel: from open fragments and a step of the watermark to result rows.

Level 2 (intercede aggregation of the TriOps paper, section III-B) has made the pools that weave
groups read (`coalesce`); here each group selects the shards that satisfy its predicate, once.
Level 3 (final aggregation): for each shape, the ranges of all due windows are found and
combined incrementally (`ranges`), lowered, filtered by HAVING and projected.

Pure: the same inputs give the same rows, wherever it runs. Work per step: O(fragments) per
weave group and partial, plus O(log fragments) per result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weft.algebra.plan import base_of
from weft.algebra.query import Query
from weft.kernel import scalar
from weft.kernel.arrow import arrow_type
from weft.kernel.combine import Combiner
from weft.kernel.due import Due, due_windows, late_pairs
from weft.kernel.failure import NeedsSpark, QueryFailure
from weft.kernel.lower import from_stored, lower
from weft.kernel.operations import Array
from weft.kernel.positions import Pairs, Positions
from weft.kernel.program import DistinctCount, GroupProgram, Program, Shape
from weft.kernel.state import EMPTY, Encoders, NodeState

QUERY_COLUMN = "query"
WINDOW_START, WINDOW_END = "window_start", "window_end"


@dataclass(frozen=True)
class Step:
    """A step of the watermark: windows with before < end <= now are due."""

    before: int
    now: int
    ansi: bool


@dataclass
class Woven:
    """What a step gives: finished rows by family, rows that Spark must still project, and
    the queries that failed on their own data."""

    families: dict[str, list[pa.Table]] = field(default_factory=dict)
    operations: int = 0
    """Fragments in all due windows: the final aggregations of the papers' models, in which every
    window combines its fragments one by one. The kernel does fewer."""
    unfinished: list[tuple[Shape, pa.Table]] = field(default_factory=list)
    failures: dict[str, QueryFailure] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        tables = [table for tables in self.families.values() for table in tables]
        tables += [table for _, table in self.unfinished]
        return sum(int(table.num_rows) for table in tables)


class View:
    """The fragments of a node that satisfy a predicate, ready for range queries."""

    def __init__(self, state: NodeState, predicate: str | None, also: Array | None = None) -> None:
        mask = None if predicate is None else state.masks.get(predicate, np.zeros(0, bool))
        if mask is not None and not len(mask):
            mask = np.zeros(len(state), bool)
        if also is not None:
            mask = also if mask is None else mask & also
        self.state = state if mask is None else state.select(np.flatnonzero(mask))
        self.combiner = Combiner(self.state.columns)
        self.times = np.unique(self.state.ends)
        self.positions = Positions(self.state.keys, self.state.ends) if len(self.state) else None


def weave(
    program: Program,
    states: Mapping[str, NodeState],
    encoders: Mapping[str, Encoders],
    step: Step,
) -> Woven:
    """All results that are due in a step."""
    woven = Woven()
    if step.now <= step.before:
        return woven
    for group in program.groups:
        state = _together(group.pools, states)
        if len(state):
            _weave_group(program, group, state, states, encoders, step, woven)
    return woven


def _together(pools: Sequence[str], states: Mapping[str, NodeState]) -> NodeState:
    """The open fragments of several pools as one."""
    state = EMPTY
    for name in pools:
        state = state.merged(states.get(name, EMPTY))
    return state


def counted_operations(
    program: Program, new: Mapping[str, NodeState], woven: Woven
) -> dict[str, int]:
    """The aggregate operations of a step at each level, as the papers count them: rows into
    fragments, fragments into coarse fragments, fragments into windows."""
    level1 = sum(int(new[node.id].counts.sum()) for node in program.plan.nodes if node.id in new)
    level2 = sum(
        len(new[pool.node])
        for pool in program.pools.values()
        if pool.fragments is not None and pool.node in new
    )
    return {"level1": level1, "level2": level2, "level3": woven.operations}


def late(program: Program, states: Mapping[str, NodeState], before: int) -> dict[str, int]:
    """Per query, the (row, window) pairs of new fragments that come too late."""
    counted: dict[str, int] = {}
    for group in program.groups:
        state = states.get(group.node)
        if state is None or not len(state) or state.span[0] > before:
            continue
        chosen = state.ends <= before
        if group.predicate is not None:
            chosen = chosen & state.masks[group.predicate]
        ends, counts = state.ends[chosen], state.counts[chosen]
        for shape in group.shapes:
            for query in shape.queries:
                pairs = late_pairs(query.window, before, ends, counts)
                if pairs:
                    counted[query.id] = pairs
    return counted


def _weave_group(
    program: Program,
    group: GroupProgram,
    state: NodeState,
    states: Mapping[str, NodeState],
    encoders: Mapping[str, Encoders],
    step: Step,
    woven: Woven,
) -> None:
    view = View(state, group.predicate)
    if view.positions is None:
        return
    satellites: dict[tuple[tuple[str, ...], str], View] = {}
    for shape in group.shapes:
        windows = [query.window for query in shape.queries]
        complete = [program.plan.complete_from[query.id] for query in shape.queries]
        due = due_windows(windows, complete, step.before, step.now, view.times)
        if not len(due.ends):
            continue
        for pairs in view.positions.pairs(due.starts, due.ends):
            if len(pairs.windows):
                woven.operations += int((pairs.high - pairs.low).sum())
                raw = _raw_columns(
                    shape, group, view, due, pairs, states, encoders, satellites, step.ansi, woven
                )
                if raw is not None:
                    _finish(shape, raw, step.ansi, woven)


def _raw_columns(
    shape: Shape,
    group: GroupProgram,
    view: View,
    due: Due,
    pairs: Pairs,
    states: Mapping[str, NodeState],
    encoders: Mapping[str, Encoders],
    satellites: dict[tuple[tuple[str, ...], str], View],
    ansi: bool,
    woven: Woven,
) -> pa.Table | None:
    """Keys, window and aggregates of every pair, before HAVING and projection."""
    ids = pa.array([query.id for query in shape.queries], pa.string())
    columns = {QUERY_COLUMN: ids.take(pa.array(due.queries[pairs.windows]))}
    time = arrow_type("timestamp")
    columns[WINDOW_START] = pa.array(due.starts[pairs.windows]).cast(time)
    columns[WINDOW_END] = pa.array(due.ends[pairs.windows]).cast(time)
    if shape.key_types:
        decoded = encoders[base_of(group.node)].groups.decode(pairs.keys)
        for index, (values, type_) in enumerate(zip(decoded, shape.key_types, strict=True)):
            columns[f"k{index}"] = from_stored(values, type_)
    for index, (aggregate, inputs) in enumerate(zip(shape.aggregates, shape.inputs, strict=True)):
        try:
            if isinstance(inputs, DistinctCount):
                values = _distinct(inputs, group, due, pairs, states, satellites)
            else:
                combined = [view.combiner.over(p, pairs.low, pairs.high) for p in inputs]
                values = lower(aggregate, combined, ansi=ansi)
        except QueryFailure as failure:
            _blame(shape, due, pairs, failure, view, woven)
            return None
        columns[f"a{index}"] = values
    return pa.table(columns)


def _distinct(
    inputs: DistinctCount,
    group: GroupProgram,
    due: Due,
    pairs: Pairs,
    states: Mapping[str, NodeState],
    satellites: dict[tuple[tuple[str, ...], str], View],
) -> pa.Array:
    """The number of distinct values that occur in each (window, group) pair."""
    name = (inputs.pools, inputs.presence.name)
    if name not in satellites:
        state = _together(inputs.pools, states)
        counted = state.columns.get(inputs.presence.name)
        seen = counted[0] > 0 if counted is not None else np.zeros(len(state), bool)
        satellites[name] = View(state, group.predicate, seen)
    view = satellites[name]
    if view.positions is None:
        return pa.array(np.zeros(len(pairs.keys), np.int64))
    groups = np.zeros(int(view.state.keys.max()) + 1, np.int64)
    groups[view.state.keys] = view.state.groups
    width = int(max(pairs.keys.max(), view.state.groups.max())) + 1
    tally: dict[int, int] = {}
    used, slots = np.unique(pairs.windows, return_inverse=True)
    totals = np.zeros(len(used) * width if len(used) * width < 1 << 26 else 0, np.int64)
    for found in view.positions.pairs(due.starts[used], due.ends[used]):
        places, counts = np.unique(found.windows * width + groups[found.keys], return_counts=True)
        if len(totals):
            totals[places] += counts
        else:
            for place, count in zip(places.tolist(), counts.tolist(), strict=True):
                tally[place] = tally.get(place, 0) + count
    wanted = slots * width + pairs.keys
    if len(totals):
        return pa.array(totals[wanted])
    return pa.array([tally.get(place, 0) for place in wanted.tolist()], pa.int64())


def _blame(
    shape: Shape, due: Due, pairs: Pairs, failure: QueryFailure, view: View, woven: Woven
) -> None:
    """Find the queries of a shape whose own windows make it fail."""
    for index, query in enumerate(shape.queries):
        own = due.queries[pairs.windows] == index
        for aggregate, inputs in zip(shape.aggregates, shape.inputs, strict=True):
            if isinstance(inputs, DistinctCount) or not own.any():
                continue
            combined = [view.combiner.over(p, pairs.low[own], pairs.high[own]) for p in inputs]
            try:
                lower(aggregate, combined, ansi=True)
            except QueryFailure as cause:
                woven.failures[query.id] = cause
    if not woven.failures:
        raise failure


def _finish(shape: Shape, raw: pa.Table, ansi: bool, woven: Woven) -> None:
    if shape.native:
        try:
            table = finished(shape, raw, ansi=ansi)
        except NeedsSpark:
            woven.unfinished.append((shape, raw))
            return
        if table.num_rows:
            woven.families.setdefault(shape.family, []).append(table)
    else:
        woven.unfinished.append((shape, raw))


def finished(shape: Shape, raw: pa.Table, *, ansi: bool) -> pa.Table:
    """HAVING and projection by the kernel's own scalars."""
    if shape.having is not None:
        keep = scalar.evaluate(shape.having, raw, ansi=ansi)
        raw = raw.filter(keep)
    columns = [raw.column(QUERY_COLUMN)]
    for output, type_ in zip(shape.outputs, shape.types, strict=True):
        value = scalar.evaluate(output, raw, ansi=ansi)
        columns.append(value if value.type == arrow_type(type_) else value.cast(arrow_type(type_)))
    return pa.table(columns, names=output_names(len(shape.outputs)))


def output_names(width: int) -> list[str]:
    """The columns of a result family: the query, then its columns by position."""
    return [QUERY_COLUMN, *(f"c{index}" for index in range(width))]


def family_schema(types: tuple[str, ...]) -> pa.Schema:
    """The Arrow schema of a result family."""
    names = output_names(len(types))
    return pa.schema(
        [pa.field(names[0], pa.string())]
        + [pa.field(n, arrow_type(t)) for n, t in zip(names[1:], types, strict=True)]
    )


def needed_horizon(queries: Sequence[Query], now: int) -> int:
    """Fragments that end at or before this time are in no window that is still open."""
    return min(query.window.first_end_after(now) - query.window.range for query in queries)
