"""w-tn, wg-tn: WeaveShare's merges until there are as many trees as nodes, then one per node or the lowest.

From: the Placement paper, section 6.2 and Algorithm 2. Every item starts as a tree; the pair of trees whose merge
lowers the total cost most is merged, while that pays and there are more trees than nodes. If merging stops to pay
first, w-tn goes on with the merge that costs least until there are as many trees as nodes, and wg-tn places the
trees as g-tl does.

The text says, for both, that merging stops when there are as many trees as nodes. The printed pseudocode has no
such test: it merges on while that pays, and leaves nodes empty. The text is followed; `to_the_end` is the printed
one. With as many trees as nodes g-tl puts one on each node, as the text says.

Two trees of equal edges gain λ, the most there is (their merge adds no fragment), so these merges come first, in the
order of their items: no pair is looked at for them. All others are by a matrix of pairs. Ties are judged by
increases rounded to 2⁻⁴⁰ of the largest cost, as in WeaveShare; the first pair in the order of the trees' first
items is merged.
Time: O(n²) edge rates for n different edge sets, and O(n²) for each merge. Space: O(n²).
"""

from __future__ import annotations

from math import frexp, inf

import numpy as np

from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.edge_atoms import Integers
from weft.optimizer.placement.compiled import union_rates
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.papers.to_lowest import lowest_first
from weft.optimizer.placement.placement import Placement, placement, tree_rates

_TICK = 2.0**-40


def w_tn(demand: Demand, seed: int = 1) -> Placement:
    """As many trees as nodes, or fewer, one on each."""
    tree_of = merged(demand, least=demand.nodes, forced=demand.nodes)
    return placement("w-tn", demand, tree_of, np.arange(demand.nodes))


def wg_tn(demand: Demand, seed: int = 1, to_the_end: bool = False) -> Placement:
    """WeaveShare's trees, placed as g-tl does."""
    tree_of = merged(demand, least=1 if to_the_end else demand.nodes)
    count = int(tree_of.max()) + 1
    overlaps = np.bincount(tree_of, demand.overlap, minlength=count)
    costs = demand.rate + tree_rates(demand, tree_of, count) * overlaps
    return placement("wg-tn", demand, tree_of, lowest_first(costs, demand.weights))


def merged(demand: Demand, least: int, forced: int | None = None) -> Integers:
    """The tree of each item after all merges that pay, while there are more than `least` trees.

    With `forced`, merges that do not pay are made as well until so many trees are left.
    """
    tree_of = _equal_edges_merged(demand, least)
    count = int(tree_of.max()) + 1
    if count <= least:
        return tree_of
    merges = _Merges(demand, tree_of, count)
    while merges.count > least:
        first, second, increase = merges.best()
        if increase >= demand.rate and (forced is None or merges.count <= forced):
            break
        merges.merge(first, second)
    return merges.number()[tree_of]


def _equal_edges_merged(demand: Demand, least: int) -> Integers:
    """Trees of equal edges, by their first items; the last ones stay apart where `least` is reached."""
    _, first, of_set = np.unique(demand.edge_set, return_index=True, return_inverse=True)
    if len(first) == demand.items:
        return np.arange(demand.items)
    # Items in the order in which they are merged: by the first item of their edge set.
    leader = first[of_set]
    order = np.lexsort((np.arange(demand.items), leader))
    joins = leader[order] != order
    joins &= np.cumsum(joins) <= max(0, demand.items - least)
    starts = np.ones(demand.items, dtype=np.bool_)
    starts[order[joins]] = False
    number = np.cumsum(starts) - 1
    return np.asarray(np.where(starts, number, number[leader]))


class _Merges:
    """All pairs of trees, and what the cost of fragments grows by if they are merged."""

    def __init__(self, demand: Demand, tree_of: Integers, count: int) -> None:
        atoms = demand.atoms
        self._arrays = atoms.begins, atoms.atoms, atoms.family, atoms.chances, atoms.weights
        self._members = np.zeros((count, len(demand.workload.edge_sets)), dtype=np.int64)
        self._members[tree_of, demand.edge_set] = 1
        self._overlaps = np.bincount(tree_of, demand.overlap, minlength=count)
        # Each tree has one edge set so far.
        self._rates = atoms.rates[self._members.argmax(axis=1)]
        self._alive = np.ones(count, dtype=np.bool_)
        self._into = np.arange(count)
        self.count = count
        largest = float(self._overlaps.sum() * self._rates.sum())
        self._tick = _TICK * 2.0 ** frexp(largest)[1]
        self._increases: Floats = np.full((count, count), inf)
        for tree in range(count - 1):
            self._look_at(tree, np.arange(tree + 1, count))

    def _look_at(self, tree: int, others: Integers) -> None:
        rates = union_rates(self._members, others, tree, *self._arrays)
        overlaps = self._overlaps[others] + self._overlaps[tree]
        increases = rates * overlaps - self._rates[others] * self._overlaps[others]
        increases -= self._rates[tree] * self._overlaps[tree]
        increases = np.rint(increases / self._tick) * self._tick
        self._increases[np.minimum(tree, others), np.maximum(tree, others)] = increases

    def best(self) -> tuple[int, int, float]:
        """The pair that adds least, and how much it adds."""
        first, second = divmod(int(self._increases.argmin()), len(self._alive))
        return first, second, float(self._increases[first, second])

    def merge(self, first: int, second: int) -> None:
        """The second tree joins the first."""
        pair = union_rates(self._members, np.array([second]), first, *self._arrays)
        self._rates[first] = pair[0]
        self._members[first] |= self._members[second]
        self._overlaps[first] += self._overlaps[second]
        self._alive[second] = False
        self._into[second] = first
        self._increases[second, :] = self._increases[:, second] = inf
        self.count -= 1
        others = np.flatnonzero(self._alive)
        self._look_at(first, others[others != first])

    def number(self) -> Integers:
        """The number of the tree that each of the first trees is in now."""
        into = self._into
        while (into[into] != into).any():
            into = into[into]
        return np.asarray((np.cumsum(self._alive) - 1)[into])
