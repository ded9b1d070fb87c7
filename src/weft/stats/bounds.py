"""How many groups n rows can have, given the average D(m) of m consecutive rows of the same stream.

In a stationary stream the expected number of groups never falls with rows and is subadditive: n rows
are n / m stretches of m rows, and groups of different stretches may be the same. So

    D(m) <= D(n) <= D(m) n / m        and D(n) <= n,

whatever the law of the keys and however they change. `extrapolation` stays within. The guaranteed
estimator GEE of Charikar et al. (PODS 2000), sqrt(n / m) f_1 + (d - f_1), is not used: it needs rows
drawn at random from all n, which a stretch is not, and is off by up to sqrt(n / m) on common laws.
"""

from __future__ import annotations


def between(distinct: float, sampled: float, rows: float) -> tuple[float, float]:
    """The least and the most groups in `rows` >= `sampled` rows.

    >>> between(3.0, 4, 8)
    (3.0, 6.0)
    """
    return distinct, min(distinct * rows / sampled, rows)
