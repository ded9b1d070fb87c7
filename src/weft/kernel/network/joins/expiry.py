"""How long a row of history can still find a partner.

Bounds on differences of event times, t_j - t_i <= c, come from the predicates and are closed under
transitivity (`weft.algebra.predicates.time_bounds`). A row that is still to come has an event time above
the watermark W. So a row of one side of a join is needed only while, for some stream slot j of the other
side, every bound lets t_j lie above W: t_i + c > W for all its slots i that have one. A table's rows come
once, before any match is looked for: they are never waited for. Keeping a row longer is harmless.

The same bounds say when a row of the left side of a semi-join or anti-join is *closed*: when the watermark has
passed all event times at which a match may come. A row of the right side is needed beyond that of a join's:
until all rows that it may match are closed, also those that are still to come. A row j is at most c_ji
before a row i, which closes c_ij later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.algebra.predicates.slots import column_name
from weft.kernel.columns.operations import HIGHEST, LOWEST, Array
from weft.kernel.network.rows import TIME, Rows

Bounds = Mapping[tuple[int, int], int]
"""(i, j): c says that t_j - t_i <= c, in microseconds."""
_FAR: Final = 1 << 60
"""A bound that is as good as none."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """When rows of one side expire: for each slot of the other side that is still to come, the bounds
    from this side's slots, as (slot, microseconds). No alternatives: no row is ever to come."""

    alternatives: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def unbounded(self) -> bool:
        return any(not bounds for bounds in self.alternatives)

    def within(self, slots: range) -> Lifetime:
        """As far as it can be told from the rows of some slots, which may be later."""
        return Lifetime(
            tuple(
                tuple((slot - slots[0], bound) for slot, bound in bounds if slot in slots)
                for bounds in self.alternatives
            )
        )

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
    for limits in bounds:
        for other in theirs:
            pairs = [
                (slot - first, limits[slot, other])
                for slot in mine
                if abs(limits.get((slot, other), _FAR)) < _FAR
            ]
            alternatives.add(tuple(sorted(pairs)))
    return Lifetime(tuple(sorted(alternatives)))


def partner_lifetime(
    bounds: Sequence[Bounds], mine: Collection[int], theirs: Collection[int], first: int
) -> Lifetime:
    """The lifetime of rows of the right side of semi-joins or anti-joins: as long as rows of the left
    side may come, and until those that match are closed."""
    alternatives = set(lifetime(bounds, mine, theirs, first).alternatives)
    for limits in bounds:
        for last in mine:
            ways: dict[int, int] = {}
            for slot in mine:
                for other in theirs:
                    if (slot, other) in limits and (other, last) in limits:
                        way = limits[slot, other] + limits[other, last]
                        ways[slot - first] = min(way, ways.get(slot - first, way))
            alternatives.add(
                tuple(sorted((slot, way) for slot, way in ways.items() if abs(way) < _FAR))
            )
    return Lifetime(tuple(sorted(alternatives)))
