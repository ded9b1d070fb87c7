"""Keys and aggregates of an aggregation join, and the instant as the time of a group.

A key that reads one input is an attribute of it. One that reads several is computed after the join, of their
attributes: the largest parts of it that read one input. So is the argument of an aggregate, if it and the filter read several inputs, or if its distinct
values are counted. `count(*)` and `count(B.*)`, the paper's spelling, count joined rows.

Declines keys and arguments over several inputs that only Spark can evaluate, sketches and ordered aggregates over several inputs, and the first
or last of a table's rows, which have no time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from weft.algebra.aggregate import EXTREMES, MOMENTS, Aggregate
from weft.algebra.joinagg.query import JoinedAggregate
from weft.algebra.predicates.slots import names_in, slot_of, slots_in
from weft.algebra.query import Field
from weft.algebra.scalar import Call, Expression, Literal, Opaque, Scalar, quoted_sql, walk
from weft.algebra.types import BOOLEAN, INTEGRAL, TIMESTAMP, is_key
from weft.sql.fallback import Unshared
from weft.sql.grouping.aggregates import bind_aggregate
from weft.sql.grouping.keys import group_node
from weft.sql.grouping.outputs import value_of_group
from weft.sql.joinagg.attributes import Attributes, own_aggregate
from weft.sql.joins.conditions import with_names
from weft.sql.joins.evaluation import needs_spark
from weft.sql.reading.functions import AGGREGATES
from weft.sql.reading.syntax import Function, Name, Select, Star, SyntaxNode
from weft.sql.scopes.rows import IN_ARGUMENT, WINDOWING, Rows
from weft.sql.scopes.sources import Sources
from weft.sql.typing.coercion import Typed, widens
from weft.sql.typing.scalars import Typer

AT: Final = "at"
"""The result column with the instant."""
_INSTANT: Final = value_of_group(AT, TIMESTAMP)
_BY_TIME: Final = frozenset({"first", "last"})
_WRAPPING: Final = frozenset({"+", "-", "*", "negate"})
_CASTS: Final = frozenset({"cast_int", "cast_bigint", "cast_double"})
_OF_SEVERAL: Final = frozenset({"count", "sum", "avg", *EXTREMES, *MOMENTS})
"""Aggregates whose partials the kernel can lift of values that it has computed."""


@dataclass(frozen=True, slots=True)
class InstantTime:
    """The instant of evaluation, which groups belong to: `at`, unless an input has a column of this name."""

    fields: tuple[Field, ...] = (Field(AT, TIMESTAMP),)

    def call(self, node: Function, *, in_having: bool) -> Typed | None:
        if node.name in WINDOWING:
            raise beside_brackets(node)
        return None

    def name(self, node: Name) -> Typed | None:
        return _INSTANT if _is_instant(node) else None

    def check(self, node: Name, column: str) -> None:
        """Columns may have any name."""

    def field(self, value: Typed, node: SyntaxNode, path: tuple[str, ...]) -> Typed | None:
        return None


def _is_instant(node: SyntaxNode) -> bool:
    return isinstance(node, Name) and tuple(map(str.lower, node.parts)) == (AT,)


def beside_brackets(node: Function) -> Unshared:
    return Unshared(
        f"{node.name}(…) beside windows in brackets",
        node.start,
        f"leave it out: results have the instant in the column {AT}",
    )


@dataclass(frozen=True, slots=True)
class Keys:
    """What a query groups by: expressions over `slot.column`, and the same over `slot.attribute`."""

    expressions: tuple[Expression, ...]
    scalars: tuple[Scalar, ...]


def bound_keys(select: Select, rows: Rows, attributes: Attributes) -> Keys:
    """The keys of GROUP BY, each once. The instant is none of them: every group has one."""
    expressions: dict[str, Expression] = {}
    scalars: list[Scalar] = []
    for written in select.group:
        node = group_node(written, select, rows)
        if _is_instant(node) and isinstance(node, Name) and rows.find(node) is None:
            continue
        if isinstance(node, Function) and node.name in WINDOWING:
            raise beside_brackets(node)
        key, scalar = rows.typed(node, "in GROUP BY", opaque=True)
        if not is_key(key.type):
            raise Unshared(f"grouping by a {key.type} has no shared form", written.start)
        if key.sql not in expressions:
            expressions[key.sql] = key
            scalars.append(_key(key, scalar, node, attributes))
    if select.group and not scalars:
        reason = f"GROUP BY {AT} alone"
        raise Unshared(
            reason, select.group[0].start, "leave GROUP BY out: every instant is a group"
        )
    return Keys(tuple(expressions.values()), tuple(scalars))


def _key(
    key: Expression, scalar: Scalar | None, node: SyntaxNode, attributes: Attributes
) -> Scalar:
    slots = {slot_of(name) for name in key.columns}
    if len(slots) <= 1:
        return attributes.add(min(slots, default=0), key, node.start)
    computed = _computed(key, scalar, node, attributes)
    if computed is None:
        raise Unshared(
            "GROUP BY an expression on several inputs that only Spark can evaluate",
            node.start,
            "group by its parts, each on one input",
        )
    return computed


def _computed(
    value: Expression,
    scalar: Scalar | None,
    node: SyntaxNode,
    attributes: Attributes,
    raising: Collection[str] = (),
) -> Scalar | None:
    """The value over attributes of the inputs it reads; None if only Spark can evaluate it. `raising` is the text of those parts for Spark that may
    raise an error."""
    if scalar is None:
        return None
    named = with_names(scalar, value.columns, node)
    spread = _Spreading(value.can_raise, raising, node.start, attributes).spread(named)
    opaque = any(isinstance(part, Opaque) for part in walk(spread))
    return None if opaque or needs_spark(spread) else spread


@dataclass(frozen=True, slots=True)
class _Spreading:
    """Spreads an expression over the attributes of several inputs."""

    can_raise: bool
    raising: Collection[str]
    at: int
    attributes: Attributes

    def spread(self, scalar: Scalar) -> Scalar:
        """The scalar over attributes. A part that may raise an error is evaluated after the join, too, if the kernel can: then only on
        rows that reach it."""
        if isinstance(scalar, Literal):
            return scalar
        slots = slots_in(scalar)
        raises = self.can_raise and any(map(self._may_raise, walk(scalar)))
        after_join = raises and isinstance(scalar, Call) and not needs_spark(scalar)
        if len(slots) == 1 and not after_join:
            names = tuple(sorted(names_in(scalar)))
            sql = scalar.sql if isinstance(scalar, Opaque) else quoted_sql(scalar)
            value = Expression(sql, scalar.type, names, raises)
            return self.attributes.add(min(slots), value, self.at)
        if isinstance(scalar, Call):
            return replace(scalar, arguments=tuple(map(self.spread, scalar.arguments)))
        return scalar

    def _may_raise(self, part: Scalar) -> bool:
        """Whether a part may raise an error under ANSI."""
        if isinstance(part, Opaque):
            return part.sql in self.raising
        if not isinstance(part, Call):
            return False
        if part.operator in _CASTS:
            return not widens(part.arguments[0].type, part.type)
        return part.operator == "/" or (part.operator in _WRAPPING and part.type in INTEGRAL)


@dataclass(slots=True)
class _OneInputParts:
    """A scope in which every part that reads one input is a value, also if only Spark can evaluate it."""

    rows: Rows
    raising: set[str] = field(default_factory=set)
    """The text of those that may raise an error."""

    def leaf(self, node: SyntaxNode) -> Typed | None:
        typed = self.rows.leaf(node)
        if typed is not None or isinstance(node, Name):
            return typed
        value, scalar = self.rows.typed(node, IN_ARGUMENT, opaque=True)
        if scalar is not None or len({slot_of(name) for name in value.columns}) != 1:
            return None
        if value.can_raise:
            self.raising.add(value.sql)
        of_spark = Opaque(value.sql, value.columns, value.type)
        return Typed(value.sql, value.type, value.can_raise, of_spark)

    def call(self, node: Function) -> None:
        self.rows.call(node)


@dataclass(slots=True)
class JoinedAggregates:
    """Binds calls of aggregate functions over the joined rows of some inputs."""

    sources: Sources
    attributes: Attributes
    _of_several: dict[Aggregate, JoinedAggregate] = field(default_factory=dict)

    def joined(self, aggregate: Aggregate) -> JoinedAggregate:
        """A bound aggregate as one on its input, or on several. One that reads no column is on the first."""
        if not aggregate.arguments and aggregate.filter is None:
            return JoinedAggregate(aggregate, None)
        if aggregate in self._of_several:
            return self._of_several[aggregate]
        return JoinedAggregate(own_aggregate(aggregate), min(_slots(aggregate), default=0))

    def bind(self, call: Function, rows: Rows) -> Aggregate:
        """The aggregate that a call means, over `slot.column`."""
        aggregate = bind_aggregate(self._of_rows(call, rows), rows)
        slots = sorted(_slots(aggregate))
        if len(slots) > 1 or aggregate.distinct:
            self._of_several[aggregate] = self._spread(aggregate, call, rows, slots)
            return aggregate
        if aggregate.function in _BY_TIME and not self.sources.reads_stream(
            range(slots[0], slots[0] + 1) if slots else range(0)
        ):
            raise Unshared(
                f"{call.name} is by event time, and no stream is aggregated here", call.start
            )
        return aggregate

    def _spread(
        self, aggregate: Aggregate, call: Function, rows: Rows, slots: Sequence[int]
    ) -> JoinedAggregate:
        """An aggregate whose argument and filter read several inputs."""
        names = " and ".join(self.sources.read[slot].alias for slot in slots)
        if aggregate.function not in _OF_SEVERAL:
            raise Unshared(
                f"{call.name} of columns of several inputs ({names}) has no shared form",
                call.start,
                "let the argument and FILTER of this aggregate read one input",
            )
        conditions = [call.filter] if call.filter is not None else []
        arguments = call.arguments if aggregate.arguments else ()
        if AGGREGATES[call.name] == "count_if":
            conditions, arguments = [*conditions, *call.arguments], ()
        values = [self._value(node, rows, call) for node in arguments]
        tests = [self._value(node, rows, call) for node in conditions]
        where = Call("and", tuple(tests), BOOLEAN) if len(tests) > 1 else next(iter(tests), None)
        return JoinedAggregate(aggregate, None, tuple(values), where)

    def _value(self, node: SyntaxNode, rows: Rows, call: Function) -> Scalar:
        value, scalar = rows.typed(node, IN_ARGUMENT, opaque=True)
        read = {slot_of(name) for name in value.columns}
        if len(read) > 1 or value.can_raise:
            parts = _OneInputParts(rows)
            if scalar is None:
                scalar = Typer(parts, rows.ansi, opaque=True).type(node).scalar
            computed = _computed(value, scalar, node, self.attributes, parts.raising)
            if computed is not None:
                return computed
        if len(read) <= 1:
            return self.attributes.add(min(read, default=0), value, node.start)
        raise Unshared(
            f"{call.name} of an expression on several inputs that only Spark can evaluate",
            node.start,
            "between inputs use CASE, comparisons, and +, -, *, / of integers and doubles; what reads one input "
            "may be anything, such as CAST(x AS DOUBLE)",
        )

    def _of_rows(self, call: Function, rows: Rows) -> Function:
        """count(B.*) is count(*): every joined row has a row of B."""
        if call.name != "count" or call.distinct or len(call.arguments) != 1:
            return call
        (star,) = call.arguments
        if not isinstance(star, Star):
            return call
        if rows.scope.starred(star.qualifier) is None:
            name = ".".join((*star.qualifier, "*"))
            raise rows.source.error(
                "UNKNOWN_COLUMN",
                star.start,
                name=name,
                stream=rows.scope.described,
                known=rows.scope.listed,
            )
        return replace(call, arguments=(), star=True)


def _slots(aggregate: Aggregate) -> set[int]:
    read = [*aggregate.arguments, *([aggregate.filter] if aggregate.filter is not None else [])]
    return {slot_of(name) for expression in read for name in expression.columns}
