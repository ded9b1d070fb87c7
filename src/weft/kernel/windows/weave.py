"""The kernel: from open fragments and a step of the watermark to result rows.

Level 2 (intercede aggregation of the TriOps paper, section III-B) has made the pools that weave
groups read (`members`, `coalesce`): fragments of every predicate, sorted by it.
Level 3 (final aggregation): for each shape, the ranges of all due windows are found and
combined incrementally (`ranges`), lowered, filtered by HAVING and projected.

Pure: the same inputs give the same rows, wherever it runs. It is given the fragments of the due span
of each pool (`due.WindowSet`), or more of them. Work per step: O(these fragments) per weave group and
partial, plus O(log fragments) per result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weft.algebra.plan import base_of
from weft.kernel.columns.side_by_side import side_by_side
from weft.kernel.failure import QueryFailure
from weft.kernel.fragments.members import expanded
from weft.kernel.fragments.state import (
    EMPTY,
    MEMBER_SHIFT,
    Encoders,
    NodeState,
    Shards,
    together,
)
from weft.kernel.windows.due import due_windows, late_pairs
from weft.kernel.windows.positions import Pairs
from weft.kernel.windows.program import DistinctCount, GroupProgram, Program, Shape
from weft.kernel.windows.results import ShapeFailed, ShapeRows, Unfinished
from weft.kernel.windows.view import View

_LARGE = 30_000
"""Fragments from which on a group is woven beside others: smaller ones would only wait for the
interpreter."""


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

    def add(self, other: Woven) -> None:
        """Take in what another part of the step gave."""
        for family, tables in other.families.items():
            self.families.setdefault(family, []).extend(tables)
        self.operations += other.operations
        self.unfinished += other.unfinished
        self.failures |= other.failures

    @property
    def rows(self) -> int:
        tables = [table for tables in self.families.values() for table in tables]
        tables += [table for _, table in self.unfinished]
        return sum(int(table.num_rows) for table in tables)


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

    def of_group(group: GroupProgram) -> Woven:
        state = _together(group.pools, states)
        group_woven = Woven()
        if len(state):
            _weave_group(program, group, state, states, encoders, step, group_woven)
        return group_woven

    def large(group: GroupProgram) -> bool:
        return sum(len(states.get(name, EMPTY)) for name in group.pools) > _LARGE

    beside = iter(side_by_side(of_group, filter(large, program.groups)))
    for group in program.groups:
        woven.add(next(beside) if large(group) else of_group(group))
    return woven


def _together(pools: Sequence[str], states: Mapping[str, NodeState]) -> NodeState:
    """The open fragments of several pools as one."""
    return together([states.get(name, EMPTY) for name in pools])


def counted_operations(
    program: Program, new: Mapping[str, Sequence[Shards]], woven: Woven
) -> dict[str, int]:
    """The aggregate operations of a step at each level, as the papers count them: rows into
    fragments, fragments into coarse fragments, fragments into windows. Not counted here are what passes
    through the aggregate tree below the first level, and what intermediates take in."""
    level1 = sum(
        int(shards.rows.counts.sum())
        for node in program.plan.nodes
        if node.parent is None
        for shards in new.get(node.id, ())
    )
    level2 = sum(
        len(shards.rows)
        for pool in program.pools.values()
        if pool.fragments is not None
        for shards in new.get(pool.node, ())
    )
    return {"level1": level1, "level2": level2, "level3": woven.operations}


def late(
    program: Program,
    new: Mapping[str, Sequence[Shards]],
    encoders: Mapping[str, Encoders],
    before: int,
) -> dict[str, int]:
    """Per query, the (row, window) pairs of new fragments that come too late."""
    counted: dict[str, int] = {}
    for group in program.groups:
        for shards in new.get(group.node, ()):
            tardy = shards.select(np.flatnonzero(shards.rows.ends <= before))
            if not len(tardy.rows):
                continue
            encoder = encoders[base_of(group.node)].keys
            rows = expanded(tardy, group.indexes, encoder, frozenset())
            owners = rows.keys >> MEMBER_SHIFT
            for shape in group.shapes:
                for query in shape.queries:
                    of_member = np.flatnonzero(owners == group.member_of[query.id])
                    pairs = late_pairs(
                        query.window, before, rows.ends[of_member], rows.counts[of_member]
                    )
                    if pairs:
                        counted[query.id] = counted.get(query.id, 0) + pairs
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
    view = View(state)
    if view.positions is None:
        return
    satellites: dict[DistinctCount, View] = {}

    def distinct(inputs: DistinctCount) -> View:
        """The view of the fragments that hold the values to be counted."""
        if inputs not in satellites:
            values = _together(inputs.pools, states)
            counted = values.columns.get(inputs.presence.name)
            seen = counted[0] > 0 if counted is not None else np.zeros(len(values), bool)
            satellites[inputs] = View(values, seen)
        return satellites[inputs]

    keys = encoders[base_of(group.node)].groups
    for shape in group.shapes:
        windows = [query.window for query in shape.queries]
        complete = [program.plan.complete_from[query.id] for query in shape.queries]
        due = due_windows(windows, complete, step.before, step.now, view.times)
        if not len(due.ends):
            continue
        members = None
        if group.several:
            places = np.array([group.member_of[query.id] for query in shape.queries])
            members = places[due.queries]
        shape_rows = ShapeRows(shape, view, due, keys, distinct, step.ansi, members)
        for pairs in view.positions.pairs(due.starts, due.ends, members):
            if len(pairs.windows):
                woven.operations += int((pairs.high - pairs.low).sum())
                _add(shape_rows, pairs, woven)


def _add(shape_rows: ShapeRows, pairs: Pairs, woven: Woven) -> None:
    shape = shape_rows.shape
    try:
        rows = shape_rows.rows(pairs)
    except ShapeFailed as failed:
        woven.failures.update(failed.failures)
        return
    if isinstance(rows, Unfinished):
        woven.unfinished.append((shape, rows.raw))
    elif rows.num_rows:
        woven.families.setdefault(shape.family, []).append(rows)
