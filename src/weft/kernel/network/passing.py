"""What the rows of a physical node go through: its members, what queries show, what joins keep.

New rows of a relation, or pairs of a join, come in blocks. Of each block the members are found and what
queries show is projected. What further joins read of a block is given to the caller, with the bits of
their inputs; after each block the caller may take over what was shown.
Matches and candidates are counted over all blocks of a passage: beyond a limit it ends with an error that
names the queries of the worst join node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from weft.algebra.joinagg.matches import is_matches
from weft.algebra.predicates.slots import column_name
from weft.kernel.columns.operations import Array
from weft.kernel.failure import QueryFailure
from weft.kernel.network.joins.candidates import Block, Side, blocks
from weft.kernel.network.joins.history import InputId
from weft.kernel.network.members import input_bits, matches, selected
from weft.kernel.network.output import Projection, projected, visible
from weft.kernel.network.program import PhysicalNode, Program
from weft.kernel.network.rows import TIME, ColumnRows, Pairs, Rows, Seen, Segment, View

FromSteps = Mapping[str, Mapping[str, Seen]]
"""For each query and relation the steps whose rows the query sees."""


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


TOO_LARGE: Final = "JOIN_TOO_LARGE"
"""The error of a join that would exceed a limit."""
DEFAULT_LIMITS: Final = Limits()


@dataclass
class Counters:
    """What a step has done."""

    candidates: dict[str, int] = field(default_factory=dict)
    """Pairs looked at, by physical join."""
    matches: dict[str, int] = field(default_factory=dict)
    """New rows that somebody wants, by physical join."""
    rows: dict[str, int] = field(default_factory=dict)
    """New rows, by logical node."""
    late: dict[str, int] = field(default_factory=dict)
    """Rows that joins did not admit, by source. Those with lookups count the rows of their stream."""

    def add(self, other: Counters) -> None:
        """Count what another has counted."""
        for name, counts in vars(other).items():
            mine: dict[str, int] = getattr(self, name)
            for key, count in counts.items():
                mine[key] = mine.get(key, 0) + count

    def add_unions(self, program: Program) -> None:
        """Count the rows of unions, which are those of their parents."""
        for union, parents in program.unions:
            self.rows[union] = sum(self.rows.get(parent, 0) for parent in parents)

    def check(self, program: Program, node: PhysicalNode, limits: Limits) -> None:
        """Refuse a join that has grown too large."""
        if self.candidates.get(node.id, 0) > limits.most_candidates:
            raise self._too_much(program, node, "pairs to be compared", limits.most_candidates)
        if self.matches.get(node.id, 0) > limits.most_matches:
            raise self._too_much(program, node, "matches", limits.most_matches)

    def _too_much(
        self, program: Program, node: PhysicalNode, what: str, limit: int
    ) -> QueryFailure:
        """Names the queries of the join node that has the most rows, or of a source with lookups. Where only all of them together are too many,
        matches of aggregation joins give way first: these are found at instants then."""
        rows = {member: self.rows.get(member, 0) for member in node.roots}
        of_matches = {m: n for m, n in rows.items() if n and all(map(is_matches, program.fed[m]))}
        few = of_matches and max(rows.values()) <= limit
        worst = max(of_matches if few else rows, key=rows.__getitem__)
        relations = node.relations if node.join else (node.base, *sorted(node.tables))
        message = f"a join of {' and '.join(relations)} has more than {limit} {what} in one step"
        return QueryFailure(TOO_LARGE, message, program.fed[worst])


@dataclass(frozen=True)
class Kept:
    """Rows that further joins read, and for each of these inputs the bits of all rows."""

    rows: Rows
    bits: Mapping[InputId, Array]


class Passage:
    """The way of new rows through nodes. Not `emits`: nothing is shown, everything is admitted."""

    def __init__(
        self, program: Program, from_steps: FromSteps, limits: Limits, *, emits: bool
    ) -> None:
        self._program, self.from_steps = program, from_steps
        self.limits, self._emits = limits, emits
        self.results: dict[str, list[pa.Table]] = {}
        """What outputs show, in the columns of their queries; those of one DISTINCT together."""
        self.raw: dict[str, list[pa.Table]] = {}
        """What Spark must still project."""
        self.counters = Counters()

    def count(self, node: PhysicalNode, candidates: int, matches: int) -> None:
        """Count the pairs that were looked at for a node, and those that match."""
        for counts, more in (
            (self.counters.candidates, candidates),
            (self.counters.matches, matches),
        ):
            counts[node.id] = counts.get(node.id, 0) + more
        self.counters.check(self._program, node, self.limits)

    def of_relation(
        self, node: PhysicalNode, rows: Rows, watermark_before: int, new_rows: Rows | None = None
    ) -> Iterator[Kept | None]:
        """New rows of a relation; `new_rows` as they were before their lookups."""
        above = None
        if self._emits and node.inputs and node.id in self._program.streams:
            above = admitted_positions(rows, watermark_before)
            late = _late(rows if new_rows is None else new_rows, watermark_before)
            self.counters.late[node.id] = self.counters.late.get(node.id, 0) + late
        for start in range(0, rows.count, self.limits.block):
            part = View(rows, slice(start, min(start + self.limits.block, rows.count)))
            admitted_here = None
            if above is not None:
                inside = above[(above >= start) & (above < start + part.count)]
                admitted_here = np.zeros(part.count, bool)
                admitted_here[inside - start] = True
            yield self._absorb(node, part, dict.fromkeys(node.roots), admitted_here)[0]

    def of_pairs(self, node: PhysicalNode, left: Side, right: Side) -> Iterator[Kept | None]:
        """New pairs of a join: those of its two sides with at least one new row."""
        join, counters = node.join, self.counters
        assert join is not None
        counters.candidates.setdefault(node.id, 0)
        for block in blocks(join, left, right, self.limits.block):
            counters.candidates[node.id] += block.count
            counters.check(self._program, node, self.limits)
            passing = matches(self._program, node, block, ansi=self.limits.ansi)
            if not passing:
                continue
            pairs, roots = _compressed(block, passing, join.left_slots)
            kept, wanted = self._absorb(node, pairs, roots, None)
            counters.matches[node.id] = counters.matches.get(node.id, 0) + wanted
            counters.check(self._program, node, self.limits)
            yield kept

    def _absorb(
        self,
        node: PhysicalNode,
        rows: Rows,
        roots: Mapping[str, Array | None],
        admitted_here: Array | None,
    ) -> tuple[Kept | None, int]:
        """The members of a block of rows: shows what queries see; gives what joins read, and the
        number of rows that somebody wanted."""
        positions = selected(self._program, node, rows, roots, ansi=self.limits.ansi)
        for member, chosen in positions.items():
            count = rows.count if chosen is None else len(chosen)
            self.counters.rows[member] = self.counters.rows.get(member, 0) + count
        used = np.zeros(rows.count, bool)
        if self._emits:
            by_output = {
                name: positions[member]
                for _, viewers in node.shown
                for name, member in viewers
                if member in positions
            }
            self._show(node, rows, by_output, used)
        bits = {entry.id: input_bits(entry, positions, rows.count) for entry in node.inputs}
        wanted = np.zeros(rows.count, bool)
        for flags in bits.values():
            if admitted_here is not None:
                flags[~admitted_here] = 0
            wanted |= flags.any(axis=1)
        kept: Kept | None = None
        if wanted.any():
            if wanted.all():
                kept = Kept(_detached(node, rows), bits)
            else:
                places = np.flatnonzero(wanted)
                chosen_bits = {key: flags[places] for key, flags in bits.items()}
                kept = Kept(_detached(node, View(rows, places)), chosen_bits)
        used |= wanted
        return kept, int(used.sum())

    def of_partner(
        self,
        node: PhysicalNode,
        rows: Rows,
        chosen: Mapping[str, Array],
        counts: Mapping[str, int],
    ) -> None:
        """Rows of a semi-join or anti-join: `chosen` by output, counted by logical node."""
        for member, count in counts.items():
            self.counters.rows[member] = self.counters.rows.get(member, 0) + count
        self._show(node, rows, chosen, np.zeros(rows.count, bool))

    def _show(
        self, node: PhysicalNode, rows: Rows, by_output: Mapping[str, Array | None], used: Array
    ) -> None:
        """What queries see of a block of rows. Those with the same columns are projected together."""
        for projection, viewers in node.shown:
            parts: list[tuple[str, Array | None]] = []
            for name, _ in viewers:
                if name not in by_output:
                    continue
                chosen = by_output[name]
                output = self._program.outputs[name]
                if output.query.id in self.from_steps:
                    chosen = visible(output, rows, chosen, self.from_steps[output.query.id])
                if chosen is None or len(chosen):
                    parts.append((name, chosen))
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
        new = projected(projection, rows, chosen, ansi=self.limits.ansi)
        if new.raw and projection.native and len(parts) > 1:
            # Only Spark knows what one of these queries shows: the others need not wait for it.
            for part in parts:
                self._project(projection, rows, [part], used)
            return
        start = 0
        for (name, _), place in zip(parts, places, strict=True):
            count = rows.count if place is None else len(place)
            table = new.table.slice(start, count) if len(parts) > 1 else new.table
            if new.raw:
                self.raw.setdefault(name, []).append(table)
            else:
                memory = self._program.outputs[name].memory
                self.results.setdefault(memory or name, []).append(table)
            start += count


def admitted_positions(rows: Rows, watermark_before: int) -> Array | None:
    """The positions of the rows above a watermark; None: all."""
    times = rows.column(column_name(0, TIME))
    above = times.values > watermark_before
    if times.valid is not None:
        above &= times.valid
    return None if above.all() else np.flatnonzero(above)


def _late(rows: Rows, watermark_before: int) -> int:
    above = admitted_positions(rows, watermark_before)
    return 0 if above is None else rows.count - len(above)


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
