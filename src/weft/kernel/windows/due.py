"""Which windows are due.

A step from watermark `before` to `now` emits the windows whose end e satisfies
before < e <= now (DESIGN section 4.1). Windows without any fragment are never listed, so
a jump of the watermark over an empty stretch costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from weft.algebra.window import Window
from weft.kernel.columns.operations import Array


@dataclass(frozen=True)
class Due:
    """Due windows of many queries, query by query: indexes of queries, starts and ends."""

    queries: Array
    starts: Array
    ends: Array


class WindowSet:
    """Some windows together: what of them is due in a step, and what no step needs any more."""

    def __init__(self, windows: Iterable[Window]) -> None:
        distinct = set(windows)
        self._ranges = np.array([window.range for window in distinct], np.int64)
        self._slides = np.array([window.slide for window in distinct], np.int64)
        self._residues = np.array([window.end_residue for window in distinct], np.int64)

    def span(self, before: int, now: int) -> tuple[int, int] | None:
        """The earliest start and the latest end of a window that is due; None if none is. Fragments
        that do not end after the one, and at or before the other, are in no due window.

        >>> windows = WindowSet([Window(10, 5), Window(4, 4)])
        >>> windows.span(11, 13), windows.span(12, 13), windows.span(12, 15)
        ((8, 12), None, (5, 15))
        """
        ends = self._first_ends(before)
        due = ends <= now
        if not due.any():
            return None
        last = now - (now - self._residues[due]) % self._slides[due]
        return int((ends[due] - self._ranges[due]).min()), int(last.max())

    def horizon(self, now: int) -> int:
        """Fragments that end at or before this time are in no window that is still open."""
        return int((self._first_ends(now) - self._ranges).min())

    def _first_ends(self, time: int) -> Array:
        return time + self._slides - (time - self._residues) % self._slides


def due_windows(
    windows: Sequence[Window],
    complete_from: Sequence[int],
    before: int,
    now: int,
    fragment_ends: Array,
) -> Due:
    """The due windows of all queries that may hold a fragment (see `due_ends`).

    All at once if no window can fall into a gap between fragments, else one by one.

    >>> due = due_windows([Window(10, 5), Window(4, 4)], [0, 0], 0, 20, np.array([7]))
    >>> due.queries.tolist(), due.ends.tolist()
    ([0, 0, 1], [10, 15, 8])
    """
    ranges = np.array([window.range for window in windows], np.int64)
    slides = np.array([window.slide for window in windows], np.int64)
    if len(fragment_ends) < 2 or int(np.diff(fragment_ends).max()) <= int(ranges.min()):
        residues = np.array([window.end_residue for window in windows], np.int64)
        opened = np.maximum(before, np.array(complete_from, np.int64) + ranges - 1)
        if len(fragment_ends):
            low = np.maximum(fragment_ends[0], opened + 1)
            high = np.minimum(fragment_ends[-1] + ranges - 1, now)
            low += (residues - low) % slides
            counts = np.maximum((high - low) // slides + 1, 0)
        else:
            low = counts = np.zeros(len(windows), np.int64)
        owners = np.repeat(np.arange(len(windows)), counts)
        ordinals = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        ends = low[owners] + slides[owners] * ordinals
    else:
        ends_by_window = [
            due_ends(window, before, now, complete, fragment_ends)
            for window, complete in zip(windows, complete_from, strict=True)
        ]
        owners = np.repeat(
            np.arange(len(windows)), [len(window_ends) for window_ends in ends_by_window]
        )
        ends = np.concatenate(ends_by_window)
    return Due(owners, ends - ranges[owners], ends)


def due_ends(
    window: Window, before: int, now: int, complete_from: int, fragment_ends: Array
) -> Array:
    """The ends of due windows that may hold a fragment, ascending.

    `fragment_ends` are the distinct fragment ends at hand, sorted. A fragment that ends at f
    is in the windows that end in [f, f + range).

    >>> due_ends(Window(10, 5), 0, 20, 0, np.array([7])).tolist()
    [10, 15]
    """
    before = max(before, complete_from + window.range - 1)
    if not len(fragment_ends) or now <= before:
        return np.zeros(0, np.int64)
    gap = np.flatnonzero(np.diff(fragment_ends) > window.range)
    first = fragment_ends[np.append(0, gap + 1)]
    last = fragment_ends[np.append(gap, len(fragment_ends) - 1)]
    low = np.maximum(first, before + 1)
    high = np.minimum(last + window.range - 1, now)
    low = low + (window.end_residue - low) % window.slide
    counts = np.maximum((high - low) // window.slide + 1, 0)
    total = int(counts.sum())
    starts = np.repeat(low - window.slide * (np.cumsum(counts) - counts), counts)
    ends = starts + window.slide * np.arange(total)
    return np.unique(ends) if len(first) > 1 else ends


def late_pairs(window: Window, before: int, fragment_ends: Array, counts: Array) -> int:
    """How many (row, window) pairs of new fragments fall in windows that are closed already."""
    late = fragment_ends <= before
    if not late.any():
        return 0
    ends = fragment_ends[late]
    low = ends + (window.end_residue - ends) % window.slide
    high = np.minimum(before, ends + window.range - 1)
    closed = np.maximum((high - low) // window.slide + 1, 0)
    return int((closed * counts[late]).sum())
