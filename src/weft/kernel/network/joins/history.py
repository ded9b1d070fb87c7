"""The rows that a physical node has kept, sorted by the keys of every join that reads them.

History is a sequence of chunks. A step adds a chunk, and chunks of similar size become one, so a row is
copied a logarithmic number of times and a search visits few chunks. A chunk never changes: a state of an
earlier step stays as it was. Rows that can match nothing to come are left out when a chunk is rewritten:
when it is merged, or when a quarter of the entries of one of its indexes has expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.kernel.columns.column import Column, concatenated
from weft.kernel.columns.operations import HIGHEST, LOWEST, Array
from weft.kernel.columns.sorting import ordered
from weft.kernel.network.joins.keys import key_values
from weft.kernel.network.program import Input, PhysicalNode
from weft.kernel.network.rows import ColumnRows, Rows

InputId = tuple[str, bool]
_GROWTH: Final = 3
"""Two chunks become one if the older is at most this many times as large as the newer."""


@dataclass(frozen=True)
class Index:
    """The rows of a chunk that come into one side of a join, in the order of their keys."""

    keys: Array
    rows: Array
    """Their positions in the chunk."""
    bits: Array | None
    """To which members of the input a row belongs, eight to a byte; None: there is just one."""
    expiry: Array | None
    """The watermark at which a row is no longer needed; None: never."""

    @property
    def nbytes(self) -> int:
        arrays = (self.keys, self.rows, self.bits, self.expiry)
        return sum(int(array.nbytes) for array in arrays if array is not None)

    def due(self) -> int:
        """The watermark at which a quarter of the entries has expired."""
        if self.expiry is None or not len(self.expiry):
            return HIGHEST
        place = len(self.expiry) // 4
        return int(np.partition(self.expiry, place)[place])

    def kept(self, choice: Array) -> Index:
        return Index(
            self.keys[choice],
            self.rows[choice],
            None if self.bits is None else self.bits[choice],
            None if self.expiry is None else self.expiry[choice],
        )


@dataclass(frozen=True)
class Chunk:
    """Rows, and for every input that reads them an index. `due`: when some index should be rewritten."""

    count: int
    columns: Mapping[str, Column]
    indexes: Mapping[InputId, Index]
    due: Mapping[InputId, int]

    @property
    def rows(self) -> Rows:
        return ColumnRows(self.columns, self.count)

    @property
    def nbytes(self) -> int:
        columns = sum(values.nbytes for values in self.columns.values())
        return columns + sum(index.nbytes for index in self.indexes.values())


def chunk(columns: Mapping[str, Column], count: int, indexes: Mapping[InputId, Index]) -> Chunk:
    return Chunk(count, columns, indexes, {key: index.due() for key, index in indexes.items()})


def new_chunk(
    node: PhysicalNode, rows: Rows, bits: Mapping[InputId, Array], *, ansi: bool
) -> Chunk:
    """A chunk of new rows. `bits` has for every input the bits of all rows."""
    columns = {name: rows.column(name) for name in node.stored}
    indexes = {entry.id: _indexed(entry, rows, bits[entry.id], ansi=ansi) for entry in node.inputs}
    return chunk(columns, rows.count, indexes)


def _indexed(entry: Input, rows: Rows, bits: Array, *, ansi: bool) -> Index:
    keys, valid = key_values(entry.key, rows, ansi=ansi)
    wanted = bits.any(axis=1)
    if valid is not None and not entry.keeps_all:
        wanted &= valid
    positions = np.flatnonzero(wanted)
    order, keys = sorted_keys(keys[positions])
    positions = positions[order]
    expiry = entry.lifetime.expiry(rows)
    return Index(
        keys,
        positions.astype(np.int32),
        bits[positions] if len(entry.members) > 1 else None,
        None if expiry is None else expiry[positions],
    )


def sorted_keys(keys: Array) -> tuple[Array, Array]:
    """A stable order of keys, and the keys in this order."""
    if keys.dtype == np.float64:
        order = np.argsort(keys, kind="stable")
        return order, keys[order]
    return ordered(keys)


def merged(chunks: Sequence[Chunk], limits: Mapping[InputId, int]) -> Chunk:
    """One chunk of several. Entries whose expiry is not above the limit of their input are left out,
    then rows that no index names."""
    starts = np.cumsum([0, *(part.count for part in chunks)])
    indexes: dict[InputId, Index] = {}
    for key in chunks[0].indexes:
        indexes[key] = _joined([part.indexes[key] for part in chunks], starts, limits[key])
    total = int(starts[-1])
    wanted = np.zeros(total, bool)
    for index in indexes.values():
        wanted[index.rows] = True
    columns = {
        name: concatenated([part.columns[name] for part in chunks]) for name in chunks[0].columns
    }
    count = int(wanted.sum())
    if count < total:
        positions = np.flatnonzero(wanted)
        renumbered = (np.cumsum(wanted) - 1).astype(np.int32)
        columns = {name: values.take(positions) for name, values in columns.items()}
        indexes = {
            key: Index(index.keys, renumbered[index.rows], index.bits, index.expiry)
            for key, index in indexes.items()
        }
    return chunk(columns, count, indexes)


def _joined(parts: Sequence[Index], starts: Array, limit: int) -> Index:
    live = [
        part if part.expiry is None else part.kept(np.flatnonzero(part.expiry > limit))
        for part in parts
    ]
    rows = np.concatenate(
        [part.rows + np.int32(start) for part, start in zip(live, starts[:-1], strict=True)]
    )
    keys = np.concatenate([part.keys for part in live])
    bits = [part.bits for part in live if part.bits is not None]
    expiry = [part.expiry for part in live if part.expiry is not None]
    joined = Index(
        keys,
        rows,
        np.concatenate(bits) if bits else None,
        np.concatenate(expiry) if expiry else None,
    )
    if len(live) == 1:
        return joined
    # The parts are sorted: a stable sort of NumPy merges such runs.
    return joined.kept(np.argsort(keys, kind="stable"))


def extended(
    chunks: Sequence[Chunk], newest: Chunk | None, limits: Mapping[InputId, int]
) -> tuple[Chunk, ...]:
    """History with a new chunk, without what has expired."""
    kept = [_trimmed(part, limits) for part in chunks]
    if newest is not None:
        kept.append(merged([newest], limits))
    kept = [part for part in kept if part.count]
    first = len(kept)
    size = 0
    while first > 0 and (size == 0 or kept[first - 1].count <= _GROWTH * size):
        first -= 1
        size += kept[first].count
    if len(kept) - first > 1:
        kept[first:] = [merged(kept[first:], limits)]
    return tuple(kept)


def _trimmed(part: Chunk, limits: Mapping[InputId, int]) -> Chunk:
    if all(limits[key] < due for key, due in part.due.items()):
        return part
    return merged([part], limits)


def sizes(chunks: Iterable[Chunk]) -> tuple[int, int]:
    """Rows and bytes."""
    parts = list(chunks)
    return sum(part.count for part in parts), sum(part.nbytes for part in parts)


NEVER: Final = LOWEST
"""The limit below which nothing expires."""
