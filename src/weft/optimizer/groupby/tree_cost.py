"""What an aggregate tree costs under an allocation: equations 1 and 2 of the Memory paper.

The unit is a hash operation: an entry or a tuple that is put into one table. out of the stream is the
number of tuples; a node with b entries passes on out = b + f·in (equation 1, bounded as `eviction`
says), a query node its groups, since it has memory for all of them. The tree costs Σ out·h over all nodes,
h being the number of their children (equation 2).

Tuples that arrive are followed through the tree apart from entries that are flushed: what they push out
is the cost during the epoch, the rest is the cost at its end. A flush is top-down, so what it pushes out
of a lower table counts as end of epoch. Time and space: linear in the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.optimizer.groupby.aggregate_tree import AggregateTree, Branch, Node
from weft.optimizer.groupby.eviction import LEMMA, Eviction
from weft.optimizer.groupby.statistics import Statistics

Allocation = Mapping[Node, float]
"""The entries of each intermediate; those that are left out have none."""


@dataclass(frozen=True)
class TreeCost:
    """Hash operations of an epoch."""

    during: float
    at_end: float

    @property
    def total(self) -> float:
        return self.during + self.at_end


TableModel = Callable[[Branch, float, float, float], tuple[float, float]]
"""From a branch, its entries, and what comes in during the epoch and at its end, to what leaves."""


def tree_cost(
    tree: AggregateTree,
    allocation: Allocation,
    statistics: Statistics,
    eviction: Eviction = LEMMA,
) -> TreeCost:
    """The cost of a tree whose tables evict the least recently used entry."""
    return walked_cost(tree, allocation, statistics.tuples, lru_tables(statistics, eviction))


def lru_tables(statistics: Statistics, eviction: Eviction = LEMMA) -> TableModel:
    """Tables with eviction as in the Memory paper; those of queries hold everything."""

    def leave(branch: Branch, entries: float, during: float, at_end: float) -> tuple[float, float]:
        groups = statistics.groups(branch.node)
        if branch.asked:
            return 0.0, min(groups, during + at_end)
        alpha = statistics.alpha(branch.node)
        out = float(eviction.leaving(entries, groups, alpha, during + at_end))
        early = min(float(eviction.evicted(entries, groups, alpha)) * during, out)
        return early, out - early

    return leave


def walked_cost(
    tree: AggregateTree, allocation: Allocation, tuples: float, leave: TableModel
) -> TreeCost:
    """The cost of a tree under any model of a table."""

    def below(children: tuple[Branch, ...], during: float, at_end: float) -> tuple[float, float]:
        early, late = during * len(children), at_end * len(children)
        for child in children:
            if child.children:
                out = leave(child, allocation.get(child.node, 0.0), during, at_end)
                more = below(child.children, *out)
                early, late = early + more[0], late + more[1]
        return early, late

    return TreeCost(*below(tree.children, tuples, 0.0))
