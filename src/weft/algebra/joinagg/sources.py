"""What the inputs of aggregation joins are made of: a selection of a relation, by attributes, with partials, in panes.

A source is the same thing whether an input is early or late: early, the stream publishes its panes, aggregated; late, it
publishes its rows, each of which becomes an entry by itself. Equal inputs of several queries have one source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from weft.algebra import codec
from weft.algebra.aggregate import Aggregate, lift
from weft.algebra.joinagg.query import AggregationJoin, Attribute
from weft.algebra.partial import SKETCHES, Partial
from weft.algebra.query import StreamSchema
from weft.algebra.scalar import Expression
from weft.algebra.types import BIGINT, BOOLEAN

SIGNATURE: Final = "#signature"
"""The name of the attribute that says which selections an entry is of."""
LATE: Final = "#late"
"""The name of the attribute that says whether a row came when the watermark of its stream had passed it, though not its pane."""
MOST_SELECTIONS: Final = 62
"""How many selections a signature has bits for."""


@dataclass(frozen=True)
class Source:
    """A selection of a relation, with what some inputs of queries need of it. A table has no panes."""

    relation: str
    pane: int
    attributes: tuple[Attribute, ...]
    predicate: Expression | None
    aggregates: tuple[Aggregate, ...]
    selections: tuple[Expression, ...] = ()
    """Of a set that serves several selections: each is a bit of its entries' signature."""

    @cached_property
    def id(self) -> str:
        values = (self.relation, self.pane, self.attributes, self.predicate, self.aggregates)
        known = (*values, self.selections) if self.selections else values
        return f"#{codec.digest(known, 16)}"

    @cached_property
    def keys(self) -> tuple[Attribute, ...]:
        """What its entries are told apart by: the attributes, and the signature."""
        if not self.selections:
            return self.attributes
        return (*self.attributes, Attribute(SIGNATURE, _signature(self.selections)))

    def lifted(self, stream: StreamSchema | None) -> tuple[tuple[Partial, ...], ...]:
        """The partials of each aggregate."""
        time = time_of(stream)
        return tuple(lift(aggregate, time, None) for aggregate in self.aggregates)

    def partials(self, stream: StreamSchema | None) -> tuple[Partial, ...]:
        """The partials of all aggregates, each once."""
        of_all = (partial for lifted in self.lifted(stream) for partial in lifted)
        return tuple({partial.name: partial for partial in of_all}.values())

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All expressions over the relation's columns."""
        values = [attribute.value for attribute in self.attributes]
        values += [argument for a in self.aggregates for argument in a.arguments]
        values += [a.filter for a in self.aggregates if a.filter is not None]
        values += self.selections
        return (*values, *([self.predicate] if self.predicate is not None else ()))

    @property
    def columns(self) -> frozenset[str]:
        """The relation's columns that it reads."""
        return frozenset(name for value in self.expressions for name in value.columns)

    @property
    def can_raise(self) -> bool:
        return any(value.can_raise for value in self.expressions)

    @property
    def has_sketches(self) -> bool:
        return any(p.combine.name in SKETCHES for p in self.partials(None))


def _signature(selections: Sequence[Expression]) -> Expression:
    """Which selections hold for a row: a bit for each."""
    bits = (f"CASE WHEN {one.sql} THEN {1 << n}L ELSE 0L END" for n, one in enumerate(selections))
    columns = sorted({name for one in selections for name in one.columns})
    return Expression(" | ".join(f"({bit})" for bit in bits), BIGINT, tuple(columns))


def selection(predicate: Expression) -> Attribute:
    """Whether a row is selected, as a value of the row."""
    return Attribute(f"?{codec.digest(predicate.sql, 16)}", predicate)


def row_store(source: Source) -> str:
    """The name of the rows that late inputs of a relation share: those with panes of one length."""
    return f"@{codec.digest((source.relation, source.pane), 16)}"


def united(sources: Sequence[Source]) -> Source:
    """What the rows of a store hold for several sources: all attributes and aggregates, the selections as values, and whether a row came
    late. None of these can raise an error, for an input with one that can is early."""
    attributes = {a.name: a for source in sources for a in source.attributes}
    chosen = (selection(s.predicate) for s in sources if s.predicate is not None)
    attributes |= {attribute.name: attribute for attribute in chosen}
    attributes[LATE] = Attribute(LATE, Expression("false", BOOLEAN))
    aggregates = dict.fromkeys(a for source in sources for a in source.aggregates)
    relation, pane = sources[0].relation, sources[0].pane
    return Source(relation, pane, tuple(attributes.values()), None, tuple(aggregates))


def time_of(stream: StreamSchema | None) -> str:
    """The event time of a relation's rows as Spark SQL; rows of a table have none."""
    return stream.time_micros if stream is not None else "cast(NULL AS bigint)"


def source_of(query: AggregationJoin, slot: int) -> Source:
    """What an input is made of."""
    entry = query.inputs[slot]
    aggregates = dict.fromkeys(a.aggregate for a in query.aggregates if a.slot == slot)
    pane = 0 if entry.window is None else entry.window.pane(query.step)
    return Source(entry.relation, pane, entry.attributes, entry.predicate, tuple(aggregates))
