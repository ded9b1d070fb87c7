"""What a plan costs in a unit of time, from what its operators cost.

From: the AggJoin paper, equations 15 to 18, extended from two inputs to m. For every row that
enters input k, and later leaves it:

    C = Σ_k λ_k [ C_uw(W_k)                       its window is updated
                + [k early] C_iau(AS_k)           so is its aggregation set
                + Σ_{j≠k} C_fmt(X_j)              matches are looked for in every other input
                + (Π_{j≠k} p_j) C_iau(AS) ]       every combination of matches updates the result

where X_j is the aggregation set of input j and p_j = n_j if input j is early, and its window and
p_j = m_j if it is late. For two inputs these are equations 15 to 18.

The paper calls the extension straightforward and does not print it. Here all inputs join on one
attribute, as in its experiments: the row's value is looked up once in every other input, and the
result has a tuple for every combination of what was found, as line 5 of Algorithm 1 says. In a
chain of joins on different attributes, the second input would be searched once for every match in
the first.

Precondition for `saving` and those who use it: early aggregation never adds matches, n_j ≤ m_j.
Then what early aggregation of one input saves can only fall as others become early: the products of
the others' p_j fall. For two inputs it does not depend on the other at all.

Time: O(m²) for a plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from weft.errors import QepError
from weft.optimizer.joinagg.plans import Plan, late_plan, with_input


@dataclass(frozen=True, slots=True)
class InputCosts:
    """The operators of one input, and what they find; all costs are for one row, which comes and
    goes."""

    rate: float
    update_window: float
    update_set: float
    """C_iau(AS_i), paid if the input is early."""
    find_rows: float
    """C_fmt(W_i): looking for a match in the window."""
    find_groups: float
    """C_fmt(AS_i): looking for a match in the aggregation set."""
    matching_rows: float
    """m_i: matches in the window."""
    matching_groups: float
    """n_i: matches in the aggregation set."""

    def find(self, early: bool) -> float:
        return self.find_groups if early else self.find_rows

    def matches(self, early: bool) -> float:
        return self.matching_groups if early else self.matching_rows


@dataclass(frozen=True, slots=True)
class JoinCosts:
    """The operators of a join. `update_result` is C_iau(AS), for one tuple of the join."""

    inputs: tuple[InputCosts, ...]
    update_result: float

    def __post_init__(self) -> None:
        inputs = len(self.inputs)
        if inputs < 2:
            raise QepError("BAD_QEP", detail=f"a join has two inputs or more, not {inputs}")
        for given in self.inputs:
            if given.matching_groups > given.matching_rows:
                detail = (
                    f"{given.matching_groups:g} groups cannot match where {given.matching_rows:g} "
                    "rows do"
                )
                raise QepError("BAD_QEP", detail=detail)
        # Every cost of every plan is in one of these two, so no other overflows.
        extremes = late_plan(inputs), (True,) * inputs
        if not all(math.isfinite(plan_cost(self, plan)) for plan in extremes):
            raise QepError("BAD_QEP", detail="the cost of a plan is not a finite number")


def plan_cost(costs: JoinCosts, plan: Plan) -> float:
    """The cost of a plan per unit of time."""
    used = list(zip(costs.inputs, plan, strict=True))
    total = 0.0
    for number, (given, early) in enumerate(used):
        others = used[:number] + used[number + 1 :]
        joined = math.prod(other.matches(early) for other, early in others)
        row = given.update_window + joined * costs.update_result
        row += math.fsum(other.find(early) for other, early in others)
        total += given.rate * (row + (given.update_set if early else 0.0))
    return total


def saving(costs: JoinCosts, plan: Plan, number: int) -> float:
    """What early aggregation of one input saves, beside the same plan with the input late."""
    return plan_cost(costs, with_input(plan, number, False)) - plan_cost(
        costs, with_input(plan, number, True)
    )
