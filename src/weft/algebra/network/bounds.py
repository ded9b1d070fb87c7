"""Which inputs of a join query keep their rows for ever, for want of a bound on event times."""

from __future__ import annotations

from collections.abc import Mapping

from weft.algebra.network.query import JoinQuery
from weft.algebra.predicates.time_bounds import time_bounds
from weft.algebra.query import StreamSchema


def unbounded_inputs(query: JoinQuery, streams: Mapping[str, StreamSchema]) -> tuple[str, ...]:
    """The aliases of the streams whose rows could match a row of any later time."""
    times = {
        slot: streams[entry.relation].time
        for slot, entry in enumerate(query.inputs)
        if entry.relation in streams
    }
    if len(times) < 2:
        return ()
    bounds = time_bounds(query.predicates, times)
    return tuple(
        query.inputs[slot].alias
        for slot in times
        if any((slot, other) not in bounds for other in times if other != slot)
    )


def warning(query: JoinQuery, streams: Mapping[str, StreamSchema]) -> str:
    """What a user should know of a query that is accepted; empty if there is nothing."""
    if query.predicates.never:
        return "no row can ever match: its conditions contradict each other"
    unbounded = unbounded_inputs(query, streams)
    if not unbounded:
        return ""
    slot = next(s for s, entry in enumerate(query.inputs) if entry.alias == unbounded[0])
    alias, time = query.inputs[slot].alias, streams[query.inputs[slot].relation].time
    others = [e.alias for s, e in enumerate(query.inputs) if s != slot and e.relation in streams]
    return (
        f"the rows of {', '.join(unbounded)} are kept for ever; a bound on event times ends that, "
        f"such as {others[0]}.{time} <= {alias}.{time} + INTERVAL 1 HOUR"
    )
