"""The paper's optimizers against its text done by hand, and against what each kind of plan must have."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimizer.placement.naive import Nodes, Oracle
from tests.optimizer.placement.support import random_windows, workload_of
from tests.optimizer.windows.brute_force import windows

from weft.optimizer.edges.workload import Workload
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.optimizers import OPTIMIZERS, PAPERS
from weft.optimizer.placement.papers.to_nodes import wg_tn
from weft.optimizer.placement.placement import Placement
from weft.optimizer.windows.weaveshare import weaveshare

RATES = (5_000, 60_000, 2_000_000)
"""Beside overlap factors of 100,000 and more."""


def queries(plan: Placement) -> Nodes:
    position = {name: number for number, name in enumerate(plan.workload.names)}
    return [[[position[name] for name in tree] for tree in node] for node in plan.trees()]


def in_any_order(nodes: Nodes) -> list[list[list[int]]]:
    return [sorted(sorted(tree) for tree in node) for node in nodes]


@pytest.mark.parametrize("name", OPTIMIZERS)
@given(
    listed=st.lists(windows(), min_size=1, max_size=8),
    nodes=st.integers(1, 5),
    rate=st.sampled_from((1, 10, 100)),
    preprocess=st.booleans(),
)
@settings(max_examples=12, deadline=None)
def test_every_query_is_placed_once_and_costs_are_those_of_counting(
    name: str, listed: list, nodes: int, rate: int, preprocess: bool
) -> None:
    workload = workload_of(listed)
    plan = OPTIMIZERS[name](Demand.of(workload, rate, nodes, preprocess))
    placed = queries(plan)
    assert sorted(query for node in placed for tree in node for query in tree) == [
        *range(len(listed))
    ]
    oracle = Oracle(listed, rate, nodes)
    costs = [float(oracle.node(node)) for node in placed]
    assert plan.node_costs.tolist() == pytest.approx(costs, rel=1e-9)
    assert plan.total_cost == pytest.approx(sum(costs), rel=1e-9)
    assert plan.max_cost == pytest.approx(max(costs), rel=1e-9)
    if name.startswith("w-"):
        assert all(len(node) <= 1 for node in placed)
    if name.startswith("g-") and not preprocess:
        assert all(len(tree) == 1 for node in placed for tree in node)
    if preprocess:
        tree_of_set: dict[int, set[int]] = {}
        for edge_set, tree in zip(workload.edge_set_of.tolist(), plan.tree_of.tolist()):
            tree_of_set.setdefault(edge_set, set()).add(tree)
        assert all(len(trees) == 1 for trees in tree_of_set.values())


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_optimizers_follow_the_text(rate: int, seed: int) -> None:
    listed = random_windows(14, seed, slides=(2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15))
    workload = workload_of(listed)
    for nodes in (1, 3, 6):
        demand = Demand.of(workload, rate, nodes)
        oracle = Oracle(listed, rate, nodes)
        expected = {
            "g-tl": oracle.to_lowest("g"),
            "w-tl": oracle.to_lowest("w"),
            "wg-tl": oracle.to_lowest("wg"),
            "wg-tn": oracle.to_nodes("wg"),
            "w-i": oracle.inserted("w", seed),
            "wg-i": oracle.inserted("wg", seed),
        }
        for name, plan in expected.items():
            found = queries(PAPERS[name](demand, seed))
            assert in_any_order(found) == in_any_order(plan), name
        # w-tn says nothing about which tree is on which node.
        found = [tree for node in queries(PAPERS["w-tn"](demand)) for tree in node]
        trees = [tree for node in oracle.to_nodes("w") for tree in node]
        assert sorted(map(sorted, found)) == sorted(map(sorted, trees))


@pytest.mark.parametrize("rate", [20_000, 400_000, 7_000_000])
def test_on_one_node_wg_tn_has_the_groups_of_weaveshare(rate: int) -> None:
    workload = workload_of(random_windows(60, 5, slides=range(1, 51)))
    groups = weaveshare(workload, rate)
    found = wg_tn(Demand.of(workload, rate, 1, preprocess=True)).trees()[0]
    assert sorted(map(sorted, found)) == sorted(sorted(group.queries) for group in groups.groups)
    assert wg_tn(Demand.of(workload, rate, 1)).total_cost == pytest.approx(float(groups.cost))


def test_merging_stops_at_the_number_of_nodes_as_the_text_has_it() -> None:
    workload = workload_of(random_windows(40, 2))
    demand = Demand.of(workload, 10**9, 6)
    assert len(wg_tn(demand).node_of) == len(PAPERS["w-tn"](demand).node_of) == 6
    assert len(wg_tn(demand, to_the_end=True).node_of) == 1
    assert len(set(wg_tn(demand).node_of.tolist())) == 6


def test_round_robin_takes_nodes_and_trees_in_turn() -> None:
    workload = workload_of(random_windows(13, 1))
    demand = Demand.of(workload, 10, 2)
    assert queries(PAPERS["w-rr"](demand)) == [[[0, 2, 4, 6, 8, 10, 12]], [[1, 3, 5, 7, 9, 11]]]
    # Visits of a node: new tree 0, weave 0, new tree 1, weave 1, new tree 2, weave 2, new tree 3.
    assert queries(PAPERS["wg-rr"](demand)) == [
        [[0, 2], [4, 6], [8, 10], [12]],
        [[1, 3], [5, 7], [9, 11]],
    ]


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name not in ("g-rr", "w-rr")])
def test_a_seed_gives_one_plan(name: str) -> None:
    demand = Demand.of(workload_of(random_windows(60, 9)), 50, 4)
    plans = [OPTIMIZERS[name](demand, seed).trees() for seed in (1, 1, 2)]
    assert plans[0] == plans[1]
    if name.endswith(("rand", "-i")):
        assert plans[0] != plans[2]


def test_queries_are_spread_evenly_at_random() -> None:
    demand = Demand.of(workload_of(random_windows(4000, 1)), 10, 4)
    sizes = np.bincount(PAPERS["g-rand"](demand).node_of_queries())
    assert sizes.min() > 900 and sizes.max() < 1100
    trees = len(PAPERS["wg-rand"](demand).node_of)
    assert 1850 < trees < 2150, "about half of the queries are trees of their own"


def test_loads_are_relative_to_weights() -> None:
    workload = workload_of(random_windows(200, 3))
    for name in ("g-tl", "w-tl", "wg-tl", "wg-tn", "w-i", "wg-i"):
        demand = Demand.of(workload, 2, [3, 1])
        plan = PAPERS[name](demand)
        assert plan.max_cost == pytest.approx(max(plan.node_costs / [3, 1]))
    shares = PAPERS["g-tl"](demand).node_costs
    assert shares[0] / shares[1] == pytest.approx(3, rel=0.05)


def test_windows_of_any_range_and_long_slides_are_placed_with_exact_costs() -> None:
    """More than 4096 atoms: the search is led by guesses, the stated costs are counted."""
    random = np.random.default_rng(4)
    slides = random.choice(np.arange(50, 4000), size=40)
    workload = Workload.of_columns(
        [f"q{i}" for i in range(40)], slides + random.integers(1, 300, size=40), slides
    )
    for name in ("w-tl", "wg-tn", "wg-i", "balanced"):
        plan = OPTIMIZERS[name](Demand.of(workload, 5, 3))
        groups: dict[int, set[int]] = {}
        overlaps = np.bincount(plan.tree_of, workload.overlap_of)
        for tree, edge_set in zip(plan.tree_of.tolist(), workload.edge_set_of.tolist()):
            groups.setdefault(tree, set()).add(edge_set)
        for tree, edge_sets in groups.items():
            rate = workload.edge_rate_of(edge_sets)
            assert plan.tree_costs[tree] == pytest.approx(5 + float(rate) * overlaps[tree])


def test_times_in_ticks_count_as_in_units() -> None:
    fine = Workload.of_columns(["a", "b", "c"], [1500, 2000, 900], [500, 400, 300], unit=1000)
    coarse = Workload.of_columns(["a", "b", "c"], [15, 20, 9], [5, 4, 3])
    for name in OPTIMIZERS:
        small = OPTIMIZERS[name](Demand.of(fine, 20, 2))
        large = OPTIMIZERS[name](Demand.of(coarse, 2, 2))
        assert small.total_cost / 10 == pytest.approx(large.total_cost * Fraction(1), rel=1e-9)
