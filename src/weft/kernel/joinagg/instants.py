"""Which instants of a step must be evaluated.

A query shows its result at every instant of the step. Where it shows nothing there is nothing to evaluate: a grouped query has no
groups while an input has no entries, and without new entries a result does not change. A stream that was idle for a day may pass a
hundred thousand instants at once, so these are left out here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.windows import InputWindow
from weft.kernel.columns.operations import Array
from weft.kernel.joinagg.entries import Entries


def first_complete(query: AggregationJoin, begins: Sequence[int]) -> int:
    """The first instant at which no window reaches back before the time from which on its input is complete; for
    tables `begins` does not matter. A landmark window begins there."""
    earliest = max(
        (
            _window_complete(entry.window, begin)
            for entry, begin in zip(query.inputs, begins, strict=True)
            if entry.window is not None
        )
    )
    return -(-earliest // query.step) * query.step


def _window_complete(window: InputWindow, begin: int) -> int:
    if window.kind == "sliding":
        return begin + window.length
    if window.kind == "tumbling":
        return -(-begin // window.length) * window.length + 1
    return begin


@dataclass(frozen=True)
class Due:
    """The instants of a step: multiples of `step` after `before`, up to `now`."""

    before: int
    now: int
    step: int

    def every(self, start: int) -> Array:
        """All of them, from an instant on."""
        first = max(self.before // self.step * self.step + self.step, start)
        return np.arange(first, self.now + 1, self.step, dtype=np.int64)

    def filled(self, sides: Sequence[Entries], start: int) -> Array:
        """Those at which all sides have entries, from an instant on."""
        low = max(self.before // self.step * self.step + self.step, start)
        high = self.now // self.step * self.step
        if low > high:
            return np.zeros(0, np.int64)
        spans = [(low, high)]
        for side in sides:
            spans = _overlaps(spans, _covered(side, low, high))
        parts = [np.arange(first, last + 1, self.step, dtype=np.int64) for first, last in spans]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def changing(self, sides: Sequence[Entries], start: int, *, shown: bool) -> Array:
        """Those at which the result may differ from that of the instant before: where there is something, and the
        first one where there is nothing any more. `shown`: whether there was something before the step."""
        filled = self.filled(sides, start)
        every_first = self.every(start)[:1] if shown else np.zeros(0, np.int64)
        wanted = np.unique(np.concatenate([every_first, filled, filled + self.step]))
        return wanted[wanted <= self.now]


def first_filled(sides: Sequence[Entries], now: int) -> int | None:
    """The first instant at which any side has an entry, up to now."""
    firsts = [
        int(side.first[counting].min())
        for side in sides
        if (counting := (side.first <= now) & (side.first <= side.last)).any()
    ]
    return min(firsts, default=None)


def _covered(side: Entries, low: int, high: int) -> list[tuple[int, int]]:
    """Where a side has entries, as spans that do not touch."""
    first, last = np.maximum(side.first, low), np.minimum(side.last, high)
    counting = first <= last
    begins, which = np.unique(first[counting], return_inverse=True)
    ends = np.full(len(begins), low, np.int64)
    np.maximum.at(ends, which.reshape(-1), last[counting])
    spans: list[tuple[int, int]] = []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        if spans and begin <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((begin, end))
    return spans


def _overlaps(
    these: Sequence[tuple[int, int]], those: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    both = []
    places = [0, 0]
    while places[0] < len(these) and places[1] < len(those):
        one, other = these[places[0]], those[places[1]]
        first, last = max(one[0], other[0]), min(one[1], other[1])
        if first <= last:
            both.append((first, last))
        places[0 if one[1] <= other[1] else 1] += 1
    return both
