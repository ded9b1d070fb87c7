"""The choice of a plan: all are priced while they are few, else the greedy search decides.

From: the AggJoin paper, section 6.3 (price all 2^m plans and take the cheapest) and section 8
(greedy). Of plans that cost the same the one with the lowest case number is chosen: late where
early aggregation saves nothing.

Time: O(2^m·m²) up to `MOST_PRICED` inputs, else that of `greedy`.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.optimizer.joinagg.generic_cost import JoinCosts, plan_cost
from weft.optimizer.joinagg.greedy import greedy
from weft.optimizer.joinagg.plans import Plan, all_plans

MOST_PRICED = 12
"""Inputs of a join whose plans are all priced: 4096 of them, in half a second."""


@dataclass(frozen=True, slots=True)
class PricedPlan:
    plan: Plan
    cost: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen plan, and the plans that were priced: all of them, or those that the greedy search
    passed."""

    best: PricedPlan
    priced: tuple[PricedPlan, ...]
    exact: bool
    """Whether no plan is cheaper for certain."""

    @property
    def complete(self) -> bool:
        """Whether all plans were priced."""
        return len(self.priced) == 1 << len(self.best.plan)


def choose(costs: JoinCosts, most_priced: int = MOST_PRICED) -> Choice:
    """The cheapest plan of a join, or a good one if it has more than `most_priced` inputs."""
    inputs = len(costs.inputs)
    if inputs <= most_priced:
        priced = tuple(PricedPlan(plan, plan_cost(costs, plan)) for plan in all_plans(inputs))
        return Choice(min(priced, key=lambda plan: plan.cost), priced, exact=True)
    searched = greedy(costs)
    priced = tuple(PricedPlan(plan, plan_cost(costs, plan)) for plan in searched.passed)
    return Choice(priced[-1], priced, searched.exact)
