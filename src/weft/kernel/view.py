"""The fragments that a weave group reads, ready for range queries."""

from __future__ import annotations

import numpy as np

from weft.kernel.combine import Combiner
from weft.kernel.operations import Array
from weft.kernel.positions import Positions
from weft.kernel.state import NodeState


class View:
    """The fragments of a pool that satisfy a predicate, and `also` a condition of their own."""

    def __init__(self, state: NodeState, predicate: str | None, also: Array | None = None) -> None:
        mask = None if predicate is None else state.masks.get(predicate, np.zeros(0, bool))
        if mask is not None and not len(mask):
            mask = np.zeros(len(state), bool)
        if also is not None:
            mask = also if mask is None else mask & also
        self.state = state if mask is None else state.select(np.flatnonzero(mask))
        self.combiner = Combiner(self.state.columns)
        self.times = np.unique(self.state.ends)
        self.positions = Positions(self.state.keys, self.state.ends) if len(self.state) else None
