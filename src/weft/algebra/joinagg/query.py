"""An aggregation join after binding: windows over inputs, their join, and a grouped aggregation of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from weft.algebra.aggregate import Aggregate, distinct_count, lift
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.partial import COUNT_STAR, Partial
from weft.algebra.predicates import PredicateSet
from weft.algebra.query import OutputColumn
from weft.algebra.scalar import Expression, Scalar
from weft.algebra.types import SqlType


@dataclass(frozen=True, slots=True)
class Attribute:
    """A value of an input's row: a name, and the expression over the input's own columns."""

    name: str
    value: Expression

    @property
    def text(self) -> str:
        """What a reader is shown: the name of a column, or the expression."""
        return self.value.sql if self.name.startswith("#") else self.name


@dataclass(frozen=True, slots=True)
class AggregationInput:
    """An input of an aggregation join. Its slot is its place among the query's inputs."""

    relation: str
    alias: str
    window: InputWindow | None
    """None: a table."""
    predicate: Expression | None
    """The selection: all conditions that read this input alone, over its own columns."""
    attributes: tuple[Attribute, ...]
    """What the join, the groups and later conditions read of it: by these an early aggregation groups
    (AggJoin, rule 1)."""


@dataclass(frozen=True, slots=True)
class JoinedAggregate:
    """An aggregate over the joined rows. Its argument and filter read the columns of one input; None: count(*), or
    an aggregate that reads several inputs, such as SUM(a.x * b.y), or one of distinct values. Of such a one `values` and `where` are the arguments and the
    filter over columns `slot.attribute`: it is computed of joined rows."""

    aggregate: Aggregate
    slot: int | None
    values: tuple[Scalar, ...] = ()
    where: Scalar | None = None

    @property
    def is_computed(self) -> bool:
        """Whether it is computed of the attributes of inputs, after the join."""
        return bool(self.values) or self.where is not None

    def partials(self, time: str) -> tuple[Partial, ...]:
        """What it needs of its input's rows, or of joined ones; `time` is the input's event time in microseconds."""
        if self.slot is None and not self.is_computed:
            return (COUNT_STAR,)
        if self.aggregate.distinct:
            arguments = ", ".join(argument.sql for argument in self.aggregate.arguments)
            condition = "" if self.aggregate.filter is None else self.aggregate.filter.sql
            return (distinct_count(arguments, condition),)
        return lift(self.aggregate, time, None)


@dataclass(frozen=True)
class AggregationJoin:
    """`SELECT … FROM inputs [windows] WHERE … GROUP BY keys`, evaluated at the multiples of `step`.

    `predicates` are the conditions between several inputs, and `keys` the grouping expressions, over columns
    `slot.attribute`. HAVING and the output columns read `k0…`, `a0…` and `at`.
    """

    id: str
    name: str
    sql: str
    inputs: tuple[AggregationInput, ...]
    predicates: PredicateSet
    keys: tuple[Scalar, ...]
    aggregates: tuple[JoinedAggregate, ...]
    having: Scalar | None
    columns: tuple[OutputColumn, ...]
    step: int
    changes: bool = False
    """Whether it emits changed and removed groups instead of the whole result of every instant."""

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The relations that the query reads, each once, in the order of FROM."""
        return tuple(dict.fromkeys(entry.relation for entry in self.inputs))

    @property
    def output_types(self) -> tuple[SqlType, ...]:
        return tuple(column.type for column in self.columns)
