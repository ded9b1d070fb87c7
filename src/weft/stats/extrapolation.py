"""Groups in more rows than were sampled, by a gamma mixture of rates through three known points.

If the rates of the values follow a gamma law with shape k > -1 (Fisher 1943; Efron and Thisted,
Biometrika 1976, section 3; negative k is Engen's extension, with power-law tails), then, with c = -k,

    D(n) = A ((1 + b n)^c - 1) / c            D(n) = A log(1 + b n) for c = 0

c -> -infinity is the uniform law, c = 0 the logarithmic series, 0 < c < 1 grows like n^c, as Zipf laws
with exponents above 1 do, and c = 1 is linear: all distinct, or keys that keep being replaced. Three
points fix A, b and c: the groups in a quarter, a half and all of the sampled rows; or, if a sketch has
counted more rows, in a half, in all, and in those. For every b of a grid, c is solved from the last
two points (the ratio of D falls as c rises), and b is the one that fits the first best.

Sound: b > 0 and c <= 1 make the curve concave and rising, so D(m) <= D(n) <= D(m) n / m beyond the
sample. It passes through D(m), and through the sketch if that is within these bounds. O(1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.stats.working_set import WorkingSet

_SCALES = np.logspace(-6, 9, 76)
_UNIFORM, _LINEAR = -60.0, 1.0
_BISECTIONS = 30
_LOGARITHMIC = 1e-12

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Growth:
    """The curve through `groups` in `rows` rows, with scale b and power c."""

    rows: float
    distinct: float
    scale: float
    power: float

    def groups(self, rows: float) -> float:
        """The expected groups in `rows` rows, at least as many as were sampled."""
        logs = np.log1p(self.scale * np.array([rows, self.rows]))
        many, sampled = _powers(logs, np.full(2, self.power))
        return float(self.distinct * many / sampled)


def grown(sampled: WorkingSet, sketch: tuple[float, float] | None = None) -> Growth:
    """The curve that continues a sample, through `sketch` (rows, groups) if that is beyond it.

    >>> round(grown(WorkingSet.of_values(np.arange(1000))).groups(50_000))
    50000
    """
    rows = sampled.rows
    distinct = sampled.groups(rows)
    points = [(rows / part, sampled.groups(max(rows / part, 1.0))) for part in (4, 2, 1)]
    if sketch is not None and sketch[0] > rows:
        longer, groups = sketch
        points = [*points[1:], (longer, min(max(groups, distinct), distinct * longer / rows))]
    scale, power = _through(np.array(points))
    return Growth(rows, distinct, scale, power)


def _through(points: Floats) -> tuple[float, float]:
    """Scale and power of the curve whose values at three places have the given ratios."""
    places, values = points.T
    scales = _SCALES / places[1]
    logs = np.log1p(scales[:, None] * places)
    wanted = values[1] / values[2]
    low, high = np.full(len(scales), _UNIFORM), np.full(len(scales), _LINEAR)
    for _ in range(_BISECTIONS):
        power = (low + high) / 2
        steep = _powers(logs[:, 1], power) / _powers(logs[:, 2], power) < wanted
        low, high = np.where(steep, low, power), np.where(steep, power, high)
    power = (low + high) / 2
    first, second, third = (_powers(logs[:, i], power) for i in range(3))
    error = np.abs(np.log(first / second * values[1] / values[0]))
    error += np.abs(np.log(second / third / wanted))
    best = int(np.argmin(error))
    return float(scales[best]), float(power[best])


def _powers(logs: Floats, power: Floats) -> Floats:
    """((1 + b n)^c - 1) / c of logs = log(1 + b n)."""
    flat = np.abs(power) < _LOGARITHMIC
    safe = np.where(flat, 1.0, power)
    curve: Floats = np.where(flat, logs, np.expm1(safe * logs) / safe)
    return curve
