"""The paper's costs of hash and nested loop joins.

From: the AggJoin paper, equations 19 to 22 (nested loops) and 23 to 26 (hash), as instances of
`generic_cost`, with the parameters of Appendix A (`statistics`). Aggregation sets and the result are
hashed in both: a set by its join attribute, so that it can be probed, the result by the grouping
attribute of the first input.

    operator      nested loops       hash
    C_uw(W_i)     2·U_n              2·U_h
    C_fmt(W_i)    2·w_i·P_n          2·(w_i/B_i)·P_h
    C_fmt(AS_i)   2·α_i·P_n          2·(α_i/B_i)·P_h
    C_iau(AS_i)   2·(α_i/B_i)·U_g    the same
    C_iau(AS)     2·(α/B_g)·U_g      the same

The factor 2 is for the row that comes and the row that goes.

What was found in the printed equations: (20) has 2·(α₁/B_g)·U_g for the update of AS₁ and
2·m₂·(α/B₂)·U_g for that of the result. By (19), (21), (22) and (24) to (26), and by what the tables
are hashed by, the buckets are B₁ and B_g. The other seven agree with the generic equations.

What the equations simplify: α/B is the length of a bucket, and a search that succeeds looks at half
of it on average; a bucket of less than one group still costs a look. Searching costs nothing but the
rows looked at, so an empty bucket is free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from weft.errors import QepError
from weft.optimizer.joinagg.generic_cost import InputCosts, JoinCosts
from weft.optimizer.joinagg.statistics import InputStatistics, JoinStatistics

_COMES_AND_GOES = 2


@dataclass(frozen=True, slots=True)
class Constants:
    """The tuning parameters of table III: costs per row of probing (P), of updating a window (U) by
    nested loops (n) and hash (h), and of finding and updating a group (U_g)."""

    P_n: float = 1.0
    U_n: float = 1.0
    P_h: float = 1.0
    U_h: float = 1.0
    U_g: float = 1.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not 0 < getattr(self, name) < math.inf:
                detail = f"the constant {name} = {getattr(self, name):g} must be positive"
                raise QepError("BAD_QEP", detail=detail)


def hash_join(join: JoinStatistics, constants: Constants) -> JoinCosts:
    """Equations 23 to 26: windows and sets are probed by bucket.

    >>> from weft.optimizer.joinagg.generic_cost import plan_cost
    >>> from weft.optimizer.joinagg.statistics import join_statistics
    >>> join = join_statistics([(300, 5000, 150, 0.1), (300, 5000, 1, 0.1)], buckets=1021)
    >>> costs = hash_join(join, Constants())
    >>> [plan_cost(costs, plan) for plan in ((False, False), (False, True), (True, True))]
    [1201200.0, 603000.0, 273000.0]
    """

    def probe(given: InputStatistics, rows: float) -> float:
        return rows / given.buckets(join.buckets) * constants.P_h

    return _costs(join, probe, constants.U_h, constants.U_g)


def nested_loop_join(join: JoinStatistics, constants: Constants) -> JoinCosts:
    """Equations 19 to 22: all rows of a window, or all groups of a set, are looked at."""

    def probe(given: InputStatistics, rows: float) -> float:
        return rows * constants.P_n

    return _costs(join, probe, constants.U_n, constants.U_g)


def _costs(
    join: JoinStatistics,
    probe: Callable[[InputStatistics, float], float],
    update_window: float,
    update_group: float,
) -> JoinCosts:
    inputs = tuple(
        InputCosts(
            rate=given.rate,
            update_window=_COMES_AND_GOES * update_window,
            update_set=_COMES_AND_GOES
            * (given.set_size / given.buckets(join.buckets))
            * update_group,
            find_rows=_COMES_AND_GOES * probe(given, given.window),
            find_groups=_COMES_AND_GOES * probe(given, given.set_size),
            matching_rows=given.matching_rows,
            matching_groups=given.matching_groups,
        )
        for given in join.inputs
    )
    update_result = _COMES_AND_GOES * (join.result_size / join.result_buckets) * update_group
    return JoinCosts(inputs, update_result)


Costs = Callable[[JoinStatistics, Constants], JoinCosts]

JOINS: dict[str, Costs] = {"hash": hash_join, "nested": nested_loop_join}
"""How inputs are joined, by name."""
