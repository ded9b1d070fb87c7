"""What a planner of aggregate trees must know of the data: groups, skew and entry sizes.

Values that were given are kept, others are estimated (`estimate`) and remembered. The number of
groups of a set is never above that of a superset that was given, nor below that of a subset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from weft.optimizer.groupby.trees.aggregate_tree import GroupBySet
from weft.optimizer.groupby.trees.estimate import estimated_alpha, estimated_groups


class Statistics(Protocol):
    """Of one epoch of the stream."""

    @property
    def tuples(self) -> float: ...

    def groups(self, node: GroupBySet) -> float: ...

    def alpha(self, node: GroupBySet) -> float: ...

    def entry_size(self, node: GroupBySet) -> float: ...


class GroupStatistics:
    """Given numbers of groups and Zipf parameters, and estimates for all other sets.

    >>> given = GroupStatistics(1000, {frozenset("a"): 10, frozenset("b"): 20})
    >>> given.groups(frozenset("a")), round(given.groups(frozenset("ab")))
    (10.0, 199)
    """

    def __init__(
        self,
        tuples: float,
        groups: Mapping[GroupBySet, float],
        alpha: Mapping[GroupBySet, float] | None = None,
        entry_size: Mapping[GroupBySet, float] | None = None,
    ) -> None:
        self._tuples = float(tuples)
        self._given = {node: float(count) for node, count in groups.items()}
        self._given_alpha = dict(alpha or {})
        self._entry_size = dict(entry_size or {})
        self._groups: dict[GroupBySet, float] = {}
        self._alpha: dict[GroupBySet, float] = {}

    @property
    def tuples(self) -> float:
        return self._tuples

    def groups(self, node: GroupBySet) -> float:
        """How many groups the set has in an epoch."""
        if node in self._given:
            return self._given[node]
        if node not in self._groups:
            self._groups[node] = estimated_groups(node, self._given, self._tuples)
        return self._groups[node]

    def alpha(self, node: GroupBySet) -> float:
        """The Zipf parameter of the frequencies of its groups."""
        if node in self._given_alpha:
            return self._given_alpha[node]
        if node not in self._alpha:
            self._alpha[node] = estimated_alpha(node, self._given_alpha, self.groups, self._tuples)
        return self._alpha[node]

    def entry_size(self, node: GroupBySet) -> float:
        """What one entry of its table takes of the memory."""
        return self._entry_size.get(node, 1.0)


class UniformStatistics:
    """Other statistics with all groups of a set equally frequent."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics

    @property
    def tuples(self) -> float:
        return self._statistics.tuples

    def groups(self, node: GroupBySet) -> float:
        return self._statistics.groups(node)

    def alpha(self, node: GroupBySet) -> float:
        return 0.0

    def entry_size(self, node: GroupBySet) -> float:
        return self._statistics.entry_size(node)
