"""Fragments with the same key and end become one.

Small batches add many partials of the same fragment; without this, state would grow with the
number of batches instead of the number of open fragments.

`interceded` is level 2 (intercede aggregation of the TriOps paper, section III-B): fine fragments
become the coarse ones of a weave group. Sound because no window of the group has an edge inside a
coarse fragment, and because a fragment of an older plan version, which may be cut by an edge of
a newer query, counts only for queries whose windows never cut it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.algebra.plan import Fragments
from weft.kernel.columns.arrow import factorized
from weft.kernel.columns.combine import over_runs, ranges_of_runs
from weft.kernel.columns.operations import Array
from weft.kernel.columns.ranges import PrefixSums
from weft.kernel.fragments.state import NodeState


def coalesced(state: NodeState) -> NodeState:
    """The same fragments, each once; they are sorted."""
    if not len(state):
        return state
    low, high = ranges_of_runs(state.keys, state.ends)
    if len(low) == len(state):
        return state
    first = state.select(low)
    columns = {
        name: over_runs(partial, state.columns, low, high)
        for name, partial in state.partials.items()
    }
    return replace(first, counts=PrefixSums(state.counts).over(low, high), columns=columns)


def interceded(state: NodeState, fragments: Fragments) -> NodeState:
    """The state in coarser fragments."""
    if not len(state):
        return state
    ends, places = factorized(state.ends)
    return coalesced(replace(state, ends=coarse_ends(ends, fragments)[places]))


def coarse_ends(ends: Array, fragments: Fragments) -> Array:
    """The ends of the coarse fragments in which fine ones lie; a fine one ends with its last
    moment, not after it.

    >>> from weft.algebra.window import EdgeClass
    >>> coarse_ends(np.array([1, 3, 4, 5]), Fragments(classes=(EdgeClass(5, 0), EdgeClass(5, 3))))
    array([3, 3, 5, 5])
    """
    last = ends - 1
    coarse = np.full(len(ends), np.iinfo(np.int64).max)
    for edge in fragments.edge_classes:
        np.minimum(coarse, last + edge.slide - (last - edge.residue) % edge.slide, out=coarse)
    return coarse
