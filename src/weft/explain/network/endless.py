"""Which histories never end: inputs of a join query whose rows any later row may still match.

A row of input i is needed until no admissible row of another stream can match it. That ends if the
event time of every other stream's row has an upper bound against the row's own: then the watermark
passes it. Bounds come from predicates on the difference of two event times, and add up along chains
(`b <= a + 1 h` and `c <= b + 1 h` bound c against a). Sound: a bound is taken only from a predicate that
every match satisfies. Tables have no event time and need no bound.

Time: cubic in the number of a query's inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from weft.algebra.network.query import JoinQuery
from weft.algebra.predicates import Linear, LiteralPredicate
from weft.algebra.predicates.slots import column_name
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
    slots = [slot for slot, entry in enumerate(query.inputs) if entry.relation in streams]
    if len(slots) < 2:
        return []
    bounds = time_bounds(query, streams)
    endless = []
    for slot in slots:
        open_slot = next(
            (other for other in slots if other != slot and (other, slot) not in bounds), None
        )
        if open_slot is not None:
            entry, later = query.inputs[slot], query.inputs[open_slot]
            earlier_time = f"{entry.alias}.{streams[entry.relation].time}"
            later_time = f"{later.alias}.{streams[later.relation].time}"
            bound = f"{later_time} <= {earlier_time} + INTERVAL 1 DAY"
            endless.append(EndlessHistory(query.name, entry.relation, entry.alias, bound))
    return endless


def time_bounds(
    query: JoinQuery, streams: Mapping[str, StreamSchema]
) -> dict[tuple[int, int], int]:
    """By pair of slots (i, j), the most microseconds by which i's event time exceeds j's in a match."""
    slot_by_time = {
        column_name(slot, streams[entry.relation].time): slot
        for slot, entry in enumerate(query.inputs)
        if entry.relation in streams
    }
    bounds: dict[tuple[int, int], int] = {}
    for predicate in query.predicates.predicates:
        if len(predicate.literals) == 1:
            for pair, most in _bounds_of(predicate.literals[0], slot_by_time):
                bounds[pair] = min(most, bounds.get(pair, most))
    slots = sorted(slot_by_time.values())
    for middle, first, last in product(slots, repeat=3):
        ways = bounds.get((first, middle)), bounds.get((middle, last))
        if ways[0] is not None and ways[1] is not None and first != last:
            total = ways[0] + ways[1]
            bounds[first, last] = min(total, bounds.get((first, last), total))
    return bounds


def _bounds_of(
    literal: LiteralPredicate, slot_by_time: Mapping[str, int]
) -> list[tuple[tuple[int, int], int]]:
    subject, values = literal.subject, literal.values
    if not isinstance(subject, Linear) or values.null or not values.intervals:
        return []
    if [factor for factor, _ in subject.terms] != [1, -1]:
        return []
    first, second = (slot_by_time.get(ref.name) for _, ref in subject.terms)
    if first is None or second is None:
        return []
    bounds = []
    low, high = values.intervals[0][0], values.intervals[-1][1]
    if high is not None and isinstance(high.value, int):
        bounds.append(((first, second), high.value - 1))
    if low is not None and isinstance(low.value, int):
        bounds.append(((second, first), -low.value))
    return bounds
