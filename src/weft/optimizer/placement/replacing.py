"""Re-placement with few moves: queries come and go, nodes are lost and added, most queries stay.

weft's own; the paper's future work (2). A query that moves takes its state with it, so a new plan from scratch is
dear. From the placement before:
1. Trees keep what is left of them, on the nodes that are kept.
2. Queries without a place (new ones, and those of lost nodes) are inserted, expensive first, each where the sum that
   `balanced` minimizes grows least: woven into any tree, or a tree of its own on any node.
3. While a single move of a query lowers that sum by at least `LEAST_GAIN`, the best one is made, up to
   `most_moves` of them.
Queries are known by their names; one whose window changed counts as new.
Time: O(placed queries · trees) for each insertion and move, in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.errors import PlacementError
from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.edge_atoms import Integers
from weft.optimizer.edges.workload import Workload
from weft.optimizer.placement.balanced import BALANCE, POWER, check_balance
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.growing_trees import GrowingTrees
from weft.optimizer.placement.placement import Placement, placement

LEAST_GAIN = 0.001
"""A move must lower the sum by this share."""
_MOST_MOVES_SHARE = 0.05
_NODES_LOOKED_AT = 4
"""Queries leave the most loaded nodes: to move others lowers the sum by less."""


@dataclass(frozen=True, eq=False)
class Replacement:
    """A new placement, and who is on another node than before."""

    placement: Placement
    moved: tuple[str, ...]
    """Queries that were on a kept node and are on another one now."""
    homeless: tuple[str, ...]
    """Queries of nodes that are lost."""
    new: tuple[str, ...]


def replaced(
    before: Placement,
    workload: Workload,
    nodes: int | Sequence[float] | None = None,
    kept: Sequence[int] | None = None,
    balance: float = BALANCE,
    most_moves: int | None = None,
) -> Replacement:
    """A placement of `workload` that is near the one before.

    `nodes` are the nodes from now on, or their weights; by default those of before. `kept` has for each of
    them its number before, or -1 if it is new; by default node k is node k. `most_moves` is by default one
    query in twenty.
    """
    check_balance(balance)
    demand = Demand.of(workload, before.rate, before.weights.tolist() if nodes is None else nodes)
    now = _new_numbers(before, demand, kept)
    places = _Places(demand, balance)
    position = {name: place for place, name in enumerate(before.workload.names)}
    homeless, new, waiting = [], [], []
    tree_now: dict[int, int] = {}
    for item, name in enumerate(workload.names):
        old = position.get(name)
        if old is None or _window(before.workload, old) != _window(workload, item):
            new.append(name)
            waiting.append(item)
            continue
        tree = int(before.tree_of[old])
        node = int(now[before.node_of[tree]])
        if node < 0:
            homeless.append(name)
            waiting.append(item)
        elif tree in tree_now:
            places.trees.weave(item, tree_now[tree])
        else:
            tree_now[tree] = places.trees.group(item, node)
    lone = demand.lone_costs()
    for item in sorted(waiting, key=lambda item: -lone[item]):
        places.insert(item)
    settled = places.nodes_of_items()
    if most_moves is None:
        most_moves = max(1, round(_MOST_MOVES_SHARE * demand.items))
    for _ in range(most_moves):
        if not places.move():
            break
    plan = placement("balanced", demand, places.trees.tree_of, places.trees.node_of.copy())
    fresh = set(waiting)
    moved = [
        workload.names[item]
        for item in np.flatnonzero(plan.node_of_queries() != settled).tolist()
        if item not in fresh
    ]
    return Replacement(plan, tuple(moved), tuple(homeless), tuple(new))


def _new_numbers(before: Placement, demand: Demand, kept: Sequence[int] | None) -> Integers:
    """For each node of before its number now, or -1."""
    old = len(before.weights)
    listed = list(range(demand.nodes)) if kept is None else list(kept)
    stay = [number for number in listed if 0 <= number < old]
    if len(listed) != demand.nodes or len(set(stay)) != len(stay):
        detail = (
            f"`kept` must have a different number for each of {demand.nodes} nodes, or -1: {listed}"
        )
        raise PlacementError("BAD_PLACEMENT", detail=detail)
    numbers = np.full(old, -1)
    for number, node in enumerate(listed):
        if 0 <= node < old:
            numbers[node] = number
    return numbers


def _window(workload: Workload, query: int) -> tuple[object, float]:
    return workload.edge_sets[workload.edge_set_of[query]], float(workload.overlap_of[query])


class _Places:
    """Trees that change, judged by the smooth sum of `balanced`."""

    def __init__(self, demand: Demand, balance: float) -> None:
        self._demand = demand
        self._balance = balance
        self.trees = GrowingTrees(demand)

    def _sums(self, changes: Floats, nodes: Integers, loads: Floats) -> Floats:
        """The sum if one node's cost changes, for each of several changes. The norm is relative to its largest load:
        powers of loads that differ by many powers of ten would not be numbers."""
        weights = self._demand.weights
        loads = np.maximum(loads, 0)
        largest = float(loads.max()) or 1.0
        now = (loads / largest) ** POWER
        then = np.maximum(loads[nodes] + changes / weights[nodes], 0)
        scale = np.maximum(then, largest)
        others = np.maximum(now.sum() - now[nodes], 0) * (largest / scale) ** POWER
        powers = others + (then / scale) ** POWER
        total = float(loads @ weights) + changes
        mean = (1 - self._balance) * total / weights.sum()
        return np.asarray(mean + self._balance * scale * powers ** (1 / POWER))

    def insert(self, item: int) -> None:
        """An item without a place goes where the sum grows least."""
        changes, nodes, trees = self._targets(np.array([item]))
        target = int(self._sums(changes[0], nodes, self.trees.loads).argmin())
        self._go(item, int(trees[target]), int(nodes[target]))

    def move(self) -> bool:
        """The best move of one item, if it pays."""
        loads = self.trees.loads
        items = self._candidates()
        if not len(items):
            return False
        savings = self.trees.savings(items)
        changes, nodes, trees = self._targets(items)
        here = self.trees.node_of[self.trees.tree_of[items]]
        worth = np.full(changes.shape, np.inf)
        for row, item in enumerate(items.tolist()):
            without = loads.copy()
            without[here[row]] -= savings[row] / self._demand.weights[here[row]]
            worth[row] = self._sums(changes[row], nodes, without)
            worth[row, trees == self.trees.tree_of[item]] = np.inf
        row, target = divmod(int(worth.argmin()), len(nodes))
        now = float(self._sums(np.zeros(1), np.zeros(1, dtype=np.int64), loads)[0])
        if worth[row, target] > now * (1 - LEAST_GAIN):
            return False
        item = int(items[row])
        self.trees.remove(item)
        self._go(item, int(trees[target]), int(nodes[target]))
        return True

    def _candidates(self) -> Integers:
        """Items of the most loaded nodes; of equal ones in a tree one is enough."""
        demand, trees = self._demand, self.trees
        node = trees.node_of[trees.tree_of]
        order = np.argsort(-trees.loads, kind="stable")[:_NODES_LOOKED_AT]
        items = np.flatnonzero(np.isin(node, order))
        keys = np.stack([trees.tree_of[items], demand.edge_set[items]])
        _, first = np.unique(
            np.concatenate([keys, demand.overlap[items][None, :]]), axis=1, return_index=True
        )
        return np.asarray(items[first])

    def _targets(self, items: Integers) -> tuple[Floats, Integers, Integers]:
        """What each tree, and a new tree on each node, costs more with each item; nodes and trees."""
        alive = np.flatnonzero(self.trees.alive())
        woven = self.trees.all_increases(items)[:, alive]
        lone = np.repeat(self._demand.lone_costs()[items][:, None], self._demand.nodes, axis=1)
        nodes = np.append(self.trees.node_of[alive], np.arange(self._demand.nodes))
        trees = np.append(alive, np.full(self._demand.nodes, -1))
        return np.concatenate([woven, lone], axis=1), nodes, trees

    def _go(self, item: int, tree: int, node: int) -> None:
        if tree < 0:
            self.trees.group(item, node)
        else:
            self.trees.weave(item, tree)

    def nodes_of_items(self) -> Integers:
        return np.asarray(self.trees.node_of[self.trees.tree_of])
