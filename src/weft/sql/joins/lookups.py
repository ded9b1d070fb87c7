"""Optional tables, and tables beside a single stream, as lookups of the rows that they belong to.

A table that is looked up is no input of the query any more: its columns become columns of the input whose
rows it is looked up for (`weft.algebra.network.lookup`). That input is the one that the conditions read;
`LEFT JOIN banks b ON a.bank = b.id` belongs to the transfers if `a` was looked up for them before.

Sound: a lookup depends on one row, so it may come before inner joins of that row with others. Optional tables
come after all others whose columns they read.

- A query on one stream looks up all its tables: it has no state then, and a late row is no problem.
- Of several streams only optional tables are lookups, and tables that these need beside their stream.
- Of an inner join with a table the equalities decide the matches. Other conditions are tested later, so
  queries that differ in them share the lookup.
- Lookups that could come in any order are ordered by their tables and conditions, so it does not matter in
  which order a query writes them.

Declines optional tables whose conditions read several streams: there is no single row to look up for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from weft.algebra.condition.values import is_point
from weft.algebra.network.lookup import MARKER, Lookup, LookupKind, prefix
from weft.algebra.network.query import JoinInput, Partner
from weft.algebra.predicates import OrPredicate, PredicateSet
from weft.algebra.predicates.predicate_set import NEVER
from weft.algebra.predicates.slots import column_name, plain_name, slot_of
from weft.sql.fallback import Unshared
from weft.sql.joins.bound import BoundBlock, BoundOptional
from weft.sql.joins.partners import asked, partner
from weft.sql.scopes.sources import Sources

_SLOT: Final = re.compile(r"`(\d+)\.")


@dataclass(frozen=True)
class Folded:
    """What is left of a query's inputs when tables have become lookups."""

    inputs: tuple[JoinInput, ...]
    predicates: PredicateSet
    places: Mapping[int, tuple[int, str]]
    """For slots before: the input that has its columns now, and what their names begin with."""
    partner: Partner | None = None

    def rename(self, name: str) -> str:
        """The name of a column by the slots that are left."""
        slot, beginning = self.places[slot_of(name)]
        return column_name(slot, beginning + plain_name(name))


def folded(sources: Sources, block: BoundBlock, *, every_table: bool = False) -> Folded:
    """The inputs and conditions of a query, with lookups in place of the tables that can be looked up, and
    with its partner. With `every_table`, those beside one stream are looked up even if no row can ever
    match."""
    block, question = asked(sources, block)
    folding = _Folding(sources)
    predicates = folding.joined(block)
    if every_table and block.predicates.never:
        folding.never_found(folding.streams(block)[0], block.members)
    outer = folding.roots(block)
    if question is None:
        return folding.result(outer, (), predicates)
    never = question.block.predicates.never
    conditions = NEVER if never else folding.joined(question.block)
    inner = () if never else folding.roots(question.block)
    result = folding.result(outer, inner, predicates)
    inputs = tuple(folding.input(root) for root in inner)
    conditions = conditions.renamed(result.rename)
    other = partner(sources, question, result.inputs, inputs, result.predicates, conditions)
    if other is None and question.kind == "semi-join":
        return replace(result, predicates=NEVER)
    return replace(result, partner=other)


@dataclass
class _Folding:
    """Which input has the columns of every slot, and the lookups of the inputs so far."""

    sources: Sources
    places: dict[int, tuple[int, str]] = field(default_factory=dict)
    _lookups: dict[int, list[Lookup]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for slot in range(len(self.sources.read)):
            self.places[slot] = (slot, "")
            self._lookups[slot] = []

    def input(self, root: int) -> JoinInput:
        entry = self.sources.read[root]
        lookups = tuple(self._lookups[root])
        return JoinInput(entry.relation, entry.alias, lookups)

    def joined(self, block: BoundBlock) -> PredicateSet:
        """The conditions of streams and of tables beside them. A single stream looks up all tables."""
        streams = self.streams(block)
        together = len(streams) == 1 and not block.predicates.never
        return self.settled(block, streams[0], block.members if together else ())

    def streams(self, block: BoundBlock) -> list[int]:
        return [slot for slot in block.members if self.sources.reads_stream([slot])]

    def roots(self, block: BoundBlock) -> tuple[int, ...]:
        """The inputs of a block that are no lookups."""
        return tuple(
            sorted({root for slot, (root, _) in self.places.items() if slot in block.slots})
        )

    def result(
        self, outer: Sequence[int], inner: Sequence[int], predicates: PredicateSet
    ) -> Folded:
        """A query with these inputs and, behind them, these of its partner."""
        order = [*outer, *inner]
        places = {
            slot: (order.index(root), beginning)
            for slot, (root, beginning) in self.places.items()
            if root in order
        }
        result = Folded(tuple(self.input(root) for root in outer), predicates, places)
        return replace(result, predicates=predicates.renamed(result.rename))

    def settled(self, block: BoundBlock, base: int, merged: Sequence[int]) -> PredicateSet:
        """Look up all optional tables of a block, and some of its members for the rows of another, the
        base. Gives the conditions that are left to be tested."""
        rest = list(block.predicates.predicates)
        optional = list(block.optional)
        wanted = [(base, member) for member in merged if member != base]
        while wanted or optional:
            if self._merged_one(wanted, rest, by_equality=True):
                continue
            ready = [tables for tables in optional if not self._waits(tables, optional)]
            alone = [tables for tables in ready if self._row_of(tables, base) is not None]
            chosen = min(alone, key=self._order, default=None)
            if chosen is not None:
                self._look_up(chosen, base)
                optional.remove(chosen)
            elif not self._merged_one(wanted, rest, by_equality=False):
                if optional:
                    wanted += self._needed(ready[0], block)
                else:
                    self._cross(*wanted.pop(), block)
        return PredicateSet(tuple(rest))

    def never_found(self, base: int, members: Sequence[int]) -> None:
        """Look up members of a block for the rows of another, of which none ever matches."""
        for member in members:
            if member != base:
                self._attach(base, member, "inner", NEVER)

    def _waits(self, tables: BoundOptional, others: Sequence[BoundOptional]) -> bool:
        """Whether tables read columns of others that have not been looked up."""
        return any(
            not tables.read.isdisjoint(other.block.slots) for other in others if other is not tables
        )

    def _row_of(self, tables: BoundOptional, base: int) -> int | None:
        """The input for whose rows optional tables are looked up; None if they read several."""
        roots = {self.places[slot][0] for slot in tables.read} or {base}
        return roots.pop() if len(roots) == 1 else None

    def _look_up(self, tables: BoundOptional, base: int) -> None:
        row = self._row_of(tables, base)
        assert row is not None
        first, *others = tables.block.members
        never = tables.block.predicates.never
        predicates = self.settled(tables.block, first, () if never else tables.block.members)
        if never:
            self.never_found(first, others)
        self._attach(row, first, tables.kind, predicates, tables.unknown)

    def _merged_one(
        self, wanted: list[tuple[int, int]], rest: list[OrPredicate], *, by_equality: bool
    ) -> bool:
        """Look up one of the wanted members for the rows of its base, if a condition connects them."""
        ready: list[tuple[str, tuple[int, int], list[OrPredicate]]] = []
        for base, member in wanted:
            connecting = [
                predicate for predicate in rest if self._connects(predicate, base, member)
            ]
            equal = [predicate for predicate in connecting if _is_equality(predicate)]
            chosen = equal if by_equality else connecting
            if chosen:
                order = self._text([member], PredicateSet(tuple(chosen)))
                ready.append((order, (base, member), chosen))
        if not ready:
            return False
        _, pair, chosen = min(ready)
        self._attach(*pair, "inner", PredicateSet(tuple(chosen)))
        wanted.remove(pair)
        for predicate in chosen:
            rest.remove(predicate)
        return True

    def _order(self, tables: BoundOptional) -> tuple[str, str]:
        """Equal for tables that two queries look up alike, wherever these write them."""
        predicates = [tables.block.predicates, *tables.unknown]
        texts = [self._text(tables.block.members, one) for one in predicates]
        return tables.kind, " ".join(texts)

    def _text(self, members: Sequence[int], predicates: PredicateSet) -> str:
        """Conditions by the names of tables instead of slots."""

        def place(match: re.Match[str]) -> str:
            root, beginning = self.places[int(match[1])]
            known = root not in members
            return f"`{beginning if known else self.sources.read[root].relation}."

        tables = sorted(self.sources.read[member].relation for member in members)
        return f"{' '.join(tables)} {_SLOT.sub(place, predicates.sql)}"

    def _connects(self, predicate: OrPredicate, base: int, member: int) -> bool:
        return {self.places[slot][0] for slot in predicate.slots} == {base, member}

    def _needed(self, tables: BoundOptional, block: BoundBlock) -> list[tuple[int, int]]:
        """The members of a block that must be looked up before tables that read all of them."""
        roots = {self.places[slot][0] for slot in tables.read}
        streams = [slot for slot in roots if self.sources.reads_stream([slot])]
        if len(streams) > 1 or not roots <= set(block.members):
            raise Unshared(
                f"{tables.words} with conditions on several inputs has no shared form", tables.at
            )
        base = streams[0] if streams else min(roots)
        return [(base, member) for member in sorted(roots) if member != base]

    def _cross(self, base: int, member: int, block: BoundBlock) -> None:
        """Every row of a table for every row: only where the query says that this is meant."""
        entry = self.sources.read[member]
        if not any(member in pair for pair in self.sources.crossed):
            raise Unshared("tables that no condition connects have no shared form", entry.at)
        self._attach(base, member, "inner", PredicateSet())

    def _attach(
        self,
        row: int,
        table: int,
        kind: LookupKind,
        predicates: PredicateSet,
        unknown: Sequence[PredicateSet] = (),
    ) -> None:
        """Look up a table for the rows of an input."""

        def rename(name: str) -> str:
            root, beginning = self.places[slot_of(name)]
            return column_name(int(root != row), beginning + plain_name(name))

        self._check_names(row, table)
        lookups = self._lookups[row]
        lookup = Lookup(
            kind,
            self.sources.read[table].relation,
            predicates.renamed(rename),
            tuple(predicates.renamed(rename) for predicates in unknown),
            tuple(self._lookups.pop(table)),
        )
        if kind == "mark" and lookup in lookups:
            number = lookups.index(lookup)
        else:
            number = len(lookups)
            lookups.append(lookup)
        beginning = prefix(lookup.table, number)
        for slot, (root, before) in self.places.items():
            if root == table:
                self.places[slot] = (row, beginning + before)

    def _check_names(self, *slots: int) -> None:
        for base in self.sources.base:
            if slot_of(base.name) in slots and MARKER in plain_name(base.name):
                at = self.sources.read[slot_of(base.name)].at
                raise Unshared(f"a column with {MARKER} in its name beside a table", at)


def _is_equality(predicate: OrPredicate) -> bool:
    """Whether a condition is met by one value of what it speaks of."""
    values = predicate.literals[0].values
    return (
        len(predicate.literals) == 1
        and not values.null
        and len(values.intervals) == 1
        and is_point(values.intervals[0])
    )
