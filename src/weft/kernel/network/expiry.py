"""How long a row of history can still find a partner.

Bounds on differences of event times come from the predicates and are closed under transitivity
(`time_bounds`): t_j - t_i <= c. A row that is still to come has an event time above the watermark W. So
a row of one side of a join is needed only while, for some stream slot j of the other side, every
bound lets t_j lie above W: t_i + c > W for all its slots i that have one. A table's rows come
once, before any match is looked for: they are never waited for. Keeping a row longer is harmless.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.algebra.predicates import Linear, PredicateSet
from weft.algebra.predicates.slots import column_name
from weft.kernel.columns.operations import HIGHEST, LOWEST, Array
from weft.kernel.network.keys import hull
from weft.kernel.network.rows import TIME, Rows

Bounds = Mapping[tuple[int, int], int]
"""(i, j): c says that t_j - t_i <= c, in microseconds."""
_FAR: Final = 1 << 60
"""A bound that is as good as none."""


def time_bounds(predicates: PredicateSet, times: Mapping[int, str]) -> Bounds:
    """The tightest known bounds on differences of event times, of which `times` names the columns."""
    by_name = {column_name(slot, name): slot for slot, name in times.items()}
    bounds: dict[tuple[int, int], int] = {}

    def tighten(pair: tuple[int, int], bound: int) -> None:
        if abs(bound) < _FAR:
            bounds[pair] = min(bound, bounds.get(pair, bound))

    for predicate in predicates.predicates:
        if len(predicate.literals) != 1:
            continue
        subject, values = predicate.literals[0].subject, predicate.literals[0].values
        if not isinstance(subject, Linear) or len(subject.terms) != 2 or values.null:
            continue
        (first, one), (second, other) = subject.terms
        if (first, second) != (1, -1) or not {one.name, other.name} <= by_name.keys():
            continue
        plus, minus = by_name[one.name], by_name[other.name]
        low, beyond = hull(values)
        if beyond is not None:
            tighten((minus, plus), beyond - 1)
        if low is not None:
            tighten((plus, minus), -low)
    for middle in times:
        for start in times:
            for end in times:
                if start != end and (start, middle) in bounds and (middle, end) in bounds:
                    tighten((start, end), bounds[start, middle] + bounds[middle, end])
    return bounds


@dataclass(frozen=True, slots=True)
class Lifetime:
    """When rows of one side expire: for each slot of the other side that is still to come, the bounds
    from this side's slots, as (slot, microseconds). No alternatives: no row is ever to come."""

    alternatives: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def unbounded(self) -> bool:
        return any(not bounds for bounds in self.alternatives)

    def expiry(self, rows: Rows) -> Array | None:
        """The watermark at which each row is no longer needed; None: never."""
        if self.unbounded:
            return None
        latest = np.full(rows.count, LOWEST + 1, np.int64)
        for bounds in self.alternatives:
            earliest = np.full(rows.count, HIGHEST, np.int64)
            for slot, bound in bounds:
                times = rows.column(column_name(slot, TIME))
                # No event time is so near the ends of int64 that this would lose a row early.
                ends = np.clip(times.values, LOWEST + _FAR, HIGHEST - _FAR) + bound
                if times.valid is not None:
                    ends = np.where(times.valid, ends, HIGHEST)
                np.minimum(earliest, ends, out=earliest)
            np.maximum(latest, earliest, out=latest)
        return latest


def expiry_of(lifetimes: Iterable[Lifetime], rows: Rows) -> int | None:
    """The watermark at which none of some rows is needed any more; None: never."""
    latest = LOWEST
    for side in lifetimes:
        expiry = side.expiry(rows)
        if expiry is None:
            return None
        latest = max(latest, int(expiry.max(initial=LOWEST)))
    return latest


def lifetime(
    bounds: Sequence[Bounds], mine: Collection[int], theirs: Collection[int], first: int
) -> Lifetime:
    """The lifetime of rows with the slots `mine` that meet rows with the slots `theirs`, under any
    of the given bounds. Only slots of streams are given; `first` is this side's first slot."""
    alternatives: set[tuple[tuple[int, int], ...]] = set()
    for known in bounds:
        for other in theirs:
            pairs = [(slot - first, known[slot, other]) for slot in mine if (slot, other) in known]
            alternatives.add(tuple(sorted(pairs)))
    return Lifetime(tuple(sorted(alternatives)))
