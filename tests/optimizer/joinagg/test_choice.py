"""The cheapest plan, and what the greedy search promises."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.optimizer.joinagg.support import any_costs

from weft.optimizer.joinagg.choice import choose
from weft.optimizer.joinagg.generic_cost import InputCosts, JoinCosts, plan_cost, saving
from weft.optimizer.joinagg.greedy import decide, greedy
from weft.optimizer.joinagg.plans import all_plans, late_plan


def least(costs: JoinCosts) -> float:
    return min(plan_cost(costs, plan) for plan in all_plans(len(costs.inputs)))


@given(any_costs())
def test_all_plans_are_priced_and_the_cheapest_is_chosen(costs: JoinCosts) -> None:
    choice = choose(costs)
    assert choice.complete and choice.exact
    assert [priced.plan for priced in choice.priced] == all_plans(len(costs.inputs))
    assert choice.best.cost == plan_cost(costs, choice.best.plan) == least(costs)


def test_of_equal_plans_the_late_one_is_chosen() -> None:
    same = InputCosts(1, 1, 0, 1, 1, matching_rows=2, matching_groups=2)
    assert choose(JoinCosts((same, same, same), 1)).best.plan == late_plan(3)


@given(any_costs(inputs=(2, 7)))
def test_greedy_ends_where_no_single_change_helps(costs: JoinCosts) -> None:
    choice = choose(costs, most_priced=1)
    plan = choice.best.plan
    assert choice.best.cost >= least(costs) - 1e-9 * choice.best.cost
    assert choice.best.cost <= choice.priced[0].cost
    if choice.exact:
        assert choice.best.cost == pytest.approx(least(costs))
        return
    for number, early in enumerate(plan):
        saved = saving(costs, plan, number)
        assert (saved if early else -saved) >= -1e-9 * choice.best.cost


@given(any_costs(inputs=(2, 7)))
def test_what_is_certain_is_so_in_a_cheapest_plan(costs: JoinCosts) -> None:
    decided = decide(costs)
    kept = [
        plan_cost(costs, plan)
        for plan in all_plans(len(decided))
        if all(known in (None, early) for known, early in zip(decided, plan))
    ]
    assert min(kept) == pytest.approx(least(costs))


@given(any_costs(inputs=(2, 2)))
def test_with_two_inputs_greedy_is_exact(costs: JoinCosts) -> None:
    searched = greedy(costs)
    assert searched.exact
    assert plan_cost(costs, searched.plan) == pytest.approx(least(costs))


def test_an_input_may_pay_only_while_others_are_late() -> None:
    """Then nothing is certain, and the greedy search inserts the one that saves most."""
    given_input = InputCosts(1, 1, 120, 1, 1, matching_rows=10, matching_groups=1)
    better = InputCosts(1, 1, 110, 1, 1, matching_rows=10, matching_groups=1)
    costs = JoinCosts((given_input, better, given_input), 1)
    assert decide(costs) == (None, None, None)
    searched = greedy(costs)
    assert not searched.exact
    assert searched.plan == (False, True, False)
    assert plan_cost(costs, searched.plan) == least(costs)


def test_a_join_of_forty_inputs_is_planned_without_pricing_all_plans() -> None:
    def input_with(groups: float) -> InputCosts:
        return InputCosts(1, 1, 5, 3, 2, matching_rows=2, matching_groups=groups)

    costs = JoinCosts(tuple(input_with(1 + number / 40) for number in range(40)), 1)
    choice = choose(costs)
    assert not choice.complete
    assert choice.best.cost < plan_cost(costs, late_plan(40))
