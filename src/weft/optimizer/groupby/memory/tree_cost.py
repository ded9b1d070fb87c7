"""What an aggregate tree costs under an allocation: equations 1 and 2 of the Memory paper.

The unit is a hash operation: an entry or a tuple that is put into one table. out of the stream is
the number of tuples; a node with b entries passes on out = b + f·in (equation 1, bounded as
`eviction` says), a query node its groups, since it has memory for all of them. The tree costs Σ
out·h over all nodes, h being the number of their children (equation 2).

Tuples that arrive are followed through the tree apart from entries that are flushed: what they push
out is the cost during the epoch, the rest is the cost at its end. A flush is top-down, so what it
pushes out of a lower table counts as end of epoch. Time and space: linear in the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.optimizer.groupby.memory.tables import TableModel, zipf_tables
from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, Branch, GroupBySet
from weft.optimizer.groupby.trees.statistics import Statistics

Allocation = Mapping[GroupBySet, float]
"""The entries of each intermediate; those that are left out have none."""


@dataclass(frozen=True)
class TreeCost:
    """Hash operations of an epoch."""

    during: float
    at_end: float

    @property
    def total(self) -> float:
        return self.during + self.at_end


Leave = Callable[[Branch, float, float, float], tuple[float, float]]
"""From a branch, its entries, and what comes in during the epoch and at its end, to what leaves."""


def tree_cost(
    tree: AggregateTree,
    allocation: Allocation,
    statistics: Statistics,
    model: TableModel | None = None,
) -> TreeCost:
    """The cost of a tree; tables behave as Lemma 6.1 says unless a model is given."""
    leave = bounded_tables(statistics, model or zipf_tables(statistics))
    return walked_cost(tree, allocation, statistics.tuples, leave)


def bounded_tables(statistics: Statistics, model: TableModel) -> Leave:
    """Tables that evict when they are full; those of queries hold everything."""

    def leave(branch: Branch, entries: float, during: float, at_end: float) -> tuple[float, float]:
        came = during + at_end
        if branch.asked:
            return 0.0, min(statistics.groups(branch.node), came)
        out = float(model(branch.node).leaving(entries, came))
        held = min(entries, out)
        early = (out - held) * during / came
        return early, out - early

    return leave


def walked_cost(
    tree: AggregateTree, allocation: Allocation, tuples: float, leave: Leave
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
