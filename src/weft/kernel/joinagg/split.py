"""The entries of a physical join in buckets, which can be joined apart.

Two inputs that are joined on equal keys are split by these: entries that can be joined are in one bucket. All other inputs are whole in every
bucket. Buckets are those of the network (`kernel.network.buckets`), and a part is a range of them. So every joined entry is found in exactly one bucket, and the groups of all buckets together are those of the join (`lowering`). Without
equal keys the entries of the largest stream get buckets by their place: an aggregate over a union of entries is the combination of those over its parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weft.algebra.joinagg.query import AggregationJoin
from weft.kernel.columns.column import plain
from weft.kernel.columns.operations import Array
from weft.kernel.joinagg.entries import Entries
from weft.kernel.network.buckets import BUCKETS, Range
from weft.kernel.network.joins.keys import KeySide, equalities, equality_key, key_values, mixed
from weft.kernel.network.rows import ColumnRows


@dataclass(frozen=True)
class Split:
    """By input that is split: its key; None: in turn. Others are not split."""

    keys: Mapping[int, KeySide | None]

    def part(self, slot: int, entries: Entries, buckets: Range, *, ansi: bool) -> Entries:
        """The entries of an input that some buckets have."""
        if slot not in self.keys or buckets == Range(0, BUCKETS):
            return entries
        key = self.keys[slot]
        if key is None:
            return entries.take(np.flatnonzero(_inside(np.arange(len(entries)), buckets)))
        columns = {f"0.{name}": plain(values) for name, values in entries.columns.items()}
        values, valid = key_values(key, ColumnRows(columns, len(entries)), ansi=ansi)
        inside = _inside(values, buckets)
        return entries.take(np.flatnonzero(inside if valid is None else inside & valid))


def _inside(values: Array, buckets: Range) -> Array:
    words = mixed(values.astype(np.int64, copy=False).view(np.uint64))
    found = (words >> np.uint64(33)) % np.uint64(BUCKETS)
    return (found >= np.uint64(buckets.first)) & (found < np.uint64(buckets.end))


def split_of(query: AggregationJoin, sizes: Mapping[int, int]) -> Split:
    """How to split a join: `sizes` are the bytes of its streams, and the largest ones that have equal keys are split."""
    pairs = [
        (sizes.get(left, 0) + sizes.get(right, 0), left, right)
        for right in range(1, len(query.inputs))
        for left in range(right)
        if sizes.get(left, 0) + sizes.get(right, 0)
    ]
    for _, left, right in sorted(pairs, key=lambda pair: (-pair[0], pair[1:])):
        between = query.predicates.within({left, right}).moved({left: 0, right: 1})
        literals = equalities(between, 1)
        if literals:
            key = equality_key(literals, 1)
            return Split({left: key.left, right: key.right})
    largest = max(sizes, key=lambda slot: (sizes[slot], -slot))
    return Split({largest: None})
