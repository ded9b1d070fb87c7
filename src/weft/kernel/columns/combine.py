"""Combining a node's partials over ranges of its sorted fragments.

A `Combiner` is built on one selection of fragments and keeps what ranges share: prefix sums
and codes. It serves the final aggregation of windows and the coalescing of state alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from weft.algebra.partial import SKETCHES, Invertible, Partial
from weft.kernel.columns import codes
from weft.kernel.columns.operations import OPERATIONS, Array, Arrays, Operation
from weft.kernel.columns.partial_columns import Stored
from weft.kernel.columns.ranges import PrefixSums, combine_ranges, combine_runs


class Combiner:
    """Range combinations over columns of fragments, all of one order and length."""

    def __init__(self, columns: Mapping[str, Stored]) -> None:
        self._columns = columns
        self._prefixes: dict[str, tuple[PrefixSums, ...]] = {}
        self._codes: dict[str, codes.Codes] = {}

    def over(self, partial: Partial, low: Array, high: Array) -> Stored:
        """The partial of every non-empty range [low, high), in the form it is stored in."""
        name = partial.name
        if isinstance(partial.combine, Invertible):
            if name not in self._prefixes:
                stored = self._columns[name]
                self._prefixes[name] = tuple(PrefixSums(values) for values in stored)
            return tuple(sums.over(low, high) for sums in self._prefixes[name])
        if name not in self._codes and partial.combine.name in ("min", "max"):
            self._codes[name] = _encoded(partial, self._columns[name])
        return _combined(
            partial, self._columns[name], self._codes.get(name), combine_ranges, low, high
        )


def over_runs(partial: Partial, columns: Mapping[str, Stored], low: Array, high: Array) -> Stored:
    """The partial of runs that follow each other and are the whole column."""
    stored = columns[partial.name]
    if isinstance(partial.combine, Invertible):
        return tuple(np.add.reduceat(values, low) if len(low) else values for values in stored)
    if partial.combine.name in SKETCHES:
        return (stored[0].over_runs(low, high),)
    encoded = _encoded(partial, stored) if partial.combine.name in ("min", "max") else None
    return _combined(partial, stored, encoded, combine_runs, low, high)


def _encoded(partial: Partial, stored: Stored) -> codes.Codes:
    return codes.encode(stored[0], codes.missing_code(partial.combine.name))


def _combined(
    partial: Partial,
    stored: Stored,
    encoded: codes.Codes | None,
    combine: Callable[[Operation, Arrays, Array, Array], Arrays],
    low: Array,
    high: Array,
) -> Stored:
    name = partial.combine.name
    if name in SKETCHES:
        return (stored[0].over_ranges(low, high),)
    if encoded is None:
        return combine(OPERATIONS[name], stored, low, high)
    (best,) = combine(OPERATIONS[name], (encoded.codes,), low, high)
    return (encoded.decode(best, best == codes.missing_code(name)),)


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
