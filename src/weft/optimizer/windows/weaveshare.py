"""WeaveShare: merge the pair of groups that saves most, until none saves.

From: the TriOps paper, sections II-C and III-C, after Guirguis et al., Optimized processing of
multiple aggregate continuous queries (CIKM 2011). It minimizes equation 3, so its groups depend on
the rate; all rates share one sequence of merges (`merge_sequence`, which fixes ties).
Not optimal: of nine to thirteen edge sets about half of the plans are above the optimum, by one
per cent on average and up to twelve.
Time: O(n²) and about one edge rate for each merge.
"""

from __future__ import annotations

from fractions import Fraction

from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows.cost import CostModel, Number, TwoOps
from weft.optimizer.windows.grouping import Grouping, grouping
from weft.optimizer.windows.search.merge_sequence import merge_sequence


def weaveshare(workload: Workload, rate: Number, model: CostModel | None = None) -> Grouping:
    """The groups of WeaveShare; TwoOps unless told otherwise.

    >>> from weft.algebra.window import Window
    >>> from weft.optimizer.edges.workload import Windowed
    >>> windows = {"a": Window(20, 10), "b": Window(60, 20), "c": Window(21, 7)}
    >>> workload = Workload.of(Windowed(name, window) for name, window in windows.items())
    >>> [group.queries for group in weaveshare(workload, Fraction(1, 2)).groups]
    [('c',), ('a', 'b')]
    """
    used = model or TwoOps()
    price = float(used.price(Fraction(rate), workload.edge_rate.value))
    groups = merge_sequence(workload, used).cut(price)
    return grouping("weaveshare", workload, rate, used, groups)
