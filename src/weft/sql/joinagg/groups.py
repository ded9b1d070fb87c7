"""Keys and aggregates of an aggregation join, and the instant as the time of a group.

A key that reads one input is an attribute of it. One that reads several is computed after the join, of their
attributes: the largest parts of it that read one input. An aggregate reads one input; `count(*)` and `count(B.*)`, the
paper's spelling, count joined rows.

Declines keys over several inputs that only Spark can evaluate, aggregates over several inputs, `count(DISTINCT …)`, and the first or last
of a table's rows, which have no time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from weft.algebra.aggregate import Aggregate
from weft.algebra.joinagg.query import JoinedAggregate
from weft.algebra.predicates.slots import names_in, slot_of, slots_in
from weft.algebra.query import Field
from weft.algebra.scalar import Call, Expression, Literal, Opaque, Scalar, quoted_sql, walk
from weft.algebra.types import TIMESTAMP, is_key
from weft.sql.fallback import Unshared
from weft.sql.grouping.aggregates import bind_aggregate
from weft.sql.grouping.keys import group_node
from weft.sql.grouping.outputs import value_of_group
from weft.sql.joinagg.attributes import Attributes, own_aggregate
from weft.sql.joins.conditions import with_names
from weft.sql.joins.evaluation import needs_spark
from weft.sql.reading.syntax import Function, Name, Select, Star, SyntaxNode
from weft.sql.scopes.rows import WINDOWING, Rows
from weft.sql.scopes.sources import Sources
from weft.sql.typing.coercion import Typed

AT: Final = "at"
"""The result column with the instant."""
_INSTANT: Final = value_of_group(AT, TIMESTAMP)
_BY_TIME: Final = frozenset({"first", "last"})


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
    if scalar is not None:
        named = with_names(scalar, key.columns, node)
        spread = _spread(named, key.can_raise, node, attributes)
        opaque = any(isinstance(part, Opaque) for part in walk(spread))
        if not opaque and not needs_spark(spread):
            return spread
    raise Unshared(
        "GROUP BY an expression on several inputs that only Spark can evaluate",
        node.start,
        "group by its parts, each on one input",
    )


def _spread(scalar: Scalar, can_raise: bool, node: SyntaxNode, attributes: Attributes) -> Scalar:
    """The scalar over the attributes of several inputs."""
    if isinstance(scalar, Literal):
        return scalar
    slots = slots_in(scalar)
    if len(slots) == 1:
        names = tuple(sorted(names_in(scalar)))
        sql = scalar.sql if isinstance(scalar, Opaque) else quoted_sql(scalar)
        value = Expression(sql, scalar.type, names, can_raise and isinstance(scalar, Call))
        return attributes.add(min(slots), value, node.start)
    if isinstance(scalar, Call):
        parts = tuple(_spread(part, can_raise, node, attributes) for part in scalar.arguments)
        return replace(scalar, arguments=parts)
    return scalar


@dataclass(frozen=True, slots=True)
class JoinedAggregates:
    """Binds calls of aggregate functions over the joined rows of some inputs."""

    sources: Sources

    def bind(self, call: Function, rows: Rows) -> Aggregate:
        """The aggregate that a call means, over `slot.column`."""
        aggregate = bind_aggregate(self._of_rows(call, rows), rows)
        if aggregate.distinct:
            raise Unshared(
                f"{call.name}(DISTINCT …) of joined rows has no shared form",
                call.start,
                "approx_count_distinct(x) is shared",
            )
        slots = sorted(_slots(aggregate))
        if len(slots) > 1:
            names = " and ".join(self.sources.read[slot].alias for slot in slots)
            raise Unshared(
                f"{call.name} of columns of several inputs ({names}) has no shared form",
                call.start,
                "let the argument and FILTER of an aggregate read one input",
            )
        if aggregate.function in _BY_TIME and not self.sources.reads_stream(
            range(slots[0], slots[0] + 1) if slots else range(0)
        ):
            raise Unshared(
                f"{call.name} is by event time, and no stream is aggregated here", call.start
            )
        return aggregate

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


def joined_aggregate(aggregate: Aggregate) -> JoinedAggregate:
    """A bound aggregate as one on its input. One that reads no column is on the first."""
    if not aggregate.arguments and aggregate.filter is None:
        return JoinedAggregate(aggregate, None)
    return JoinedAggregate(own_aggregate(aggregate), min(_slots(aggregate), default=0))
