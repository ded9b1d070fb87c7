"""How far apart the event times of joined rows may be: what says when a row can be forgotten.

From literals such as `1.ts - 0.ts` in [0, 3600 s] and `2.ts - 1.ts` in [0, 60 s] follow bounds for every
pair of slots, also `2.ts - 0.ts <= 3660 s`: the shortest ways in a graph of differences (Floyd and
Warshall). Other timestamp columns may lie on the way.

Sound: only literals that stand alone count, so every bound holds for every row that passes. Slots
without a bound between them are left out. Time: the cube of the number of timestamp columns.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.algebra.predicates.predicate_set import PredicateSet
from weft.algebra.predicates.ranges import hull
from weft.algebra.predicates.slots import column_name
from weft.algebra.predicates.subject import Linear
from weft.algebra.types import TIMESTAMP


def time_bounds(
    predicates: PredicateSet, time_columns: Mapping[int, str]
) -> Mapping[tuple[int, int], int]:
    """For slots (i, j) the least c with t_j - t_i <= c, in microseconds. `time_columns` gives the
    event-time column of every slot that has one."""
    longest = _differences(predicates)
    columns = sorted({name for pair in longest for name in pair})
    for middle in columns:
        for start in columns:
            if (start, middle) not in longest:
                continue
            for end in columns:
                if (middle, end) in longest:
                    way = longest[start, middle] + longest[middle, end]
                    if way < longest.get((start, end), way + 1):
                        longest[start, end] = way
    slots = {column_name(slot, column): slot for slot, column in time_columns.items()}
    return {
        (slots[start], slots[end]): most
        for (start, end), most in longest.items()
        if start != end and start in slots and end in slots
    }


def _differences(predicates: PredicateSet) -> dict[tuple[str, str], int]:
    """For columns (a, b) the least c with b - a <= c, as the literals say it."""
    most: dict[tuple[str, str], int] = {}
    for literal in predicates.single:
        subject = literal.subject
        if not isinstance(subject, Linear) or [factor for factor, _ in subject.terms] != [1, -1]:
            continue
        (_, first), (_, second) = subject.terms
        if first.type != TIMESTAMP or second.type != TIMESTAMP or literal.values.null:
            continue
        low, high = hull(literal.values)
        if high is not None and isinstance(high.value, int):
            most[second.name, first.name] = high.value - 1
        if low is not None and isinstance(low.value, int):
            most[first.name, second.name] = -low.value
    return most
