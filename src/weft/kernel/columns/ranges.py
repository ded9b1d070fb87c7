"""Final aggregation over ranges of a sorted column.

Every (key, window) is a range [low, high) of positions, because fragments are sorted by key
and time. Two algorithms, chosen by the operation's algebra:

`PrefixSums` needs an exact inverse: a range is the difference of two prefixes. Built in
O(n), O(1) per range. Sums wrap modulo 2^64, so differences stay exact.

`DisjointTable` needs only associativity (floats, extremes, moments, sketches), so a NaN or an
infinity never leaks into a range that does not hold it. A range whose ends first differ in bit L
straddles the middle of one block of length 2^(L+1): its value is a suffix of the left half
combined with a prefix of the right half. Only the blocks that some range needs are scanned, and only
as far as ranges reach: O(n) per level in use, at most log2(n) levels, O(1) per range. The cost per
result does not grow with range/slide.

Runs that follow each other need neither: `combine_runs` goes over the column once.
"""

from __future__ import annotations

import numpy as np

from weft.kernel.columns.operations import Array, Arrays, Operation, UfuncOperation


class PrefixSums:
    """Range sums of integer columns.

    >>> sums = PrefixSums(np.array([1, 2, 3]))
    >>> sums.over(np.array([0, 1]), np.array([3, 2])).tolist()
    [6, 2]
    """

    def __init__(self, values: Array) -> None:
        self._prefix = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(values, out=self._prefix[1:])

    def over(self, low: Array, high: Array) -> Array:
        return self._prefix[high] - self._prefix[low]


def combine_ranges(operation: Operation, column: Arrays, low: Array, high: Array) -> Arrays:
    """The combination of `column` over each non-empty range [low, high).

    >>> from weft.kernel.columns.operations import OPERATIONS
    >>> column = (np.array([5, 1, 4, 2]),)
    >>> combine_ranges(OPERATIONS["min"], column, np.array([0, 2]), np.array([2, 4]))[0].tolist()
    [1, 2]
    """
    result = operation.identity((len(low),))
    last = high - 1
    single = low == last
    for out, values in zip(result, column, strict=True):
        out[single] = values[low[single]]
    many = np.flatnonzero(~single)
    if not len(many):
        return result
    levels = _top_bit(low[many] ^ last[many])
    for level in np.unique(levels):
        chosen = many[levels == level]
        combined = _scan_blocks(operation, column, int(level), low[chosen], last[chosen])
        for out, part in zip(result, combined, strict=True):
            out[chosen] = part
    return result


def combine_runs(operation: Operation, column: Arrays, low: Array, high: Array) -> Arrays:
    """The combination of each run of `column`, where every run begins where the one before ends, the
    first at 0 and the last ends with the column.

    >>> from weft.kernel.columns.operations import OPERATIONS
    >>> column = (np.array([5, 1, 4, 2]),)
    >>> combine_runs(OPERATIONS["max"], column, np.array([0, 3]), np.array([3, 4]))[0].tolist()
    [5, 2]
    """
    if isinstance(operation, UfuncOperation) and len(low):
        return operation.over_runs(column, low)
    return combine_ranges(operation, column, low, high)


def _top_bit(numbers: Array) -> Array:
    """The position of the highest set bit, exact for all positive int64."""
    bits = np.zeros(len(numbers), dtype=np.int64)
    rest = numbers.astype(np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        large = rest >= (1 << step)
        bits[large] += step
        rest = np.where(large, rest >> step, rest)
    return bits


def _scan_blocks(
    operation: Operation, column: Arrays, level: int, low: Array, last: Array
) -> Arrays:
    """Suffixes and prefixes of the needed blocks, all of them at once, as far from the middle as
    the longest range reaches."""
    half = 1 << level
    blocks, row = np.unique(low >> (level + 1), return_inverse=True)
    middles = (blocks << (level + 1)) + half
    from_low = half - 1 - (low & (half - 1))
    to_last = last & (half - 1)
    left = _values(operation, column, middles - 1, -1, from_low, row)
    right = _values(operation, column, middles, 1, to_last, row)
    suffixes, prefixes = operation.scan(left), operation.scan(right)
    return operation.combine(
        tuple(values[row, from_low] for values in suffixes),
        tuple(values[row, to_last] for values in prefixes),
    )


def _values(
    operation: Operation, column: Arrays, first: Array, step: int, distances: Array, row: Array
) -> Arrays:
    """The values from each block's middle outwards, up to the greatest distance; where it is
    outside the column, or for a costly operation where no range of the block reaches, the identity."""
    width = int(distances.max()) + 1
    places = first[:, None] + step * np.arange(width)
    beyond = places >= len(column[0])
    if operation.costly:
        reach = np.zeros(len(first), np.int64)
        np.maximum.at(reach, row, distances)
        beyond |= np.arange(width) > reach[:, None]
    outwards = tuple(values[np.minimum(places, len(values) - 1)] for values in column)
    if beyond.any():
        for values, neutral in zip(outwards, operation.identity((1,)), strict=True):
            values[beyond] = neutral[0]
    return outwards
