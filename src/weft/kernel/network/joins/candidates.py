"""The candidates of a physical join, in blocks of bounded size.

New rows of the left side meet all rows of the right side, old and new; new rows of the right side meet
the old rows of the left side. So every pair is met once, also where both sides read the same rows.
Both chunks are sorted by key: the candidates of a row are one range of the other side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weft.kernel.columns.operations import Array
from weft.kernel.network.joins.history import Chunk, Index
from weft.kernel.network.joins.keys import candidate_pairs
from weft.kernel.network.program import PhysicalJoin
from weft.kernel.network.rows import Segment


@dataclass(frozen=True)
class Block:
    """Candidates: segments of pairs, and the bits of both sides of all pairs in a row."""

    segments: tuple[Segment, ...]
    left_bits: Array | None
    right_bits: Array | None

    @property
    def count(self) -> int:
        return sum(segment.count for segment in self.segments)


Side = tuple[Sequence[Chunk], Chunk | None]
"""One side of a join: its history and its new rows."""


@dataclass(frozen=True)
class _Meeting:
    """A chunk of the left side and one of the right side, and who searches."""

    left: Chunk
    right: Chunk
    probes_left: bool


@dataclass(frozen=True)
class _Part:
    """Candidates of one meeting: entries of the two indexes."""

    meeting: _Meeting
    left: Array
    right: Array


def blocks(
    join: PhysicalJoin,
    left: Side,
    right: Side,
    size: int,
) -> Iterator[Block]:
    """All candidates of a step."""
    meetings = [
        *(
            _Meeting(new, old, True)
            for new in _chunks(left[1])
            for old in (*right[0], *_chunks(right[1]))
        ),
        *(_Meeting(old, new, False) for new in _chunks(right[1]) for old in left[0]),
    ]
    waiting: list[_Part] = []
    count = 0
    for meeting in meetings:
        for part in _parts(join, meeting, size):
            if count and count + len(part.left) > size:
                yield _block(join, waiting)
                waiting, count = [], 0
            waiting.append(part)
            count += len(part.left)
    if waiting:
        yield _block(join, waiting)


def _chunks(newest: Chunk | None) -> list[Chunk]:
    return [] if newest is None else [newest]


def _parts(join: PhysicalJoin, meeting: _Meeting, size: int) -> Iterator[_Part]:
    left, right = meeting.left.indexes[join.left.id], meeting.right.indexes[join.right.id]
    probing, searched = (left, right) if meeting.probes_left else (right, left)
    pairs = candidate_pairs(join.key, probing.keys, searched.keys, meeting.probes_left, size)
    for probes, others in pairs:
        if meeting.probes_left:
            yield _Part(meeting, probes, others)
        else:
            yield _Part(meeting, others, probes)


def _block(join: PhysicalJoin, parts: Sequence[_Part]) -> Block:
    segments: list[Segment] = []
    left_bits: list[Array] = []
    right_bits: list[Array] = []
    for part in parts:
        meeting = part.meeting
        left, right = meeting.left.indexes[join.left.id], meeting.right.indexes[join.right.id]
        segments.append(
            Segment(
                meeting.left.rows, left.rows[part.left], meeting.right.rows, right.rows[part.right]
            )
        )
        _gather(left, part.left, left_bits)
        _gather(right, part.right, right_bits)
    return Block(tuple(segments), _stacked(left_bits), _stacked(right_bits))


def _gather(index: Index, entries: Array, bits: list[Array]) -> None:
    if index.bits is not None:
        bits.append(index.bits[entries])


def _stacked(bits: Sequence[Array]) -> Array | None:
    if not bits:
        return None
    return bits[0] if len(bits) == 1 else np.concatenate(bits)
