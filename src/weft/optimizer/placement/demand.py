"""What is placed and on what: items (queries, or all queries of equal edges), a rate, and nodes.

From: the Placement paper, sections 3 and 6. Its preprocessing step (the note of section 6.3) merges "all
ACQs with identical slides into the same trees": here all queries with equal edges, which for ranges that are
multiples of the slide is the same. With it an item is an edge set, without it a query.

Nodes have weights, their capacities, which the paper leaves to future work: a node's *load* is its cost
divided by its weight, and where the paper compares costs of nodes, loads are compared. With equal weights
of 1 the two are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.errors import PlacementError
from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.edge_atoms import EdgeAtoms, Integers, edge_atoms
from weft.optimizer.edges.workload import Workload

MOST_NODES = 1_000_000
MOST_WEIGHT = 1e18
"""The largest weight of a node, and one divided by the least: beyond, loads would not be numbers."""


@dataclass(frozen=True, eq=False)
class Demand:
    """Items by edge set and overlap factor, the rows per unit of time, and the nodes' weights."""

    workload: Workload
    rate: float
    weights: Floats
    edge_set: Integers
    """Of each item."""
    overlap: Floats
    """Of each item: the sum of its queries' range / slide."""
    item_of: Integers
    """The item of each query."""

    @classmethod
    def of(
        cls,
        workload: Workload,
        rate: float,
        nodes: int | Sequence[float],
        preprocess: bool = False,
    ) -> Demand:
        """From queries; `nodes` is how many there are, or their weights.

        >>> from weft.algebra.window import Window
        >>> from weft.optimizer.edges.workload import Windowed
        >>> windows = [Windowed("a", Window(4, 2)), Windowed("b", Window(6, 2))]
        >>> Demand.of(Workload.of(windows), 10, 2, preprocess=True).overlap
        array([5.])
        """
        workload.require_plannable()
        if not 0 < rate < float("inf"):
            raise PlacementError("BAD_PLACEMENT", detail=f"the rate {rate} must be positive")
        sets = len(workload.edge_sets)
        if preprocess:
            overlap: Floats = np.zeros(sets)
            np.add.at(overlap, workload.edge_set_of, workload.overlap_of)
            edge_set, item_of = np.arange(sets), workload.edge_set_of
        else:
            overlap, edge_set = workload.overlap_of, workload.edge_set_of
            item_of = np.arange(workload.queries)
        return cls(workload, float(rate), node_weights(nodes), edge_set, overlap, item_of)

    @property
    def items(self) -> int:
        return len(self.edge_set)

    @property
    def nodes(self) -> int:
        return len(self.weights)

    @property
    def atoms(self) -> EdgeAtoms:
        return edge_atoms(self.workload)

    def lone_costs(self) -> Floats:
        """The cost of each item as a tree of its own (equation 1)."""
        rates = self.workload.set_rates[self.edge_set]
        return np.asarray(self.rate + rates * self.overlap)


def node_weights(nodes: int | Sequence[float] | Floats) -> Floats:
    """The weights of nodes, or an error that names the one that is wrong.

    >>> node_weights(3)
    array([1., 1., 1.])
    >>> node_weights([1, 0])
    Traceback (most recent call last):
    weft.errors.PlacementError: [BAD_PLACEMENT] the weight 0 of node 2 must be positive
    """
    if isinstance(nodes, bool | float):
        detail = f"the number of nodes {nodes} must be a whole number"
        raise PlacementError("BAD_PLACEMENT", detail=detail)
    if isinstance(nodes, int):
        if not 0 < nodes <= MOST_NODES:
            wanted = "positive" if nodes <= 0 else f"at most {MOST_NODES:,}"
            detail = f"the number of nodes {nodes} must be {wanted}"
            raise PlacementError("BAD_PLACEMENT", detail=detail)
        return np.ones(nodes)
    if not len(nodes):
        raise PlacementError("BAD_PLACEMENT", detail="there are no nodes")
    for number, weight in enumerate(nodes, 1):
        wrong = wrong_weight(weight)
        if wrong:
            raise PlacementError(
                "BAD_PLACEMENT", detail=f"the weight {weight:g} of node {number} {wrong}"
            )
    return np.asarray(nodes, dtype=np.float64)


def wrong_weight(weight: float) -> str:
    """What is wrong with the weight of a node, as the end of a sentence; empty if nothing is."""
    if not weight > 0:
        return "must be positive"
    if not 1 / MOST_WEIGHT <= weight <= MOST_WEIGHT:
        return f"is not between {1 / MOST_WEIGHT:g} and {MOST_WEIGHT:g}"
    return ""
