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

from weft.kernel.combine import ranges_of_runs
from weft.kernel.operations import Array

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
    """The search structure over one selection of fragments (not empty)."""

    def __init__(self, keys: Array, ends: Array) -> None:
        self._ends = ends
        self._keys = keys
        self._first, _ = ranges_of_runs(keys)
        self.present = keys[self._first]
        base, top = int(ends.min()) - 1, int(ends.max())
        width = top - base + 1
        self._times: Array | None = None
        if (int(self.present[-1]) + 1) * width >= _PACKED_LIMIT:
            self._times = np.unique(ends)
            width = len(self._times) + 1
        self._base, self._width = base, width
        self._packed = keys * width + self._coordinate(ends)

    def _coordinate(self, times: Array) -> Array:
        if self._times is not None:
            return np.searchsorted(self._times, times, side="right")
        clipped: Array = np.clip(times - self._base, 0, self._width - 1)
        return clipped

    def find(self, keys: Array, times: Array) -> Array:
        """The position behind the last fragment of the key that ends at or before the time."""
        return np.searchsorted(
            self._packed, keys * self._width + self._coordinate(times), side="right"
        )

    def pairs(self, starts: Array, ends: Array) -> Iterator[Pairs]:
        """The pairs of all windows (starts, ends], in portions of bounded size."""
        dense = len(starts) * len(self.present)
        if dense <= _ALWAYS_DENSE or dense <= _DENSE * self._most_pairs(starts, ends):
            bounds, places = np.unique(np.concatenate([starts, ends]), return_inverse=True)
            opening, closing = places[: len(starts)], places[len(starts) :]
            table = self._table(bounds)
            step = max(1, MOST_PAIRS // len(self.present))
            for first in range(0, len(starts), step):
                chosen = slice(first, first + step)
                yield self._all_keys(first, bounds, table, opening[chosen], closing[chosen])
        else:
            yield from self._seen_keys(starts, ends)

    def _table(self, bounds: Array) -> Array | None:
        """For every bound and key, the position behind the key's last fragment that ends at or
        before it: the key's first position and how many such fragments there are."""
        cells = len(bounds) * len(self.present)
        if cells > _MOST_CELLS or len(self._ends) > _MOST_CELLS:
            return None
        sizes = np.diff(np.append(self._first, len(self._ends)))
        rows = np.repeat(np.arange(len(self.present)), sizes) * (len(bounds) + 1)
        counted = np.bincount(
            rows + np.searchsorted(bounds, self._ends), minlength=cells + len(self.present)
        )
        table = counted.reshape(len(self.present), -1)[:, :-1].cumsum(axis=1)
        table += self._first[:, None]
        return np.ascontiguousarray(table.T)

    @cached_property
    def _by_time(self) -> Array:
        """Positions in the order of time."""
        return np.argsort(self._ends, kind="stable")

    def _most_pairs(self, starts: Array, ends: Array) -> int:
        """How many pairs there are at most: a window has no more keys than fragments."""
        times = self._ends[self._by_time]
        held = np.searchsorted(times, ends, side="right")
        held -= np.searchsorted(times, starts, side="right")
        return int(np.minimum(held, len(self.present)).sum())

    def _all_keys(
        self, offset: int, bounds: Array, table: Array | None, opening: Array, closing: Array
    ) -> Pairs:
        """All keys in windows that are given by the places of their bounds."""
        if table is None:
            used, places = np.unique(np.concatenate([opening, closing]), return_inverse=True)
            table = self.find(self.present[None, :], bounds[used][:, None])
            opening, closing = places[: len(opening)], places[len(opening) :]
        low, high = table[opening].ravel(), table[closing].ravel()
        full = np.flatnonzero(high > low)
        windows, columns = np.divmod(full, len(self.present))
        return Pairs(windows + offset, self.present[columns], low[full], high[full])

    def _seen_keys(self, starts: Array, ends: Array) -> Iterator[Pairs]:
        """Only the keys that have a fragment in the window: for many keys, each seen rarely."""
        order = self._by_time
        times, keys_by_time = self._ends[order], self._keys[order]
        first = np.searchsorted(times, starts, side="right")
        last = np.searchsorted(times, ends, side="right")
        windows: list[Array] = []
        keys: list[Array] = []
        held = 0
        for index in range(len(starts)):
            slice_ = keys_by_time[first[index] : last[index]]
            seen = np.unique(slice_) if len(slice_) < 4 * len(self.present) else self.present
            windows.append(np.full(len(seen), index))
            keys.append(seen)
            held += len(seen)
            if held >= MOST_PAIRS or index == len(starts) - 1:
                yield self._found(np.concatenate(windows), np.concatenate(keys), starts, ends)
                windows, keys, held = [], [], 0

    def _found(self, windows: Array, keys: Array, starts: Array, ends: Array) -> Pairs:
        low = self.find(keys, starts[windows])
        high = self.find(keys, ends[windows])
        full = np.flatnonzero(high > low)
        return Pairs(windows[full], keys[full], low[full], high[full])
