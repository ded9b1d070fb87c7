"""Finding (key, window) ranges in fragments that are sorted by (key, end).

Windows never cut a fragment, so the fragments of a window (start, end] are those whose own end
lies in it. Many windows have bounds in common. Where all keys at all distinct bounds are a table
of bounded size, it is filled by counting: one pass over the fragments, no search. Else key
and end are packed into one integer, and ranges are found by vectorized binary searches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.kernel.columns.combine import ranges_of_runs
from weft.kernel.columns.operations import Array
from weft.kernel.fragments.state import MEMBER_SHIFT

MOST_PAIRS = 1 << 17
"""Pairs in a portion: arrays of this size stay in the processor's caches."""
_MOST_CELLS = 1 << 22
_DENSE = 4
_ALWAYS_DENSE = 1 << 16
_PACKED_LIMIT = 1 << 62


@dataclass(frozen=True)
class Pairs:
    """(window, key) pairs that hold fragments: indexes of windows, codes of keys, ranges."""

    windows: Array
    keys: Array
    low: Array
    high: Array


class Positions:
    """The search structure over one selection of fragments (not empty).

    Keys are known by their places among those `present`, which are sorted; so the keys of a member
    stand together.
    """

    def __init__(self, keys: Array, ends: Array) -> None:
        self._ends = ends
        self._first, _ = ranges_of_runs(keys)
        self.present = keys[self._first]
        sizes = np.diff(np.append(self._first, len(ends)))
        self._places = np.repeat(np.arange(len(self.present)), sizes)
        base, top = int(ends.min()) - 1, int(ends.max())
        width = top - base + 1
        self._times: Array | None = None
        if len(self.present) * width >= _PACKED_LIMIT:
            self._times = np.unique(ends)
            width = len(self._times) + 1
        self._base, self._width = base, width
        self._packed = self._places * width + self._coordinate(ends)

    def _coordinate(self, times: Array) -> Array:
        if self._times is not None:
            return np.searchsorted(self._times, times, side="right")
        clipped: Array = np.clip(times - self._base, 0, self._width - 1)
        return clipped

    def _find(self, places: Array, times: Array) -> Array:
        """The position behind the last fragment of a key that ends at or before the time."""
        return np.searchsorted(
            self._packed, places * self._width + self._coordinate(times), side="right"
        )

    def pairs(self, starts: Array, ends: Array, members: Array | None = None) -> Iterator[Pairs]:
        """The pairs of all windows (starts, ends], in portions of bounded size; with `members`,
        each window has only the keys of its own."""
        if members is None:
            low = np.zeros(len(starts), np.int64)
            high = np.full(len(starts), len(self.present))
        else:
            low = np.searchsorted(self.present, members << MEMBER_SHIFT)
            high = np.searchsorted(self.present, (members + 1) << MEMBER_SHIFT)
        dense = int((high - low).sum())
        if dense <= _ALWAYS_DENSE or dense <= _DENSE * self._most_pairs(starts, ends, low, high):
            yield from self._all_keys(starts, ends, low, high)
        else:
            yield from self._seen_keys(starts, ends, low, high)

    def _all_keys(self, starts: Array, ends: Array, low: Array, high: Array) -> Iterator[Pairs]:
        bounds, places = np.unique(np.concatenate([starts, ends]), return_inverse=True)
        opening, closing = places[: len(starts)], places[len(starts) :]
        table = self._table(bounds)
        whole = bool(len(starts)) and int((high - low).min()) == len(self.present)
        for chosen in portions(high - low, MOST_PAIRS):
            if table is not None and whole:
                yield self._rows_of(table, chosen, opening[chosen], closing[chosen])
                continue
            counts = (high - low)[chosen]
            windows = np.repeat(np.arange(chosen.start, chosen.stop), counts)
            keys = low[windows] + np.arange(len(windows))
            keys -= np.repeat(np.cumsum(counts) - counts, counts)
            if table is None:
                first, last = self._find(keys, starts[windows]), self._find(keys, ends[windows])
            else:
                first, last = table[opening[windows], keys], table[closing[windows], keys]
            full = np.flatnonzero(last > first)
            yield Pairs(windows[full], self.present[keys[full]], first[full], last[full])

    def _rows_of(self, table: Array, chosen: slice, opening: Array, closing: Array) -> Pairs:
        """All keys in windows that are given by the places of their bounds."""
        low, high = table[opening].ravel(), table[closing].ravel()
        full = np.flatnonzero(high > low)
        windows, keys = np.divmod(full, len(self.present))
        return Pairs(windows + chosen.start, self.present[keys], low[full], high[full])

    def _table(self, bounds: Array) -> Array | None:
        """For every bound and key, the position behind the key's last fragment that ends at or
        before it: the key's first position and how many such fragments there are."""
        cells = len(bounds) * len(self.present)
        if cells > _MOST_CELLS or len(self._ends) > _MOST_CELLS:
            return None
        rows = self._places * (len(bounds) + 1)
        counted = np.bincount(
            rows + np.searchsorted(bounds, self._ends), minlength=cells + len(self.present)
        )
        table = counted.reshape(len(self.present), -1)[:, :-1].cumsum(axis=1)
        table += self._first[:, None]
        return np.ascontiguousarray(table.T)

    @cached_property
    def _by_time(self) -> Array:
        """Positions by member, and those of a member in the order of time."""
        return np.lexsort((self._ends, self.present[self._places] >> MEMBER_SHIFT))

    def _spans(self, starts: Array, ends: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Per window, where its fragments lie in the order of member and time."""
        times = self._ends[self._by_time]
        border = np.append(self._first, len(self._ends))
        first, last = border[low].copy(), border[high].copy()
        for opening, closing in np.unique(np.stack([first, last], axis=1), axis=0).tolist():
            whole = np.flatnonzero((first == opening) & (last == closing))
            within = times[opening:closing]
            first[whole] = opening + np.searchsorted(within, starts[whole], side="right")
            last[whole] = opening + np.searchsorted(within, ends[whole], side="right")
        return first, last

    def _most_pairs(self, starts: Array, ends: Array, low: Array, high: Array) -> int:
        """How many pairs there are at most: a window has no more keys than fragments."""
        first, last = self._spans(starts, ends, low, high)
        return int(np.minimum(last - first, high - low).sum())

    def _seen_keys(self, starts: Array, ends: Array, low: Array, high: Array) -> Iterator[Pairs]:
        """Only the keys that have a fragment in the window: for many keys, each seen rarely."""
        places = self._places[self._by_time]
        first, last = self._spans(starts, ends, low, high)
        windows: list[Array] = []
        keys: list[Array] = []
        held = 0
        for index in range(len(starts)):
            slice_ = places[first[index] : last[index]]
            length = high[index] - low[index]
            seen = (
                np.unique(slice_)
                if len(slice_) < 4 * length
                else np.arange(low[index], high[index])
            )
            windows.append(np.full(len(seen), index))
            keys.append(seen)
            held += len(seen)
            if held >= MOST_PAIRS or index == len(starts) - 1:
                yield self._found(np.concatenate(windows), np.concatenate(keys), starts, ends)
                windows, keys, held = [], [], 0

    def _found(self, windows: Array, keys: Array, starts: Array, ends: Array) -> Pairs:
        low = self._find(keys, starts[windows])
        high = self._find(keys, ends[windows])
        full = np.flatnonzero(high > low)
        return Pairs(windows[full], self.present[keys[full]], low[full], high[full])


def portions(sizes: Array, most: int) -> Iterator[slice]:
    """Slices of items whose sizes add up to at most so much, or of a single item.

    >>> list(portions(np.array([2, 2, 9, 1]), 4))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    totals = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = int(totals[first - 1]) if first else 0
        last = max(int(np.searchsorted(totals, before + most, side="right")), first + 1)
        yield slice(first, last)
        first = last
