"""balanced: low total cost and low max cost at once, by simulated annealing over trees and nodes.

weft's own. The paper's winners each minimize one of the two: wg-tn never splits a tree that is too large for
a node, wg-i never takes back where an item went. `balanced` minimizes

    (1 - balance) · total cost / Σ weights  +  balance · max cost

where both terms are loads: that of an average node, and that of the most loaded one. `balance` 0 asks for the
total cost alone, 1 for the max cost alone; 1/2 is the default. The search starts from the better plan of wg-tn and
wg-i and tries at random: an item, or all items of an edge set, to another tree or a new one; a tree to another
node; two items exchanged; two trees merged; a tree split. A change that does not pay is kept with a chance that
falls as the search goes on. Since only few nodes have the largest load, the search sees a smooth stand-in, the
norm (Σ loadᵖ)^(1/p) with p = 32; what it returns is compared with its starts by the true sum above, so no plan is
worse than both wg-tn and wg-i by that sum. With more nodes than items only as many nodes are looked at, those of the
largest weights: no plan can use more, and a lighter node is never the better one. Above a balance of 1/2 the search goes through 1/2 first, above 0.8
through that, too: with max cost alone nearly all changes look alike.

Preconditions: none. Weights are the nodes' capacities. Deterministic for a seed.
Time: about a microsecond for a trial, 20 where the edge sets of a tree change; `TRIALS_PER_ITEM` trials for each
item. Space: O(trees · edge sets).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.errors import PlacementError
from weft.optimizer.edges.edge_atoms import Integers
from weft.optimizer.placement.compiled import anneal
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.papers.inserted import wg_i
from weft.optimizer.placement.papers.to_nodes import wg_tn
from weft.optimizer.placement.placement import Placement, placement

BALANCE = 0.5
TRIALS_PER_ITEM = 300
POWER = 32
"""Of the norm that stands for the maximum in the search."""

_FEWEST_TRIALS = 20_000
_HOT, _COLD = 1e-3, 1e-5
"""How much worse, relatively, a change may be and still be kept one time in e: at first, at last."""
_ON_THE_WAY = (0.5, 0.8)
_HOT_ITEMS = 0.25
"""With few items one of them is a larger share, and the search starts hotter: at this, divided by the items."""
_SEEDS = 1 << 32
"""The compiled loops know that many seeds; larger ones begin again."""
_MOST_MERGED = 512
"""With more different edge sets wg-tn's matrix of pairs takes longer than the search."""


def balanced(
    demand: Demand,
    seed: int = 1,
    balance: float = BALANCE,
    trials_per_item: int = TRIALS_PER_ITEM,
) -> Placement:
    """The placement that the search finds.

    >>> from weft.algebra.window import Window
    >>> from weft.optimizer.edges.workload import Windowed, Workload
    >>> windows = {"a": Window(20, 10), "b": Window(40, 20), "c": Window(21, 7), "d": Window(28, 14)}
    >>> workload = Workload.of(Windowed(name, window) for name, window in windows.items())
    >>> sorted(balanced(Demand.of(workload, 1, 2)).trees())
    [[['a', 'b']], [['c', 'd']]]
    """
    check_balance(balance)
    if demand.nodes > demand.items:
        return _on_heaviest(demand, seed, balance, trials_per_item)
    starts = [wg_i(demand, seed)]
    if len(demand.workload.edge_sets) <= _MOST_MERGED:
        starts.insert(0, wg_tn(demand, seed))
    plan = best = min(starts, key=lambda start: weighed(start, balance))
    trials = max(_FEWEST_TRIALS, trials_per_item * demand.items)
    for aim in (*(aim for aim in _ON_THE_WAY if aim < balance), balance):
        plan = annealed(demand, plan, aim, seed, trials)
        best = min(best, plan, key=lambda plan: weighed(plan, balance))
    return replace(best, optimizer="balanced")


def check_balance(balance: float) -> None:
    """Raises if a balance is none."""
    if not 0 <= balance <= 1:
        detail = f"balance must be between 0 (total cost) and 1 (max cost): {balance:g}"
        raise PlacementError("BAD_PLACEMENT", detail=detail)


def _on_heaviest(demand: Demand, seed: int, balance: float, trials_per_item: int) -> Placement:
    """More nodes than items: a plan on as many nodes as there are items."""
    used = np.sort(np.argsort(-demand.weights, kind="stable")[: demand.items])
    fewer = replace(demand, weights=demand.weights[used])
    # The sum's first term is relative to the weights of all nodes, those without work included.
    share = float(fewer.weights.sum() / demand.weights.sum())
    plan = balanced(fewer, seed, balance / (balance + (1 - balance) * share), trials_per_item)
    return replace(plan, weights=demand.weights, node_of=used[plan.node_of])


def weighed(plan: Placement, balance: float) -> float:
    """What `balanced` minimizes."""
    mean = plan.total_cost / float(plan.weights.sum())
    return (1 - balance) * mean + balance * plan.max_cost


def annealed(demand: Demand, start: Placement, balance: float, seed: int, trials: int) -> Placement:
    """What a search from a placement of the same demand ends with."""
    atoms = demand.atoms
    slots = len(start.node_of) + demand.nodes + 16
    node_of = np.full(slots, -1)
    node_of[: len(start.node_of)] = start.node_of
    tree_of = tree_of_items(demand, start)
    anneal(
        tree_of,
        node_of,
        demand.edge_set,
        demand.overlap,
        demand.weights,
        demand.rate,
        balance,
        POWER,
        seed % _SEEDS,
        trials,
        max(_HOT, _HOT_ITEMS / demand.items),
        _COLD,
        atoms.begins,
        atoms.atoms,
        atoms.family,
        atoms.chances,
        atoms.weights,
        atoms.rates,
    )
    return placement("balanced", demand, tree_of, node_of)


def tree_of_items(demand: Demand, plan: Placement) -> Integers:
    """The tree of each item in a placement of the same demand."""
    tree_of = np.empty(demand.items, dtype=np.int64)
    tree_of[demand.item_of] = plan.tree_of
    return tree_of
