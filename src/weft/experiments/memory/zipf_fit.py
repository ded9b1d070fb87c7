"""The Zipf parameter of measured frequencies.

The slope of the rank-frequency curve on logarithmic axes, as in figure 2 of the Memory paper, by
least squares. Ranks are taken at equal distances of their logarithm, so that the many groups of one
row at the end do not decide alone; the paper does not say how it fitted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_PLACES = 60


def zipf_exponent(counts: NDArray[Any]) -> float:
    """The exponent α of frequencies that fall like rank^-α; 0 for fewer than three groups.

    >>> round(zipf_exponent(1e6 * np.arange(1, 1000.0) ** -0.7), 3)
    0.7
    """
    ranked = np.sort(np.asarray(counts, np.float64))[::-1]
    if len(ranked) < 3:
        return 0.0
    ranks = np.unique(np.geomspace(1, len(ranked), _PLACES).astype(np.int64))
    slope, _ = np.polyfit(np.log(ranks), np.log(ranked[ranks - 1]), 1)
    return max(0.0, -float(slope))
