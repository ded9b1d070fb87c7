"""How many entries leave a bounded table: Lemmas 6.1 and 7.1 of the Memory paper, and their
correction.

A table of at most b entries sees n rows of g groups, the k-th of which has a share of rows in
proportion to k^-α. `evicted` is the fraction f of rows that push an entry out during the epoch, if
the b most frequent groups stay. That is 1 - S(b)/S(g), S(b) being the sum of k^-α for k = 1 … b:

- `LEMMA`, as printed: the sum as an integral from 0, so 1 - (b/g)^(1-α) for α < 1 (Lemma 6.1; α = 0
  is uniform, 1 - b/g, Lemma 7.1), and from 1 for α ≥ 1, so 1 - ln b / ln g for α = 1; there f = 1
  up to b = 1.
- `RANKS`, the integral from ½ to b + ½, which for α up to 1 is the sum within 9 %, from b = 10 on
  within 3 % (tested). The lemma's integral from 0 adds 1/(1-α) where the sum starts with 1: at α =
  0.85, g = 10,000, b = 100 it says that half of all rows find their group, and the sum says a
  third.

`leaving` is all that leaves, out = b + f·n (equation 1), kept within g ≤ out ≤ n. The paper says
that out ≥ g, and that out falls with b up to b = g. As printed neither holds where n(1-α) < g: b +
f·n falls below g and rises again. It is convex in b and equals g at b = g, so once it reached g it
stays below: bounding it by g leaves everything before that place alone and makes out fall with b
always. Bounded so, out(x·n) ≤ x·out(n) for x ≥ 1 (Lemma 9.1) and out(n + a) ≤ out(n) + a, which is
all that the FPTAS needs.

`needed` is the inverse: the fewest entries with which at most `target` leave, by Newton's method
from the left (b + f·n is convex, so it never oversteps).

All take NumPy arrays that broadcast; time is linear in their size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NEWTON_STEPS = 60
_SAME = 1e-10
_LEAST_SHARE = 1e-280
"""For α just below 1 the share of a table that is needed can be below the least number there is."""
_LOGARITHMIC = 1e-9
"""Closer to 1 than this, α is 1."""


@dataclass(frozen=True)
class Eviction:
    """A model of the share of rows that the most frequent groups have.

    >>> float(LEMMA.evicted(25, 100, 0.5)), float(LEMMA.evicted(10, 100, 1.0))
    (0.5, 0.5)
    >>> exact = sum(k**-0.85 for k in range(1, 101)) / sum(k**-0.85 for k in range(1, 10_001))
    >>> round(1 - float(LEMMA.evicted(100, 10_000, 0.85)), 2)
    0.5
    >>> round(1 - float(RANKS.evicted(100, 10_000, 0.85)), 2), round(exact, 2)
    (0.36, 0.35)
    """

    name: str
    shift: float
    """Ranks are taken this much later than they are."""

    def evicted(self, entries: Any, groups: Any, alpha: Any) -> Floats:
        """The fraction of rows that push an entry out during the epoch."""
        b, g, a = np.broadcast_arrays(
            *(np.asarray(x, np.float64) for x in (entries, groups, alpha))
        )
        low = self._low(a)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            whole = _area(g + self.shift, low, a)
            kept = _area(np.maximum(b + self.shift, low), low, a) / whole
        kept = np.where(b >= g, 1.0, np.where((b <= 0) | (whole <= 0), 0.0, kept))
        share: Floats = 1 - np.clip(kept, 0.0, 1.0)
        return share

    def leaving(self, entries: Any, groups: Any, alpha: Any, rows: Any) -> Floats:
        """How many entries leave the table, at the end of the epoch or before.

        >>> float(LEMMA.leaving(25, 100, 0.5, 1000)), float(LEMMA.leaving(0, 100, 0.5, 1000))
        (525.0, 1000.0)
        """
        g, n = np.asarray(groups, np.float64), np.asarray(rows, np.float64)
        b = np.minimum(np.asarray(entries, np.float64), g)
        out = b + self.evicted(b, g, alpha) * n
        return np.minimum(n, np.maximum(np.minimum(g, n), out))

    def needed(self, target: Any, groups: Any, alpha: Any, rows: Any) -> Floats:
        """The fewest entries with which at most `target` leave; targets below `groups` need all.

        >>> round(float(LEMMA.needed(525, 100, 0.5, 1000)), 6)
        25.0
        """
        o, g, a, n = np.broadcast_arrays(
            *(np.asarray(x, np.float64) for x in (target, groups, alpha, rows))
        )
        g = np.minimum(g, n)
        o = np.clip(o, g, n)
        low = self._low(a)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            whole = _area(g + self.shift, low, a)
            entries = _inverse((n - o) / n * whole, low, a) - self.shift
            entries = np.where(whole > 0, np.clip(entries, g * _LEAST_SHARE, g), g)
            entries = np.where(o < n, entries, 0.0)
            active = np.flatnonzero((entries > 0) & (entries < g))
            b, o, g, a, n, low, whole = (
                column.ravel()[active] for column in (entries, o, g, a, n, low, whole)
            )
            for _ in range(_NEWTON_STEPS):
                excess = b + n - n * _area(b + self.shift, low, a) / whole - o
                slope = 1 - n * (b + self.shift) ** -a / whole
                step = np.where((excess > 0) & (slope < 0), -excess / slope, 0.0)
                moved = np.minimum(b + step, g)
                entries.ravel()[active] = moved
                going = moved - b > _SAME * moved
                if not going.any():
                    break
                active, b = active[going], moved[going]
                o, g, a, n, low, whole = (column[going] for column in (o, g, a, n, low, whole))
        return entries

    def balanced(self, groups: Floats, alpha: Floats, rows: Floats, worth: Floats) -> Floats:
        """The entries at which one more saves 1/`worth` of itself: n·b^-α/S = 1/worth, for α > 0."""
        whole = _area(groups + self.shift, self._low(alpha), alpha)
        with np.errstate(over="ignore", divide="ignore"):
            entries = (rows * worth / whole) ** (1 / np.maximum(alpha, _SAME)) - self.shift
        return np.clip(entries, 0.0, groups)

    def _low(self, alpha: Floats) -> Floats:
        """Where the integral starts."""
        if self.shift:
            return np.full_like(alpha, self.shift)
        return np.where(alpha < 1 - _LOGARITHMIC, 0.0, 1.0)


LEMMA = Eviction("lemma", 0.0)
RANKS = Eviction("ranks", 0.5)
MODELS = {model.name: model for model in (LEMMA, RANKS)}


def _area(x: Floats, low: Floats, alpha: Floats) -> Floats:
    """The integral of t^-α from `low` to x."""
    p = 1 - alpha
    flat = np.abs(p) < _LOGARITHMIC
    power = np.where(flat, 1.0, p)
    start = np.maximum(low, 1e-300)
    ratio = np.log(np.maximum(x, 1e-300) / start)
    from_start = np.where(flat, ratio, start**power * np.expm1(power * ratio) / power)
    area: Floats = np.where(low > 0, from_start, np.maximum(x, 0.0) ** power / power)
    return area


def _inverse(area: Floats, low: Floats, alpha: Floats) -> Floats:
    """The x at which the integral from `low` is so large."""
    p = 1 - alpha
    flat = np.abs(p) < _LOGARITHMIC
    power = np.where(flat, 1.0, p)
    start = np.maximum(low, 1e-300)
    from_start = start * np.where(
        flat, np.exp(area), np.maximum(1 + area * power * start**-power, 0.0) ** (1 / power)
    )
    x: Floats = np.where(low > 0, from_start, np.maximum(area * power, 0.0) ** (1 / power))
    return x
