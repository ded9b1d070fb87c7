"""Groups in fewer rows than were sampled, without any model.

Of m sampled rows take n at random: a value that occurs j times is missing from all of them with
probability C(m - j, n) / C(m, n), so the expected number of groups is

    D(n) = sum over j of f_j (1 - C(m - j, n) / C(m, n))          (Hurlbert 1971, equation 3)

Unbiased for the groups in n rows of the stream if the sample's rows are exchangeable with them;
monotone and concave in n, D(1) = 1, D(m) = the distinct values of the sample. A finer key gives
at least as many groups, since it does so for every choice of n rows. Time O(different counts).
"""

from __future__ import annotations

from math import lgamma

import numpy as np

from weft.stats.frequencies import Frequencies


def rarefied(seen: Frequencies, rows: float) -> float:
    """The expected groups in `rows` of the sampled rows, 1 <= rows <= seen.rows.

    >>> rarefied(Frequencies.of_counts([2, 2]), 2)  # of 4 rows in 2 pairs: 2 of 6 draws are a pair
    1.66666...
    """
    left = seen.rows - seen.times - rows
    common = lgamma(seen.rows - rows + 1) - lgamma(seen.rows + 1)
    missing = np.array(
        [
            np.exp(lgamma(seen.rows - times + 1) - lgamma(rest + 1) + common) if rest > -1 else 0.0
            for times, rest in zip(seen.times.tolist(), left.tolist())
        ]
    )
    return max(seen.distinct - float(seen.values @ missing), 1.0)
