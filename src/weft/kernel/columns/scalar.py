"""Evaluates the whitelisted scalars on columns, with Spark's meaning.

The operators are those of `weft.sql.typing.scalars`: both arguments of an operator have one type, and
every implicit cast is a node. Under ANSI, where a value would overflow or divide by zero, `NeedsSpark`
is raised: Spark evaluates the expression on the same rows, and its word is final. That is, where Spark would reach the value: what CASE, AND, OR and
coalesce keep from a row is not evaluated on it. Without ANSI integers wrap and a division by zero is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.scalar import Call, Literal, Opaque, Ref, Scalar
from weft.algebra.types import decimal_parameters
from weft.kernel.columns import codes
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.failure import NeedsSpark


def evaluate(
    scalar: Scalar, column: Callable[[str], pa.Array], rows: int, *, ansi: bool
) -> pa.Array:
    """The values of a scalar over rows whose columns `column` gives by name."""
    if isinstance(scalar, Ref):
        return column(scalar.name)
    if isinstance(scalar, Literal):
        return pa.repeat(_constant(scalar), rows)
    if isinstance(scalar, Opaque):
        raise NeedsSpark(scalar.sql)
    operator = _OPERATORS.get(scalar.operator)
    if operator is None:
        raise NeedsSpark(scalar.operator)
    try:
        arguments = [evaluate(argument, column, rows, ansi=ansi) for argument in scalar.arguments]
    except NeedsSpark:
        if scalar.operator not in _GUARDING:
            raise
        arguments = _guarded(scalar, column, rows, ansi)
    result: pa.Array = operator(scalar, arguments, ansi)
    return result


_GUARDING = frozenset({"and", "or", "case", "coalesce"})
"""Operators that do not evaluate all arguments on all rows."""


def _guarded(
    call: Call, column: Callable[[str], pa.Array], rows: int, ansi: bool
) -> list[pa.Array]:
    """The arguments, each evaluated on those rows alone that reach it; NULL on the others, where the operator does not look at it. So an
    argument may be one that those before it protect, as in `CASE WHEN y <> 0 THEN x / y END`."""
    arguments: list[pa.Array] = []
    reached = np.ones(rows, bool)
    """The rows on which no argument so far has decided."""
    for place, argument in enumerate(call.arguments):
        is_value = call.operator == "case" and (place % 2 == 1 or place == len(call.arguments) - 1)
        chosen = reached
        if is_value and place % 2 == 1:
            chosen = reached & _flags(arguments[-1])
        values = _on(argument, column, chosen, ansi)
        arguments.append(values)
        if is_value:
            reached = reached & ~chosen
        elif call.operator == "and":
            reached = reached & ~_flags(pc.invert(values))
        elif call.operator == "or":
            reached = reached & ~_flags(values)
        elif call.operator == "coalesce":
            reached = reached & _flags(pc.is_null(values))
    return arguments


def _flags(values: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Where a condition is true: neither false nor NULL."""
    flags: np.ndarray[Any, np.dtype[np.bool_]]
    flags = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return flags


def _on(
    scalar: Scalar,
    column: Callable[[str], pa.Array],
    chosen: np.ndarray[Any, np.dtype[np.bool_]],
    ansi: bool,
) -> pa.Array:
    """A scalar on some rows; NULL on the others."""
    if chosen.all():
        return evaluate(scalar, column, len(chosen), ansi=ansi)
    positions = pa.array(np.flatnonzero(chosen))

    def of_chosen(name: str) -> pa.Array:
        return column(name).take(positions)

    values = evaluate(scalar, of_chosen, len(positions), ansi=ansi)
    return values.take(pa.array(np.cumsum(chosen) - 1, mask=~chosen))


def _constant(literal: Literal) -> pa.Scalar:
    type_ = arrow_type(literal.type)
    value: Any = literal.value
    if value is not None and decimal_parameters(literal.type):
        value = Decimal(str(value))
    return pa.scalar(value, type_)


def _compare(symbol: str) -> Callable[[Call, list[pa.Array], bool], pa.Array]:
    function = {
        "=": pc.equal,
        "<>": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }[symbol]

    def compare(_call: Call, arguments: list[pa.Array], _ansi: bool) -> pa.Array:
        left, right = (_comparable(argument) for argument in arguments)
        return function(left, right)

    return compare


def _comparable(values: pa.Array) -> pa.Array:
    """Floats as codes, so that NaN equals itself and is above all; booleans as 0 and 1."""
    if pa.types.is_boolean(values.type):
        return values.cast(pa.int8())
    if pa.types.is_floating(values.type):
        return pa.array(codes.float_codes(values), mask=~codes.validity(values))
    return values


def _null_safe_equal(_call: Call, arguments: list[pa.Array], _ansi: bool) -> pa.Array:
    left, right = (_comparable(argument) for argument in arguments)
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both_null, pc.fill_null(pc.equal(left, right), False))


def _in(_call: Call, arguments: list[pa.Array], _ansi: bool) -> pa.Array:
    value, *choices = (_comparable(argument) for argument in arguments)
    return reduce(pc.or_kleene, [pc.equal(value, choice) for choice in choices])


def _like(call: Call, arguments: list[pa.Array], _ansi: bool) -> pa.Array:
    pattern = call.arguments[1]
    assert isinstance(pattern, Literal) and isinstance(pattern.value, str)
    return pc.match_like(arguments[0], pattern.value)


def _arithmetic(symbol: str) -> Callable[[Call, list[pa.Array], bool], pa.Array]:
    plain = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[symbol]
    checked = {
        "+": pc.add_checked,
        "-": pc.subtract_checked,
        "*": pc.multiply_checked,
    }[symbol]

    def calculate(call: Call, arguments: list[pa.Array], ansi: bool) -> pa.Array:
        if pa.types.is_floating(arrow_type(call.type)) or not ansi:
            return plain(*arguments)
        try:
            return checked(*arguments)
        except pa.ArrowInvalid as overflow:
            raise NeedsSpark(str(overflow)) from overflow

    return calculate


def _divide(_call: Call, arguments: list[pa.Array], ansi: bool) -> pa.Array:
    left, right = arguments
    zero = pc.equal(right, 0.0)
    if pc.any(zero).as_py():
        if ansi:
            raise NeedsSpark("division by zero")
        right = pc.if_else(zero, pa.scalar(None, right.type), right)
    return pc.divide(left, right)


def _negate(call: Call, arguments: list[pa.Array], ansi: bool) -> pa.Array:
    try:
        wraps = pa.types.is_floating(arrow_type(call.type)) or not ansi
        return pc.negate(arguments[0]) if wraps else pc.negate_checked(arguments[0])
    except pa.ArrowInvalid as overflow:
        raise NeedsSpark(str(overflow)) from overflow


def _case(call: Call, arguments: list[pa.Array], _ansi: bool) -> pa.Array:
    *branches, otherwise = arguments
    result = otherwise.cast(arrow_type(call.type))
    for condition, value in reversed(list(zip(branches[::2], branches[1::2], strict=True))):
        chosen = pc.fill_null(condition, False)
        result = pc.if_else(chosen, value.cast(arrow_type(call.type)), result)
    return result


def _cast(call: Call, arguments: list[pa.Array], _ansi: bool) -> pa.Array:
    return arguments[0].cast(arrow_type(call.type), safe=False)


_OPERATORS: dict[str, Callable[[Call, list[pa.Array], bool], pa.Array]] = {
    **{symbol: _compare(symbol) for symbol in ("=", "<>", "<", "<=", ">", ">=")},
    **{symbol: _arithmetic(symbol) for symbol in ("+", "-", "*")},
    "<=>": _null_safe_equal,
    "and": lambda _call, arguments, _ansi: reduce(pc.and_kleene, arguments),
    "or": lambda _call, arguments, _ansi: reduce(pc.or_kleene, arguments),
    "not": lambda _call, arguments, _ansi: pc.invert(arguments[0]),
    "is_null": lambda _call, arguments, _ansi: pc.is_null(arguments[0]),
    "in": _in,
    "like": _like,
    "/": _divide,
    "negate": _negate,
    "case": _case,
    "coalesce": lambda _call, arguments, _ansi: pc.coalesce(*arguments),
    "cast_int": _cast,
    "cast_bigint": _cast,
    "cast_double": _cast,
}
