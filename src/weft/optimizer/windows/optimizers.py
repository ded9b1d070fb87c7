"""The optimizers of window sharing by their names on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows.best import best
from weft.optimizer.windows.cost import CostModel, Number
from weft.optimizer.windows.grouping import Grouping
from weft.optimizer.windows.insert_then_weave import insert_then_weave
from weft.optimizer.windows.noshare import noshare
from weft.optimizer.windows.shared import shared
from weft.optimizer.windows.triweave import triweave
from weft.optimizer.windows.weaveshare import weaveshare


class Optimizer(Protocol):
    """From windows, rows per unit of time and a cost model to groups.

    Without a model each takes the one that it was made for.
    """

    def __call__(
        self, workload: Workload, rate: Number, model: CostModel | None = None
    ) -> Grouping: ...


OPTIMIZERS: Mapping[str, Optimizer] = {
    "noshare": noshare,
    "shared": shared,
    "weaveshare": weaveshare,
    "insert-then-weave": insert_then_weave,
    "triweave": triweave,
    "best": best,
}
