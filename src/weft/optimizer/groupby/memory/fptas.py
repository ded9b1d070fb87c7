"""Memory for the nodes of an aggregate tree, within 1 + ε of the cheapest (Memory paper, Algorithm
2).

1. On a grid of outputs the Lagrange relaxation (`relaxation`) gives an allocation that fits, which
   `refine` makes cheaper, and a lower bound on every allocation. If it costs at most 1 + ε times
   the bound, that is proven, and it is returned; so it was for every tree priced
   for the 78 pairs of flow attributes, on the first, coarse grid.
   Else the grid is made finer, a few times.
2. Else tables (`frontier`): on a grid on which rounding costs at most (1+ε)^0.6, the least memory
   for every cost, thinned by γ with γ^thinnings = (1+ε)^0.4. The cheaper of both steps is returned.
   It costs at most 1 + ε times the optimum: the optimal pair, rounded and thinned, is in the tables
   unless it costs more than what step 1 found.

The paper rounds costs of subtrees to powers of β and adds their exponents; `frontier` says how that
is mended, and why Theorem 2's β^(2L+1) is not needed. What is returned is the allocation's own cost
under equations 1 and 2, without rounding.

Time: step 1 takes O(nodes·grid²) for each price of memory, step 2 is polynomial in nodes, log n and
1/ε, as grids have O(depth·log(n)/ε) places and tables O(log(n)·thinnings/ε) pairs: an FPTAS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weft.optimizer.groupby.memory.eviction import Floats
from weft.optimizer.groupby.memory.forest import Forest
from weft.optimizer.groupby.memory.frontier import least_cost, thinnings
from weft.optimizer.groupby.memory.refine import refine
from weft.optimizer.groupby.memory.relaxation import Grid, Tables, relax

EPSILON = 0.05
_FOR_THE_GRID = 0.6
_GRIDS = 3


@dataclass(frozen=True)
class Allocated:
    """Entries of each node of a forest."""

    entries: Floats
    cost: float
    bound: float
    """No allocation costs less."""


def fptas(
    forest: Forest,
    memory: float,
    epsilon: float = EPSILON,
    *,
    reuse: Reusable | None = None,
    tables: bool = False,
) -> Allocated:
    """An allocation within 1 + ε of the cheapest.

    `known` keeps what was computed for the nodes of other forests; `tables` gives what step 2 alone finds.
    """
    if not forest.nodes:
        return Allocated(np.zeros(0), forest.constant, forest.constant)
    reuse = reuse or Reusable({})
    best = Allocated(np.zeros(len(forest.nodes)), math.inf, 0.0)
    for finer in range(_GRIDS):
        share = epsilon * 0.5**finer
        grid = Grid.of(forest, 1 + share, share / 2, reuse.tables)
        relaxed = relax(grid, memory, reuse.price)
        reuse.price = relaxed.priced.price
        entries, cost = refine(forest, relaxed.entries, memory)
        if cost > best.cost:
            entries, cost = best.entries, best.cost
        best = Allocated(entries, cost, max(best.bound, relaxed.bound))
        if not tables and best.cost <= (1 + epsilon) * best.bound:
            return best
    return _tabled(forest, memory, epsilon, best, tables)


def _tabled(
    forest: Forest, memory: float, epsilon: float, best: Allocated, alone: bool
) -> Allocated:
    """Step 2."""
    room = math.log1p(epsilon)
    grid = Grid.within(forest, math.expm1(_FOR_THE_GRID * room))
    priced = relax(grid, memory).priced
    thinning = math.exp((1 - _FOR_THE_GRID) * room / thinnings(forest))
    limit = best.cost * (1 + epsilon) if alone else best.cost
    entries = least_cost(grid, memory, thinning, priced, limit)
    if entries is None:
        return best
    cost = forest.cost(entries)
    return best if best.cost <= cost and not alone else Allocated(entries, cost, best.bound)


@dataclass
class Reusable:
    """What stays useful from one forest to the next."""

    tables: Tables
    price: float | None = None
