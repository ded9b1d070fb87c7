"""One step of a network: from the new rows of its relations to the new matches of its queries.

Physical nodes are computed in their order. A node's new rows are the delta of its relation, or the
pairs of its two inputs in which at least one row is new (`candidates`). They pass through memory in
blocks: of each block the members are found, what queries show is projected, and what further joins
read is kept as the node's new chunk. Nothing is changed in place: the state before stays usable.

A join admits a row of a stream only if its event time is above the watermark before the step. A query
on one relation has no state, and sees every row.

Time: for each physical join a search for its new rows, and one look-up per candidate and literal of its
join nodes; for each member one look-up per row of its parent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from weft.algebra.frozen import FrozenMapping
from weft.algebra.predicates.slots import column_name
from weft.kernel.columns.column import Column, column, concatenated, to_arrow
from weft.kernel.columns.operations import Array
from weft.kernel.failure import QueryFailure
from weft.kernel.network import history
from weft.kernel.network.candidates import Block, blocks
from weft.kernel.network.distinct import Emitted, fresh
from weft.kernel.network.history import Chunk, InputId
from weft.kernel.network.members import input_bits, matches, selected
from weft.kernel.network.output import projected, visible
from weft.kernel.network.program import PhysicalNode, Program, Projection
from weft.kernel.network.rows import TIME, ColumnRows, Pairs, Rows, Segment, TableRows, View
from weft.kernel.network.state import EMITTED, State, emitted_table

_MEMBER: Final = "@"
"""Before a logical node's id: the column that says which rows of a join belong to it."""
FromSteps = Mapping[str, Mapping[str, int]]
"""For each query and relation the first step whose rows the query sees."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a step may use, and how Spark is set."""

    most_matches: int = 20_000_000
    """The rows that a physical join may add in one step."""
    most_candidates: int = 20_000_000_000
    """The pairs that a physical join may look at in one step."""
    block: int = 1 << 20
    """The pairs that are looked at together."""
    ansi: bool = True


DEFAULT_LIMITS: Final = Limits()


@dataclass
class Counters:
    """What a step has done."""

    candidates: dict[str, int] = field(default_factory=dict)
    """Pairs looked at, by physical join."""
    rows: dict[str, int] = field(default_factory=dict)
    """New rows, by logical node."""
    late: dict[str, int] = field(default_factory=dict)
    """Rows that joins did not admit, by stream."""


@dataclass(frozen=True)
class Outcome:
    """What a step gives."""

    results: Mapping[str, pa.Table]
    """New rows of queries, with their output columns."""
    raw: Mapping[str, pa.Table]
    """New rows of queries whose output columns Spark must make: `slot.column` of the query's inputs.
    DISTINCT is not applied to them: `distinct.fresh` does it after the projection."""
    joined: Mapping[str, pa.Table]
    """New rows of the physical joins that other joins read, except joins of tables alone."""
    shown: Mapping[str, pa.Table]
    """New hashes of DISTINCT queries."""
    state: State
    counters: Counters


def advance(
    program: Program,
    state: State,
    deltas: Mapping[str, pa.Table],
    watermark_before: int,
    watermark: int,
    from_steps: FromSteps,
    limits: Limits = DEFAULT_LIMITS,
) -> Outcome:
    """The new matches of all queries, and the state after them."""
    step = _Step(program, state, deltas, watermark_before, from_steps, limits, emits=True)
    step.run({})
    return step.outcome(watermark)


def restored(
    program: Program,
    base: Mapping[str, Sequence[pa.Table]],
    joined: Mapping[str, Sequence[pa.Table]] = FrozenMapping(),
    *,
    shown: Mapping[str, Sequence[pa.Table]] = FrozenMapping(),
    watermark: int = history.NEVER,
    limits: Limits = DEFAULT_LIMITS,
) -> State:
    """The state of a network whose relations have had these rows.

    `base` holds the rows that joins have admitted (see `admitted`), `joined` the rows of physical joins
    that other joins read. A node that is newer than stored rows has none of them: its queries see
    only what came after their registration. Tables they see whole, so a join of tables alone is
    computed again.
    """
    deltas = {
        relation: pa.concat_tables(tables, promote_options="permissive")
        for relation, tables in base.items()
        if tables
    }
    step = _Step(program, State.empty(program), deltas, history.NEVER, {}, limits, emits=False)
    step.run(joined)
    state = step.outcome(watermark).state
    emitted = {query: _remembered(tables) for query, tables in shown.items()}
    return State(state.history, state.arrived, FrozenMapping(emitted))


def _remembered(tables: Iterable[pa.Table]) -> Emitted:
    hashes = (code for table in tables for code in table.column(EMITTED).to_pylist())
    return Emitted(frozenset(hashes))


def admitted(table: pa.Table, watermark_before: int) -> pa.Table:
    """The rows of a stream that joins admit in a step."""
    rows = _admitted(TableRows(table), watermark_before)
    return table if rows is None else table.take(pa.array(rows))


def _admitted(rows: Rows, watermark_before: int) -> Array | None:
    """The positions of the rows above a watermark; None: all."""
    times = rows.column(column_name(0, TIME))
    above = times.values > watermark_before
    if times.valid is not None:
        above &= times.valid
    return None if above.all() else np.flatnonzero(above)


class _Step:
    def __init__(
        self,
        program: Program,
        state: State,
        deltas: Mapping[str, pa.Table],
        watermark_before: int,
        from_steps: FromSteps,
        limits: Limits,
        *,
        emits: bool,
    ) -> None:
        self._program, self._state, self._deltas = program, state, deltas
        self._watermark_before, self._from_steps = watermark_before, from_steps
        self._limits, self._emits = limits, emits
        self._chunks: dict[str, Chunk | None] = {}
        self._results: dict[str, list[pa.Table]] = {}
        self._raw: dict[str, list[pa.Table]] = {}
        self._joined: dict[str, pa.Table] = {}
        self._counters = Counters()

    def run(self, joined: Mapping[str, Sequence[pa.Table]]) -> None:
        for node in self._program.nodes:
            if not self._emits and not node.inputs:
                continue
            if node.join is None:
                self._read(node)
            elif self._emits or not self._reads_stream(node):
                self._join(node)
            else:
                self._take_back(node, joined.get(node.id, ()))

    def _reads_stream(self, node: PhysicalNode) -> bool:
        return not self._program.streams.isdisjoint(node.relations)

    def outcome(self, watermark: int) -> Outcome:
        arrived = self._state.arrived | (self._deltas.keys() - self._program.streams)
        kept = {
            node.id: history.extended(
                self._state.history.get(node.id, ()),
                self._chunks.get(node.id),
                {
                    entry.id: watermark if entry.waits_for <= arrived else history.NEVER
                    for entry in node.inputs
                },
            )
            for node in self._program.nodes
            if node.inputs
        }
        results, emitted, shown = self._distinct()
        return Outcome(
            results,
            {query: _one(tables) for query, tables in self._raw.items()},
            self._joined,
            shown,
            State(FrozenMapping(kept), arrived, FrozenMapping(emitted)),
            self._counters,
        )

    def _distinct(self) -> tuple[dict[str, pa.Table], dict[str, Emitted], dict[str, pa.Table]]:
        emitted = dict(self._state.emitted)
        shown: dict[str, pa.Table] = {}
        results: dict[str, pa.Table] = {}
        for query, tables in self._results.items():
            table = _one(tables)
            if self._program.outputs[query].query.distinct:
                before = emitted.get(query, Emitted())
                table, emitted[query], hashes = fresh(before, table)
                if not hashes:
                    continue
                shown[query] = emitted_table(hashes)
            results[query] = table
        return results, emitted, shown

    def _read(self, node: PhysicalNode) -> None:
        """The delta of a relation."""
        table = self._deltas.get(node.id)
        if table is None or not table.num_rows:
            return
        rows = TableRows(table)
        above = None
        if self._emits and node.inputs and node.id in self._program.streams:
            above = _admitted(rows, self._watermark_before)
            self._counters.late[node.id] = 0 if above is None else rows.count - len(above)
        wanted: list[tuple[Rows, dict[InputId, Array]]] = []
        for start in range(0, rows.count, self._limits.block):
            part = View(rows, slice(start, min(start + self._limits.block, rows.count)))
            admitted_here = None
            if above is not None:
                inside = above[(above >= start) & (above < start + part.count)]
                admitted_here = np.zeros(part.count, bool)
                admitted_here[inside - start] = True
            self._absorb(node, part, dict.fromkeys(node.roots), admitted_here, wanted)
        self._keep(node, wanted)

    def _join(self, node: PhysicalNode) -> None:
        join = node.join
        assert join is not None
        sides = [
            (self._state.history.get(entry.source, ()), self._chunks.get(entry.source))
            for entry in (join.left, join.right)
        ]
        wanted: list[tuple[Rows, dict[InputId, Array]]] = []
        candidates = rows = 0
        for block in blocks(join, sides[0], sides[1], self._limits.block):
            candidates += block.count
            if candidates > self._limits.most_candidates:
                raise self._too_much(node, "pairs to be compared", self._limits.most_candidates)
            passing = matches(self._program, node, block, ansi=self._limits.ansi)
            if not passing:
                continue
            pairs, roots = _compressed(block, passing, join.left_slots)
            rows += self._absorb(node, pairs, roots, None, wanted)
            if rows > self._limits.most_matches:
                raise self._too_much(node, "matches", self._limits.most_matches)
        self._counters.candidates[node.id] = candidates
        self._keep(node, wanted)

    def _too_much(self, node: PhysicalNode, what: str, limit: int) -> QueryFailure:
        """Names the queries of the join node that has the most rows."""
        assert node.join is not None
        members = [member.node for member in node.join.members]
        worst = max(members, key=lambda member: self._counters.rows.get(member, 0))
        message = (
            f"a join of {' and '.join(node.relations)} has more than {limit} {what} in one step"
        )
        return QueryFailure("JOIN_TOO_LARGE", message, self._program.fed[worst])

    def _absorb(
        self,
        node: PhysicalNode,
        rows: Rows,
        roots: Mapping[str, Array | None],
        admitted_here: Array | None,
        wanted: list[tuple[Rows, dict[InputId, Array]]],
    ) -> int:
        """The members of a block of rows: shows what queries see, keeps what joins read. Gives the
        number of rows that somebody wanted."""
        positions = selected(self._program, node, rows, roots, ansi=self._limits.ansi)
        for member, chosen in positions.items():
            count = rows.count if chosen is None else len(chosen)
            self._counters.rows[member] = self._counters.rows.get(member, 0) + count
        used = np.zeros(rows.count, bool)
        if self._emits:
            self._show(node, rows, positions, used)
        bits = {entry.id: input_bits(entry, positions, rows.count) for entry in node.inputs}
        kept = np.zeros(rows.count, bool)
        for flags in bits.values():
            if admitted_here is not None:
                flags[~admitted_here] = 0
            kept |= flags.any(axis=1)
        if kept.any():
            if kept.all():
                wanted.append((_detached(node, rows), bits))
            else:
                places = np.flatnonzero(kept)
                flags_kept = {key: flags[places] for key, flags in bits.items()}
                wanted.append((_detached(node, View(rows, places)), flags_kept))
        used |= kept
        return int(used.sum())

    def _show(
        self, node: PhysicalNode, rows: Rows, positions: Mapping[str, Array | None], used: Array
    ) -> None:
        """What queries see of a block of rows. Those with the same columns are projected together."""
        for projection, viewers in node.shown:
            parts: list[tuple[str, Array | None]] = []
            for query, member in viewers:
                if member not in positions:
                    continue
                chosen = positions[member]
                if query in self._from_steps:
                    output = self._program.outputs[query]
                    chosen = visible(output, rows, chosen, self._from_steps[query])
                if chosen is None or len(chosen):
                    parts.append((query, chosen))
            if parts:
                self._project(projection, rows, parts, used)

    def _project(
        self,
        projection: Projection,
        rows: Rows,
        parts: Sequence[tuple[str, Array | None]],
        used: Array,
    ) -> None:
        everything = np.arange(rows.count) if len(parts) > 1 else None
        places = [everything if chosen is None else chosen for _, chosen in parts]
        chosen = np.concatenate([*places]) if len(parts) > 1 else places[0]
        used[slice(None) if chosen is None else chosen] = True
        new = projected(projection, rows, chosen, ansi=self._limits.ansi)
        if new.raw and projection.native and len(parts) > 1:
            # Only Spark knows what one of these queries shows: the others need not wait for it.
            for part in parts:
                self._project(projection, rows, [part], used)
            return
        start = 0
        for (query, _), place in zip(parts, places, strict=True):
            count = rows.count if place is None else len(place)
            table = new.table.slice(start, count) if len(parts) > 1 else new.table
            (self._raw if new.raw else self._results).setdefault(query, []).append(table)
            start += count

    def _keep(self, node: PhysicalNode, wanted: list[tuple[Rows, dict[InputId, Array]]]) -> None:
        """The node's new chunk, and what is stored of a join."""
        if not wanted:
            return
        columns = {
            name: concatenated([rows.column(name) for rows, _ in wanted]) for name in node.stored
        }
        rows = ColumnRows(columns, sum(part.count for part, _ in wanted))
        bits = {
            entry.id: np.concatenate([flags[entry.id] for _, flags in wanted])
            for entry in node.inputs
        }
        self._chunks[node.id] = history.new_chunk(node, rows, bits, ansi=self._limits.ansi)
        if node.join is not None and self._emits and self._reads_stream(node):
            stored = {name: to_arrow(values) for name, values in columns.items()}
            for entry in node.inputs:
                for number, member in enumerate(entry.members):
                    belongs = bits[entry.id][:, number >> 3] & np.uint8(1 << (number & 7))
                    stored[_MEMBER + member] = pa.array(belongs != 0)
            self._joined[node.id] = pa.table(stored)

    def _take_back(self, node: PhysicalNode, tables: Sequence[pa.Table]) -> None:
        """The rows of a join as they were stored."""
        wanted: list[tuple[Rows, dict[InputId, Array]]] = []
        for table in tables:
            columns = {name: column(table.column(name)) for name in table.column_names}
            positions: dict[str, Array | None] = {
                name.removeprefix(_MEMBER): np.flatnonzero(_true(values))
                for name, values in columns.items()
                if name.startswith(_MEMBER)
            }
            rows = ColumnRows(columns, table.num_rows)
            bits = {entry.id: input_bits(entry, positions, rows.count) for entry in node.inputs}
            wanted.append((rows, bits))
        self._keep(node, wanted)


def _true(values: Column) -> Array:
    """Where a column of truth values is true."""
    truth: Array = values.values
    return truth if values.valid is None else truth & values.valid


def _detached(node: PhysicalNode, rows: Rows) -> Rows:
    """The stored columns of rows, without what the rows were taken from."""
    return ColumnRows({name: rows.column(name) for name in node.stored}, rows.count)


def _compressed(
    block: Block, passing: Mapping[str, Array | None], left_slots: int
) -> tuple[Pairs, dict[str, Array | None]]:
    """Only the pairs that some join node has, and their new positions."""
    if any(chosen is None for chosen in passing.values()):
        return Pairs(block.segments, left_slots), dict(passing)
    anywhere = np.zeros(block.count, bool)
    for chosen in passing.values():
        anywhere[chosen] = True
    places = np.flatnonzero(anywhere)
    if len(places) == block.count:
        return Pairs(block.segments, left_slots), dict(passing)
    renumbered = np.cumsum(anywhere) - 1
    segments: list[Segment] = []
    start = 0
    for segment in block.segments:
        first, last = np.searchsorted(places, [start, start + segment.count])
        if first < last:
            chosen = places[first:last] - start
            segments.append(
                Segment(
                    segment.left,
                    segment.left_positions[chosen],
                    segment.right,
                    segment.right_positions[chosen],
                )
            )
        start += segment.count
    roots = {node: renumbered[chosen] for node, chosen in passing.items() if chosen is not None}
    return Pairs(segments, left_slots), dict(roots)


def _one(tables: Sequence[pa.Table]) -> pa.Table:
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
