"""Expressions to Python functions, with Spark's types, NULLs and errors.

`compile_expression` binds an expression against a scope (what is known by name there, and
its type) and gives its type and a function of an environment: the row's values by slot.
Under ANSI the function raises `ModelError` where Spark raises.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from .expressions import (
    Arithmetic,
    Between,
    Case,
    Coalesce,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Logical,
    Negate,
    Not,
)
from .sparktypes import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    EXACT,
    FLOAT,
    VOID,
    Type,
    as_decimal_type,
    common_type,
    decimal_of_literal,
    decimal_result,
)
from .values import ModelError, Value, checked, compare, convert, to_float32, wrap

Environment = Mapping[str, Value]

COMPARISONS: dict[str, Callable[[int], bool]] = {
    "=": lambda order: order == 0,
    "<>": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


@dataclass(frozen=True)
class Slot:
    """Where a scope keeps the value of an expression that is already known."""

    type: Type
    key: str


@dataclass(frozen=True)
class Compiled:
    """A bound expression."""

    type: Type
    value: Callable[[Environment], Value]

    def cast(self, target: Type) -> Compiled:
        """The same value in a wider type."""
        if target == self.type:
            return self
        return Compiled(target, lambda row: convert(self.value(row), self.type, target))


Scope = Mapping[Expression, Slot]


def compile_expression(expression: Expression, scope: Scope, *, ansi: bool) -> Compiled:
    """Binds an expression; raises TypeError where the types do not fit."""
    slot = scope.get(expression)
    if slot is not None:
        key = slot.key
        return Compiled(slot.type, lambda row: row[key])
    compiled = [compile_expression(child, scope, ansi=ansi) for child in expression.children()]
    return _bind(expression, compiled, ansi)


@functools.singledispatch
def _bind(expression: Expression, operands: list[Compiled], ansi: bool) -> Compiled:
    raise TypeError(f"not in scope: {expression}")


@_bind.register
def _(expression: Literal, operands: list[Compiled], ansi: bool) -> Compiled:
    value, kind = expression.value, expression.type
    if value is None:
        kind = VOID if kind == VOID else kind
    elif isinstance(value, Decimal):
        kind = decimal_of_literal(value)
    return Compiled(kind, lambda row: value)


@_bind.register
def _(expression: Negate, operands: list[Compiled], ansi: bool) -> Compiled:
    (operand,) = operands
    kind = operand.type

    def negate(value: Value) -> Value:
        return wrap(-value, kind, ansi=ansi) if kind.is_integral else -value

    return Compiled(kind, _strict(negate, operand))


@_bind.register
def _(expression: Arithmetic, operands: list[Compiled], ansi: bool) -> Compiled:
    left, right = operands
    operator = expression.operator
    if operator == "div":
        return Compiled(BIGINT, _dividing(_integral_quotient(ansi), left, right, ansi))
    decimals = left.type.is_decimal or right.type.is_decimal
    floats = left.type.is_floating or right.type.is_floating
    if decimals and not floats:
        left = left.cast(_decimal_operand(expression.left, left.type))
        right = right.cast(_decimal_operand(expression.right, right.type))
        kind = decimal_result(operator, left.type, right.type)
    elif operator == "/":
        kind = DOUBLE
    else:
        kind = common_type(left.type, right.type, ansi=ansi)
    if not kind.is_decimal:
        left, right = left.cast(kind), right.cast(kind)
    compute = functools.partial(_compute, operator, kind, ansi)
    if operator in "/%":
        return Compiled(kind, _dividing(compute, left, right, ansi))
    return Compiled(kind, _strict(compute, left, right))


def _decimal_operand(expression: Expression, kind: Type) -> Type:
    """An integral literal beside a decimal takes only the digits that it has."""
    if isinstance(expression, Literal) and kind.is_integral:
        return decimal_of_literal(Decimal(expression.value))  # type: ignore[arg-type]
    return as_decimal_type(kind)


def _compute(operator: str, kind: Type, ansi: bool, left: Value, right: Value) -> Value:
    if kind.is_decimal:
        return checked(_decimal(operator, left, right), kind, ansi=ansi)
    if kind.is_integral:
        return wrap(_integral(operator, left, right), kind, ansi=ansi)
    value = _floating(operator, left, right)
    return to_float32(value) if kind == FLOAT else value


def _decimal(operator: str, left: Decimal, right: Decimal) -> Decimal:
    match operator:
        case "+":
            return EXACT.add(left, right)
        case "-":
            return EXACT.subtract(left, right)
        case "*":
            return EXACT.multiply(left, right)
        case "/":
            return EXACT.divide(left, right)
    return EXACT.remainder(left, right)


def _integral(operator: str, left: int, right: int) -> int:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _floating(operator: str, left: float, right: float) -> float:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
    return math.nan if math.isinf(left) or math.isnan(left) else math.fmod(left, right)


def _integral_quotient(ansi: bool) -> Callable[[int, int], int]:
    def divide(left: int, right: int) -> int:
        quotient = abs(left) // abs(right)
        return wrap(quotient if (left < 0) == (right < 0) else -quotient, BIGINT, ansi=ansi)

    return divide


def _strict(function: Callable[..., Value], *operands: Compiled) -> Callable[[Environment], Value]:
    """NULL if any operand is NULL; every operand is evaluated."""

    def evaluate(row: Environment) -> Value:
        values = [operand.value(row) for operand in operands]
        return None if any(value is None for value in values) else function(*values)

    return evaluate


def _dividing(
    function: Callable[[Value, Value], Value], left: Compiled, right: Compiled, ansi: bool
) -> Callable[[Environment], Value]:
    """Division: by zero it is NULL, or an error in ANSI mode; NULL by zero is NULL."""

    def divide(dividend: Value, divisor: Value) -> Value:
        if divisor == 0:
            if ansi:
                raise ModelError("division by zero")
            return None
        return function(dividend, divisor)

    return _strict(divide, left, right)


@_bind.register
def _(expression: Comparison, operands: list[Compiled], ansi: bool) -> Compiled:
    left, right = _unified(operands, ansi)
    if expression.operator == "<=>":

        def null_safe(row: Environment) -> bool:
            first, second = left.value(row), right.value(row)
            if first is None or second is None:
                return first is None and second is None
            return compare(first, second) == 0

        return Compiled(BOOLEAN, null_safe)
    accept = COMPARISONS[expression.operator]
    return Compiled(BOOLEAN, _strict(lambda a, b: accept(compare(a, b)), left, right))


def _unified(operands: list[Compiled], ansi: bool) -> list[Compiled]:
    kinds = (operand.type for operand in operands)
    kind = functools.reduce(lambda a, b: common_type(a, b, ansi=ansi), kinds)
    return [operand.cast(kind) for operand in operands]


def conjunction(left: Value, right: Callable[[], Value]) -> Value:
    """Three-valued AND; the right side is not looked at if the left is false."""
    if left is False:
        return False
    other = right()
    if other is False:
        return False
    return None if left is None or other is None else True


def negation(value: Value) -> Value:
    """Three-valued NOT."""
    return None if value is None else not value


@_bind.register
def _(expression: Logical, operands: list[Compiled], ansi: bool) -> Compiled:
    left, right = operands
    if expression.operator == "and":
        return Compiled(BOOLEAN, lambda row: conjunction(left.value(row), lambda: right.value(row)))
    return Compiled(
        BOOLEAN,
        lambda row: negation(
            conjunction(negation(left.value(row)), lambda: negation(right.value(row)))
        ),
    )


@_bind.register
def _(expression: Not, operands: list[Compiled], ansi: bool) -> Compiled:
    (operand,) = operands
    return Compiled(BOOLEAN, lambda row: negation(operand.value(row)))


@_bind.register
def _(expression: IsNull, operands: list[Compiled], ansi: bool) -> Compiled:
    (operand,) = operands
    negated = expression.negated
    return Compiled(BOOLEAN, lambda row: (operand.value(row) is None) != negated)


@_bind.register
def _(expression: In, operands: list[Compiled], ansi: bool) -> Compiled:
    operand, *options = _unified(operands, ansi)

    def contains(row: Environment) -> Value:
        value = operand.value(row)
        if value is None:
            return None
        candidates = [option.value(row) for option in options]
        if any(other is not None and compare(value, other) == 0 for other in candidates):
            return not expression.negated
        return None if None in candidates else expression.negated

    return Compiled(BOOLEAN, contains)


@_bind.register
def _(expression: Between, operands: list[Compiled], ansi: bool) -> Compiled:
    value, low, high = operands
    bounds = [_unified([value, low], ansi), _unified([value, high], ansi)]
    above = _strict(lambda a, b: compare(a, b) >= 0, *bounds[0])
    below = _strict(lambda a, b: compare(a, b) <= 0, *bounds[1])

    def between(row: Environment) -> Value:
        inside = conjunction(above(row), lambda: below(row))
        return negation(inside) if expression.negated else inside

    return Compiled(BOOLEAN, between)


@_bind.register
def _(expression: Like, operands: list[Compiled], ansi: bool) -> Compiled:
    wildcards = {"%": ".*", "_": "."}
    text = "".join(wildcards.get(letter, re.escape(letter)) for letter in expression.pattern)
    pattern = re.compile(text, re.DOTALL)
    matches = _strict(
        lambda value: (pattern.fullmatch(value) is not None) != expression.negated, *operands
    )
    return Compiled(BOOLEAN, matches)


@_bind.register
def _(expression: Case, operands: list[Compiled], ansi: bool) -> Compiled:
    count = len(expression.branches)
    conditions = operands[0 : 2 * count : 2]
    values = _unified(operands[1 : 2 * count : 2] + operands[2 * count :], ansi)

    def choose(row: Environment) -> Value:
        for condition, value in zip(conditions, values, strict=False):
            if condition.value(row):
                return value.value(row)
        return values[count].value(row) if len(values) > count else None

    return Compiled(values[0].type, choose)


@_bind.register
def _(expression: Coalesce, operands: list[Compiled], ansi: bool) -> Compiled:
    options = _unified(operands, ansi)

    def first_known(row: Environment) -> Value:
        for option in options:
            value = option.value(row)
            if value is not None:
                return value
        return None

    return Compiled(options[0].type, first_known)
