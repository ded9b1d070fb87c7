"""The optimizers of placement by their names on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from weft.optimizer.edges.workload import Workload
from weft.optimizer.placement.balanced import balanced
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.papers.at_random import g_rand, w_rand, wg_rand
from weft.optimizer.placement.papers.inserted import w_i, wg_i
from weft.optimizer.placement.papers.round_robin import g_rr, w_rr, wg_rr
from weft.optimizer.placement.papers.to_lowest import g_tl, w_tl, wg_tl
from weft.optimizer.placement.papers.to_nodes import w_tn, wg_tn
from weft.optimizer.placement.placement import Placement


class Optimizer(Protocol):
    """From what is placed on what, and a seed for random choices, to a placement."""

    def __call__(self, demand: Demand, seed: int = 1) -> Placement: ...


PAPERS: Mapping[str, Optimizer] = {
    "g-rand": g_rand,
    "g-rr": g_rr,
    "g-tl": g_tl,
    "w-rand": w_rand,
    "w-rr": w_rr,
    "w-tl": w_tl,
    "w-tn": w_tn,
    "w-i": w_i,
    "wg-rand": wg_rand,
    "wg-rr": wg_rr,
    "wg-tl": wg_tl,
    "wg-tn": wg_tn,
    "wg-i": wg_i,
}
"""The 13 of the paper, in the order of its table 1."""

OPTIMIZERS: Mapping[str, Optimizer] = {**PAPERS, "balanced": balanced}


def load_compiled() -> None:
    """Load the compiled loops, or compile them on the first run of all: seconds that no plan should be charged."""
    windows = Workload.of_columns(["a", "b", "c"], [2, 3, 2], [2, 3, 2])
    for optimizer in (w_tn, balanced):
        optimizer(Demand.of(windows, 1, 1))
