"""SLC, the baseline: supernodes with linear combination (Zhang et al., Multiple Aggregations over
Data Streams, SIGMOD 2005), as section VIII-A of the Memory paper describes it.

**Tables.** A bucket holds one entry, and a row of another group evicts it. Over b buckets, groups
hash at random; a bucket with k groups keeps the group that came last, so a row of it collides with
probability (k-1)/k if groups are equally frequent. Summed over buckets, x = 1 - (b/g)·(1 -
(1-1/b)^g) of all rows collide, and b·(1 - (1-1/b)^g) = g·(1-x) buckets are full at the end. (Zhang
et al. fit a line to x where collisions are few; this is what they fit it to.)

**Memory** goes in proportion to √(g·s) among siblings, which is optimal for trees of height two; a
sibling with intermediates below counts as one supernode with the sum of their g·s, and its share is
divided in the same way between its own table and the supernodes below. Tables of queries are
outside, with memory for all their groups, as in the Memory paper.

**Trees.** The greedy search of `greedy_tree`, by the cost during the epoch alone: the end of the
epoch is not in the objective of Zhang et al. but in a constraint, the peak load. A tree that
flushes more than the limit has all its tables shrunk, by halves, until it does not; if that does
not help it is refused. The Memory paper tunes the limit to the least total cost; so do we, over no
limit and 2^k times the tuples of an epoch, k = 3, 1, … -5.

Time: O(nodes) for a tree. Changes are ranked by the sum of what their branches cost with rounded
shares of the memory, and the best are priced, for every limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from weft.optimizer.groupby.memory.tree_cost import Leave, TreeCost, walked_cost
from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, Branch, GroupBySet
from weft.optimizer.groupby.trees.greedy_tree import PricedTree, greedy_tree
from weft.optimizer.groupby.trees.statistics import Statistics

PEAK_LOADS = (math.inf, *(2.0**power for power in (3, 1, -1, -3, -5)))
"""Limits of what a flush may cost, in tuples of an epoch."""
_SHRINKING = tuple(0.5**power for power in range(7))
_STEPS = 24
"""Steps of a rough share for each factor of two."""
_NOTHING = -(10**9)


def slc_tree(
    queries: Sequence[GroupBySet],
    statistics: Statistics,
    memory: float,
    peak_loads: Sequence[float] = PEAK_LOADS,
) -> tuple[PricedTree, TreeCost]:
    """The tree of the best limit, and its cost with tables that evict at a collision."""
    shares = _Shares(statistics)
    candidates: list[tuple[PricedTree, TreeCost]] = []
    for peak_load in sorted(peak_loads, reverse=True):
        limit = peak_load * statistics.tuples
        if candidates and all(cost.at_end <= limit for _, cost in candidates):
            continue

        def price(tree: AggregateTree, limit: float = limit) -> PricedTree:
            cost, available = _shrunk(shares.cost, tree, memory, limit)
            return PricedTree(tree, shares.allocation(tree, available), cost)

        def rank(tree: AggregateTree, limit: float = limit) -> float:
            return _shrunk(shares.rough_cost, tree, memory, limit)[0]

        plan = greedy_tree(queries, price, rank)
        cost = walked_cost(
            plan.tree, plan.allocation, statistics.tuples, colliding_tables(statistics)
        )
        candidates.append((plan, cost))
    return min(candidates, key=lambda candidate: candidate[1].total)


def slc_allocation(
    tree: AggregateTree, statistics: Statistics, memory: float
) -> dict[GroupBySet, float]:
    """Entries of all intermediates."""
    return _Shares(statistics).allocation(tree, memory)


def _shrunk(
    cost: Callable[[AggregateTree, float], TreeCost],
    tree: AggregateTree,
    memory: float,
    limit: float,
) -> tuple[float, float]:
    """The cost during the epoch and the memory with which the end of it keeps the limit."""
    for factor in _SHRINKING:
        shrunk_cost = cost(tree, factor * memory)
        if shrunk_cost.at_end <= limit:
            return shrunk_cost.during, factor * memory
    return math.inf, _SHRINKING[-1] * memory


class _Shares:
    """How memory is divided; what a branch weighs and costs is kept."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics
        self._leave = colliding_tables(statistics)
        self._weights: dict[Branch, float] = {}
        self._rough: dict[tuple[Branch, int], TreeCost] = {}

    def allocation(self, tree: AggregateTree, memory: float) -> dict[GroupBySet, float]:
        """Entries of all intermediates."""
        allocation: dict[GroupBySet, float] = {}
        for branch, share in self._divided(tree.children, memory):
            self._allocate(branch, share, allocation)
        return allocation

    def cost(self, tree: AggregateTree, memory: float) -> TreeCost:
        """What a tree costs with so much memory."""
        return walked_cost(
            tree, self.allocation(tree, memory), self._statistics.tuples, self._leave
        )

    def rough_cost(self, tree: AggregateTree, memory: float) -> TreeCost:
        """The same with the shares of the branches rounded, so that most are known already."""
        during, at_end = self._statistics.tuples * len(tree.children), 0.0
        for branch, share in self._divided(tree.children, memory):
            step = round(_STEPS * math.log2(share)) if share > 0 else _NOTHING
            key = branch, step
            if key not in self._rough:
                part: dict[GroupBySet, float] = {}
                self._allocate(branch, 2.0 ** (step / _STEPS) if step != _NOTHING else 0.0, part)
                alone = AggregateTree([branch])
                self._rough[key] = walked_cost(alone, part, self._statistics.tuples, self._leave)
            during += self._rough[key].during - self._statistics.tuples
            at_end += self._rough[key].at_end
        return TreeCost(during, at_end)

    def _divided(
        self, branches: Sequence[Branch], memory: float, first: float = 0.0
    ) -> list[tuple[Branch, float]]:
        """The shares of the supernodes among some branches, beside a table that weighs `first`."""
        parts = [
            (branch, math.sqrt(self._weight(branch))) for branch in branches if branch.children
        ]
        total = first + sum(part for _, part in parts)
        return [(branch, memory * part / total) for branch, part in parts if part]

    def _allocate(self, branch: Branch, memory: float, allocation: dict[GroupBySet, float]) -> None:
        first = 0.0
        if not branch.asked:
            size = self._statistics.entry_size(branch.node)
            first = math.sqrt(self._statistics.groups(branch.node) * size)
        below = self._divided(branch.children, memory, first)
        if first:
            left = memory - sum(share for _, share in below)
            allocation[branch.node] = left / self._statistics.entry_size(branch.node)
        for child, share in below:
            self._allocate(child, share, allocation)

    def _weight(self, branch: Branch) -> float:
        """The g·s of the intermediates of a branch, together."""
        if branch not in self._weights:
            held = 0.0
            if not branch.asked:
                size = self._statistics.entry_size(branch.node)
                held = self._statistics.groups(branch.node) * size
            below = sum(self._weight(child) for child in branch.children if child.children)
            self._weights[branch] = held + below
        return self._weights[branch]


def collisions(entries: float, groups: float) -> float:
    """The share of rows that find another group in their bucket.

    >>> collisions(1, 4), round(collisions(1e9, 4), 6), collisions(0, 4)
    (0.75, 0.0, 1.0)
    """
    if entries < 1:
        return 1.0
    if entries == 1:
        return max(0.0, 1 - 1 / groups)
    occupied = -entries * math.expm1(groups * math.log1p(-1 / entries))
    return min(max(1 - occupied / groups, 0.0), 1.0)


def colliding_tables(statistics: Statistics) -> Leave:
    """Tables that evict at a collision; those of queries hold everything."""
    rates: dict[tuple[float, float], float] = {}

    def leave(branch: Branch, entries: float, during: float, at_end: float) -> tuple[float, float]:
        groups = min(statistics.groups(branch.node), during + at_end)
        if branch.asked:
            return 0.0, groups
        key = entries, groups
        if key not in rates:
            rates[key] = collisions(entries, groups)
        rate = rates[key]
        if rate >= 1.0:
            return during, at_end
        return rate * during, rate * at_end + groups * (1 - rate)

    return leave
