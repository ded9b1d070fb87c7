"""The papers' optimizers do what their algorithms say, step by step."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimizer.windows import brute_force
from tests.optimizer.windows.support import RATES, distinct, windows_of, workload_of

from weft.algebra.window import Window
from weft.optimizer.windows.cost import Calibrated, CostModel, TriOps, TwoOps
from weft.optimizer.windows.insert_then_weave import insert_then_weave
from weft.optimizer.windows.optimizers import OPTIMIZERS
from weft.optimizer.windows.search.merge_sequence import MergeSequence, merge_sequence
from weft.optimizer.windows.search.search_rates import SearchRates
from weft.optimizer.windows.triweave import triweave
from weft.optimizer.windows.weaveshare import weaveshare
from weft.workloads.sharing import zipf_windows

SETS = st.lists(
    st.one_of(brute_force.windows(), brute_force.plain_windows(slides=(2, 3, 4, 6, 8, 12, 24))),
    min_size=1,
    max_size=9,
)
CALIBRATED = Calibrated(keys=10, row=1e-7, coalesce=2e-6, scan=3e-6, result=4e-6)


def final(group: list[Window]) -> Fraction:
    return brute_force.edge_rate(group) * brute_force.overlap(group)


@settings(max_examples=60)
@given(SETS)
def test_each_merge_is_the_one_that_raises_final_costs_least(windows: list[Window]) -> None:
    """Algorithm 1 in full: all pairs, in each step, with fractions."""
    workload = workload_of(windows)
    groups = {
        number: [windows[i] for i in members.tolist()]
        for number, members in enumerate(workload.members)
    }
    sequence = MergeSequence(SearchRates(workload), 1.0, 0.0)
    sequence.cut(float("inf"))
    assert len(sequence.merges) == len(groups) - 1
    for merge in sequence.merges:
        increases = {
            (i, j): final(groups[i] + groups[j]) - final(groups[i]) - final(groups[j])
            for i in groups
            for j in groups
            if i < j
        }
        least = min(increases.values())
        assert float(increases[merge.first, merge.second]) == pytest.approx(float(least), abs=1e-9)
        assert merge.increase == pytest.approx(float(least), abs=1e-9)
        # Of pairs that are exactly equal, the first in order.
        ties = [pair for pair, increase in increases.items() if increase == least]
        if increases[merge.first, merge.second] == least:
            assert (merge.first, merge.second) == min(ties)
        groups[merge.first] += groups.pop(merge.second)


@settings(max_examples=40)
@given(SETS, st.sampled_from(RATES), st.sampled_from([TwoOps(), TriOps()]))
def test_merging_stops_when_no_pair_gains(
    windows: list[Window], rate: Fraction, model: CostModel
) -> None:
    workload = workload_of(windows)
    plan = weaveshare(workload, rate, model)
    price = model.price(rate, workload.edge_rate.value)
    groups = windows_of(plan, windows)
    for i, first in enumerate(groups):
        for second in groups[i + 1 :]:
            increase = final(first + second) - final(first) - final(second)
            assert float(increase) >= float(price) - 1e-9


@given(SETS, st.sampled_from(RATES))
def test_triweave_does_not_depend_on_the_rate(windows: list[Window], rate: Fraction) -> None:
    workload = workload_of(windows)
    assert triweave(workload, rate).partition == triweave(workload, 1000 * rate).partition


@given(SETS)
def test_one_sequence_of_merges_serves_every_rate(windows: list[Window]) -> None:
    """Cuts of a sequence that went further are those of one that stopped."""
    workload = workload_of(windows)
    prices = (1000.0, 3.0, 0.5, 40.0)
    kept = merge_sequence(workload, TwoOps())
    for price in prices:
        anew = MergeSequence(SearchRates(workload), 1.0, 0.0)
        assert kept.cut(price) == anew.cut(price)


def naive_insertion(groups: list[list[Window]], price: Fraction) -> list[list[Window]]:
    """Each set of windows joins the group that it raises least, or a new one."""
    woven: list[list[Window]] = []
    for added in groups:
        increases = [final(group + added) - final(group) for group in woven]
        increases.append(price + final(added))
        cheapest = min(range(len(increases)), key=lambda number: increases[number])
        if cheapest == len(woven):
            woven.append([])
        woven[cheapest] = woven[cheapest] + added
    return woven


@settings(max_examples=60)
@given(SETS, st.sampled_from(RATES))
def test_insert_then_weave_inserts_where_it_costs_least(
    windows: list[Window], rate: Fraction
) -> None:
    """No dearer than the groups after inserting: merging only lowers the cost."""
    workload = workload_of(windows)
    inserted = naive_insertion(distinct(windows), rate)
    plan = insert_then_weave(workload, rate)
    assert float(plan.cost) <= float(brute_force.twoops(inserted, rate)) + 1e-9


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("model", [TwoOps(), TriOps(), CALIBRATED])
def test_every_optimizer_takes_every_model_and_places_every_query_once(
    name: str, model: CostModel
) -> None:
    workload = zipf_windows(60, slides=range(1, 200), multiples=False).workload()
    plan = OPTIMIZERS[name](workload, 20, model)
    names = [query for group in plan.groups for query in group.queries]
    assert sorted(names) == sorted(workload.names)
    assert plan.optimizer == name and plan.model == model


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_plans_do_not_depend_on_the_order_of_queries_nor_on_what_ran_before(name: str) -> None:
    """But for insert-then-weave, which is about the order."""
    table = zipf_windows(80, slides=range(1, 300), multiples=False)
    first = OPTIMIZERS[name](table.workload(), 20)
    again = OPTIMIZERS[name](table.workload(), 20)
    assert first.partition == again.partition and first.cost == again.cost
    if name not in ("insert-then-weave", "best"):
        backwards = type(table)(table.names[::-1], table.ranges[::-1], table.slides[::-1])
        assert OPTIMIZERS[name](backwards.workload(), 20).cost == first.cost


def test_with_a_calibrated_model_one_group_is_best() -> None:
    workload = zipf_windows(60, slides=range(1, 200)).workload()
    costs = {
        name: optimizer(workload, 100, CALIBRATED).cost for name, optimizer in OPTIMIZERS.items()
    }
    assert costs["best"] == costs["shared"] == min(costs.values())


def test_the_running_example_of_the_paper() -> None:
    """q_c has every edge of q_a and q_b, so a join with it gains nothing for its own."""
    windows = [Window(8, 5), Window(5, 4), Window(10, 1), Window(5, 4)]
    plan = triweave(workload_of(windows), 10)
    assert plan.cost == brute_force.triops(windows_of(plan, windows), Fraction(10))
    assert plan.group_mapping()["q1"] == plan.group_mapping()["q3"]
