"""Fragments with the same key, end and signature become one.

Small batches add many partials of the same fragment; without this, state would grow with the
number of batches instead of the number of open fragments.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.kernel.combine import Combiner, ranges_of_runs, serialized
from weft.kernel.ranges import PrefixSums
from weft.kernel.state import NodeState


def coalesced(state: NodeState) -> NodeState:
    """The same fragments, each once."""
    if not len(state):
        return state
    masks = list(state.masks.values())
    order = np.lexsort((*masks, state.ends, state.keys))
    sorted_state = state.select(order) if masks else state
    low, high = ranges_of_runs(sorted_state.keys, sorted_state.ends, *sorted_state.masks.values())
    if len(low) == len(state):
        return state
    combiner = Combiner(sorted_state.columns)
    first = sorted_state.select(low)
    columns = {
        name: serialized(partial, combiner.over(partial, low, high))
        for name, partial in sorted_state.partials.items()
    }
    return replace(first, counts=PrefixSums(sorted_state.counts).over(low, high), columns=columns)
