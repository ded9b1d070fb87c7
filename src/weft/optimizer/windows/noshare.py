"""No sharing: each query has fragments of its own.

The baseline of the papers' figures. Queries with equal edges are kept together nevertheless: apart
they would pay the price of a group each and scan the same fragments (see `edges.workload`).
Time: O(n).
"""

from __future__ import annotations

from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows.cost import CostModel, Number, TwoOps
from weft.optimizer.windows.grouping import Grouping, grouping


def noshare(workload: Workload, rate: Number, model: CostModel | None = None) -> Grouping:
    """One group for each edge set; TwoOps unless told otherwise."""
    groups = [(edge_set,) for edge_set in range(len(workload.edge_sets))]
    return grouping("noshare", workload, rate, model or TwoOps(), groups)
