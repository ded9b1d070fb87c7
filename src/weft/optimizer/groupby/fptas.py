"""Memory for the nodes of an aggregate tree, within 1 + ε of the cheapest (Memory paper, Algorithm 2).

In three steps:

1. Outputs are rounded to powers of β, which costs at most β^depth (`relaxation`, after Lemmas 9.1 to 9.3).
2. The Lagrange relaxation gives a bound on every allocation of that grid, and an allocation that fits,
   which `refine` makes cheaper. If it costs at most (1+ε)·bound / β^depth it is within 1 + ε of the optimum,
   and that is proven without any table. So it is nearly always.
3. Otherwise the tables of the least memory for every cost (`frontier`), thinned by γ; the cheaper of both
   is taken. It costs at most β^depth·γ^thinnings = 1 + ε times the optimum: the optimal pair, thinned, is in
   the tables unless it costs more than what step 2 found.

β and γ share ε: β^depth = (1+ε)^0.6, γ^thinnings = (1+ε)^0.4. The paper rounds costs of subtrees to powers
of β and adds their exponents; `frontier` says how that is mended, and why Theorem 2's β^(2L+1) is not needed.
What is returned is the allocation's own cost under equations 1 and 2, without rounding.

Time: grids have log(tuples/groups) / log β = O(depth·log(n)/ε) places; steps 1 and 2 take O(nodes·grid²) for
each price of memory, step 3 is polynomial in nodes, log n and 1/ε: an FPTAS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weft.optimizer.groupby.eviction import Floats
from weft.optimizer.groupby.forest import Forest
from weft.optimizer.groupby.frontier import least_cost, thinnings
from weft.optimizer.groupby.refine import refine
from weft.optimizer.groupby.relaxation import Grid, Tables, relax

EPSILON = 0.05
_FOR_THE_GRID = 0.6


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
    known: Tables | None = None,
    tables: bool = False,
) -> Allocated:
    """An allocation within 1 + ε of the cheapest.

    `known` keeps what was computed for the nodes of other forests; `tables` runs step 3 in any case.
    """
    if not forest.nodes:
        return Allocated(np.zeros(0), forest.constant, forest.constant)
    room = math.log1p(epsilon)
    depth = forest.depth
    step = math.exp(_FOR_THE_GRID * room / depth)
    grid = Grid.of(forest, step, known)
    relaxed = relax(grid, memory)
    bound = relaxed.bound / step**depth
    entries, cost = refine(forest, relaxed.entries, memory)
    if not tables and cost <= (1 + epsilon) * bound:
        return Allocated(entries, cost, bound)
    thinning = math.exp((1 - _FOR_THE_GRID) * room / thinnings(forest))
    limit = np.inf if tables else cost
    found = least_cost(grid, memory, thinning, relaxed.priced, limit)
    if found is not None:
        other, other_cost = refine(forest, found, memory)
        if tables or other_cost < cost:
            entries, cost = other, other_cost
    return Allocated(entries, cost, bound)
