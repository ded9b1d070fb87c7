"""TriWeave: WeaveShare's merges at TriOps' price of a group.

From: the TriOps paper, section III-D and Algorithm 1. It minimizes equation 4. A group's price
there is E, the edge rate of all queries, which no merge changes: so TriWeave makes WeaveShare's
merges (`merge_sequence`) up to δ ≥ E, and its groups do not depend on the rate. The group-mapping
table of line 21 is `Grouping.group_mapping`.
Where the rate is below E the plan loses to the same groups under TwoOps (`cost.triops_pays`).
Time: O(n²) and about one edge rate for each merge.
"""

from __future__ import annotations

from fractions import Fraction

from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows.cost import CostModel, Number, TriOps
from weft.optimizer.windows.grouping import Grouping, grouping
from weft.optimizer.windows.search.merge_sequence import merge_sequence


def triweave(workload: Workload, rate: Number, model: CostModel | None = None) -> Grouping:
    """The groups of TriWeave; TriOps unless told otherwise.

    >>> from weft.algebra.window import Window
    >>> from weft.optimizer.edges.workload import Windowed
    >>> windows = {"a": Window(20, 10), "b": Window(60, 20), "c": Window(21, 7)}
    >>> workload = Workload.of(Windowed(name, window) for name, window in windows.items())
    >>> triweave(workload, 100).group_mapping()
    {'a': 1, 'b': 1, 'c': 0}
    """
    used = model or TriOps()
    price = float(used.price(Fraction(rate), workload.edge_rate.value))
    groups = merge_sequence(workload, used).cut(price)
    return grouping("triweave", workload, rate, used, groups)
