"""What bounds on event times mean for a query: which of its inputs keep their rows for ever, and when rows
that wait for their partner are closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.algebra.network.query import JoinQuery
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.predicates.time_bounds import time_bounds
from weft.algebra.query import StreamSchema

NEVER: Final = "no row can ever match: its conditions contradict each other"


def unbounded_inputs(query: JoinQuery, streams: Mapping[str, StreamSchema]) -> tuple[str, ...]:
    """The aliases of the streams whose rows could match a row of any later time."""
    return tuple(query.every_input[slot].alias for slot in _open_pairs(query, streams))


def _open_pairs(query: JoinQuery, streams: Mapping[str, StreamSchema]) -> dict[int, int]:
    """For every slot whose rows are kept for ever, one whose rows may come at any later time."""
    times = _times(query, streams)
    bounds = _bounds(query, times)
    pairs: dict[int, int] = {}
    for slot in times:
        later = next((one for one in times if one != slot and (slot, one) not in bounds), None)
        if later is not None:
            pairs[slot] = later
    return pairs


def _times(query: JoinQuery, streams: Mapping[str, StreamSchema]) -> dict[int, str]:
    """The event times of the inputs, and of the partner's behind them."""
    return {
        slot: streams[entry.relation].time
        for slot, entry in enumerate(query.every_input)
        if entry.relation in streams
    }


def _bounds(query: JoinQuery, times: Mapping[int, str]) -> Mapping[tuple[int, int], int]:
    predicates = query.predicates
    if query.partner is not None:
        first = len(query.inputs)
        places = {slot: slot + first for slot in range(len(query.partner.inputs))}
        predicates = predicates & query.partner.predicates.moved(places) & query.partner.matching
    return time_bounds(predicates, times) if len(times) > 1 else {}


def closings(query: JoinQuery, streams: Mapping[str, StreamSchema]) -> tuple[tuple[str, int], ...]:
    """When a row of an anti-join is closed, at the latest: when the watermark has reached each of these event
    times, so many microseconds later. It may be earlier if the row has several event times."""
    if query.partner is None or query.partner.kind != "anti-join":
        return ()
    times = _times(query, streams)
    bounds = _bounds(query, times)
    first = len(query.inputs)
    latest: dict[str, int] = {}
    for slot in (slot for slot in times if slot >= first):
        outer = [one for one in times if one < first and (one, slot) in bounds]
        if outer:
            best = min(outer, key=lambda one: bounds[one, slot])
            name = f"{query.inputs[best].alias}.{times[best]}"
            latest[name] = max(bounds[best, slot], latest.get(name, bounds[best, slot]))
    return tuple(latest.items())


def warning(query: NetworkQuery, streams: Mapping[str, StreamSchema]) -> str:
    """What a user should know of a query that is accepted; empty if there is nothing."""
    possible = [branch for branch in query.branches if not branch.predicates.never]
    if not possible:
        return NEVER
    texts = dict.fromkeys(_kept_for_ever(branch, streams) for branch in possible)
    return "; ".join(text for text in texts if text)


def _kept_for_ever(branch: JoinQuery, streams: Mapping[str, StreamSchema]) -> str:
    pairs = _open_pairs(branch, streams)
    if not pairs:
        return ""
    inputs = branch.every_input
    kept = ", ".join(inputs[slot].alias for slot in pairs)
    slot, later = next(iter(pairs.items()))
    earlier_time, later_time = (
        f"{entry.alias}.{streams[entry.relation].time}" for entry in (inputs[slot], inputs[later])
    )
    return (
        f"the rows of {kept} are kept for ever; a bound on event times ends that, "
        f"such as {later_time} <= {earlier_time} + INTERVAL 1 HOUR"
    )
