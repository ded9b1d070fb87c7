"""g-rr, w-rr, wg-rr: items go to the nodes in turn.

From: the Placement paper, section 5. Item k is on node k modulo the number of nodes: as a tree of its own (g), in the
node's one tree (w), or both in turn (wg): each node adds a separate tree, then weaves an item into one of its trees,
then adds a tree again; the trees that are woven into are taken in turn, too. Costs play no part, nor do
weights; the seed is not used.
Time: O(items).
"""

from __future__ import annotations

import numpy as np

from weft.optimizer.edges.edge_atoms import Integers
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.placement import Placement, placement


def g_rr(demand: Demand, seed: int = 1) -> Placement:
    """Each item a tree of its own, nodes in turn."""
    items = np.arange(demand.items)
    return placement("g-rr", demand, items, items % demand.nodes)


def w_rr(demand: Demand, seed: int = 1) -> Placement:
    """Nodes in turn, one tree on each."""
    items = np.arange(demand.items)
    return placement("w-rr", demand, items % demand.nodes, np.arange(demand.nodes))


def wg_rr(demand: Demand, seed: int = 1) -> Placement:
    """Nodes in turn, and on each a new tree and one of the node's trees in turn."""
    item = np.arange(demand.items)
    node, visit = item % demand.nodes, item // demand.nodes
    # A node's visit 2k makes its tree k; visit 2k + 1 weaves into the next of its k + 1 trees.
    trees_before = (visit + 1) // 2
    woven = visit % 2 == 1
    local = np.where(woven, _turns(int(visit[-1]) + 1)[visit], trees_before)
    trees = demand.nodes * (int(trees_before[-1]) + 1)
    nodes = np.arange(trees) % demand.nodes
    return placement("wg-rr", demand, node + demand.nodes * local, nodes)


def _turns(visits: int) -> Integers:
    """Which of its trees a node weaves into at each visit: they are taken in turn, as they are added."""
    turns = np.zeros(visits, dtype=np.int64)
    following = 0
    for visit in range(1, visits, 2):
        trees = (visit + 1) // 2
        turns[visit] = following % trees
        following = int(turns[visit]) + 1
    return turns
