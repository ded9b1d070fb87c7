"""How many groups there can be in n rows, given a sample of m of them; the guaranteed estimator.

The expected number of groups D(n) is concave in n, and its slope at m is estimated without bias by
f_1 / m (Good 1953). So, in expectation,

    d <= D(n) <= d + f_1 (n - m) / m.

GEE (Charikar, Chaudhuri, Motwani, Narasayya, PODS 2000, theorem 2) is sqrt(n / m) f_1 + (d - f_1):
whatever the data, its ratio error is at most e sqrt(n / m) (1 + o(1)) in expectation, and by their
theorem 1 no estimator is better than sqrt(n / m) by more than a constant. weft uses it as the
yardstick: `extrapolation` is far closer on the laws that streams have, and stays within the same
two bounds, so that its ratio error is at most upper / lower <= n / m.
"""

from __future__ import annotations

from math import sqrt

from weft.stats.frequencies import Frequencies


def between(seen: Frequencies, rows: float) -> tuple[float, float]:
    """The least and the most groups in `rows` rows, at least as many as were sampled.

    >>> between(Frequencies.of_counts([1, 1, 2]), 8)
    (3.0, 5.0)
    """
    more = max(rows / seen.rows - 1.0, 0.0)
    return float(seen.distinct), min(seen.distinct + seen.once * more, rows)


def gee(seen: Frequencies, rows: float) -> float:
    """The guaranteed-error estimate of the groups in `rows` rows.

    >>> gee(Frequencies.of_counts([1, 1, 2]), 16)
    5.0
    """
    return sqrt(rows / seen.rows) * seen.once + (seen.distinct - seen.once)
