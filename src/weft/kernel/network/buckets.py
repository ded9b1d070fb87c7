"""The rows that come into one side of a join, in buckets of the join's key.

A bucket is 16 bits of a mixed hash of the key: rows that can match are in one bucket. A task takes a range
of buckets, and finds all matches of its range by itself. A join without an equality has no key to spread
rows by: the left rows get buckets in turn, and the right rows belong to every range.

A range may hold more rows than fit into memory. Its rows then come in pieces, and pieces meet one after
the other (`met`): the memory is that of one piece of each side, whatever the keys are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from weft.kernel.columns.column import column, to_arrow
from weft.kernel.columns.operations import Array
from weft.kernel.network.joins.candidates import Side
from weft.kernel.network.joins.history import Chunk, Index, sorted_keys
from weft.kernel.network.joins.keys import key_values, mixed
from weft.kernel.network.passing import Kept, Passage
from weft.kernel.network.program import Input, PhysicalNode
from weft.kernel.network.rows import ColumnRows

BUCKETS: Final = 1 << 16
BUCKET: Final = "#bucket"
BITS: Final = "#bits"
"""The column with the bits of an input's members, eight to a byte."""


@dataclass(frozen=True)
class Range:
    """The buckets from `first` up to `end`, which is not one of them."""

    first: int
    end: int

    @staticmethod
    def shares(weights: Sequence[float]) -> list[Range]:
        """All buckets in shares by weight, one after the other.

        >>> Range.shares([1, 1]), Range.shares([3, 1])[1]
        ([Range(first=0, end=32768), Range(first=32768, end=65536)], Range(first=49152, end=65536))
        """
        ends = [round(BUCKETS * end / sum(weights)) for end in accumulate(weights)]
        return [Range(first, end) for first, end in pairwise([0, *ends[:-1], BUCKETS])]

    def parts(self, count: int) -> list[Range]:
        """This range in parts of about equal size.

        >>> Range(0, 10).parts(2)
        [Range(first=0, end=5), Range(first=5, end=10)]
        """
        width = self.end - self.first
        ends = [self.first + part * width // count for part in range(count + 1)]
        return [Range(first, end) for first, end in pairwise(ends)]


def is_everywhere(entry: Input) -> bool:
    """Whether the rows of an input belong to every range of buckets."""
    return not entry.key.parts and not entry.left


def bucketed(
    node: PhysicalNode, entry: Input, kept: Kept, salt: int, *, ansi: bool
) -> pa.Table | None:
    """The rows of a node that come into an input, with their buckets; None if there are none. `salt`
    makes blocks without a key begin at different buckets."""
    keys, valid = key_values(entry.key, kept.rows, ansi=ansi)
    bits = kept.bits[entry.id]
    wanted = bits.any(axis=1)
    if valid is not None and not entry.keeps_all:
        wanted &= valid
    positions = np.flatnonzero(wanted)
    if not len(positions):
        return None
    if entry.key.parts:
        buckets = _buckets(keys[positions])
    elif entry.left:
        buckets = _buckets(np.arange(salt, salt + len(positions)))
    else:
        buckets = np.zeros(len(positions), np.int32)
    columns = {BUCKET: pa.array(buckets), BITS: _packed(bits[positions])}
    for name in node.stored:
        columns[name] = to_arrow(kept.rows.column(name).take(positions))
    return pa.table(columns)


def _buckets(values: Array) -> Array:
    words = mixed(values.astype(np.int64, copy=False).view(np.uint64))
    return (words >> np.uint64(48)).astype(np.int32)


def hash_buckets(hashes: pa.Array) -> Array:
    """The buckets of rows by their own hashes (`distinct.row_hashes`)."""
    first_bytes = _unpacked(pa.chunked_array([hashes]))[:, :2].astype(np.int32)
    return first_bytes[:, 0] << 8 | first_bytes[:, 1]


def _packed(bits: Array) -> pa.Array:
    count, width = bits.shape
    buffer = pa.py_buffer(np.ascontiguousarray(bits))
    return pa.Array.from_buffers(pa.binary(width), count, [None, buffer])


def _unpacked(values: pa.ChunkedArray) -> Array:
    array = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
    width = array.type.byte_width
    flat = np.frombuffer(array.buffers()[1], np.uint8)
    return flat[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)


def piece(entry: Input, table: pa.Table, *, ansi: bool) -> Chunk:
    """Bucketed rows of an input as a chunk."""
    names = [name for name in table.column_names if name not in (BUCKET, BITS)]
    columns = {name: column(table.column(name)) for name in names}
    bits = _unpacked(table.column(BITS))
    keys, _ = key_values(entry.key, ColumnRows(columns, table.num_rows), ansi=ansi)
    order, keys = sorted_keys(keys)
    index = Index(
        keys,
        order.astype(np.int32),
        bits[order] if len(entry.members) > 1 else None,
        None,
    )
    return Chunk(table.num_rows, columns, {entry.id: index}, {})


@dataclass(frozen=True)
class Pieces:
    """One side of a join in pieces, of kept rows and of new ones. They are gone through several times."""

    old: Iterable[Chunk]
    new: Iterable[Chunk]

    @staticmethod
    def of(side: Side) -> Pieces:
        """A side whose chunks are all in memory."""
        history, newest = side
        return Pieces(history, () if newest is None else (newest,))


def met(passage: Passage, node: PhysicalNode, left: Pieces, right: Pieces) -> Iterator[Kept | None]:
    """The new pairs of a join whose sides come in pieces."""
    for new in left.new:
        for other in chain(right.old, right.new):
            yield from passage.of_pairs(node, ((), new), ((other,), None))
    if next(iter(right.new), None) is None:
        return
    for old in left.old:
        for new in right.new:
            yield from passage.of_pairs(node, ((old,), None), ((), new))
