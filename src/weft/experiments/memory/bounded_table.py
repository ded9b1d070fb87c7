"""The hash tables of the Memory paper: bounded, with exact results and counted hash operations.

A table holds at most b entries. A row of a known group is added to its entry; a row of a new group
needs an entry, and if there is none left the least recently used one is evicted, as a partial
aggregate, into the tables of all children (section III-C). At the end of the epoch tables are
flushed from the top down, the oldest entry first. Tables of queries hold everything. A table of no
entries passes every row on. So whatever b is, a query gets every row exactly once, in partial
aggregates that are combined: results are those of a plain group-by.

A table sees nothing but what its parent evicts and then flushes, in that order. So tables run one
after another, each over the whole sequence of its parent, which is the same as row by row, and
fast.

`colliding` tables are those of Zhang et al. (the SLC baseline): b buckets of one entry, evicted by
any other group.

Keys are encoded before (`node_codes`), so that groups are numbers 0 … g-1 and a table needs no
hashing of its own; each row or partial that is put into one table counts as one hash operation.
Sums of integers are exact; what could pass 64 bits is refused.

Time: O(1) for each operation, about 20 to 60 ns compiled. Space: what the parent passed on, and a
few words for each group. Compiled once for each machine (a few seconds) and kept beside the source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from weft.errors import TreeError

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

SUM, LEAST, LARGEST = 0, 1, 2
_OPERATIONS = {"count": SUM, "sum": SUM, "min": LEAST, "max": LARGEST}
_MOST = 2.0**63


@dataclass(frozen=True)
class Measures:
    """Columns that are combined, one row for each row or partial of the stream."""

    names: tuple[str, ...]
    whole: Integers
    """Columns of integers; first of all those whose names come first."""
    real: Floats
    whole_operations: Integers
    real_operations: Integers
    order: tuple[tuple[bool, int], ...]
    """Of each name: whether its column is whole, and which it is."""

    @classmethod
    def of(cls, rows: int, columns: Mapping[str, tuple[str, Any]]) -> Measures:
        """From names to an operation (count, sum, min, max) and values; count needs none."""
        whole: list[tuple[Integers, int]] = []
        real: list[tuple[Floats, int]] = []
        order: list[tuple[bool, int]] = []
        for name, (operation, given) in columns.items():
            if operation not in _OPERATIONS:
                operations = ", ".join(_OPERATIONS)
                raise TreeError(
                    "UNKNOWN_SETTING", name="measure", value=operation, known=operations
                )
            values = np.ones(rows, np.int64) if operation == "count" else np.asarray(given)
            if values.shape != (rows,):
                detail = f"measure '{name}' has {len(values)} values for {rows} rows"
                raise TreeError("BAD_TREE", detail=detail)
            code = _OPERATIONS[operation]
            if np.issubdtype(values.dtype, np.integer) and values.dtype != np.uint64:
                _check_sum(name, values, code)
                order.append((True, len(whole)))
                whole.append((values.astype(np.int64), code))
            else:
                order.append((False, len(real)))
                real.append((values.astype(np.float64), code))
        return cls(
            names=tuple(columns),
            whole=_stacked(rows, [values for values, _ in whole], np.int64),
            real=_stacked(rows, [values for values, _ in real], np.float64),
            whole_operations=np.array([code for _, code in whole], np.int64),
            real_operations=np.array([code for _, code in real], np.int64),
            order=tuple(order),
        )

    def columns(self, whole: Integers, real: Floats) -> dict[str, NDArray[Any]]:
        """Combined values by name."""
        return {
            name: (whole if is_whole else real)[:, column]
            for name, (is_whole, column) in zip(self.names, self.order)
        }


@dataclass(frozen=True)
class Passed:
    """What a table evicted and then flushed, as numbers of its groups with partial aggregates."""

    groups: Integers
    whole: Integers
    real: Floats
    during: int
    """How many of them left before the end of the epoch."""


Table = Callable[[Integers, Passed, Measures, int, int], Passed]
"""From the groups of the input, the input, how to combine, the entries, and how many groups there are."""


def bounded(came: Integers, given: Passed, measures: Measures, entries: int, groups: int) -> Passed:
    """A table that evicts the least recently used entry."""
    if entries <= 0:
        return Passed(came, given.whole, given.real, given.during)
    return _passed(_lru(*_arguments(came, given, measures), entries, groups))


def colliding(
    came: Integers, given: Passed, measures: Measures, entries: int, groups: int
) -> Passed:
    """A table of buckets with one entry, which any other group evicts."""
    if entries <= 0:
        return Passed(came, given.whole, given.real, given.during)
    return _passed(_direct(*_arguments(came, given, measures), entries))


def complete(
    came: Integers, given: Passed, measures: Measures, entries: int, groups: int
) -> Passed:
    """A table with room for all groups, in the order of first sight: that of a query."""
    return _passed(_all(*_arguments(came, given, measures), groups))


def _arguments(came: Integers, given: Passed, measures: Measures) -> tuple[Any, ...]:
    operations = measures.whole_operations, measures.real_operations
    return came, given.whole, given.real, *operations, given.during


def _passed(counted: tuple[Integers, Integers, Floats, int]) -> Passed:
    return Passed(*counted)


def _check_sum(name: str, values: NDArray[Any], code: int) -> None:
    if code == SUM and float(np.abs(values.astype(np.float64)).sum()) >= _MOST:
        raise TreeError("BAD_TREE", detail=f"the sum of measure '{name}' may not fit into 64 bits")


def _stacked(rows: int, columns: list[Any], dtype: Any) -> Any:
    if not columns:
        return np.empty((rows, 0), dtype)
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _combine_into(target, row, source, source_row, operations):  # type: ignore[no-untyped-def]
    for column in range(operations.shape[0]):
        value = source[source_row, column]
        if operations[column] == 0:
            target[row, column] += value
        elif operations[column] == 1:
            # Written so that a NaN, which is larger than all else in Spark, is never the least.
            if value < target[row, column] or target[row, column] != target[row, column]:
                target[row, column] = value
        elif value > target[row, column] or value != value:
            target[row, column] = value


def _lru_loop(came, whole, real, whole_ops, real_ops, during, entries, groups):  # type: ignore[no-untyped-def]
    rows = came.shape[0]
    out = np.empty(rows, np.int64)
    out_whole = np.empty((rows, whole.shape[1]), np.int64)
    out_real = np.empty((rows, real.shape[1]), np.float64)
    held_whole = np.empty((groups, whole.shape[1]), np.int64)
    held_real = np.empty((groups, real.shape[1]), np.float64)
    # A ring of the groups that have an entry, from the latest to the oldest; `groups` is its hook.
    after = np.full(groups + 1, -1, np.int64)
    before = np.full(groups + 1, -1, np.int64)
    after[groups] = before[groups] = groups
    held = 0
    left = 0
    early = 0
    for i in range(rows):
        if i == during:
            early = left
        g = came[i]
        if after[g] >= 0:
            _combine(held_whole, g, whole, i, whole_ops)
            _combine(held_real, g, real, i, real_ops)
            after[before[g]] = after[g]
            before[after[g]] = before[g]
        else:
            if held == entries:
                old = before[groups]
                out[left] = old
                for column in range(whole.shape[1]):
                    out_whole[left, column] = held_whole[old, column]
                for column in range(real.shape[1]):
                    out_real[left, column] = held_real[old, column]
                left += 1
                before[groups] = before[old]
                after[before[old]] = groups
                after[old] = -1
            else:
                held += 1
            for column in range(whole.shape[1]):
                held_whole[g, column] = whole[i, column]
            for column in range(real.shape[1]):
                held_real[g, column] = real[i, column]
        after[g] = after[groups]
        before[g] = groups
        before[after[groups]] = g
        after[groups] = g
    if during >= rows:
        early = left
    g = before[groups]
    while g != groups:
        out[left] = g
        for column in range(whole.shape[1]):
            out_whole[left, column] = held_whole[g, column]
        for column in range(real.shape[1]):
            out_real[left, column] = held_real[g, column]
        left += 1
        g = before[g]
    return out[:left].copy(), out_whole[:left].copy(), out_real[:left].copy(), early


def _direct_loop(came, whole, real, whole_ops, real_ops, during, entries):  # type: ignore[no-untyped-def]
    rows = came.shape[0]
    out = np.empty(rows, np.int64)
    out_whole = np.empty((rows, whole.shape[1]), np.int64)
    out_real = np.empty((rows, real.shape[1]), np.float64)
    held_whole = np.empty((entries, whole.shape[1]), np.int64)
    held_real = np.empty((entries, real.shape[1]), np.float64)
    holder = np.full(entries, -1, np.int64)
    left = 0
    early = 0
    for i in range(rows):
        if i == during:
            early = left
        g = came[i]
        # The finalizer of SplitMix64: every bit of the group moves every bit of the bucket.
        mixed = np.uint64(g) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bucket = np.int64((mixed ^ (mixed >> np.uint64(31))) % np.uint64(entries))
        if holder[bucket] == g:
            _combine(held_whole, bucket, whole, i, whole_ops)
            _combine(held_real, bucket, real, i, real_ops)
            continue
        if holder[bucket] >= 0:
            out[left] = holder[bucket]
            for column in range(whole.shape[1]):
                out_whole[left, column] = held_whole[bucket, column]
            for column in range(real.shape[1]):
                out_real[left, column] = held_real[bucket, column]
            left += 1
        holder[bucket] = g
        for column in range(whole.shape[1]):
            held_whole[bucket, column] = whole[i, column]
        for column in range(real.shape[1]):
            held_real[bucket, column] = real[i, column]
    if during >= rows:
        early = left
    for slot in range(entries):
        if holder[slot] >= 0:
            out[left] = holder[slot]
            for column in range(whole.shape[1]):
                out_whole[left, column] = held_whole[slot, column]
            for column in range(real.shape[1]):
                out_real[left, column] = held_real[slot, column]
            left += 1
    return out[:left].copy(), out_whole[:left].copy(), out_real[:left].copy(), early


def _all_loop(came, whole, real, whole_ops, real_ops, during, groups):  # type: ignore[no-untyped-def]
    rows = came.shape[0]
    row_of = np.full(groups, -1, np.int64)
    out = np.empty(min(rows, groups), np.int64)
    out_whole = np.empty((min(rows, groups), whole.shape[1]), np.int64)
    out_real = np.empty((min(rows, groups), real.shape[1]), np.float64)
    left = 0
    for i in range(rows):
        g = came[i]
        if row_of[g] >= 0:
            _combine(out_whole, row_of[g], whole, i, whole_ops)
            _combine(out_real, row_of[g], real, i, real_ops)
        else:
            row_of[g] = left
            out[left] = g
            for column in range(whole.shape[1]):
                out_whole[left, column] = whole[i, column]
            for column in range(real.shape[1]):
                out_real[left, column] = real[i, column]
            left += 1
    return out[:left].copy(), out_whole[:left].copy(), out_real[:left].copy(), 0


_combine: Any = numba.njit(cache=True)(_combine_into)
_lru: Any = numba.njit(cache=True)(_lru_loop)
_direct: Any = numba.njit(cache=True)(_direct_loop)
_all: Any = numba.njit(cache=True)(_all_loop)
