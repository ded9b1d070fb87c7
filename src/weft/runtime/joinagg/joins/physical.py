"""Physical joins: the inputs and the members of queries that join together, here on the driver (in tasks: `lanes`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from weft.algebra.joinagg.matches import matches_id
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.sources import source_of, time_of
from weft.algebra.query import StreamSchema
from weft.kernel.columns.operations import Array
from weft.kernel.failure import QueryFailure
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.groups.lowering import Lifted
from weft.kernel.joinagg.matched import Matches, evaluated_in_parts, no_matches, parts_of
from weft.kernel.joinagg.panes import of_table
from weft.kernel.joinagg.together import (
    Contained,
    Member,
    Remembered,
    Side,
    Tally,
    evaluated_together,
)
from weft.kernel.joinagg.updating import SetMemory, UpdatedSet
from weft.runtime.joinagg.inputs import Use, is_updated
from weft.runtime.joinagg.joins.joining import Kept, Ready, joined_together

_AT_ONCE = 256
"""Instants that are evaluated together."""
_COPIES = 1 << 23
"""How many entries of late inputs there may be at these, unless one instant has more: each is there at every instant at which it counts."""


@dataclass(frozen=True)
class Group:
    """Queries that join together, with the instants that each of them shows."""

    ready: tuple[Ready, ...]
    shown: tuple[Array, ...]

    @property
    def chunks(self) -> list[Array]:
        """The instants of all, some at once."""
        return self._by(_AT_ONCE)

    def chunks_over(self, sides: Sequence[Contained]) -> list[Array]:
        """The same, fewer at once where late inputs have many entries."""
        late = sum(
            len(side.entries)
            for side in sides
            if isinstance(side, Side) and not (side.early or side.always)
        )
        return self._by(max(1, min(_AT_ONCE, _COPIES // max(late, 1))))

    def _by(self, size: int) -> list[Array]:
        of_all = np.unique(np.concatenate(self.shown))
        return [of_all[i : i + size] for i in range(0, len(of_all), size)]

    def members(
        self, chunk: Array, schemas: Mapping[str, StreamSchema], tally: Tally | None = None
    ) -> list[Member]:
        """The queries at some instants."""
        selections = zip(*(one.selections for one in self.ready), strict=True)
        mixed = [slot for slot, names in enumerate(selections) if len(set(names)) > 1]
        members = []
        for one, instants in zip(self.ready, self.shown, strict=True):
            first, beyond = np.searchsorted(instants, [chunk[0], chunk[-1] + 1])
            own = {slot: name for slot in mixed if (name := one.selections[slot]) is not None}
            lifts = lifted(one.query, schemas)
            members.append(Member(one.query, lifts, own, instants[first:beyond], tally))
        return members


def lifted(query: AggregationJoin, schemas: Mapping[str, StreamSchema]) -> Lifted:
    """The partials of each of a query's aggregates."""
    partials = []
    for aggregate in query.aggregates:
        of = None if aggregate.slot is None else query.inputs[aggregate.slot]
        schema = schemas[of.relation] if of is not None and of.window else None
        partials.append(aggregate.partials(time_of(schema)))
    return partials


class Holding(Protocol):
    """Who has the entries of inputs."""

    def of(self, uses: Sequence[Use], begin: int) -> Entries: ...

    def part(self, slot: int) -> int | None:
        """Which part of a source's entries an input has: equal parts of equal sources are the same entries. None: it has all."""
        ...


class Sides:
    """The early inputs of a step's joins: equal ones of several joins are one. `sets` are those of earlier steps."""

    def __init__(self, sets: SetMemory | None = None) -> None:
        self._early: dict[object, Remembered] = {}
        self._sets = sets

    def early(self, use: Use, begin: int, held: Holding) -> Remembered:
        name = (use.key, use.window, use.query.step, begin, held.part(use.slot))
        if name not in self._early:
            entries = held.of([use], begin)
            partials = use.source.partials(use.stream)
            side: Contained = Side(entries, True, partials)
            if self._sets is not None and is_updated(use.window, use.source):
                since = begin if use.window.kind == "landmark" else None
                of_input = (use.key, use.window, use.query.step, since)
                side = UpdatedSet(entries, partials, self._sets, of_input)
            self._early[name] = Remembered(side)
        return self._early[name]


def sides_of(
    group: Sequence[Ready], held: Holding, tables: Mapping[str, pa.Table], known: Sides
) -> list[Contained]:
    """The inputs of a physical join. `known` are those of other joins over the same entries."""
    return [_side_of(group, slot, held, tables, known) for slot in range(len(group[0].uses))]


def _side_of(
    group: Sequence[Ready],
    slot: int,
    held: Holding,
    tables: Mapping[str, pa.Table],
    known: Sides,
) -> Contained:
    lead = group[0]
    use = lead.uses[slot]
    if use is not None and use.early:
        return known.early(use, lead.begins[slot], held)
    if use is not None:
        uses = [used for one in group if (used := one.uses[slot]) is not None]
        entries = held.of(uses, lead.begins[slot])
        partials = tuple({p.name: p for u in uses for p in u.source.partials(u.stream)}.values())
        return Side(entries, False, partials)
    aggregates = (a for one in group for a in source_of(one.query, slot).aggregates)
    source = replace(source_of(lead.query, slot), aggregates=tuple(dict.fromkeys(aggregates)))
    entries = of_table(tables[source.relation], row_columns(source, None), source)
    return Side(entries, lead.early[slot], source.partials(None), always=True)


Results = Iterator[tuple[Group, Array, list[pa.Table | QueryFailure]]]
"""For chunks of instants of groups: of each query its groups, before HAVING and projection, or why it failed."""


class Joins(Protocol):
    """Where physical joins run."""

    def entries(self, use: Use, begin: int) -> Entries:
        """The entries of one input: at least which instants they count at."""
        ...

    def matched(self, one: Ready) -> Entries | None:
        """Instead of the entries of inputs that the network has joined; None: their own are needed."""
        ...

    def has_late(self, use: Use) -> bool | None:
        """Whether late rows are kept for an input; None: it is not known which are late."""
        ...

    def joined(self, query_id: str) -> int | None:
        """How many entries a query has joined so far, at all instants together; None: it is not counted."""
        ...

    def together(self, ready: Sequence[Ready]) -> list[list[Ready]]:
        """The queries in groups that join together."""
        ...

    def results(self, groups: Sequence[Group]) -> Results:
        """What each chunk of each group gives, in this order."""
        ...


@dataclass(frozen=True)
class DriverJoins:
    """Joins in the driver's memory."""

    kept: Kept
    schemas: Mapping[str, StreamSchema]
    tables: Mapping[str, pa.Table]
    ansi: bool
    sets: SetMemory | None = None
    """The aggregation sets of earlier steps."""
    matches: Mapping[str, Matches] = field(default_factory=dict)
    """What the network has found, by its queries for matches."""
    tally: Tally = field(default_factory=Tally)

    def entries(self, use: Use, begin: int) -> Entries:
        return self.kept.of([use], begin)

    def matched(self, one: Ready) -> Entries | None:
        """When a query's matched inputs have joined entries, as far as the network has found them all: no row of them is late."""
        uses = [one.uses[slot] for slot in one.matched]
        if not one.matched or any(use is not None and self.kept.has_late(use) for use in uses):
            return None
        return self._matches(one).entries[one.matched[0]]

    def has_late(self, use: Use) -> bool | None:
        return self.kept.has_late(use)

    def joined(self, query_id: str) -> int | None:
        return self.tally.of(query_id)

    def _matches(self, one: Ready) -> Matches:
        found = self.matches.get(matches_id(one.query.id, one.matched))
        return no_matches(one.query, one.matched, self.schemas) if found is None else found

    def together(self, ready: Sequence[Ready]) -> list[list[Ready]]:
        return joined_together(ready, self.kept)

    def results(self, groups: Sequence[Group]) -> Results:
        known = Sides(self.sets)
        for group in groups:
            if group.ready[0].matched:
                yield from self._of_matches(group, known)
                continue
            sides = sides_of(group.ready, self.kept, self.tables, known)
            for chunk in group.chunks_over(sides):
                members = group.members(chunk, self.schemas, self.tally)
                yield group, chunk, evaluated_together(members, sides, chunk, ansi=self.ansi)

    def _of_matches(self, group: Group, known: Sides) -> Results:
        """A query whose late inputs the network has joined."""
        (one,) = group.ready
        others = {
            slot: _side_of(group.ready, slot, self.kept, self.tables, known)
            for slot in range(len(one.uses))
            if slot not in one.matched
        }
        uses = [use for slot in one.matched if (use := one.uses[slot]) is not None]
        partials = {use.slot: use.source.partials(use.stream) for use in uses}
        matches = {
            slot: Side(entries, False, partials[slot])
            for slot, entries in self._matches(one).entries.items()
        }
        rows: dict[int, Side] = {}
        if any(self.kept.has_late(use) for use in uses):
            rows = {
                use.slot: Side(
                    self.kept.marked(use, one.begins[use.slot]), False, partials[use.slot]
                )
                for use in uses
            }
        parts = parts_of(others, matches, rows)
        for chunk in group.chunks_over([side for part in parts for side in part.sides]):
            members = group.members(chunk, self.schemas, self.tally)
            yield group, chunk, evaluated_in_parts(members, parts, chunk, ansi=self.ansi)
