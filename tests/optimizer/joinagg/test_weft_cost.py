"""Weft's own costs: what the kernel joins on the way, what is scaled, and the choice among many inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.optimizer.joinagg.choice import MOST_PRICED
from weft.optimizer.joinagg.plans import all_plans, with_input
from weft.optimizer.joinagg.weft_cost import (
    KERNEL,
    InputLoad,
    JoinLoad,
    choose_plan,
    kernel_work,
    largest_connected,
    saved_by_matches,
    weft_cost,
)

LATE, EARLY = False, True


def loaded(rows: float, keys: float, *, aggregates: int = 1, is_table: bool = False) -> InputLoad:
    return InputLoad(rows, 0.0, keys, keys, 0.0, aggregates, is_table)


def chain(inputs: Sequence[InputLoad], values: float) -> JoinLoad:
    """Each input joined with the next."""
    return JoinLoad(tuple(inputs), {(slot, slot + 1): values for slot in range(len(inputs) - 1)})


def test_small_contents_are_joined_first_and_only_what_a_key_connects() -> None:
    load = chain([loaded(1000, 100), loaded(500, 10), loaded(20, 10)], values=10)
    # 20 rows of the third with 500 of the second, then 1000 of the first.
    assert load.joined((LATE, LATE, LATE)) == [20 * 500 / 10, 20 * 500 / 10 * 1000 / 10]
    # The second is smallest, but the first is not connected with the third.
    assert load.joined((EARLY, LATE, EARLY)) == [10 * 500 / 10, 500 * 100 / 10]
    assert load.joined((EARLY, EARLY, LATE)) == [10 * 20 / 10, 20 * 100 / 10]


def test_inputs_without_a_key_come_last_and_meet_everything() -> None:
    load = JoinLoad((loaded(4, 4), loaded(3, 3), loaded(5, 5)), {(0, 2): 5.0})
    assert load.joined((LATE, LATE, LATE)) == [3 * 4, 12 * 5 / 5]


def test_a_table_is_never_first_since_it_has_no_instants() -> None:
    load = chain([loaded(50, 50), loaded(2, 2, is_table=True), loaded(40, 40)], values=1)
    assert load.joined((LATE, LATE, LATE))[0] == 40 * 2


@pytest.mark.parametrize(
    ("plan", "scaled"),
    [((LATE, LATE), 0), ((EARLY, LATE), 2 + 1), ((LATE, EARLY), 3 + 1), ((EARLY, EARLY), 5 + 1)],
)
def test_aggregates_are_scaled_by_the_early_inputs_other_than_their_own(
    plan: tuple[bool, ...], scaled: int
) -> None:
    inputs = (loaded(9, 9, aggregates=3), loaded(9, 9, aggregates=2))
    load = JoinLoad(inputs, {(0, 1): 3.0}, counts=1)
    assert load.scaled(plan) == scaled
    work = kernel_work(load, plan)
    assert work["SCALED"] == 27 * scaled and work["LIFTED"] == 27 * 6


def test_a_set_as_large_as_the_rows_does_not_pay_and_a_small_one_does() -> None:
    """The ends of the paper's sweep by groups: the first input has as many keys as rows, or few."""
    for keys, first in ((10_000.0, LATE), (30.0, EARLY)):
        inputs = (InputLoad(10_000, 0.0, keys, keys, 0.0), InputLoad(10_000, 0.0, 10, 100, 0.0))
        assert choose_plan(chain(inputs, 10.0), (None, None)).best.plan == (first, EARLY)


def test_constants_are_of_one_kind_of_work_each() -> None:
    load = chain([loaded(1000, 100), loaded(500, 10)], values=10)
    assert set(kernel_work(load, (EARLY, LATE))) == set(KERNEL)
    assert all(value >= 0 for value in KERNEL.values())


LOADS = st.builds(loaded, st.sampled_from([1.0, 40.0, 900.0]), st.sampled_from([1.0, 30.0, 900.0]))


@given(st.lists(LOADS, min_size=MOST_PRICED + 1, max_size=MOST_PRICED + 3))
def test_of_many_inputs_no_single_change_of_the_chosen_plan_saves(inputs: list[InputLoad]) -> None:
    load = chain(inputs, values=30.0)
    fixed = (True, *[None] * (len(inputs) - 1))
    choice = choose_plan(load, fixed)
    assert not choice.exact and choice.best.plan[0]
    for slot in range(1, len(inputs)):
        changed = with_input(choice.best.plan, slot, not choice.best.plan[slot])
        assert weft_cost(load, changed) >= choice.best.cost


@given(st.lists(LOADS, min_size=2, max_size=4))
def test_of_few_inputs_none_is_cheaper_than_the_chosen_plan(inputs: list[InputLoad]) -> None:
    load = chain(inputs, values=30.0)
    choice = choose_plan(load, (None,) * len(inputs))
    assert choice.exact and choice.complete
    assert choice.best.cost == min(weft_cost(load, plan) for plan in all_plans(len(inputs)))


def windows(rows: float, values: float) -> JoinLoad:
    """Two windows of rows with so many join values, each with a twelfth of new rows."""
    one = InputLoad(rows, rows / 12, rows, rows, rows / 12)
    return JoinLoad((one, one), {(0, 1): values}, matchable=frozenset({0, 1}))


def test_the_network_saves_where_many_rows_hardly_match() -> None:
    assert saved_by_matches(windows(1e6, 2e7), (0, 1)) > 100_000
    assert saved_by_matches(windows(1e6, 1e5), (0, 1)) < 0, "ten matches for each row"
    assert saved_by_matches(windows(1e4, 1e6), (0, 1)) < 0, "a step costs more"
    assert saved_by_matches(windows(1e6, 2e7), ()) == 0


def test_a_plan_costs_what_is_less() -> None:
    """Late inputs that the network may join make the late plan the cheapest one; a plan with one early input is as dear as before."""
    load = windows(1e6, 2e7)
    without = replace(load, matchable=frozenset())
    for plan in all_plans(2):
        saved = saved_by_matches(load, (0, 1)) if plan == (False, False) else 0
        assert weft_cost(load, plan) == weft_cost(without, plan) - saved
    assert choose_plan(load, (None, None)).best.plan == (False, False)


def test_of_three_inputs_those_are_matched_that_keys_connect() -> None:
    one = windows(1e6, 2e7).inputs[0]
    load = JoinLoad((one, one, one), {(1, 2): 2e7}, matchable=frozenset({0, 1, 2}))
    assert largest_connected(map(set, load.values), load.matchable) == (1, 2)
    assert largest_connected([{0, 1}, {1, 2}], {0, 2}) == ()
    assert largest_connected([{0, 2}, {1, 2}, {3, 4}], {0, 1, 2, 3, 4}) == (0, 1, 2)
