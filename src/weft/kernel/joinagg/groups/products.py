"""Groups of two joined aggregation sets as products of matrices, without any joined entry.

With L the sums of one set by (group, join value) and R the counts of the other by (join value, group), the sums of the
joined rows by both groups are L·R: the coalescing rule (AggJoin, definition 5), for all pairs at once. Counts of joined rows are the product of
both counts. An extreme is that of all join values at which the other set has rows.

Preconditions: 1. Two inputs, both aggregated early, joined on equal keys and nothing else. 2. Every key of a group is a column of one of them. 3. Partials are
counts, sums or extremes. It declines (None) where a precondition fails; where sums might not be exact in a double (2^53) or a float is not
finite; where matrices would be too large or nearly empty; and where entries hardly multiply, since then joining them costs as little.

Time: O(T·G·K·H) for T instants, G and H groups, and K join values, at 0.2 to 0.4 ns each (extremes: some 2 ns), where joining costs some 0.1 µs for each pair
of entries. Space: O(T·(G·K + K·H + G·H)), as many instants at once as a bound allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.algebra.partial import Partial
from weft.kernel.columns import codes as extremes
from weft.kernel.columns import partial_columns
from weft.kernel.columns.arrow import ascending
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored
from weft.kernel.columns.sorting import ordered
from weft.kernel.joinagg.contents.held import Contents
from weft.kernel.joinagg.groups.partial_groups import Groups, Slot
from weft.kernel.joinagg.join import Matching

MULTIPLIED = 4
"""How many joined entries there must be for each entry of the contents."""
_EMPTY = 20
"""How many elements of a product may be computed for each joined entry."""
_MOST_CELLS = 1 << 22
"""Elements of the matrices of one partial."""
_EXACT = float(1 << 53)
_LOW = (1 << 32) - 1
_SUMS = ("add", "add_wide", "add_float")
_EXTREMES = ("min", "max")

Wanted = Sequence[tuple[Slot, Slot, Partial]]
"""Partials: the input in the query, its place in the join, and the partial."""


def product(
    sets: Matching, digits: Sequence[Array | None], partials: Wanted, instants: Array
) -> Groups | None:
    """All groups of two sets at instants, which ascend; None if the sets should be joined. `digits` is what each entry adds to the code of its
    group; None: it has no key."""
    if not all(partial.combine.name in (*_SUMS, *_EXTREMES) for _, _, partial in partials):
        return None
    if not sets.found.of("may multiply", lambda: _may_multiply(sets)):
        return None
    meeting = sets.found.of("products", lambda: _meeting(sets, instants))
    if meeting is None or not _multiplies(meeting):
        return None
    left, right = (_side(of, digit) for of, digit in zip(meeting.sides, digits, strict=True))
    sides = left, right
    if not _is_full(sides, meeting, len(instants)):
        return None
    cells = sum(len(side.groups) for side in sides) * left.of.width
    cells += len(left.groups) * len(right.groups)
    at_once = _MOST_CELLS // max(cells, 1)
    parts: list[Groups] = []
    for start in range(0, len(instants), max(at_once, 1)):
        part = None
        if at_once:
            part = _part(sides, partials, instants[start : start + at_once], start)
        if part is None:
            return None
        parts.append(part)
    return _together(parts, instants)


@dataclass(frozen=True)
class _Entries:
    """The entries of one input that have a join value of the other one, too."""

    contents: Contents
    positions: Array
    places: Array | None
    """Of their instants; None: they are there at all of them."""
    values: Array
    """Numbers of their join values, below `width`."""
    width: int

    def pairs(self, instants: int) -> Array:
        """How many entries there are, by instant and join value."""
        if self.places is None:
            return np.bincount(self.values, minlength=self.width)[None, :]
        codes = self.places * self.width + self.values
        return np.bincount(codes, minlength=instants * self.width).reshape(instants, self.width)


@dataclass(frozen=True)
class _Meeting:
    """What does not depend on groups: both inputs, and how many joined entries there are."""

    sides: tuple[_Entries, _Entries]
    joined: int


@dataclass(frozen=True)
class _Side:
    """One input, with the groups of its entries."""

    of: _Entries
    groups: Array
    """The codes of groups, ascending."""
    numbers: Array
    """Which of the groups each entry is in."""

    def between(self, start: int, stop: int) -> _Matrices:
        """The matrices of some instants."""
        positions, places, values = self.of.positions, self.of.places, self.of.values
        if places is None:
            return _Matrices(self, positions, values, self.numbers, 1)
        chosen = np.flatnonzero((places >= start) & (places < stop))
        numbers = (places[chosen] - start) * len(self.groups) + self.numbers[chosen]
        return _Matrices(self, positions[chosen], values[chosen], numbers, stop - start)


class _Matrices:
    """Partials of one input by instant, group and join value."""

    def __init__(
        self, side: _Side, entries: Array, values: Array, numbers: Array, instants: int
    ) -> None:
        self._side, self._entries = side, entries
        self._cells = numbers * side.of.width + values
        self._shape = (instants, len(side.groups), side.of.width)
        self.counts = self._sums(side.of.contents.counts)

    def sums(self, partial: Partial) -> Array | None:
        """The sums of a partial; None if they are not exact in doubles."""
        stored = self._side.of.contents.partials[partial.name]
        if partial.combine.name == "add_wide":
            high, low = stored[0] + (stored[1] >> 32), stored[1] & _LOW
            return self._sums(high * float(1 << 32) + low)
        return self._sums(stored[0], exact=partial.combine.name == "add")

    def _sums(self, values: Array, *, exact: bool = True) -> Array | None:
        """Sums in the cells; None if they cannot be told exactly, or are not finite."""
        values = values[self._entries].astype(np.float64, copy=False)
        with np.errstate(over="ignore"):
            total = float(np.abs(values).sum())
        if not total < (_EXACT if exact else np.inf):
            return None
        cells = np.bincount(self._cells, values, int(np.prod(self._shape)))
        return cells.reshape(self._shape)

    def extremes(self, partial: Partial, codes: Array) -> Array:
        """The codes of extremes, with the join value in front: (K, T, G)."""
        cells = np.full(int(np.prod(self._shape)), extremes.missing_code(partial.combine.name))
        _better(partial).at(cells, self._cells, codes[self._entries])
        return np.ascontiguousarray(np.moveaxis(cells.reshape(self._shape), 2, 0))


def _may_multiply(sets: Matching) -> bool:
    """Whether entries may multiply, as far as the most frequent join value of one input tells: where joining takes a millisecond, it is not to wait for more."""
    left, right = sets.values
    most = int(np.bincount(right[right >= 0], minlength=1).max())
    return len(left) * most >= MULTIPLIED * (len(left) + len(right))


def _meeting(sets: Matching, instants: Array) -> _Meeting | None:
    """Both inputs, reduced to the join values that both have; None if there is none, or too many for the entries to multiply."""
    most = 1 + max(int(values.max(initial=-1)) for values in sets.values)
    common = np.ones(most, bool)
    for values in sets.values:
        common &= np.bincount(values[values >= 0], minlength=most) > 0
    if not common.any():
        return None
    numbers = np.cumsum(common) - 1
    sides = []
    for contents, values in zip(sets.contents, sets.values, strict=True):
        positions = np.flatnonzero((values >= 0) & common[values])
        at = contents.instants
        places = None if at is None else np.searchsorted(instants, at[positions])
        of_values = numbers[values[positions]]
        sides.append(_Entries(contents, positions, places, of_values, int(numbers[-1]) + 1))
    left, right = sides
    if len(instants) * left.width > sum(len(side.positions) for side in sides):
        return None
    joined = int((left.pairs(len(instants)) * right.pairs(len(instants))).sum())
    return _Meeting((left, right), joined)


def _side(entries: _Entries, digit: Array | None) -> _Side:
    if digit is None:
        return _Side(entries, np.zeros(1, np.int64), np.zeros(len(entries.positions), np.int64))
    return _Side(entries, *ascending(digit[entries.positions]))


def _multiplies(meeting: _Meeting) -> bool:
    """Whether there are so many joined entries that they should not be made."""
    return meeting.joined >= MULTIPLIED * sum(len(side.positions) for side in meeting.sides)


def _is_full(sides: tuple[_Side, _Side], meeting: _Meeting, instants: int) -> bool:
    """Whether the matrices are not nearly empty."""
    left, right = sides
    elements = instants * len(left.groups) * left.of.width * len(right.groups)
    return elements <= _EMPTY * meeting.joined


def _part(
    sides: tuple[_Side, _Side],
    partials: Wanted,
    instants: Array,
    start: int,
) -> Groups | None:
    """The groups at some instants."""
    left, right = (side.between(start, start + len(instants)) for side in sides)
    counted = _multiplied(left.counts, right.counts)
    if counted is None:
        return None
    counted = np.broadcast_to(counted, (len(instants), *counted.shape[1:]))
    at = np.nonzero(counted)
    columns: dict[tuple[Slot, str], Stored] = {}
    for slot, place, partial in partials:
        name = partial.combine.name
        own, other = (right, left) if place == 1 else (left, right)
        if place is None:
            columns[slot, partial.name] = (counted[at].astype(np.int64),)
        elif name in _EXTREMES:
            columns[slot, partial.name] = _extreme(sides[place], own, other, place, partial, at)
        else:
            factors = own.sums(partial), other.counts
            sums = _multiplied(
                *(factors if place == 0 else factors[::-1]), exact=name != "add_float"
            )
            if sums is None:
                return None
            columns[slot, partial.name] = _stored(name, np.broadcast_to(sums, counted.shape)[at])
    codes = sides[0].groups[at[1]] + sides[1].groups[at[2]]
    return Groups(instants[at[0]], codes, columns)


def _multiplied(left: Array | None, right: Array | None, *, exact: bool = True) -> Array | None:
    """Products at every instant; None if they are not exact, or not finite. By einsum, whose loops stay on this thread: those of BLAS
    wait for work on all cores while Spark needs them."""
    if left is None or right is None:
        return None
    with np.errstate(over="ignore"):
        largest = float(np.abs(left).sum(axis=2).max()) * float(np.abs(right).max())
    if not largest < (_EXACT if exact else np.inf):
        return None
    multiplied: Array = np.einsum("tgk,thk->tgh", left, right)
    return multiplied


def _stored(name: str, sums: Array) -> Stored:
    """Sums in the form that partials have."""
    if name == "add_float":
        return (sums,)
    integers = sums.astype(np.int64)
    return (integers,) if name == "add" else (integers >> 32, integers & _LOW)


def _extreme(
    side: _Side,
    own: _Matrices,
    other: _Matrices,
    place: int,
    partial: Partial,
    at: tuple[Array, ...],
) -> Stored:
    """The extreme of each group: of all join values at which the other input has rows."""
    missing = extremes.missing_code(partial.combine.name)
    encoded = extremes.encode(side.of.contents.partials[partial.name][0], missing)
    assert other.counts is not None
    there = np.moveaxis(other.counts > 0, 2, 0)
    best: Array | None = None
    for of_value, present in zip(own.extremes(partial, encoded.codes), there, strict=True):
        if place == 0:
            candidates = np.where(present[:, None, :], of_value[:, :, None], missing)
        else:
            candidates = np.where(present[:, :, None], of_value[:, None, :], missing)
        best = candidates if best is None else _better(partial)(best, candidates, out=best)
    assert best is not None
    found = best[at] if best.shape[0] > 1 else best[np.zeros_like(at[0]), at[1], at[2]]
    return (encoded.decode(found, found == missing),)


def _better(partial: Partial) -> np.ufunc:
    return np.minimum if partial.combine.name == "min" else np.maximum


def _together(parts: Sequence[Groups], instants: Array) -> Groups:
    """The groups of parts, in order."""
    at = np.concatenate([part.instants for part in parts])
    codes = np.concatenate([part.codes for part in parts])
    columns = {
        name: partial_columns.concatenate([part.partials[name] for part in parts])
        for name in parts[0].partials
    }
    order, _ = ordered(codes * len(instants) + np.searchsorted(instants, at))
    return Groups(at, codes, columns).only(order)
