"""Shared Time Slices: all queries in one group.

From: the TriOps paper, section II-C, after Krishnamurthy et al., On-the-fly sharing for streamed
aggregation (SIGMOD 2006). The fewest sub-aggregations, and the finest fragments for every query.
Time: that of one edge rate.
"""

from __future__ import annotations

from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows.cost import CostModel, Number, TwoOps
from weft.optimizer.windows.grouping import Grouping, grouping


def shared(workload: Workload, rate: Number, model: CostModel | None = None) -> Grouping:
    """One group; TwoOps unless told otherwise."""
    groups = [range(len(workload.edge_sets))]
    return grouping("shared", workload, rate, model or TwoOps(), groups)
