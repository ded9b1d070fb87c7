"""Binds calls of aggregate functions.

Every name of an aggregate leads to one canonical `Aggregate`, so that equal aggregates of a
query, and of different queries, are equal values.
"""

from __future__ import annotations

from typing import Final

from weft.algebra.aggregate import MOMENTS, Aggregate, result_type
from weft.algebra.scalar import Expression, Value, conjunction
from weft.algebra.types import BIGINT, BOOLEAN, SqlType, is_key, is_ordered
from weft.sql.fallback import Unshared
from weft.sql.reading.functions import AGGREGATES
from weft.sql.reading.syntax import Constant, Function, Number, String, SyntaxNode
from weft.sql.scopes.rows import IN_ARGUMENT, IN_FILTER, Rows
from weft.sql.typing.coercion import number

_ONE_ARGUMENT: Final = frozenset({"sum", "avg", "min", "max", "bool_and", "bool_or", *MOMENTS})
_DISTINCT_CHANGES_NOTHING: Final = frozenset({"min", "max", "bool_and", "bool_or"})
_DEFAULT_DEVIATION: Final = 0.05
_DEFAULT_ACCURACY: Final = 10000


def bind_aggregate(call: Function, rows: Rows) -> Aggregate:
    """The aggregate that a call means; `Unshared` where weft has no partial form for it."""
    function = AGGREGATES[call.name]
    if call.star and function != "count":
        raise Unshared(f"{call.name}(*) has no shared form", call.start)
    if call.nulls and function not in ("first", "last"):
        raise Unshared(f"{call.name} with {call.nulls} nulls has no shared form", call.start)
    if call.distinct and function != "count" and function not in _DISTINCT_CHANGES_NOTHING:
        raise Unshared(
            f"{call.name}(DISTINCT …) has no partial form",
            call.start,
            "count(DISTINCT x) and approx_count_distinct(x) are shared",
        )
    filter_ = None
    if call.filter is not None:
        filter_ = _condition(rows, call.filter, IN_FILTER)
    if function == "count":
        return _count(call, rows, filter_)
    if function == "count_if":
        condition = _condition(rows, _only_argument(call), IN_ARGUMENT)
        return Aggregate("count", (), BIGINT, conjunction(filter_, condition))
    if function in _ONE_ARGUMENT:
        return _typed(call, function, (_only_argument(call),), rows, filter_)
    if function in ("min_by", "max_by"):
        return _by(call, function, rows, filter_)
    if function in ("first", "last"):
        return _end(call, function, rows, filter_)
    if function == "approx_count_distinct":
        return _approximate_count(call, rows, filter_)
    return _percentile(call, rows, filter_)


def _only_argument(call: Function) -> SyntaxNode:
    if len(call.arguments) != 1:
        raise _wrong_number(call)
    return call.arguments[0]


def _wrong_number(call: Function) -> Unshared:
    return Unshared(
        f"{call.name} of {len(call.arguments)} arguments has no shared form", call.start
    )


def _condition(rows: Rows, node: SyntaxNode, where: str) -> Expression:
    condition = rows.expression(node, where)
    if condition.type != BOOLEAN:
        raise rows.source.error(
            "TYPE_MISMATCH",
            node.start,
            detail=f"a condition is boolean, not {condition.type}",
        )
    return condition


def _count(call: Function, rows: Rows, filter_: Expression | None) -> Aggregate:
    if not call.arguments and not call.star:
        raise Unshared("count() needs an argument or *", call.start)
    if not call.distinct and all(_is_value(argument) for argument in call.arguments):
        return Aggregate("count", (), BIGINT, filter_)
    arguments = _arguments(call.arguments, rows)
    for argument, node in zip(arguments, call.arguments):
        usable = is_key(argument.type) if call.distinct else argument.type != "void"
        if not usable:
            raise Unshared(f"{call.name} of a {argument.type} has no shared form", node.start)
    return Aggregate("count", arguments, BIGINT, filter_, (), call.distinct)


def _is_value(node: SyntaxNode) -> bool:
    """Whether a node is a literal other than NULL, so that count(node) is count(*)."""
    if isinstance(node, Constant):
        return node.value is not None
    return isinstance(node, (Number, String))


def _arguments(nodes: tuple[SyntaxNode, ...], rows: Rows) -> tuple[Expression, ...]:
    return tuple(rows.expression(node, IN_ARGUMENT) for node in nodes)


def _typed(
    call: Function,
    function: str,
    nodes: tuple[SyntaxNode, ...],
    rows: Rows,
    filter_: Expression | None,
    parameters: tuple[Value, ...] = (),
) -> Aggregate:
    arguments = _arguments(nodes, rows)
    type_ = result_type(function, arguments[0].type)
    if type_ is None:
        raise _no_partial_form(call, rows)
    return Aggregate(function, arguments, type_, filter_, parameters)


def _no_partial_form(call: Function, rows: Rows) -> Unshared:
    """Raises if Spark refuses the aggregate on these types; else gives the reason to fall back."""
    arguments = _arguments(call.arguments, rows)
    rows.ask(f"{call.name}({', '.join(argument.sql for argument in arguments)})", call)
    types = ", ".join(argument.type for argument in arguments)
    return Unshared(f"{call.name} of {types} has no partial form", call.start)


def _by(call: Function, function: str, rows: Rows, filter_: Expression | None) -> Aggregate:
    if len(call.arguments) != 2:
        raise _wrong_number(call)
    aggregate = _typed(call, function, call.arguments, rows, filter_)
    if not is_ordered(aggregate.arguments[1].type):
        raise _no_partial_form(call, rows)
    return aggregate


def _end(call: Function, function: str, rows: Rows, filter_: Expression | None) -> Aggregate:
    ignores = call.nulls == "ignore"
    arguments = call.arguments
    if len(arguments) == 2:
        flag = arguments[1]
        if not isinstance(flag, Constant) or flag.value is None or call.nulls:
            raise Unshared(f"{call.name} with this second argument has no shared form", call.start)
        ignores = flag.value
    elif len(arguments) != 1:
        raise _wrong_number(call)
    parameters = ("ignore_nulls",) if ignores else ()
    return _typed(call, function, arguments[:1], rows, filter_, parameters)


def _approximate_count(call: Function, rows: Rows, filter_: Expression | None) -> Aggregate:
    deviation = _DEFAULT_DEVIATION
    if len(call.arguments) == 2:
        deviation = _constant(call, call.arguments[1])
        if not 0 < deviation < 0.4:
            raise Unshared(
                f"{call.name} with a deviation of {deviation} has no shared form", call.start
            )
    elif len(call.arguments) != 1:
        raise _wrong_number(call)
    arguments = _arguments(call.arguments[:1], rows)
    if not is_key(arguments[0].type):
        raise _no_partial_form(call, rows)
    return Aggregate("approx_count_distinct", arguments, BIGINT, filter_, (deviation,))


def _percentile(call: Function, rows: Rows, filter_: Expression | None) -> Aggregate:
    if len(call.arguments) not in (2, 3):
        raise _wrong_number(call)
    accuracy: float = _DEFAULT_ACCURACY
    if len(call.arguments) == 3:
        accuracy = _constant(call, call.arguments[2])
    percentages = call.arguments[1]
    is_array = isinstance(percentages, Function) and percentages.name == "array"
    nodes = percentages.children() if is_array else (percentages,)
    values = tuple(_constant(call, node) for node in nodes)
    valid = values and all(0 <= value <= 1 for value in values)
    if not valid or accuracy != int(accuracy) or not 0 < accuracy < 2**31:
        raise Unshared(f"{call.name} with these parameters has no shared form", call.start)
    parameters: tuple[Value, ...] = (is_array, int(accuracy), *values)
    aggregate = _typed(call, "approx_percentile", call.arguments[:1], rows, filter_, parameters)
    type_: SqlType = f"array<{aggregate.type}>" if is_array else aggregate.type
    return Aggregate("approx_percentile", aggregate.arguments, type_, filter_, parameters)


def _constant(call: Function, node: SyntaxNode) -> float:
    if isinstance(node, Number):
        _, value = number(node.text)
        if value is not None and not isinstance(value, bool):
            return float(value)
    raise Unshared(
        f"{call.name} with a parameter that is not a number has no shared form", node.start
    )
