"""How many entries leave a bounded table: Lemmas 6.1 and 7.1 of the Memory paper.

A table of at most b entries sees n rows of g groups. `evicted` is the fraction f of rows that push an
entry out during the epoch, if the b most frequent groups stay:

- 1 - (b/g)^(1-α) for a Zipf parameter α < 1 (Lemma 6.1); α = 0 is uniform, 1 - b/g (Lemma 7.1);
- 1 - ln b / ln g for α = 1 (Lemma 6.1), and 1 - (1 - b^(1-α)) / (1 - g^(1-α)) above, which is the same
  integral over ranks, from 1 on; so f = 1 up to b = 1.

`leaving` is all that leaves, out = b + f·n (equation 1), kept within g ≤ out ≤ n. The paper says that
out ≥ g, and that out falls with b up to b = g. As printed neither holds where n(1-α) < g: b + f·n
falls below g and rises again. It is convex in b and equals g at b = g, so once it reached g it stays
below: bounding it by g leaves everything before that place alone and makes out fall with b always.
Bounded so, out(n·x) ≤ x·out(n) for x ≥ 1 still holds (Lemma 9.1), which is all that the FPTAS needs.

`needed` is the inverse: the fewest entries with which at most `target` leave. Newton's method from the
left for α < 1 (b + f·n is convex there, so it never oversteps), bisection above.

All functions take NumPy arrays that broadcast; time is linear in their size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NEWTON_STEPS = 60
_BISECTIONS = 100
_SAME = 1e-12
_LEAST_SHARE = 1e-280
"""For α just below 1 the share of a table that is needed can be below the least number there is."""


def evicted(entries: Any, groups: Any, alpha: Any) -> Floats:
    """The fraction of rows that push an entry out during the epoch.

    >>> float(evicted(25, 100, 0.5)), float(evicted(10, 100, 1.0)), float(evicted(10, 100, 0.0))
    (0.5, 0.5, 0.9)
    """
    b, g, a = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (entries, groups, alpha)))
    share = np.clip(b / np.maximum(g, _SAME), 0.0, 1.0)
    kept = share ** np.maximum(1 - a, 0)
    if (a >= 1).any():
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            kept = np.where(a < 1, kept, _kept_above_one(b, g, a))
    kept = np.where(share >= 1, 1.0, np.where(b <= 0, 0.0, kept))
    return 1 - np.clip(kept, 0.0, 1.0)


def leaving(entries: Any, groups: Any, alpha: Any, rows: Any) -> Floats:
    """How many entries leave the table, at the end of the epoch or before.

    >>> float(leaving(25, 100, 0.5, 1000)), float(leaving(0, 100, 0.5, 1000))
    (525.0, 1000.0)
    """
    g, n = np.asarray(groups, np.float64), np.asarray(rows, np.float64)
    b = np.minimum(np.asarray(entries, np.float64), g)
    return np.minimum(n, np.maximum(np.minimum(g, n), b + evicted(b, g, alpha) * n))


def needed(target: Any, groups: Any, alpha: Any, rows: Any) -> Floats:
    """The fewest entries with which at most `target` leave; targets below `groups` need all.

    >>> round(float(needed(525, 100, 0.5, 1000)), 6)
    25.0
    """
    o, g, a, n = np.broadcast_arrays(
        *(np.asarray(x, np.float64) for x in (target, groups, alpha, rows))
    )
    g = np.minimum(g, n)
    o = np.clip(o, g, n)
    below = np.where(a < 1, _needed_below_one(o / g, np.minimum(a, 1), n / g), 0.0)
    if (a >= 1).any():
        below = np.where(a >= 1, _needed_above_one(o, g, a, n) / g, below)
    fewest: Floats = g * np.where(o >= n, 0.0, below)
    return fewest


def _kept_above_one(b: Floats, g: Floats, a: Floats) -> Floats:
    """The share of rows that find their group, for α ≥ 1."""
    logs = np.log(np.maximum(b, 1)) / np.log(np.maximum(g, 1 + _SAME))
    power = np.minimum(1 - a, 0)
    above = (1 - np.maximum(b, 1) ** power) / (1 - np.maximum(g, 1 + _SAME) ** power)
    # Close to 1 the quotient of small differences is no longer exact, and its limit is the logarithm's.
    kept: Floats = np.where(a - 1 < 1e-9, logs, above)
    return kept


def _needed_below_one(z: Floats, a: Floats, y: Floats) -> Floats:
    """The least x with x + y - y·x^(1-α) ≤ z."""
    p = np.maximum(1 - a, 1e-12)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        x = np.where(y > z, np.maximum(((y - z) / y) ** (1 / p), _LEAST_SHARE), 0.0)
        for _ in range(_NEWTON_STEPS):
            power = np.where(x > 0, x**p, 0.0)
            excess = x + y - y * power - z
            slope = 1 - p * y * power / x
            step = np.where((x > 0) & (excess > 0) & (slope < 0), -excess / slope, 0.0)
            moved = np.minimum(x + step, 1.0)
            if not (moved - x > _SAME * moved).any():
                break
            x = moved
    return np.clip(x, 0.0, 1.0)


def _needed_above_one(o: Floats, g: Floats, a: Floats, n: Floats) -> Floats:
    low, high = np.zeros_like(g), np.log(np.maximum(g, 1))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        fits = leaving(np.exp(middle), g, a, n) <= o
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    return np.minimum(np.exp(high), g)
