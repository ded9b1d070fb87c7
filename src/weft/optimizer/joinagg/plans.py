"""Early and late plans of an aggregation join: one bit for each input.

From: the AggJoin paper, section 5. A join of m inputs has 2^m plans: the late plan (LAP) without
any early aggregation, and 2^m - 1 early plans, which the paper names by their bits (EAP10: early
on the first input, late on the second). Numbering a plan by its bits, the first input being the
highest, gives the case numbers of the paper's prototype: 0 is the late plan.
"""

from __future__ import annotations

from itertools import product

Plan = tuple[bool, ...]
"""Of every input: whether it is aggregated before the join."""


def late_plan(inputs: int) -> Plan:
    return (False,) * inputs


def all_plans(inputs: int) -> list[Plan]:
    """All plans of a join, in the order of their case numbers.

    >>> [plan_name(plan) for plan in all_plans(2)]
    ['LAP', 'EAP01', 'EAP10', 'EAP11']
    """
    return list(product((False, True), repeat=inputs))


def with_input(plan: Plan, number: int, early: bool) -> Plan:
    """The plan that differs in one input at most.

    >>> with_input((False, False, True), 1, True)
    (False, True, True)
    """
    return (*plan[:number], early, *plan[number + 1 :])


def plan_name(plan: Plan) -> str:
    """The paper's name of a plan.

    >>> plan_name((True, False)), plan_name((False, False, False))
    ('EAP10', 'LAP')
    """
    if not any(plan):
        return "LAP"
    return "EAP" + "".join("1" if early else "0" for early in plan)
