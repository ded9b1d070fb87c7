"""The greedy search: never dearer than the flat tree, under every allocator and any price."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimizer.groupby.support import A_B, A_B_C, B_C, C_D, A

from weft.errors import WeftError
from weft.optimizer.groupby.memory.forest import Forest
from weft.optimizer.groupby.memory.fptas import fptas
from weft.optimizer.groupby.memory.tree_cost import tree_cost
from weft.optimizer.groupby.planner import ALLOCATORS, plan_tree
from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, GroupBySet
from weft.optimizer.groupby.trees.greedy_tree import PricedTree, greedy_tree
from weft.optimizer.groupby.trees.statistics import GroupStatistics

sets = st.frozensets(st.sampled_from("abcde"), max_size=3)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[list[GroupBySet], GroupStatistics]:
    queries = draw(st.lists(sets, min_size=1, max_size=7))
    tuples = draw(st.integers(10, 100_000))
    groups = {
        frozenset(attribute): float(draw(st.integers(1, min(tuples, 500)))) for attribute in "abcde"
    }
    alpha = {node: draw(st.sampled_from((0.0, 0.5, 0.9))) for node in groups}
    return queries, GroupStatistics(tuples, groups, alpha)


@pytest.mark.parametrize("allocator", ALLOCATORS)
@settings(max_examples=25)
@given(workload=workloads(), memory=st.sampled_from((0.0, 1.0, 50.0, 1e4, float("inf"))))
def test_a_plan_is_never_dearer_than_the_flat_tree(
    allocator: str, workload: tuple[list[GroupBySet], GroupStatistics], memory: float
) -> None:
    queries, statistics = workload
    planned = plan_tree(queries, statistics, memory, allocator)
    assert planned.tree.queries() == AggregateTree.flat(queries).queries()
    flat = statistics.tuples * len(set(queries))
    if allocator == "slc":
        # Its objective is the cost during the epoch.
        assert planned.during <= flat * (1 + 1e-9)
    else:
        assert planned.cost <= flat * (1 + 1e-9)
    assert set(planned.allocation) == set(planned.tree.intermediates())
    used = sum(held * statistics.entry_size(node) for node, held in planned.allocation.items())
    assert used <= memory * (1 + 1e-9)
    if memory == 0:
        assert planned.tree.intermediates() == ()


@settings(max_examples=10)
@given(workload=workloads())
def test_ranking_changes_loses_little_beside_pricing_all(
    workload: tuple[list[GroupBySet], GroupStatistics],
) -> None:
    queries, statistics = workload

    def price(tree: AggregateTree) -> PricedTree:
        forest = Forest.of(tree, statistics)
        allocated = fptas(forest, 200.0)
        return PricedTree(tree, forest.allocation(allocated.entries), allocated.cost)

    every = greedy_tree(queries, price)
    assert plan_tree(queries, statistics, 200.0).cost <= 1.06 * every.cost


def test_any_price_can_be_given() -> None:
    """A planner of its own: a node at the stream costs 10, any other what its parent has of attributes."""

    def price(tree: AggregateTree) -> PricedTree:
        cost = sum(10.0 if parent is None else len(parent) for parent, _ in tree.walk())
        return PricedTree(tree, dict.fromkeys(tree.intermediates(), 1.0), cost)

    priced = greedy_tree([A_B, B_C, C_D], price)
    # The flat tree costs 30, a,b,c or b,c,d alone 26, both unions below a,b,c,d 24.
    assert priced.cost == 10 + 3 * 4
    assert repr(priced.tree) == "<stream: [<a,b,c,d*: [<a,b>, <b,c>, <c,d>]>]>"


def test_subsets_are_computed_from_the_queries_that_hold_them() -> None:
    groups = {A_B_C: 100.0, A_B: 30.0, B_C: 30.0, A: 5.0, frozenset("b"): 6.0, frozenset("c"): 5.0}
    planned = plan_tree([A_B_C, A_B, A, frozenset(), A_B], GroupStatistics(10_000, groups), 0.0)
    assert repr(planned.tree).startswith("<stream: [<a,b,c: [")
    assert planned.cost < 10_000 + 3 * 100 + 1
    assert planned.tree.intermediates() == ()


def test_pairs_of_many_attributes_are_planned_with_a_proof() -> None:
    names = "abcdefghijklm"
    values = (9000, 8000, 7000, 6000, 3, 6, 12, 14, 12, 700, 700, 24, 81)
    groups = {frozenset(name): float(count) for name, count in zip(names, values)}
    statistics = GroupStatistics(40_000, groups, dict.fromkeys(groups, 0.8))
    queries = [frozenset(pair) for pair in combinations(names, 2)]
    plans = [plan_tree(queries, statistics, memory) for memory in (1e3, 1e4, 1e5)]
    assert [plan.cost for plan in plans] == sorted((p.cost for p in plans), reverse=True)
    for plan, memory in zip(plans, (1e3, 1e4, 1e5)):
        allocated = fptas(Forest.of(plan.tree, statistics), memory)
        assert allocated.cost <= 1.05 * allocated.bound
        assert plan.cost == pytest.approx(tree_cost(plan.tree, plan.allocation, statistics).total)


@pytest.mark.parametrize(
    ("memory", "allocator"), [(-1.0, "fptas"), (1.0, "magic"), (float("nan"), "slc")]
)
def test_what_cannot_be_planned_is_refused(memory: float, allocator: str) -> None:
    with pytest.raises(WeftError):
        plan_tree([A_B], GroupStatistics(10, {}), memory, allocator)
