"""Costs are those of equations 3 and 4, exactly, and TriOps is TwoOps at another price."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optimizer.windows import brute_force
from tests.optimizer.windows.support import RATES, windows_of, workload_of

from weft.algebra.window import Window
from weft.optimizer.windows.cost import Calibrated, TriOps, TwoOps, plan_cost, triops_pays
from weft.optimizer.windows.grouping import grouping
from weft.optimizer.windows.noshare import noshare
from weft.optimizer.windows.shared import shared

SETS = st.lists(brute_force.windows(), min_size=1, max_size=6)


@given(SETS, st.sampled_from(RATES))
def test_costs_equal_brute_force(windows: list[Window], rate: Fraction) -> None:
    workload = workload_of(windows)
    for optimizer in (noshare, shared):
        plan = optimizer(workload, rate)
        groups = windows_of(plan, windows)
        assert plan.cost == brute_force.twoops(groups, rate)
        assert plan.under(TriOps()).cost == brute_force.triops(groups, rate)
        assert plan.exact and plan.cost_error == 0


@given(SETS, st.sampled_from(RATES))
def test_triops_is_the_rate_plus_twoops_at_the_price_of_all_edges(
    windows: list[Window], rate: Fraction
) -> None:
    workload = workload_of(windows)
    tri = noshare(workload, rate, TriOps()).cost
    assert tri == rate + noshare(workload, workload.edge_rate.value, TwoOps()).cost


@given(SETS, st.sampled_from(RATES))
def test_triops_pays_where_its_plan_is_cheaper(windows: list[Window], rate: Fraction) -> None:
    workload = workload_of(windows)
    for plan in (noshare(workload, rate), shared(workload, rate)):
        cheaper = plan.under(TriOps()).cost < plan.cost
        assert triops_pays(rate, workload.edge_rate.value, len(plan.groups)) == cheaper
        if rate <= workload.edge_rate.value or len(plan.groups) == 1:
            assert not cheaper


def test_calibrated_costs_are_those_of_the_formula() -> None:
    model = Calibrated(keys=100, row=1e-7, coalesce=2e-6, scan=3e-6, result=4e-6)
    groups = [(0.5, 7.0), (0.25, 3.0)]
    results = 10.0
    expected = 1000 * 1e-7 + 2 * 0.6 * 100 * 2e-6 + (0.5 + 0.25) * 100 * 3e-6
    expected += results * 100 * 4e-6
    assert plan_cost(model, 1000, 0.6, results, groups) == pytest.approx(expected)
    alone = 1000 * 1e-7 + 0.6 * 100 * 3e-6 + results * 100 * 4e-6
    assert plan_cost(model, 1000, 0.6, results, [(0.6, 10.0)]) == pytest.approx(alone)
    two = Calibrated(keys=100, row=1e-7, coalesce=2e-6, scan=3e-6, result=4e-6, levels=2)
    expected = 2 * 1000 * 1e-7 + 0.75 * 100 * 3e-6 + results * 100 * 4e-6
    assert plan_cost(two, 1000, 0.6, results, groups) == pytest.approx(expected)
    assert (model.name, two.name) == ("calibrated-triops", "calibrated-twoops")


@pytest.mark.parametrize("wrong", [{"levels": 4}, {"scan": -1.0}])
def test_impossible_constants_are_refused(wrong: dict[str, float]) -> None:
    sound = {"keys": 1.0, "row": 1.0, "coalesce": 1.0, "scan": 1.0, "result": 1.0}
    with pytest.raises(ValueError):
        Calibrated(**(sound | wrong))  # type: ignore[arg-type]


def test_the_mapping_table_names_the_group_of_every_query() -> None:
    windows = [Window(8, 5), Window(5, 4), Window(10, 1), Window(5, 4)]
    plan = grouping("drawn", workload_of(windows), 10, TwoOps(), [[2, 0], [1]])
    table = plan.group_mapping()
    for number, group in enumerate(plan.groups):
        assert {name for name, position in table.items() if position == number} == set(
            group.queries
        )
    assert table["q1"] == table["q3"]


def test_a_rate_that_is_not_positive_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        shared(workload_of([Window(1, 1)]), 0)
