"""A select-join-project query after binding, free of its SQL's spelling."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from weft.algebra.network.lookup import Lookup, columns_read, relation_name, tables_of
from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.slots import column_name, names_in, plain_name, slot_of
from weft.algebra.query import OutputColumn
from weft.algebra.scalar import Opaque
from weft.algebra.types import SqlType

BEFORE: Final = "#before"
"""A value that conditions on a stream's rows may read, though it is no column: the stream's watermark before the step that they came with."""


@dataclass(frozen=True)
class JoinInput:
    """A stream or table in FROM. Its slot is its place among the query's inputs."""

    relation: str
    alias: str
    """The name by which the query calls it, for people."""
    lookups: tuple[Lookup, ...] = ()
    """What its rows get from tables."""

    @cached_property
    def source(self) -> str:
        """The relation's name in a network: with lookups it is a relation of its own."""
        return relation_name(self.relation, self.lookups)


PartnerKind = Literal["semi-join", "anti-join"]


@dataclass(frozen=True)
class Partner:
    """What a row of a query must have a match in (`semi-join`: EXISTS, IN, INTERSECT), or none
    (`anti-join`: NOT EXISTS, NOT IN, EXCEPT): the rows of other streams, joined among each other."""

    kind: PartnerKind
    inputs: tuple[JoinInput, ...]
    predicates: PredicateSet
    """What holds of the partner's rows alone, over its own slots."""
    matching: PredicateSet
    """When a row and a partner's row match: over the slots of the query, then those of the partner."""


@dataclass(frozen=True)
class JoinQuery:
    """`SELECT columns FROM inputs WHERE predicates`: one input is a filter, several are a join.

    Columns are named `slot.column` (`weft.algebra.predicates.slots`), in the predicates and in the
    scalars of the output columns. `predicates` holds all conditions, also those that were inferred.
    `id` is unique over the life of a checkpoint, as for windowed aggregates.
    """

    id: str
    name: str
    sql: str
    inputs: tuple[JoinInput, ...]
    predicates: PredicateSet
    columns: tuple[OutputColumn, ...]
    distinct: bool = False
    partner: Partner | None = None
    """If there is one, only rows with or without a match in it count."""
    members: tuple[str, ...] = ()
    """Who reads its rows, if these are no results: they are published under its name. Windowed aggregates read those of a derived stream
    (`weft.algebra.network.derived`), an aggregation join its matches (`weft.algebra.joinagg.matches`)."""
    backfill: bool = False
    """Whether it sees the rows that history holds when it is added, too."""
    title: str = ""
    """What people call it, if not by its name."""
    computed: tuple[tuple[str, Opaque], ...] = ()
    """Values that Spark computes of each row of an input, beside those that conditions need: the columns of the input that hold them, as
    `slot.column`."""

    @property
    def shown_name(self) -> str:
        """What a reader is shown."""
        return self.title or self.name

    @property
    def every_input(self) -> tuple[JoinInput, ...]:
        """Its inputs and its partner's."""
        return self.inputs + (self.partner.inputs if self.partner is not None else ())

    @cached_property
    def output_names(self) -> frozenset[str]:
        """The columns that its result columns are made of, as `slot.column`."""
        return frozenset().union(*(names_in(column.value) for column in self.columns))

    @cached_property
    def names(self) -> frozenset[str]:
        """All columns that the query reads, as `slot.column`, over the slots of its inputs and then its
        partner's."""
        computed = (frozenset(value.names) for _, value in self.computed)
        shown = self.output_names - {name for name, _ in self.computed}
        names = self.predicates.names.union(shown, *computed)
        if self.partner is None:
            return names
        first = len(self.inputs)
        of_partner = (
            column_name(slot_of(name) + first, plain_name(name))
            for name in self.partner.predicates.names
        )
        return names | self.partner.matching.names | frozenset(of_partner)

    @property
    def branches(self) -> tuple[JoinQuery, ...]:
        """A join query is a union of one branch (`weft.algebra.network.sets`)."""
        return (self,)

    @property
    def distinct_in(self) -> tuple[int | None, ...]:
        return (0 if self.distinct else None,)

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The streams and tables that the query reads, each once: those of FROM in their order, then
        those of lookups."""
        inputs = self.every_input
        tables = (table for entry in inputs for table in tables_of(entry.lookups))
        return tuple(dict.fromkeys([*(entry.relation for entry in inputs), *tables]))

    @cached_property
    def _columns(self) -> dict[str, frozenset[str]]:
        columns: dict[str, set[str]] = {relation: set() for relation in self.relations}
        for slot, entry in enumerate(self.every_input):
            names = {plain_name(name) for name in self.names if slot_of(name) == slot}
            for relation, column in columns_read(entry.relation, entry.lookups, names - {BEFORE}):
                columns[relation].add(column)
        return {relation: frozenset(names) for relation, names in columns.items()}

    def columns_of(self, relation: str) -> frozenset[str]:
        """The columns of a stream or table that the query reads."""
        return self._columns.get(relation, frozenset())

    @property
    def output_types(self) -> tuple[SqlType, ...]:
        return tuple(column.type for column in self.columns)
