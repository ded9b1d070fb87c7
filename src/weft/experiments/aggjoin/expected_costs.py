"""The paper's cost functions with the sizes that are expected instead of upper bounds: weft's own, to compare.

w rows that fall into G equally likely groups are in G·(1 - (1 - 1/G)^w) of them on average; Appendix A takes min(w, G). And
a search that succeeds looks at half of a bucket on average, and at one entry at least; the paper takes the whole
bucket, also where it holds less than one entry. Everything else is as in `papers_costs`, with all constants 1.
"""

from __future__ import annotations

import math

from weft.optimizer.joinagg.generic_cost import InputCosts, JoinCosts
from weft.optimizer.joinagg.papers_costs import JOINS, Constants
from weft.optimizer.joinagg.statistics import JoinStatistics

_COMES_AND_GOES = 2


def expected_costs(statistics: JoinStatistics, join: str) -> JoinCosts:
    """The costs of a hash or nested loop join, in operations."""
    papers = JOINS[join](statistics, Constants())
    inputs = []
    for given, costs in zip(statistics.inputs, papers.inputs, strict=True):
        groups = occupied(given.groups / given.selectivity, given.window)
        inputs.append(
            InputCosts(
                rate=costs.rate,
                update_window=costs.update_window,
                update_set=_update(groups / given.buckets(statistics.buckets)),
                find_rows=costs.find_rows,
                find_groups=costs.find_groups * groups / given.set_size,
                matching_rows=costs.matching_rows,
                matching_groups=min(groups * given.selectivity, costs.matching_rows),
            )
        )
    result = math.prod(occupied(given.groups, given.window) for given in statistics.inputs)
    return JoinCosts(tuple(inputs), _update(result / statistics.result_buckets))


def occupied(groups: float, rows: float) -> float:
    """How many groups so many rows are expected to fall into.

    >>> occupied(1, 5), round(occupied(1500, 2000)), round(occupied(1500, 5000))
    (1.0, 1105, 1447)
    """
    missed: float = (1 - 1 / groups) ** rows
    return groups * (1 - missed)


def _update(bucket: float) -> float:
    """Finding and updating one of the groups in a bucket of this length, twice."""
    return _COMES_AND_GOES * max(1.0, bucket / 2)
