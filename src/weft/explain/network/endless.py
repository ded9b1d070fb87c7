"""Which histories never end: inputs of a join query whose rows any later row may still match.

A row of input i is needed until no admissible row of another stream can match it. That ends if the
event time of every other stream's row has an upper bound against the row's own (`time_bounds`): then
the watermark passes it. Tables have no event time and need no bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.algebra.network.query import JoinQuery
from weft.algebra.predicates.time_bounds import time_bounds
from weft.algebra.query import StreamSchema


@dataclass(frozen=True)
class EndlessHistory:
    """An input of a query whose rows are kept for ever, and one condition that would end that."""

    query: str
    relation: str
    alias: str
    bound: str


def endless_histories(
    query: JoinQuery, streams: Mapping[str, StreamSchema]
) -> list[EndlessHistory]:
    """The inputs of a query without an upper bound on the event times that may follow."""
    times = {
        slot: streams[entry.relation].time
        for slot, entry in enumerate(query.inputs)
        if entry.relation in streams
    }
    if len(times) < 2 or query.predicates.never:
        return []
    bounds = time_bounds(query.predicates, times)
    endless = []
    for slot in times:
        open_slot = next(
            (other for other in times if other != slot and (slot, other) not in bounds), None
        )
        if open_slot is not None:
            entry, later = query.inputs[slot], query.inputs[open_slot]
            earlier_time = f"{entry.alias}.{streams[entry.relation].time}"
            later_time = f"{later.alias}.{streams[later.relation].time}"
            bound = f"{later_time} <= {earlier_time} + INTERVAL 1 DAY"
            endless.append(EndlessHistory(query.name, entry.relation, entry.alias, bound))
    return endless
