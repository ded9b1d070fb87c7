"""Which inputs of a join query keep their rows for ever, because no condition bounds event times."""

from __future__ import annotations

from collections.abc import Mapping

from weft.algebra.network.query import JoinQuery
from weft.algebra.predicates.time_bounds import time_bounds
from weft.algebra.query import StreamSchema


def unbounded_inputs(query: JoinQuery, streams: Mapping[str, StreamSchema]) -> tuple[str, ...]:
    """The aliases of the streams whose rows could match a row of any later time."""
    return tuple(query.inputs[slot].alias for slot in _open_pairs(query, streams))


def _open_pairs(query: JoinQuery, streams: Mapping[str, StreamSchema]) -> dict[int, int]:
    """For every slot whose rows are kept for ever, one whose rows may come at any later time."""
    times = {
        slot: streams[entry.relation].time
        for slot, entry in enumerate(query.inputs)
        if entry.relation in streams
    }
    bounds = time_bounds(query.predicates, times) if len(times) > 1 else {}
    pairs: dict[int, int] = {}
    for slot in times:
        later = next((one for one in times if one != slot and (slot, one) not in bounds), None)
        if later is not None:
            pairs[slot] = later
    return pairs


def warning(query: JoinQuery, streams: Mapping[str, StreamSchema]) -> str:
    """What a user should know of a query that is accepted; empty if there is nothing."""
    if query.predicates.never:
        return "no row can ever match: its conditions contradict each other"
    pairs = _open_pairs(query, streams)
    if not pairs:
        return ""
    kept = ", ".join(query.inputs[slot].alias for slot in pairs)
    slot, later = next(iter(pairs.items()))
    earlier_time, later_time = (
        f"{entry.alias}.{streams[entry.relation].time}"
        for entry in (query.inputs[slot], query.inputs[later])
    )
    return (
        f"the rows of {kept} are kept for ever; a bound on event times ends that, "
        f"such as {later_time} <= {earlier_time} + INTERVAL 1 HOUR"
    )
