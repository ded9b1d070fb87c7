"""g-rand, w-rand, wg-rand: every item on a random node.

From: the Placement paper, section 5. The node of each item is drawn uniformly. On its node an item is a tree of
its own (g), is woven into the node's one tree (w), or either (wg): "choose (in random … fashion) whether to add this
ACQ as a separate tree, or to weave it with one of the available trees on this node". That is read as two draws: a
fair coin between the two, and if it says weave, one of the node's trees, each equally likely. The first item of a
node is a tree of its own in any case. Costs play no part, nor do weights.
Time: O(items).
"""

from __future__ import annotations

import numpy as np

from weft.optimizer.edges.edge_atoms import Integers
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.placement import Placement, placement


def g_rand(demand: Demand, seed: int = 1) -> Placement:
    """Each item a tree of its own on a random node."""
    return placement("g-rand", demand, np.arange(demand.items), _nodes(demand, seed))


def w_rand(demand: Demand, seed: int = 1) -> Placement:
    """Random nodes, one tree on each."""
    return placement("w-rand", demand, _nodes(demand, seed), np.arange(demand.nodes))


def wg_rand(demand: Demand, seed: int = 1) -> Placement:
    """Random nodes, and on each a random choice between a new tree and one of the node's."""
    random = np.random.default_rng(seed)
    nodes = random.integers(demand.nodes, size=demand.items).tolist()
    separate = (random.random(demand.items) < 0.5).tolist()
    picks = random.random(demand.items).tolist()
    trees_of_node: list[list[int]] = [[] for _ in range(demand.nodes)]
    tree_of: list[int] = []
    node_of: list[int] = []
    for node, apart, pick in zip(nodes, separate, picks):
        trees = trees_of_node[node]
        if apart or not trees:
            trees.append(len(node_of))
            tree_of.append(len(node_of))
            node_of.append(node)
        else:
            tree_of.append(trees[int(pick * len(trees))])
    return placement("wg-rand", demand, np.array(tree_of), np.array(node_of))


def _nodes(demand: Demand, seed: int) -> Integers:
    return np.random.default_rng(seed).integers(demand.nodes, size=demand.items)
