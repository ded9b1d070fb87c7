"""What it saves that the query network joins late inputs, in microseconds for each instant.

At every instant the kernel looks at all rows of the windows (`weft_cost`, PROBED and CARRIED). The network looks at new rows only: it finds each match
once. For that, rows are published twice, each match is written and read, and the network takes a step. With w rows in the windows, r new rows
in all, m matches in the windows, of which n are new:

    saved    PROBED·Σ w + CARRIED·Σ m' - NETWORK_ROW·r - MATCH·n - STEP        m' are those of the inputs joined on the way

The groups of matches are made at every instant either way. Where many rows match, writing matches costs more than finding them again.

The constants are to be compared with `weft bench aggjoin --only matches`.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.optimizer.joinagg.weft_cost import KERNEL, JoinLoad

NETWORK_ROW = 0.6
"""A row published for the network, read there, and looked up."""
MATCH = 3.0
"""A match found, written, and read again."""
STEP = 120_000.0
"""A step of the network, whatever it does, as if each had one instant."""


def saved_by_matches(load: JoinLoad, slots: Sequence[int]) -> float:
    """What it saves that the network joins some late inputs; less than nothing if it does not pay."""
    inputs = [load.inputs[slot] for slot in slots]
    places = {slot: place for place, slot in enumerate(slots)}
    values = {
        (places[one], places[other]): count
        for (one, other), count in load.values.items()
        if one in places and other in places
    }
    *on_the_way, matches = JoinLoad(tuple(inputs), values).joined((False,) * len(inputs))
    rows, new_rows = sum(i.rows for i in inputs), sum(i.new_rows for i in inputs)
    new_matches = sum(matches * min(1.0, i.new_rows / i.rows) for i in inputs)
    at_instants = KERNEL["PROBED"] * rows + KERNEL["CARRIED"] * sum(on_the_way)
    return at_instants - NETWORK_ROW * new_rows - MATCH * new_matches - STEP
