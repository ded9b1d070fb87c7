"""One step of a network: from the new rows of its relations to the new matches of its queries.

Physical nodes are computed in their order. A node's new rows are the delta of its relation, or the
pairs of its two inputs in which at least one row is new (`candidates`). They pass through memory in
blocks: of each block the members are found, what queries show is projected, and what further joins
read is kept as the node's new chunk. Nothing is changed in place: the state before stays usable.

A join admits a row of a stream only if its event time is above the watermark before the step. A query
on one relation has no state, and sees every row. Rows of semi-joins and anti-joins are rows of one side, and
shown at once (`partners`).

Time: for each physical join a search for its new rows, and one look-up per candidate and literal of its
join nodes; for each member one look-up per row of its parent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from weft.algebra.frozen import FrozenMapping
from weft.kernel.columns.column import Column, column, concatenated, to_arrow
from weft.kernel.columns.operations import Array
from weft.kernel.network.buckets import Pieces
from weft.kernel.network.distinct import Emitted, fresh
from weft.kernel.network.joins import history
from weft.kernel.network.joins.history import Chunk
from weft.kernel.network.lookups.looked_up import Made, lookup_tables, with_lookups
from weft.kernel.network.members import input_bits
from weft.kernel.network.partners import Watermarks, show_rows
from weft.kernel.network.passing import (
    DEFAULT_LIMITS,
    Counters,
    FromSteps,
    Kept,
    Limits,
    Passage,
    admitted_positions,
)
from weft.kernel.network.program import PhysicalNode, Program
from weft.kernel.network.rows import ColumnRows, TableRows
from weft.kernel.network.state import EMITTED, State, emitted_table

_MEMBER: Final = "@"
"""Before a logical node's id: the column that says which rows of a join belong to it."""


@dataclass(frozen=True)
class Outcome:
    """What a step gives."""

    results: Mapping[str, pa.Table]
    """New rows with the columns of the query, by output; those that DISTINCT is about together."""
    raw: Mapping[str, pa.Table]
    """New rows by output whose columns Spark must make: `slot.column` of the branch's inputs.
    DISTINCT is not applied to them: `distinct.fresh` does it after the projection."""
    joined: Mapping[str, pa.Table]
    """New rows of the physical joins that other joins read, except joins of tables alone."""
    shown: Mapping[str, pa.Table]
    """New hashes of DISTINCT, by its memory."""
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
    watermarks = Watermarks(watermark_before, watermark)
    step = _Step(program, state, deltas, watermarks, from_steps, limits, emits=True)
    step.run({})
    return step.outcome()


def restored(
    program: Program,
    base: Mapping[str, Sequence[pa.Table]],
    joined: Mapping[str, Sequence[pa.Table]] = FrozenMapping(),
    *,
    stale: Collection[str] = (),
    shown: Mapping[str, Sequence[pa.Table]] = FrozenMapping(),
    absent: pa.Table | None = None,
    watermark: int = history.NEVER,
    limits: Limits = DEFAULT_LIMITS,
) -> State:
    """The state of a network whose relations have had these rows.

    `absent` has one row: what Spark computes of a table's columns (`bits`) where all of them are NULL.

    `base` holds the rows that joins have admitted (see `admitted`), `joined` the rows of physical joins
    that other joins read. A node that is newer than stored rows has none of them: its queries see
    only what came after their registration. Tables they see whole, so a join of tables alone is
    computed again. So is a `stale` join: one whose stored rows have a table's contents of before.
    """
    deltas = {
        relation: pa.concat_tables(tables, promote_options="permissive")
        for relation, tables in base.items()
        if tables
    }
    empty = State.empty(program)
    watermarks = Watermarks(history.NEVER, watermark)
    step = _Step(program, empty, deltas, watermarks, {}, limits, emits=False, absent=absent)
    step.run(joined, stale)
    state = step.outcome().state
    emitted = {query: _remembered(tables) for query, tables in shown.items()}
    return replace(state, emitted=FrozenMapping(emitted))


def _remembered(tables: Iterable[pa.Table]) -> Emitted:
    hashes = (code for table in tables for code in table.column(EMITTED).to_pylist())
    return Emitted(frozenset(hashes))


def admitted(table: pa.Table, watermark_before: int) -> pa.Table:
    """The rows of a stream that joins admit in a step."""
    rows = admitted_positions(TableRows(table), watermark_before)
    return table if rows is None else table.take(pa.array(rows))


class _Step:
    def __init__(
        self,
        program: Program,
        state: State,
        deltas: Mapping[str, pa.Table],
        watermarks: Watermarks,
        from_steps: FromSteps,
        limits: Limits,
        *,
        emits: bool,
        absent: pa.Table | None = None,
    ) -> None:
        self._program, self._state, self._deltas = program, state, deltas
        self._watermarks, self._ansi = watermarks, limits.ansi
        self._emits = emits
        new_tables = lookup_tables(program.nodes, deltas, absent, limits)
        self._tables = {**state.tables, **new_tables}
        self._looked_up: dict[str, Made] = {}
        self._passage = Passage(program, from_steps, limits, emits=emits)
        self._chunks: dict[str, Chunk | None] = {}
        self._joined: dict[str, pa.Table] = {}

    def run(self, joined: Mapping[str, Sequence[pa.Table]], stale: Collection[str] = ()) -> None:
        for node in self._program.nodes:
            if not self._emits and not node.inputs:
                continue
            if node.join is None:
                self._read(node)
            elif self._emits or node.id in stale or not self._reads_stream(node):
                self._join(node)
            else:
                tables = joined.get(node.id, ())
                self._keep(node, [stored_rows(node, table) for table in tables])

    def _reads_stream(self, node: PhysicalNode) -> bool:
        return not self._program.streams.isdisjoint(node.relations)

    def outcome(self) -> Outcome:
        watermark = self._watermarks.after
        tables = self._deltas.keys() - self._program.streams
        looked_up = {node.id for node in self._program.nodes if node.base in tables}
        arrived = self._state.arrived | tables | looked_up
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
        self._passage.counters.add_unions(self._program)
        return Outcome(
            results,
            {name: _one(tables) for name, tables in self._passage.raw.items()},
            self._joined,
            shown,
            State(
                FrozenMapping(kept), arrived, FrozenMapping(emitted), FrozenMapping(self._tables)
            ),
            self._passage.counters,
        )

    def _distinct(self) -> tuple[dict[str, pa.Table], dict[str, Emitted], dict[str, pa.Table]]:
        emitted = dict(self._state.emitted)
        shown: dict[str, pa.Table] = {}
        results: dict[str, pa.Table] = {}
        for name, tables in self._passage.results.items():
            table = _one(tables)
            if self._program.outputs[name].memory is not None:
                before = emitted.get(name, Emitted())
                table, emitted[name], hashes = fresh(before, table)
                if not hashes:
                    continue
                shown[name] = emitted_table(hashes)
            results[name] = table
        return results, emitted, shown

    def _read(self, node: PhysicalNode) -> None:
        """The delta of a relation."""
        table = self._deltas.get(node.base)
        if table is None or not table.num_rows:
            return
        new_rows = TableRows(table)
        made = self._looked_up.setdefault(node.base, {})
        rows = with_lookups(self._passage, node, new_rows, self._tables, made)
        before = self._watermarks.before
        self._keep(node, self._passage.of_relation(node, rows, before, new_rows))

    def _join(self, node: PhysicalNode) -> None:
        assert node.join is not None
        left, right = (
            (self._state.history.get(entry.source, ()), self._chunks.get(entry.source))
            for entry in (node.join.left, node.join.right)
        )
        if node.join.kind == "join":
            self._keep(node, self._passage.of_pairs(node, left, right))
        else:
            pieces = Pieces.of(left), Pieces.of(right)
            self._keep(
                node, show_rows(self._program, self._passage, node, *pieces, self._watermarks)
            )

    def _keep(self, node: PhysicalNode, blocks: Iterable[Kept | None]) -> None:
        """The node's new chunk, and what is stored of a join."""
        parts = [block for block in blocks if block is not None]
        if not parts:
            return
        columns = {
            name: concatenated([part.rows.column(name) for part in parts]) for name in node.stored
        }
        rows = ColumnRows(columns, sum(part.rows.count for part in parts))
        bits = {
            entry.id: np.concatenate([part.bits[entry.id] for part in parts])
            for entry in node.inputs
        }
        self._chunks[node.id] = history.new_chunk(node, rows, bits, ansi=self._ansi)
        if node.join is not None and self._emits and self._reads_stream(node):
            self._joined[node.id] = to_store(node, Kept(rows, bits))


def to_store(node: PhysicalNode, kept: Kept) -> pa.Table:
    """Rows of a join as files hold them, with a column for every member of the inputs they come into."""
    stored = {name: to_arrow(kept.rows.column(name)) for name in node.stored}
    for entry in node.inputs:
        for number, member in enumerate(entry.members):
            belongs = kept.bits[entry.id][:, number >> 3] & np.uint8(1 << (number & 7))
            stored[_MEMBER + member] = pa.array(belongs != 0)
    return pa.table(stored)


def stored_rows(node: PhysicalNode, table: pa.Table) -> Kept:
    """The rows of a join as they were stored."""
    columns = {name: column(table.column(name)) for name in table.column_names}
    positions: dict[str, Array | None] = {
        name.removeprefix(_MEMBER): np.flatnonzero(_true(values))
        for name, values in columns.items()
        if name.startswith(_MEMBER)
    }
    rows = ColumnRows(columns, table.num_rows)
    bits = {entry.id: input_bits(entry, positions, rows.count) for entry in node.inputs}
    return Kept(rows, bits)


def _true(values: Column) -> Array:
    """Where a column of truth values is true."""
    truth: Array = values.values
    return truth if values.valid is None else truth & values.valid


def _one(tables: Sequence[pa.Table]) -> pa.Table:
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)
