"""g-tl, w-tl, wg-tl: the most expensive item first, each to the node of the lowest cost.

From: the Placement paper, section 6.1 and Algorithm 1. Items are sorted by their cost as trees of their own, from
expensive to cheap; each goes to the node with the smallest load so far (all are 0 at first, so the first items
go to different nodes). There it is a tree of its own (g), is woven into the node's one tree (w), or whichever
raises the node's cost less: a tree of its own, or woven into the node's *cheapest* tree (wg; on a tie it is woven).

The printed loop counts from t_0 and one item too far; the text leaves no doubt. Ties: the item that comes first, the
node and the tree with the lowest number.
Time: O(items · log nodes) for g, O(items · (nodes + trees of a node)) and an edge rate for each new edge
set of a tree for the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.edge_atoms import Integers
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.growing_trees import GrowingTrees
from weft.optimizer.placement.placement import Placement, placement


def g_tl(demand: Demand, seed: int = 1) -> Placement:
    """Each item a tree of its own, on the node of the lowest load."""
    nodes = lowest_first(demand.lone_costs(), demand.weights)
    return placement("g-tl", demand, np.arange(demand.items), nodes)


def w_tl(demand: Demand, seed: int = 1) -> Placement:
    """The node of the lowest load, one tree on each."""
    trees = GrowingTrees(demand)
    tree_on: dict[int, int] = {}
    for item in _expensive_first(demand.lone_costs()):
        node = int(trees.loads.argmin())
        if node in tree_on:
            trees.weave(item, tree_on[node])
        else:
            tree_on[node] = trees.group(item, node)
    return placement("w-tl", demand, trees.tree_of, trees.node_of)


def wg_tl(demand: Demand, seed: int = 1) -> Placement:
    """The node of the lowest load: woven into its cheapest tree, or a tree of its own."""
    trees = GrowingTrees(demand)
    lone = demand.lone_costs()
    trees_on: list[list[int]] = [[] for _ in range(demand.nodes)]
    for item in _expensive_first(lone):
        node = int(trees.loads.argmin())
        own = trees_on[node]
        if own:
            cheapest = own[int(trees.costs()[own].argmin())]
            if trees.increase(item, cheapest) <= lone[item]:
                trees.weave(item, cheapest)
                continue
        own.append(trees.group(item, node))
    return placement("wg-tl", demand, trees.tree_of, trees.node_of)


def lowest_first(costs: Floats, weights: Floats) -> Integers:
    """The node of each cost: the highest cost first, always to the node of the smallest load.

    >>> lowest_first(np.array([3.0, 5.0, 2.0]), np.ones(2)).tolist()
    [1, 0, 1]
    """
    capacity = weights.tolist()
    heap = [(0.0, node) for node in range(len(capacity))]
    listed = costs.tolist()
    node_of = np.empty(len(listed), dtype=np.int64)
    nodes = []
    order = _expensive_first(costs)
    for item in order:
        load, node = heap[0]
        nodes.append(node)
        heapq.heapreplace(heap, (load + listed[item] / capacity[node], node))
    node_of[order] = nodes
    return node_of


def _expensive_first(costs: Floats) -> Sequence[int]:
    ordered: list[int] = np.argsort(-costs, kind="stable").tolist()
    return ordered
