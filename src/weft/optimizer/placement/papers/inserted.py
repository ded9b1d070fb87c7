"""w-i, wg-i: items are inserted one by one where the node's new cost is smallest.

From: the Placement paper, section 6.3 and Algorithm 3. Every node starts with one item, drawn at random; the
others follow in their order.
- w-i weaves an item into the one tree of the node "that has the smallest new cost".
- wg-i tries every tree of every node, and takes the node with the smallest new cost and the tree that gives it. The
  item is woven into that tree, or becomes a tree of its own on the node with the smallest old cost, "based on which
  option leads to the minimum Total Cost increase"; on a tie it is woven.

The printed pseudocode cannot be meant: (1) its switch is inside both loops, so that an item would be woven once for
each tree that is looked at; (2) WeaveCost is set to infinity once, not for each item, so that later items, whose
plans cost more, would never find a tree; (3) it compares the cost of a plan (weaving) with the cost of a node
(grouping); (4) "for i = 0 to Q" starts again at the items that are placed already. The text is followed.
Ties: the tree and the node with the lowest number.
Time: O(items · trees), and an edge rate for each new edge set of a tree.
"""

from __future__ import annotations

import numpy as np

from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.growing_trees import GrowingTrees
from weft.optimizer.placement.placement import Placement, placement


def w_i(demand: Demand, seed: int = 1) -> Placement:
    """Inserted where the node's new load is smallest, one tree on each node."""
    trees, rest = started(demand, seed)
    for item in rest:
        new_loads = trees.loads + trees.increases(item) / demand.weights
        trees.weave(item, int(new_loads.argmin()))
    return placement("w-i", demand, trees.tree_of, trees.node_of)


def wg_i(demand: Demand, seed: int = 1) -> Placement:
    """Inserted where the node's new load is smallest, or a tree of its own on the lowest node."""
    trees, rest = started(demand, seed)
    lone = demand.lone_costs()
    for item in rest:
        increases = trees.increases(item)
        nodes = trees.node_of
        tree = int((trees.loads[nodes] + increases / demand.weights[nodes]).argmin())
        if lone[item] < increases[tree]:
            trees.group(item, int(trees.loads.argmin()))
        else:
            trees.weave(item, tree)
    return placement("wg-i", demand, trees.tree_of, trees.node_of)


def started(demand: Demand, seed: int) -> tuple[GrowingTrees, list[int]]:
    """A tree on each node, of a random item (fewer items than nodes leave nodes empty), and the rest."""
    random = np.random.default_rng(seed)
    first = random.permutation(demand.items)[: demand.nodes]
    trees = GrowingTrees(demand)
    for node, item in enumerate(first.tolist()):
        trees.group(item, node)
    return trees, np.setdiff1d(np.arange(demand.items), first).tolist()
