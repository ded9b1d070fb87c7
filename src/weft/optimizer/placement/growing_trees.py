"""Trees that change item by item, with what one more item would cost in each of them.

For every tree the edge rate with and without each edge set is kept, so that one more or one
less costs a look-up, and a tree is counted anew only when it gets or loses an edge set.
Space: O(trees · edge sets).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.edge_atoms import Integers
from weft.optimizer.placement.compiled import fill_rates
from weft.optimizer.placement.demand import Demand

_FIRST_CAPACITY = 64


class GrowingTrees:
    """Trees on nodes, and the nodes' loads."""

    def __init__(self, demand: Demand) -> None:
        atoms = demand.atoms
        self._demand = demand
        self._arrays = (
            atoms.begins,
            atoms.atoms,
            atoms.family,
            atoms.chances,
            atoms.weights,
            atoms.rates,
        )
        self._rates = atoms.rates
        self.count = 0
        self.tree_of: Integers = np.full(demand.items, -1)
        self.loads: Floats = np.zeros(demand.nodes)
        self._resize(_FIRST_CAPACITY)

    def _resize(self, capacity: int) -> None:
        sets = len(self._rates)
        for name, shape in {
            "_members": (capacity, sets),
            "_plus": (capacity, sets),
            "_minus": (capacity, sets),
            "_overlaps": (capacity,),
            "_fragments": (capacity,),
            "_nodes": (capacity,),
        }.items():
            kind = np.int64 if name in ("_members", "_nodes") else np.float64
            grown = np.zeros(shape, dtype=kind)
            if self.count:
                grown[: self.count] = getattr(self, name)
            setattr(self, name, grown)
        self._capacity = capacity

    _members: Integers
    _plus: Floats
    _minus: Floats
    _overlaps: Floats
    _fragments: Floats
    _nodes: Integers

    @property
    def node_of(self) -> Integers:
        """Of each tree."""
        return self._nodes[: self.count]

    def costs(self) -> Floats:
        """Of each tree."""
        return np.asarray(self._demand.rate + self._fragments[: self.count])

    def increases(self, item: int) -> Floats:
        """What each tree's cost grows by if the item is woven into it."""
        edge_set, overlap = self._demand.edge_set[item], self._demand.overlap[item]
        woven = self._plus[: self.count, edge_set] * (self._overlaps[: self.count] + overlap)
        return np.asarray(woven - self._fragments[: self.count])

    def increase(self, item: int, tree: int) -> float:
        """What one tree's cost grows by if the item is woven into it."""
        rate = self._plus[tree, self._demand.edge_set[item]]
        woven = rate * (self._overlaps[tree] + self._demand.overlap[item])
        return float(woven - self._fragments[tree])

    def group(self, item: int, node: int) -> int:
        """The item becomes a tree of its own on a node."""
        if self.count == self._capacity:
            self._resize(2 * self._capacity)
        tree = self.count
        self.count += 1
        self._nodes[tree] = node
        self.loads[node] += self._demand.rate / self._demand.weights[node]
        self.weave(item, tree)
        return tree

    def weave(self, item: int, tree: int) -> None:
        """The item joins a tree."""
        edge_set, overlap = int(self._demand.edge_set[item]), float(self._demand.overlap[item])
        before = self._fragments[tree]
        rate = self._plus[tree, edge_set]
        self._members[tree, edge_set] += 1
        if self._members[tree, edge_set] == 1:
            rate = fill_rates(
                self._members[tree], *self._arrays, self._plus[tree], self._minus[tree]
            )
        self._overlaps[tree] += overlap
        self._fragments[tree] = rate * self._overlaps[tree]
        node = self._nodes[tree]
        self.loads[node] += (self._fragments[tree] - before) / self._demand.weights[node]
        self.tree_of[item] = tree

    def remove(self, item: int) -> None:
        """The item leaves its tree; a tree without items costs nothing."""
        tree = int(self.tree_of[item])
        edge_set, overlap = int(self._demand.edge_set[item]), float(self._demand.overlap[item])
        before = self._fragments[tree]
        self._members[tree, edge_set] -= 1
        rate = self._plus[tree, edge_set]
        if not self._members[tree, edge_set]:
            rate = fill_rates(
                self._members[tree], *self._arrays, self._plus[tree], self._minus[tree]
            )
        self._overlaps[tree] = self._overlaps[tree] - overlap if rate else 0.0
        self._fragments[tree] = rate * self._overlaps[tree]
        node = self._nodes[tree]
        saved = before - self._fragments[tree] + (0 if rate else self._demand.rate)
        self.loads[node] -= saved / self._demand.weights[node]
        self.tree_of[item] = -1

    def alive(self) -> NDArray[np.bool_]:
        """Which trees have items."""
        return np.asarray(self._overlaps[: self.count] > 0)

    def savings(self, items: Integers) -> Floats:
        """What the tree of each item costs less without it."""
        tree, edge_set = self.tree_of[items], self._demand.edge_set[items]
        alone = self._members[tree, edge_set] == 1
        rates = np.where(alone, self._minus[tree, edge_set], self._plus[tree, edge_set])
        left = rates * (self._overlaps[tree] - self._demand.overlap[items])
        saved = self._fragments[tree] - left
        return np.asarray(saved + np.where(rates == 0, self._demand.rate, 0.0))

    def all_increases(self, items: Integers) -> Floats:
        """`increases` of several items, a row for each."""
        rates = self._plus[: self.count, self._demand.edge_set[items]].T
        overlaps = self._overlaps[: self.count] + self._demand.overlap[items][:, None]
        return np.asarray(rates * overlaps - self._fragments[: self.count])
