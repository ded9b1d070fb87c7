"""The new rows of semi-joins and anti-joins: rows of the left side that have a match, or have none.

- A semi-join shows a row once, at its first match: a new row that matches any row of the right side, old or
  new; an old row that matches a new one of the right side and no old one.
- An anti-join shows a row when it is closed: when the watermark has passed all event times at which a match
  may still come (`JoinMember.closing`). Until then it waits in history. It is looked for matches once, in
  the step that closes it. Rows whose key is NULL match nothing; they wait like the others.

Nothing is remembered of earlier steps beyond history: rows of the right side are kept until all rows that
they may match are closed (`joins.expiry.partner_lifetime`), so what an old row has matched can be found
again, and an old row is due in the one step whose watermarks lie on both sides of its closing.

A query that was registered later sees fewer rows of the right side: matches are found once, and counted for
all queries that see the same ones.

Time: one look at every waiting row of an anti-join; a search for rows that are due, or new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from weft.algebra.predicates.slots import column_name
from weft.kernel.columns.operations import Array
from weft.kernel.network.buckets import Pieces
from weft.kernel.network.joins.candidates import Block, Side, blocks
from weft.kernel.network.joins.expiry import Lifetime
from weft.kernel.network.joins.history import Chunk, Index
from weft.kernel.network.members import matches
from weft.kernel.network.passing import FromSteps, Passage
from weft.kernel.network.program import JoinMember, PhysicalNode, Program
from weft.kernel.network.rows import STEP, Pairs, Seen, View, in_steps


@dataclass(frozen=True)
class Watermarks:
    """The watermarks before and after a step."""

    before: int
    after: int


@dataclass(frozen=True)
class _Viewers:
    """Outputs that see the same rows of a join node and of the right side."""

    member: JoinMember
    seen: tuple[tuple[int, Seen], ...]
    """By slot of the right side, the steps whose rows they see."""
    outputs: tuple[str, ...]


Found = Mapping[_Viewers, Array]
"""For each row of a chunk whether viewers see it, or a match of it."""


def show_rows(
    program: Program,
    passage: Passage,
    node: PhysicalNode,
    left: Pieces,
    right: Pieces,
    watermarks: Watermarks,
) -> Iterator[None]:
    """Show the new rows of a semi-join or anti-join, whose sides come in pieces. After every piece the
    caller may take over what was shown."""
    search = _Search(program, passage, node, right)
    assert node.join is not None
    is_anti = node.join.kind == "anti-join"
    for pieces, is_new in ((left.old, False), (left.new, True)):
        if not is_anti and not is_new and next(iter(right.new), None) is None:
            continue
        for part in pieces:
            if is_anti:
                found = search.closed(part, watermarks, is_new=is_new)
            else:
                found = search.matched(part) if is_new else search.first_matched(part)
            if found:
                search.show(part, found)
                yield


class _Search:
    """The search for matches of one physical node in a step."""

    def __init__(
        self, program: Program, passage: Passage, node: PhysicalNode, right: Pieces
    ) -> None:
        assert node.join is not None
        self._program, self._passage = program, passage
        self._node, self._join, self._right = node, node.join, right
        self._viewers = _viewers(program, node, passage.from_steps)

    def closed(self, part: Chunk, watermarks: Watermarks, *, is_new: bool) -> Found | None:
        """The rows of a chunk that are closed by this step, and have no match."""
        due = self._due(part, watermarks, is_new=is_new)
        if not due:
            return None
        anyone = np.logical_or.reduce(list(due.values()))
        found = self.matched(self._only(part, anyone))
        return {viewers: due[viewers.member.node] & ~has for viewers, has in found.items()}

    def _due(self, part: Chunk, watermarks: Watermarks, *, is_new: bool) -> dict[str, Array]:
        """By join node, the rows of a chunk that are closed by this step; empty if there are none."""
        index = part.indexes[self._join.left.id]
        rows = View(part.rows, index.rows)
        ends: dict[Lifetime, Array] = {}
        due: dict[str, Array] = {}
        for member in self._join.members:
            if member.closing not in ends:
                closing = member.closing.expiry(rows)
                # Nothing closes rows without a bound; binding refuses such queries.
                closed = (
                    np.zeros(rows.count, bool) if closing is None else closing <= watermarks.after
                )
                if closing is not None and not is_new:
                    closed &= closing > watermarks.before
                ends[member.closing] = closed
            entries = ends[member.closing] & _belongs(index, member)
            due[member.node] = np.zeros(part.count, bool)
            due[member.node][index.rows[entries]] = True
        return due if any(rows.any() for rows in due.values()) else {}

    def matched(self, part: Chunk) -> Found:
        """The rows of a chunk that match any row of the right side."""
        return self._found(part, chain(self._right.old, self._right.new))

    def first_matched(self, part: Chunk) -> Found | None:
        """The old rows of a chunk whose first match came with this step."""
        now = self._found(part, self._right.new, by_partner=True)
        anyone = np.logical_or.reduce(list(now.values()))
        if not anyone.any():
            return None
        before = self._found(self._only(part, anyone), self._right.old)
        return {viewers: has & ~before[viewers] for viewers, has in now.items()}

    def _only(self, part: Chunk, wanted: Array) -> Chunk:
        """A chunk of which only some rows come into the left side."""
        key = self._join.left.id
        index = part.indexes[key]
        kept = index.kept(np.flatnonzero(wanted[index.rows]))
        return Chunk(part.count, part.columns, {key: kept}, {})

    def _found(self, part: Chunk, pieces: Iterable[Chunk], *, by_partner: bool = False) -> Found:
        """The rows of a chunk that match a row of some pieces. Those who search are the chunk's rows, or the
        pieces', if these are few."""
        found = {viewers: np.zeros(part.count, bool) for viewers in self._viewers}
        for other in pieces:
            left: Side = ((part,), None) if by_partner else ((), part)
            right: Side = ((), other) if by_partner else ((other,), None)
            for block in blocks(self._join, left, right, self._passage.limits.block):
                self._add(block, found)
        return found

    def _add(self, block: Block, found: Found) -> None:
        """Note the rows that have a match among some candidates."""
        self._passage.count(self._node, block.count, 0)
        passing = matches(self._program, self._node, block, ansi=self._passage.limits.ansi)
        rows = np.concatenate([segment.left_positions for segment in block.segments])
        pairs = Pairs(block.segments, self._join.left_slots)
        for viewers in self._viewers:
            if viewers.member.node in passing:
                seen = _seen(viewers, pairs, passing[viewers.member.node])
                found[viewers][rows if seen is None else rows[seen]] = True

    def show(self, part: Chunk, found: Found) -> None:
        """Show rows of a chunk to those who see them."""
        chosen: dict[str, Array] = {}
        counts: dict[str, int] = {}
        for viewers, rows in found.items():
            positions = np.flatnonzero(rows)
            member = viewers.member.node
            counts[member] = max(len(positions), counts.get(member, 0))
            if len(positions):
                chosen |= dict.fromkeys(viewers.outputs, positions)
        self._passage.of_partner(self._node, part.rows, chosen, counts)


def _viewers(program: Program, node: PhysicalNode, from_steps: FromSteps) -> Sequence[_Viewers]:
    """The outputs that show rows of a node, together where they see the same rows."""
    assert node.join is not None
    members = {member.node: member for member in node.join.members}
    relations = list(enumerate(program.bases(node)))[node.join.left_slots :]
    outputs: dict[tuple[str, tuple[tuple[int, Seen], ...]], list[str]] = {}
    for _, viewers in node.shown:
        for name, member in viewers:
            seen = from_steps.get(program.outputs[name].query.id, {})
            steps = tuple((slot, _hashable(seen[base])) for slot, base in relations if base in seen)
            outputs.setdefault((member, steps), []).append(name)
    return [
        _Viewers(members[member], steps, tuple(names)) for (member, steps), names in outputs.items()
    ]


def _hashable(seen: Seen) -> Seen:
    return seen if isinstance(seen, int) else tuple(seen)


def _belongs(index: Index, member: JoinMember) -> Array:
    """Whether entries of the left side are rows of a join node's left parent."""
    if index.bits is None:
        return np.ones(len(index.rows), bool)
    truth: Array = index.bits[:, member.left_bit >> 3] & np.uint8(1 << (member.left_bit & 7))
    return truth.astype(bool)


def _seen(viewers: _Viewers, pairs: Pairs, chosen: Array | None) -> Array | None:
    """The positions, of those chosen, whose rows of the right side some viewers see."""
    for slot, seen in viewers.seen:
        steps = pairs.column(column_name(slot, STEP)).values
        truth = in_steps(steps if chosen is None else steps[chosen], seen)
        positions = np.flatnonzero(truth)
        chosen = positions if chosen is None else chosen[positions]
    return chosen
