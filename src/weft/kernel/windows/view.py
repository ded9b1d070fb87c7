"""The fragments that a weave group reads, ready for range queries."""

from __future__ import annotations

import numpy as np

from weft.kernel.columns.combine import Combiner
from weft.kernel.columns.operations import Array
from weft.kernel.fragments.state import NodeState
from weft.kernel.windows.positions import Positions


class View:
    """The fragments of a pool, of those that satisfy a condition of their own."""

    def __init__(self, state: NodeState, chosen: Array | None = None) -> None:
        self.state = state if chosen is None else state.select(np.flatnonzero(chosen))
        self.combiner = Combiner(self.state.columns)
        self.times = np.unique(self.state.ends)
        self.positions = Positions(self.state.keys, self.state.ends) if len(self.state) else None
