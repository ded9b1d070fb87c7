"""Which inputs of a join query keep their rows for ever, because no condition bounds event times."""

from __future__ import annotations

from collections.abc import Mapping

from weft.algebra.network.query import JoinQuery
from weft.algebra.network.sets import NetworkQuery
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


def warning(query: NetworkQuery, streams: Mapping[str, StreamSchema]) -> str:
    """What a user should know of a query that is accepted; empty if there is nothing."""
    possible = [branch for branch in query.branches if not branch.predicates.never]
    if not possible:
        return "no row can ever match: its conditions contradict each other"
    texts = dict.fromkeys(_kept_for_ever(branch, streams) for branch in possible)
    return "; ".join(text for text in texts if text)


def _kept_for_ever(branch: JoinQuery, streams: Mapping[str, StreamSchema]) -> str:
    pairs = _open_pairs(branch, streams)
    if not pairs:
        return ""
    kept = ", ".join(branch.inputs[slot].alias for slot in pairs)
    slot, later = next(iter(pairs.items()))
    earlier_time, later_time = (
        f"{entry.alias}.{streams[entry.relation].time}"
        for entry in (branch.inputs[slot], branch.inputs[later])
    )
    return (
        f"the rows of {kept} are kept for ever; a bound on event times ends that, "
        f"such as {later_time} <= {earlier_time} + INTERVAL 1 HOUR"
    )
