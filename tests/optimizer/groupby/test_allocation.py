"""Allocations beside brute force: the FPTAS within 1 + ε, the uniform one equal, SLC by its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimizer.groupby.support import (
    A_B,
    A_B_C,
    A_B_C_D,
    A_D,
    ALL,
    B_C,
    B_C_D,
    C_D,
    TREES,
    brute_force,
    statistics,
)

from weft.optimizer.groupby.memory.forest import Forest
from weft.optimizer.groupby.memory.fptas import fptas
from weft.optimizer.groupby.memory.slc import colliding_tables, collisions, slc_allocation
from weft.optimizer.groupby.memory.tables import recency_tables, zipf_tables
from weft.optimizer.groupby.memory.tree_cost import tree_cost, walked_cost
from weft.optimizer.groupby.memory.uniform_allocation import uniform_allocation
from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree
from weft.optimizer.groupby.trees.statistics import GroupStatistics

trees = st.sampled_from(TREES)
shares = st.just(0.0) | st.floats(1e-6, 1.2)


def everything(tree: AggregateTree, given_: GroupStatistics) -> float:
    return sum(given_.groups(node) * given_.entry_size(node) for node in tree.intermediates())


def steps_of(tree: AggregateTree) -> int:
    return {1: 400, 2: 100, 3: 36}[len(tree.intermediates())]


@settings(max_examples=30)
@given(data=st.data(), tree=trees, share=shares, epsilon=st.sampled_from((0.05, 0.2)))
def test_the_fptas_is_within_epsilon_of_brute_force(
    data: st.DataObject, tree: AggregateTree, share: float, epsilon: float
) -> None:
    _check(data.draw(statistics(tree, skewed=True)), tree, share, epsilon, tables=False)


@settings(max_examples=12)
@given(data=st.data(), tree=trees, share=shares, epsilon=st.sampled_from((0.1, 0.4)))
def test_so_are_its_tables_alone(
    data: st.DataObject, tree: AggregateTree, share: float, epsilon: float
) -> None:
    _check(data.draw(statistics(tree, skewed=True)), tree, share, epsilon, tables=True)


def _check(
    drawn: GroupStatistics, tree: AggregateTree, share: float, epsilon: float, tables: bool
) -> None:
    memory = share * everything(tree, drawn)
    forest = Forest.of(tree, drawn)
    allocated = fptas(forest, memory, epsilon, tables=tables)
    best = brute_force(tree, drawn, memory, steps_of(tree))
    assert allocated.cost <= (1 + epsilon) * best * (1 + 1e-9)
    assert allocated.bound <= best * (1 + 1e-9)
    assert forest.used(allocated.entries) <= memory * (1 + 1e-9)
    assert (allocated.entries >= 0).all() and (
        allocated.entries <= forest.groups * (1 + 1e-9)
    ).all()
    cost = tree_cost(tree, forest.allocation(allocated.entries), drawn)
    assert cost.total == pytest.approx(allocated.cost)


@settings(max_examples=20)
@given(data=st.data(), tree=trees, share=shares)
def test_a_proof_holds_for_tables_of_any_model(
    data: st.DataObject, tree: AggregateTree, share: float
) -> None:
    drawn = data.draw(statistics(tree, skewed=True))
    memory = share * everything(tree, drawn)
    forest = Forest.of(tree, drawn, recency_tables(drawn))
    allocated = fptas(forest, memory, 0.1)
    random = np.random.default_rng(1)
    for parts in random.dirichlet(np.full(len(forest.nodes), 0.5), 200):
        entries = np.minimum(parts * memory / forest.size, forest.groups)
        assert allocated.cost <= 1.1 * forest.cost(entries) * (1 + 1e-9)
        assert allocated.bound <= forest.cost(entries) * (1 + 1e-9)


@settings(max_examples=60)
@given(data=st.data(), tree=trees, share=shares)
def test_the_uniform_allocation_is_the_best_there_is(
    data: st.DataObject, tree: AggregateTree, share: float
) -> None:
    drawn = data.draw(statistics(tree, skewed=False))
    memory = share * everything(tree, drawn)
    forest = Forest.of(tree, drawn)
    allocated = uniform_allocation(forest, memory)
    assert allocated.cost <= brute_force(tree, drawn, memory, steps_of(tree)) * (1 + 1e-9)
    assert allocated.cost == pytest.approx(forest.cost(allocated.entries))
    assert allocated.cost == pytest.approx(allocated.bound)
    assert forest.used(allocated.entries) <= memory * (1 + 1e-9)
    # Theorem 3: nothing or all, but for one.
    parts = (allocated.entries > 0) & (allocated.entries < forest.groups)
    assert parts.sum() <= 1


def test_ties_between_equal_siblings_are_no_trouble() -> None:
    tree = (
        AggregateTree.flat([A_B, B_C, C_D, A_D]).merged(None, A_B_C).merged(None, frozenset("acd"))
    )
    groups = {A_B_C: 100.0, frozenset("acd"): 100.0, A_B: 10.0, B_C: 10.0, C_D: 10.0, A_D: 10.0}
    drawn = GroupStatistics(1000, groups, dict.fromkeys(groups, 0.0))
    allocated = uniform_allocation(Forest.of(tree, drawn), 150)
    assert sorted(allocated.entries) == [50, 100]
    assert allocated.cost == pytest.approx(brute_force(tree, drawn, 150, 150))


def test_more_memory_never_costs_more_and_all_of_it_leaves_the_groups() -> None:
    tree = TREES[1]
    groups = {A_B_C_D: 5000.0, A_B_C: 2000.0, A_B: 300.0, B_C: 200.0, C_D: 90.0, A_D: 80.0}
    drawn = GroupStatistics(50_000, groups, {A_B_C_D: 0.5, A_B_C: 0.7})
    costs = [fptas(Forest.of(tree, drawn), memory).cost for memory in (0, 500, 2000, 5000, 7000)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == 50_000 + 3 * 50_000 + 2 * 50_000
    assert costs[-1] == pytest.approx(50_000 + 3 * 5000 + 2 * 2000)


def test_the_strategies_of_example_1() -> None:
    n, b1, b2 = 10_000.0, 150.0, 60.0
    groups = {A_B_C_D: 400.0, B_C_D: 100.0, A_B: 50.0, B_C: 40.0, C_D: 30.0}
    drawn = GroupStatistics(n, groups, {A_B_C_D: 0.5, B_C_D: 0.6})
    f1, f2 = 1 - (b1 / 400) ** 0.5, 1 - (b2 / 100) ** 0.4
    flat = AggregateTree.flat([A_B, B_C, C_D])
    second = flat.merged(None, A_B_C_D)
    third = second.merged(A_B_C_D, B_C_D)
    assert tree_cost(flat, {}, drawn).total == 3 * n
    assert tree_cost(second, {A_B_C_D: b1}, drawn).total == pytest.approx(n + 3 * (b1 + f1 * n))
    both = tree_cost(third, {A_B_C_D: b1, B_C_D: b2}, drawn)
    assert both.total == pytest.approx(n + 2 * (b1 + f1 * n) + 2 * (b2 + f2 * b1 + f2 * f1 * n))
    assert both.during == pytest.approx(n + 2 * f1 * n + 2 * f2 * f1 * n)


def test_slc_divides_by_square_roots_with_supernodes() -> None:
    tree = AggregateTree.flat(ALL).merged(None, A_B_C_D).merged(A_B_C_D, A_B_C)
    groups = {A_B_C_D: 900.0, A_B_C: 400.0, A_B: 9.0, B_C: 8.0, C_D: 7.0, A_D: 6.0}
    drawn = GroupStatistics(10_000, groups, entry_size={A_B_C: 4.0})
    allocation = slc_allocation(tree, drawn, 1000)
    first, second = math.sqrt(900), math.sqrt(400 * 4)
    assert allocation[A_B_C_D] == pytest.approx(1000 * first / (first + second))
    assert allocation[A_B_C] == pytest.approx(1000 * second / (first + second) / 4)
    two = AggregateTree.flat(ALL).merged(None, A_B_C).merged(None, frozenset("acd"))
    shares = slc_allocation(two, GroupStatistics(10_000, groups | {frozenset("acd"): 100.0}), 300)
    assert shares[A_B_C] / shares[frozenset("acd")] == pytest.approx(2)
    assert sum(shares.values()) == pytest.approx(300)


@pytest.mark.parametrize(("b", "g"), [(1, 7), (10, 10), (50, 200), (1000, 100)])
def test_collisions_are_those_of_random_buckets(b: int, g: int) -> None:
    random = np.random.default_rng(3)
    expected = []
    for _ in range(400):
        held = np.bincount(random.integers(0, b, g), minlength=b)
        expected.append((g - (held > 0).sum()) / g)
    assert collisions(b, g) == pytest.approx(float(np.mean(expected)), abs=0.02)


def test_the_tables_of_slc_pass_on_every_group_at_least_once() -> None:
    tree = TREES[0]
    groups = {A_B_C_D: 500.0, A_B: 30.0, B_C: 30.0, C_D: 30.0, A_D: 30.0}
    drawn = GroupStatistics(10_000, groups)
    leave = colliding_tables(drawn)
    costs = [walked_cost(tree, {A_B_C_D: b}, 10_000, leave).total for b in (0, 1, 100, 10_000)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == 10_000 * 5
    assert costs[-1] >= 10_000 + 4 * 500


def test_models_of_tables_agree_where_nothing_or_everything_is_held() -> None:
    drawn = GroupStatistics(10_000, {A_B: 100.0}, {A_B: 0.7})
    for table in (zipf_tables(drawn)(A_B), recency_tables(drawn)(A_B)):
        assert float(table.leaving(0, 10_000)) == pytest.approx(10_000)
        assert float(table.leaving(100, 10_000)) == pytest.approx(100)
        assert float(table.needed(10_000, 10_000)) == 0
