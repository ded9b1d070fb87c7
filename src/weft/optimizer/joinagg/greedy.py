"""A plan for a join with many inputs, without pricing all 2^m.

From: the AggJoin paper, section 8, which sketches it: an input becomes early if that saves more in
the joins than updating its aggregation set costs. In a join of three or more inputs what it saves
depends on the other inputs, so the sketch leaves open when to look. Here:

1. *Decide what is certain.* What early aggregation of an input saves can only fall as others become
   early (`generic_cost`). If it saves with all undecided others early, the input is early in some
   cheapest plan; if it saves nothing with all of them late, it is late in one. Repeat until nothing
   changes. For two inputs this decides everything.
2. *Insert and remove.* From there, change the one input that saves most, until no single change
   saves anything. An input that was inserted first may be removed once others are early.

Preconditions: those of `saving`.

Why it is sound: any plan gives the same result. If step 1 decides every input, the plan is a cheapest
one: each decision keeps a cheapest plan among those that are left. Else it is a local optimum, and
never costs more than the plan that step 2 begins with.

Time: O(m) rounds of m savings in both steps, O(m⁴) in all; in step 2 the cost falls with every
change, and rounds beyond m are not seen in practice. Space: O(m).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.optimizer.joinagg.generic_cost import JoinCosts, plan_cost, saving
from weft.optimizer.joinagg.plans import Plan, with_input


@dataclass(frozen=True, slots=True)
class GreedyPlan:
    """A plan, those that were passed on the way to it, and whether none is cheaper for certain."""

    plan: Plan
    passed: tuple[Plan, ...]
    exact: bool


def greedy(costs: JoinCosts) -> GreedyPlan:
    """The plan of a join."""
    decided = decide(costs)
    plan = tuple(bool(early) for early in decided)
    if None not in decided:
        return GreedyPlan(plan, (plan,), exact=True)
    passed = (plan, *_descent(costs, plan))
    return GreedyPlan(passed[-1], passed, exact=False)


def decide(costs: JoinCosts) -> tuple[bool | None, ...]:
    """Whether an input is early in a cheapest plan; None where that is not certain."""
    decided: list[bool | None] = [None] * len(costs.inputs)
    changed = True
    while changed:
        changed = False
        for number, early in enumerate(decided):
            if early is not None:
                continue
            others_late = tuple(bool(other) for other in decided)
            others_early = tuple(other is not False for other in decided)
            if saving(costs, others_late, number) <= 0:
                decided[number] = False
            elif saving(costs, others_early, number) > 0:
                decided[number] = True
            changed = changed or decided[number] is not None
    return tuple(decided)


def _descent(costs: JoinCosts, plan: Plan) -> Iterator[Plan]:
    """Plans of falling cost, each with one change, until no change saves anything."""
    cost = plan_cost(costs, plan)
    while True:
        neighbours = [with_input(plan, number, not early) for number, early in enumerate(plan)]
        cheapest = min(neighbours, key=lambda neighbour: plan_cost(costs, neighbour))
        if plan_cost(costs, cheapest) >= cost:
            return
        plan, cost = cheapest, plan_cost(costs, cheapest)
        yield plan
