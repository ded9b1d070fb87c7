"""SLC, the baseline: supernodes with linear combination (Zhang et al., Multiple Aggregations over Data Streams,
SIGMOD 2005), as section VIII-A of the Memory paper describes it.

**Tables.** A bucket holds one entry, and a row of another group evicts it. Over b buckets, groups hash at random; a
bucket with k groups keeps the group that came last, so a row of it collides with probability (k-1)/k if groups are equally
frequent. Summed over buckets, x = 1 - (b/g)·(1 - (1-1/b)^g) of all rows collide, and b·(1 - (1-1/b)^g) = g·(1-x) buckets
are full at the end. (Zhang et al. fit a line to x where collisions are few; this is what they fit it to.)

**Memory** goes in proportion to √(g·s) among siblings, which is optimal for trees of height two; a sibling with
intermediates below counts as one supernode with the sum of their g·s, and its share is divided in the same way between its own
table and the supernodes below. Tables of queries are outside, with memory for all their groups, as in the Memory paper.

**Trees.** The greedy search of `greedy_tree`, by the cost during the epoch alone: the end of the epoch is not in the
objective of Zhang et al. but in a constraint, the peak load. A tree that flushes more than the limit has all its tables
shrunk, by halves, until it does not; if that does not help it is refused. The Memory paper tunes the limit to the least total
cost; so do we, over no limit and 2^k times the tuples of an epoch, k = 3, 1, … -5.

Time: O(nodes) for a tree; every change of every round is priced, for every limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.optimizer.groupby.aggregate_tree import AggregateTree, Branch, Node
from weft.optimizer.groupby.greedy_tree import PricedTree, greedy_tree
from weft.optimizer.groupby.statistics import Statistics
from weft.optimizer.groupby.tree_cost import TableModel, TreeCost, walked_cost

PEAK_LOADS = (math.inf, *(2.0**power for power in (3, 1, -1, -3, -5)))
"""Limits of what a flush may cost, in tuples of an epoch."""
_SHRINKING = tuple(0.5**power for power in range(7))


def slc_tree(
    queries: Sequence[Node],
    statistics: Statistics,
    memory: float,
    peak_loads: Sequence[float] = PEAK_LOADS,
) -> tuple[PricedTree, TreeCost]:
    """The tree of the best limit, and its cost with tables that evict at a collision."""
    leave = colliding_tables(statistics)
    found: dict[AggregateTree, tuple[PricedTree, TreeCost]] = {}
    for peak_load in sorted(peak_loads, reverse=True):
        limit = peak_load * statistics.tuples
        if found and all(cost.at_end <= limit for _, cost in found.values()):
            continue

        def price(tree: AggregateTree, limit: float = limit) -> PricedTree:
            for factor in _SHRINKING:
                allocation = slc_allocation(tree, statistics, factor * memory)
                cost = walked_cost(tree, allocation, statistics.tuples, leave)
                if cost.at_end <= limit:
                    return PricedTree(tree, allocation, cost.during)
            return PricedTree(tree, allocation, math.inf)

        plan = greedy_tree(queries, price)
        cost = walked_cost(plan.tree, plan.allocation, statistics.tuples, leave)
        found[plan.tree] = plan, cost
    return min(found.values(), key=lambda each: each[1].total)


def slc_allocation(tree: AggregateTree, statistics: Statistics, memory: float) -> dict[Node, float]:
    """Entries of all intermediates."""
    weights: dict[Branch, float] = {}

    def weigh(branch: Branch) -> float:
        """The g·s of the intermediates of a branch, together."""
        own = 0.0
        if not branch.asked:
            own = statistics.groups(branch.node) * statistics.entry_size(branch.node)
        weights[branch] = own + sum(weigh(child) for child in branch.children if child.children)
        return weights[branch]

    allocation: dict[Node, float] = {}

    def share(branches: Sequence[Branch], own: Branch | None, available: float) -> None:
        """Divide memory between a table and the supernodes below it."""
        parts = {child: math.sqrt(weights[child]) for child in branches if child.children}
        first = 0.0
        if own is not None and not own.asked:
            size = statistics.entry_size(own.node)
            first = math.sqrt(statistics.groups(own.node) * size)
        total = first + sum(parts.values())
        if total == 0:
            return
        if own is not None and first:
            allocation[own.node] = available * first / total / statistics.entry_size(own.node)
        for child, part in parts.items():
            share(child.children, child, available * part / total)

    for child in tree.children:
        if child.children:
            weigh(child)
    share(tree.children, None, memory)
    return allocation


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


def colliding_tables(statistics: Statistics) -> TableModel:
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
