"""The search by differences, against trees that are priced whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree
from weft.optimizer.groupby.trees.greedy_tree import PricedTree, greedy_tree
from weft.optimizer.groupby.trees.native_tree import Attributes, Costs, native_tree

SETS = st.dictionaries(
    st.frozensets(st.sampled_from("abcde"), max_size=4),
    st.sampled_from([0.1, 1.0, 3.0]),
    min_size=1,
    max_size=7,
)
WEIGHTS = st.fixed_dictionaries({name: st.integers(1, 60) for name in "abcde"})


def costs(weights: dict[str, int], row: float, node: float, memory: float) -> Costs:
    def groups(attributes: Attributes) -> float:
        product = 1.0
        for name in attributes:
            product *= weights[name]
        return min(product, 5000.0)

    def out(attributes: Attributes, edges: float) -> float:
        return edges * groups(attributes)

    return Costs(row, 1.0, 3.0, node, out, groups, memory)


def price(tree: AggregateTree, edges: dict[Attributes, float], given_: Costs) -> float:
    """Every node by itself, from the whole tree."""
    total, outs = 0.0, {}
    for parent, branch in tree.walk():
        finest = max(edges[inner.node] for inner in branch.walk() if inner.asked)
        outs[branch.node] = given_.out(branch.node, finest)
        read = given_.row if parent is None else outs[parent] * given_.read
        total += read + outs[branch.node] * given_.write + given_.node
    return total


@settings(max_examples=150)
@given(
    SETS,
    WEIGHTS,
    st.sampled_from([100.0, 5000.0]),
    st.sampled_from([0.0, 50.0]),
    st.sampled_from([0.0, 200.0, 1e9]),
)
def test_it_saves_what_it_says_within_its_memory(
    edges: dict[Attributes, float],
    weights: dict[str, int],
    row: float,
    node: float,
    memory: float,
) -> None:
    given_ = costs(weights, row, node, memory)
    tree = native_tree(edges, given_)
    assert set(tree.queries()) == set(edges)
    flat = price(AggregateTree.flat(edges), edges, given_)
    total = price(tree, edges, given_)
    assert total <= flat * (1 + 1e-9)
    held = sum(given_.groups(node) for node in tree.intermediates())
    assert held <= memory
    for change in _single_changes(tree):
        fits = sum(given_.groups(node) for node in change.intermediates()) <= memory
        if fits:
            assert price(change, edges, given_) >= total - 2e-3 * total


def _single_changes(tree: AggregateTree) -> list[AggregateTree]:
    """Trees in which an intermediate is gone."""
    return [tree.without(node) for node in tree.intermediates()]


@settings(max_examples=60)
@given(SETS, WEIGHTS)
def test_it_is_about_as_good_as_pricing_every_change(
    edges: dict[Attributes, float], weights: dict[str, int]
) -> None:
    """The same greedy rule; where a union is in the tree elsewhere the two may part."""
    given_ = costs(weights, 5000.0, 10.0, 1e9)

    def priced(tree: AggregateTree) -> PricedTree:
        return PricedTree(
            tree, dict.fromkeys(tree.intermediates(), 1.0), price(tree, edges, given_)
        )

    ours = price(native_tree(edges, given_), edges, given_)
    assert ours <= greedy_tree(edges, priced).cost * 1.1


@pytest.mark.parametrize("count", [150, 400])
def test_many_sets_are_bundled_where_a_pass_is_dear(count: int) -> None:
    """Every pair of them could be merged; a pass over the rows costs more than anything else."""
    sets = {frozenset({"k", f"a{number}"}): 1.0 for number in range(count)}

    def out(node: frozenset[str], edges: float) -> float:
        return edges * min(2.0 ** (len(node) - 1), 1000.0)

    dear = Costs(1e5, 0.4, 3.0, 1.0, out, lambda node: out(node, 1.0), float("inf"))
    tree = native_tree(sets, dear)
    assert len([branch for parent, branch in tree.walk() if parent is None]) == 1
    cheap = Costs(1.0, 0.4, 3.0, 1.0, out, lambda node: out(node, 1.0), float("inf"))
    assert len(native_tree(sets, cheap).intermediates()) == 0
