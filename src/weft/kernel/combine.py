"""Combining a node's partials over ranges of its sorted fragments.

A `Combiner` is built on one selection of fragments and keeps what ranges share: prefix sums
and codes. It serves the final aggregation of windows and the coalescing of state alike.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from weft.algebra.partial import SKETCHES, Invertible, Partial
from weft.kernel import codes, sketches
from weft.kernel.columns import Stored
from weft.kernel.operations import OPERATIONS, Array
from weft.kernel.ranges import PrefixSums, combine_ranges


class Combiner:
    """Range combinations over columns of fragments, all of one order and length."""

    def __init__(self, columns: Mapping[str, Stored]) -> None:
        self._columns = columns
        self._prefixes: dict[str, tuple[PrefixSums, ...]] = {}
        self._codes: dict[str, codes.Codes] = {}
        self._objects: dict[str, Array] = {}

    def over(self, partial: Partial, low: Array, high: Array) -> Stored:
        """The partial of every non-empty range [low, high), in the form it is stored in."""
        name, operation = partial.name, partial.combine.name
        if isinstance(partial.combine, Invertible):
            if name not in self._prefixes:
                stored = self._columns[name]
                self._prefixes[name] = tuple(PrefixSums(values) for values in stored)
            return tuple(sums.over(low, high) for sums in self._prefixes[name])
        if operation in ("add_float", "moments"):
            return combine_ranges(OPERATIONS[operation], self._columns[name], low, high)
        if operation in ("min", "max"):
            missing = codes.missing_code(operation)
            if name not in self._codes:
                self._codes[name] = codes.encode(self._columns[name][0], missing)
            encoded = self._codes[name]
            (best,) = combine_ranges(OPERATIONS[operation], (encoded.codes,), low, high)
            return (encoded.decode(best, best == missing),)
        if name not in self._objects:
            self._objects[name] = codes.as_object_array(self._columns[name][0])
        (merged,) = combine_ranges(OPERATIONS[operation], (self._objects[name],), low, high)
        return (merged,)


def over_runs(partial: Partial, columns: Mapping[str, Stored], low: Array, high: Array) -> Stored:
    """The partial of runs that do not overlap, in the form of a state file."""
    if partial.combine.name in SKETCHES:
        values = columns[partial.name][0].to_pylist()
        found = sketches.merged_runs(partial.combine.name, values, low, high)
        return (pa.array(found, pa.binary()),)
    return serialized(partial, Combiner(columns).over(partial, low, high))


def serialized(partial: Partial, stored: Stored) -> Stored:
    """Stored form of a combination, sketches as bytes again."""
    if partial.combine.name not in SKETCHES:
        return stored
    to_bytes = sketches.hll_bytes if partial.combine.name == "hll" else sketches.kll_bytes
    return (pa.array([to_bytes(value) for value in stored[0]], pa.binary()),)


def ranges_of_runs(*columns: Array) -> tuple[Array, Array]:
    """The runs of equal tuples in columns that are sorted together, as ranges.

    >>> low, high = ranges_of_runs(np.array([1, 1, 2]))
    >>> low.tolist(), high.tolist()
    ([0, 2], [2, 3])
    """
    length = len(columns[0])
    changes = np.zeros(length, bool)
    changes[:1] = True
    for column in columns:
        changes[1:] |= column[1:] != column[:-1]
    low = np.flatnonzero(changes)
    return low, np.append(low[1:], length)
