"""What a placement optimizer returns: trees of queries on nodes, and their costs.

From: the Placement paper, sections 2 and 3. A tree (a weave group) of edge rate E and overlap factor Ω costs
λ + E·Ω operations per unit of time at λ rows; a node costs the sum over its trees (equation 1). The *total
cost* is the sum over nodes, the *max cost* the largest load of a node: its cost divided by its weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.edge_atoms import Integers
from weft.optimizer.edges.workload import Workload
from weft.optimizer.placement.compiled import rates_of_trees
from weft.optimizer.placement.demand import Demand


@dataclass(frozen=True, eq=False)
class Placement:
    """Every query in one tree, every tree on one node."""

    optimizer: str
    rate: float
    workload: Workload
    weights: Floats
    """Of nodes."""
    tree_of: Integers
    """Of each query, in the order of the workload's names."""
    node_of: Integers
    """Of each tree."""
    tree_costs: Floats

    @cached_property
    def node_costs(self) -> Floats:
        sums = np.bincount(self.node_of, self.tree_costs, minlength=len(self.weights))
        return np.asarray(sums, dtype=np.float64)

    @property
    def loads(self) -> Floats:
        """Of nodes: cost divided by weight."""
        return np.asarray(self.node_costs / self.weights)

    @cached_property
    def total_cost(self) -> float:
        return float(self.tree_costs.sum())

    @cached_property
    def max_cost(self) -> float:
        return float(self.loads.max())

    def node_of_queries(self) -> Integers:
        """The node of each query."""
        return np.asarray(self.node_of[self.tree_of])

    def trees(self) -> list[list[list[str]]]:
        """The names of the queries of each tree of each node, in the workload's order."""
        members: list[list[str]] = [[] for _ in range(len(self.node_of))]
        for name, tree in zip(self.workload.names, self.tree_of.tolist()):
            members[tree].append(name)
        nodes: list[list[list[str]]] = [[] for _ in range(len(self.weights))]
        for tree in np.unique(self.tree_of, return_index=True)[1].argsort().tolist():
            nodes[int(self.node_of[tree])].append(members[tree])
        return nodes


def placement(optimizer: str, demand: Demand, tree_of: Integers, node_of: Integers) -> Placement:
    """A plan from the tree of each item and the node of each tree; trees without items are left out."""
    sizes = np.bincount(tree_of, minlength=len(node_of))
    if not sizes.all():
        number = np.cumsum(sizes > 0) - 1
        tree_of, node_of = number[tree_of], node_of[sizes > 0]
    overlaps = np.bincount(tree_of, demand.overlap, minlength=len(node_of))
    costs = demand.rate + tree_rates(demand, tree_of, len(node_of)) * overlaps
    return Placement(
        optimizer=optimizer,
        rate=demand.rate,
        workload=demand.workload,
        weights=demand.weights,
        tree_of=tree_of[demand.item_of],
        node_of=node_of,
        tree_costs=costs,
    )


def tree_rates(demand: Demand, tree_of: Integers, trees: int) -> Floats:
    """The edge rate of each tree: by atoms where these are exact, else as `edges` counts or estimates it."""
    if trees == len(tree_of):
        rates = np.empty(trees)
        rates[tree_of] = demand.workload.set_rates[demand.edge_set]
        return rates
    order = np.argsort(tree_of, kind="stable")
    atoms = demand.atoms
    if atoms.exact:
        counted: Floats = rates_of_trees(
            order,
            tree_of,
            demand.edge_set,
            trees,
            atoms.begins,
            atoms.atoms,
            atoms.family,
            atoms.chances,
            atoms.weights,
            atoms.rates,
        )
        return counted
    begins = np.searchsorted(tree_of[order], np.arange(trees + 1))
    return np.array(
        [
            float(
                demand.workload.edge_rate_of(np.unique(demand.edge_set[order[low:high]]).tolist())
            )
            for low, high in pairwise(begins.tolist())
        ]
    )
