"""Groups in more rows than were sampled, by a gamma mixture of rates.

If the rates of the values follow a gamma law with shape k > -1 (Fisher 1943; Efron and Thisted,
Biometrika 1976, section 3; negative k is Engen's extension, which has power-law tails), then

    D(n) = A (1 - (1 + b n)^-k)            D(n) = A' log(1 + b n) for k = 0

k -> infinity is the uniform law, k = 0 the logarithmic series, -1 < k < 0 grows like n^-k, as Zipf
laws with exponents above 1 do, k = -1 is linear. The curve is joined to the sample's at n = m by
value, slope and curvature: D(m) = d, m D'(m) = f_1, -m^2 D''(m) / 2 = f_2, which hold for any law of
rates in expectation (Good and Toulmin 1956). With u = b m / (1 + b m) in (0, 1) that is

    2 f_2 / f_1 = (k + 1) u        f_1 / d = k u (1 - u)^k / (1 - (1 - u)^k)

one equation for u, since the first gives k. Where a sketch of more rows is known, its number of
groups replaces f_2 as the third condition, and the curve passes through it.

Sound: for k > -1 the curve is concave and rises, so d <= D(n) <= d + f_1 (n / m - 1), the bounds of
`bounds`. It declines nothing: without values seen once it is flat, without values seen twice
linear. Time O(1): a search over a fixed grid and a few steps of refinement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.stats.frequencies import Frequencies

_GRID = np.concatenate(
    [np.logspace(-9, -2, 57), np.linspace(0.01, 0.99, 99)[1:], 1 - np.logspace(-2, -9, 57)[1:]]
)
_REFINED, _REFINEMENTS = 33, 5
_BISECTIONS = 40
_LOGARITHMIC = 1e-9


@dataclass(frozen=True)
class Growth:
    """How the groups of a sample grow: shape k, and scale b per sampled row times m."""

    rows: int
    distinct: float
    shape: float
    scale: float

    def groups(self, rows: float) -> float:
        """The expected groups in `rows` rows, at least as many as were sampled."""
        if self.scale == 0.0:
            return self.distinct
        now, then = np.log1p(self.scale * rows / self.rows), np.log1p(self.scale)
        if abs(self.shape * now) < _LOGARITHMIC:
            return float(self.distinct * now / then)
        return float(self.distinct * np.expm1(-self.shape * now) / np.expm1(-self.shape * then))


def grown(seen: Frequencies, anchor: tuple[float, float] | None = None) -> Growth:
    """The curve that continues a sample, through `anchor` (rows, groups) if that is beyond it.

    >>> grown(Frequencies.of_counts([2, 2, 2])).groups(100)
    3.0
    """
    if not seen.once:
        return Growth(seen.rows, float(seen.distinct), 0.0, 0.0)
    if anchor is None or anchor[0] <= seen.rows:
        return _joined(seen, 2.0 * seen.twice / seen.once)
    rows, groups = anchor
    low, high = 0.0, 2.0 * max(1.0, seen.rows / seen.once)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _joined(seen, middle).groups(rows) > groups:
            low = middle
        else:
            high = middle
    return _joined(seen, high)


def _joined(seen: Frequencies, curvature: float) -> Growth:
    """The curve with the sample's value and slope, and 2 f_2 / f_1 = `curvature`."""
    wanted = seen.once / seen.distinct
    grid = _GRID
    for _ in range(_REFINEMENTS):
        near = int(np.argmin(np.abs(_slope(grid, curvature) - wanted)))
        u = float(grid[near])
        grid = np.linspace(grid[max(near - 1, 0)], grid[min(near + 1, len(grid) - 1)], _REFINED)
    return Growth(seen.rows, float(seen.distinct), curvature / u - 1.0, u / (1.0 - u))


def _slope(u: NDArray[np.float64], curvature: float) -> NDArray[np.float64]:
    """f_1 / d of the curve with these u."""
    k = curvature / u - 1.0
    log = k * np.log1p(-u)
    flat = np.abs(log) < _LOGARITHMIC
    safe = np.where(flat, 1.0, log)
    power = k * u * np.exp(np.minimum(safe, 700)) / -np.expm1(np.minimum(safe, 700))
    return np.where(flat, -u / np.log1p(-u), power)
