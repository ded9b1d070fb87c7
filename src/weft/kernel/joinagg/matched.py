"""Inputs whose entries were matched before, once, and not at every instant (`weft.algebra.joinagg.matches`).

A match is an entry of each of some inputs, at the same place. It counts at the instants at which all of them do: from the last of their first
instants to the first of their last ones. At these the other inputs are joined with it as with any entry.

Only rows that came on time are matched before. Joined entries with a late row among them are found here: with late rows of the first matched input and
all rows of the others; then with timely rows of the first, late ones of the second, and all of those after it; and so on. So each joined
entry is in one part. Groups of all parts are put together as those of tasks are (`groups/lowering`).

Time: that of the joins. Without late rows there is one part, the matches, and no other row of their inputs is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from weft.algebra.joinagg.matches import TIME
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.sources import LATE, source_of
from weft.algebra.query import StreamSchema
from weft.kernel.columns import partial_columns
from weft.kernel.columns.arrow import single
from weft.kernel.columns.operations import Array
from weft.kernel.failure import QueryFailure
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.groups.lowering import lowered, of_tables
from weft.kernel.joinagg.panes import instants_of, no_panes, row_entries
from weft.kernel.joinagg.together import (
    Contained,
    Member,
    Side,
    evaluated_together,
    parts_together,
    truth,
)

_WORTH_TAKING = 0.75
"""If more than this part of matches is left, all of them stay."""


@dataclass(frozen=True)
class Matches:
    """Matches of some inputs of a query: by input its entries, which count at the same instants."""

    entries: Mapping[int, Entries]

    @property
    def slots(self) -> tuple[int, ...]:
        return tuple(sorted(self.entries))

    @property
    def last(self) -> Array:
        """The last instant at which each counts."""
        return self.entries[self.slots[0]].last

    def __len__(self) -> int:
        return len(self.last)

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        return sum(
            sum(values.nbytes for values in entries.columns.values())
            + sum(partial_columns.size(stored) for stored in entries.partials.values())
            + 3 * entries.counts.nbytes
            for entries in self.entries.values()
        )

    def after(self, mark: int) -> Matches:
        """Those that count after a time, and maybe a few others, which harm nobody: taking strings anew costs more than having them."""
        inside = np.flatnonzero(self.last > mark)
        return self if len(inside) > _WORTH_TAKING * len(self) else self._take(inside)

    def together(self, others: Sequence[Matches]) -> Matches:
        """These and others of the same inputs."""
        if not others:
            return self
        parts = {slot: [one.entries[slot] for one in (self, *others)] for slot in self.slots}
        return Matches({slot: Entries.together(of_slot) for slot, of_slot in parts.items()})

    def _take(self, positions: Array) -> Matches:
        return Matches({slot: entries.take(positions) for slot, entries in self.entries.items()})


def slots_in(columns: Sequence[str]) -> tuple[int, ...]:
    """The inputs that a file of matches has.

    >>> slots_in(["0/#time", "0/c_1", "2/#time"])
    (0, 2)
    """
    return tuple(sorted(int(name.split("/")[0]) for name in columns if name.endswith(f"/{TIME}")))


def matches_of(
    table: pa.Table, query: AggregationJoin, streams: Mapping[str, StreamSchema]
) -> Matches:
    """The matches in a file. Those that never count at an instant are left out."""
    first, last = _instants_in(table, query)
    counting = np.flatnonzero(first <= last)
    made: dict[int, Entries] = {}
    for slot in slots_in(table.column_names):
        source, beginning = source_of(query, slot), f"{slot}/"
        stream = streams[query.inputs[slot].relation]
        own = {
            name.removeprefix(beginning): values
            for name, values in zip(table.column_names, table.columns, strict=True)
            if name.startswith(beginning)
        }
        names, partials = row_columns(source, stream), source.partials(stream)
        kept = row_entries(pa.table(own), names, source, partials)
        made[slot] = replace(kept, first=first, last=last).take(counting)
    return Matches(made)


def counting_after(mark: int, table: pa.Table, query: AggregationJoin) -> pa.Table:
    """The matches in a file that count after a time."""
    first, last = _instants_in(table, query)
    return table.filter(pa.array((first <= last) & (last > mark)))


def _instants_in(table: pa.Table, query: AggregationJoin) -> tuple[Array, Array]:
    """The first and the last instant of each match in a file; the first is after the last if it never counts."""
    spans: list[tuple[Array, Array]] = []
    for slot in slots_in(table.column_names):
        window, source = query.inputs[slot].window, source_of(query, slot)
        assert window is not None
        times = single(table.column(f"{slot}/{TIME}")).cast(pa.int64()).to_numpy()
        ends = (times // source.pane + 1) * source.pane
        spans.append(instants_of(window, ends, query.step))
    firsts, lasts = zip(*spans, strict=True)
    return np.maximum.reduce(firsts), np.minimum.reduce(lasts)


def no_matches(
    query: AggregationJoin, slots: Sequence[int], streams: Mapping[str, StreamSchema]
) -> Matches:
    """That no rows of some inputs match."""
    relations = {slot: query.inputs[slot].relation for slot in slots}
    return Matches(
        {
            slot: no_panes(source_of(query, slot), streams[relation]).kept
            for slot, relation in relations.items()
        }
    )


@dataclass(frozen=True)
class Part:
    """Some of the joined entries: the inputs that they are found in, of which some are matched already."""

    sides: Sequence[Contained]
    matched: Sequence[int] = ()


def parts_of(
    sides: Mapping[int, Contained],
    matches: Mapping[int, Side],
    rows: Mapping[int, Side],
) -> list[Part]:
    """All joined entries, in parts: of matches, and with late rows. `sides` are the inputs that are not matched, `rows` the entries of
    the others, with a mark for late ones; none, if no row is late."""
    slots = sorted(matches)
    inputs = range(len(sides) + len(slots))
    parts = [Part([{**sides, **matches}[slot] for slot in inputs], slots)]
    for place, slot in enumerate(slots if rows else ()):
        late = _only(rows[slot], late=True)
        if len(late.entries):
            timely = {before: _only(rows[before], late=False) for before in slots[:place]}
            of_part: dict[int, Contained] = {**sides, **rows, **timely, slot: late}
            parts.append(Part([of_part[slot] for slot in inputs]))
    return parts


def _only(side: Side, *, late: bool) -> Side:
    """The late entries, or the others."""
    flags = truth(side.entries.columns[LATE])
    return replace(side, entries=side.entries.take(np.flatnonzero(flags == late)))


def evaluated_in_parts(
    members: Sequence[Member], parts: Sequence[Part], instants: Array, *, ansi: bool
) -> list[pa.Table | QueryFailure]:
    """For each query its groups at instants, before HAVING and projection (`evaluated_together`)."""
    first, *others = parts
    if not others:
        return evaluated_together(members, first.sides, instants, ansi=ansi, matched=first.matched)
    tables = [
        parts_together(members, part.sides, instants, ansi=ansi, matched=part.matched)
        for part in parts
    ]
    return [
        _put_together(member, of_member, instants, ansi)
        for member, of_member in zip(members, zip(*tables, strict=True), strict=True)
    ]


def _put_together(
    member: Member, parts: Sequence[pa.Table | QueryFailure], instants: Array, ansi: bool
) -> pa.Table | QueryFailure:
    shown = instants if member.instants is None else member.instants
    groups: list[pa.Table] = []
    for part in parts:
        if isinstance(part, QueryFailure):
            return part
        groups.append(part)
    try:
        grouping = of_tables(member.query, member.partials, groups, ansi=ansi)
        return lowered(member.query, member.partials, grouping, shown, ansi=ansi)
    except QueryFailure as failure:
        return QueryFailure(failure.error_class, failure.message, (member.query.id,))
