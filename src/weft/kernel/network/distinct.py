"""DISTINCT over all results of a query so far.

What has been shown is remembered as 128 bits of hash per distinct row (BLAKE2b of its values), so a
billion rows have a chance of 10^-20 that one of them is lost. Equal rows are equal as SQL groups
them: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0.

This memory is not bounded by time: a query whose results can come again for ever needs all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernel.columns.operations import Array

_BYTES = 16


@dataclass(frozen=True)
class Emitted:
    """The hashes of the rows that a query has shown."""

    hashes: frozenset[bytes] = frozenset()

    @property
    def nbytes(self) -> int:
        return (_BYTES + 80) * len(self.hashes)


def fresh(emitted: Emitted, table: pa.Table) -> tuple[pa.Table, Emitted, list[bytes]]:
    """The rows of a table that were not shown before, each once; what has been shown with them; and
    their hashes. As in Spark, floats are shown without -0.0."""
    table = normal(table)
    seen: set[bytes] = set()
    positions: list[int] = []
    for position, code in enumerate(row_hashes(table)):
        if code not in emitted.hashes and code not in seen:
            seen.add(code)
            positions.append(position)
    if not positions:
        return table.slice(0, 0), emitted, []
    rows = table.take(pa.array(positions))
    return rows, Emitted(emitted.hashes | seen), list(seen)


def normal(table: pa.Table) -> pa.Table:
    """The rows as a DISTINCT shows them."""
    return pa.table([_normal(column) for column in table.columns], names=table.column_names)


def unseen(hashes: pa.Array, shown: Iterable[pa.Array]) -> Array:
    """The positions of hashes that were not shown before, each once. What was shown comes in pieces."""
    encoded = hashes.dictionary_encode()
    _, first = np.unique(encoded.indices.to_numpy(zero_copy_only=False), return_index=True)
    new = np.ones(len(encoded.dictionary), bool)
    for piece in shown:
        new &= ~pc.is_in(encoded.dictionary, value_set=piece).to_numpy(zero_copy_only=False)
    return first[new]


def row_hashes(table: pa.Table) -> list[bytes]:
    """A hash of each row, equal for rows that SQL calls the same."""
    columns = [_normal(column).to_pylist() for column in table.columns]
    return [
        hashlib.blake2b(repr(row).encode(), digest_size=_BYTES).digest()
        for row in zip(*columns, strict=True)
    ]


def _normal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats without -0.0 and with one NaN."""
    if not pa.types.is_floating(column.type):
        return column
    numbers = pc.add(column, pa.scalar(0.0, column.type))
    return pc.if_else(pc.is_nan(numbers), pa.scalar(np.nan, column.type), numbers)
