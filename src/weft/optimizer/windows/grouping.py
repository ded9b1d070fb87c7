"""What an optimizer returns: the weave groups, their cost, and who is in which.

`Grouping` is the plan of Algorithm 1 of the TriOps paper: its groups, and the group-mapping table
(query → group) that the intercede level routes fragments by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.edges.edges import EdgeRate
from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows.cost import CostModel, Number, plan_cost

Partition = tuple[tuple[int, ...], ...]
"""Edge sets by group; each group ascending, the groups by their first."""


@dataclass(frozen=True)
class Group:
    """Queries that read the same fragments."""

    queries: tuple[str, ...]
    edge_rate: EdgeRate
    overlap: Fraction


@dataclass(frozen=True)
class Grouping:
    """A plan of window sharing.

    `cost` is exact if all edge rates are; else it is within the relative `cost_error`, with the
    confidence of the rates. `lower_bound` is a cost that no grouping can be below, if the optimizer
    gives one.
    """

    optimizer: str
    model: CostModel
    rate: Fraction
    workload: Workload
    partition: Partition
    groups: tuple[Group, ...]
    lower_bound: float | None = None

    @property
    def edge_rate(self) -> EdgeRate:
        """Of all queries together."""
        return self.workload.edge_rate

    @cached_property
    def cost(self) -> Number:
        return plan_cost(
            self.model,
            self.rate,
            self.edge_rate.value,
            self.workload.result_rate,
            [(group.edge_rate.value, group.overlap) for group in self.groups],
        )

    @cached_property
    def cost_error(self) -> float:
        """How far the cost may be off, relatively, because edge rates are estimated."""
        if self.exact:
            return 0.0
        price = self.model.price(self.rate, 1.0) - self.model.price(self.rate, 0.0)
        error = len(self.groups) * float(price * self.edge_rate.value) * self.edge_rate.error
        for group in self.groups:
            weight = self.model.per_fragment + self.model.per_overlap * group.overlap
            error += float(group.edge_rate.value * weight) * group.edge_rate.error
        return error / float(self.cost) if self.cost else 0.0

    @property
    def exact(self) -> bool:
        return self.edge_rate.exact and all(group.edge_rate.exact for group in self.groups)

    @property
    def confidence(self) -> float:
        """That the edge rates are within their errors; 1 if all are exact.

        Several estimates each fail with a small probability; these add up.
        """
        rates = {self.edge_rate, *(group.edge_rate for group in self.groups)}
        return max(0.0, 1 - sum(1 - rate.confidence for rate in rates))

    @property
    def gap(self) -> float | None:
        """How far the cost is above the lower bound at most, relatively to the bound."""
        if self.lower_bound is None:
            return None
        if not self.lower_bound:
            return 0.0 if not self.cost else float("inf")
        most = float(self.cost) * (1 + self.cost_error)
        return max(0.0, most / self.lower_bound - 1)

    @cached_property
    def group_of(self) -> NDArray[np.int64]:
        """The group of each query, in the order of the workload's names."""
        group_of_set = np.empty(len(self.workload.edge_sets), dtype=np.int64)
        for number, edge_sets in enumerate(self.partition):
            group_of_set[list(edge_sets)] = number
        return group_of_set[self.workload.edge_set_of]

    def group_mapping(self) -> dict[str, int]:
        """The group-mapping table: which group each query is in."""
        return dict(zip(self.workload.names, self.group_of.tolist()))

    def with_bound(self, lower_bound: float) -> Grouping:
        """The same, with a cost that no grouping is below."""
        return replace(self, lower_bound=lower_bound)

    def under(self, model: CostModel) -> Grouping:
        """The same groups, costed and run under another model."""
        return replace(self, model=model, lower_bound=None)


def grouping(
    optimizer: str,
    workload: Workload,
    rate: Number,
    model: CostModel,
    groups: Iterable[Iterable[int]],
    lower_bound: float | None = None,
) -> Grouping:
    """A plan from the edge sets of each group."""
    exact_rate = Fraction(rate)
    if exact_rate <= 0:
        raise ValueError(f"the rate must be positive: {rate}")
    workload.require_plannable()
    partition = canonical(groups)
    return Grouping(
        optimizer=optimizer,
        model=model,
        rate=exact_rate,
        workload=workload,
        partition=partition,
        groups=tuple(_group(workload, edge_sets) for edge_sets in partition),
        lower_bound=lower_bound,
    )


def canonical(groups: Iterable[Iterable[int]]) -> Partition:
    """Groups in their one order.

    >>> canonical([[3, 1], [2, 0]])
    ((0, 2), (1, 3))
    """
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def _group(workload: Workload, edge_sets: Sequence[int]) -> Group:
    positions = np.sort(np.concatenate([workload.members[edge_set] for edge_set in edge_sets]))
    return Group(
        queries=tuple(workload.names[i] for i in positions.tolist()),
        edge_rate=workload.edge_rate_of(edge_sets),
        overlap=sum((workload.overlaps[edge_set] for edge_set in edge_sets), Fraction(0)),
    )
