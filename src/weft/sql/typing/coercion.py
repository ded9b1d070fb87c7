"""Spark's rules for numbers and for operands of different types, as far as weft needs them.

Where the rules of ANSI and non-ANSI mode part, or a decimal's precision comes in, there is
no answer here (None), and Spark is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from weft.algebra.scalar import Call, Literal, Ref, Scalar, Value
from weft.algebra.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FRACTIONAL,
    INTEGRAL,
    INTEGRAL_LIMITS,
    MAX_PRECISION,
    STRING,
    SqlType,
    decimal_parameters,
    is_numeric,
)

VOID: Final = "void"
ARITHMETIC: Final = frozenset({"int", BIGINT, DOUBLE})
COMPARED: Final = INTEGRAL | FRACTIONAL | {BOOLEAN, STRING, "date", "timestamp"}
COMPARED_COLUMNS: Final = frozenset({"binary", "timestamp_ntz"})
"""Types of which the kernel compares columns with columns."""
_WIDTH: Final = {"tinyint": 0, "smallint": 1, "int": 2, "bigint": 3}
DECIMAL_OF: Final = {"tinyint": (3, 0), "smallint": (5, 0), "int": (10, 0), "bigint": (20, 0)}
"""Precision and scale of the decimal that Spark makes of an integer."""
_NUMBER = re.compile(
    r"(?P<digits>-?(?:\d+\.?\d*|\.\d+))(?P<exponent>E[+-]?\d+)?(?P<suffix>L|S|Y|D|F|BD)?"
)
_SUFFIXES: Final = {"L": BIGINT, "S": "smallint", "Y": "tinyint", "D": DOUBLE, "F": "float"}
_TYPE_NAMES: Final = {
    **{name: name for name in ("tinyint", "smallint", "int", "bigint", "float", "double")},
    **{name: name for name in ("boolean", "string", "binary", "date", "timestamp_ntz")},
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal(10,0)",
    "decimal": "decimal(10,0)",
    "numeric": "decimal(10,0)",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
}
_PARAMETERS = re.compile(r"(?:decimal|dec|numeric)\((\d+)(?:,(\d+))?\)")


@dataclass(frozen=True, slots=True)
class Typed:
    """What is known of an expression. `sql` may stand as an operand of anything."""

    sql: str
    type: SqlType | None
    can_raise: bool = False
    scalar: Scalar | None = None


def number(text: str) -> tuple[SqlType | None, Value]:
    """The type and value of a number; None for what Spark refuses.

    >>> number("17"), number("3000000000"), number("1.5"), number("1E0"), number("-5L")
    (('int', 17), ('bigint', 3000000000), ('decimal(2,1)', '1.5'), ('double', 1.0), ('bigint', -5))
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None, None
    digits, suffix = match["digits"], match["suffix"]
    if suffix in ("D", "F") or (match["exponent"] and suffix is None):
        value = float(digits + (match["exponent"] or ""))
        finite = value not in (float("inf"), float("-inf"))
        return _SUFFIXES.get(suffix or "D") if finite else None, value if suffix != "F" else None
    if suffix in ("L", "S", "Y"):
        if "." in digits or match["exponent"] or not fits(int(digits), _SUFFIXES[suffix]):
            return None, None
        return _SUFFIXES[suffix], int(digits)
    if "." not in digits and not match["exponent"] and suffix is None:
        for type_ in ("int", BIGINT):
            if fits(int(digits), type_):
                return type_, int(digits)
    return _decimal_literal(digits + (match["exponent"] or ""))


def _decimal_literal(digits: str) -> tuple[SqlType | None, Value]:
    """
    >>> _decimal_literal("0.05"), _decimal_literal("5.")
    (('decimal(2,2)', '0.05'), ('decimal(1,0)', '5'))
    """
    value = Decimal(digits)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(value.as_tuple().digits) + max(exponent, 0), scale)
    if precision > MAX_PRECISION or exponent > 0:
        return None, None
    return f"decimal({precision},{scale})", f"{value:f}"


def fits(value: int, type_: SqlType) -> bool:
    low, high = INTEGRAL_LIMITS[type_]
    return low <= value <= high


def cast_type(text: str) -> SqlType | None:
    """The type that a cast names, None for types weft does not know.

    >>> cast_type("integer"), cast_type("decimal(12)"), cast_type("array<int>")
    ('int', 'decimal(12,0)', None)
    """
    match = _PARAMETERS.fullmatch(text)
    if match:
        precision, scale = int(match[1]), int(match[2] or 0)
        valid = 0 < precision <= MAX_PRECISION and scale <= precision
        return f"decimal({precision},{scale})" if valid else None
    return _TYPE_NAMES.get(text)


def comparable(left: SqlType, right: SqlType) -> bool:
    """Whether Spark compares the two in every mode without a cast that can raise."""
    if VOID in (left, right) or left == right:
        other = left if right == VOID else right
        return other in COMPARED or other in (VOID, "binary", "timestamp_ntz") or is_numeric(other)
    return is_numeric(left) and is_numeric(right)


def compared_as(left: Typed, right: Typed) -> SqlType | None:
    """The type in which the kernel compares two operands, None if Spark must."""
    assert left.type is not None and right.type is not None
    if left.type == right.type and left.type in COMPARED_COLUMNS:
        # Constants of these types have no sets of values.
        return left.type if isinstance(left.scalar, Ref) and isinstance(right.scalar, Ref) else None
    if left.type == right.type or right.type == VOID:
        return left.type if left.type in COMPARED or decimal_parameters(left.type) else None
    if left.type == VOID:
        return compared_as(right, left)
    common = common_number(left.type, right.type)
    if common is not None:
        return "int" if common in ("tinyint", "smallint") else common
    for value, literal in ((left, right), (right, left)):
        assert value.type is not None
        if decimal_parameters(value.type) and promoted(literal, value.type) is not None:
            return value.type
    return DOUBLE if {left.type, right.type} == FRACTIONAL else None


def common_number(left: SqlType, right: SqlType) -> SqlType | None:
    """The type in which Spark does arithmetic on two numbers, decimals apart.

    >>> common_number("int", "bigint"), common_number("decimal(2,1)", "double")
    ('bigint', 'double')
    """
    if left in _WIDTH and right in _WIDTH:
        return left if _WIDTH[left] >= _WIDTH[right] else right
    if DOUBLE in (left, right) and is_numeric(left) and is_numeric(right):
        return DOUBLE
    return "float" if left == right == "float" else None


def common_type(types: Sequence[SqlType | None]) -> SqlType | None:
    """The type of a choice between values, None where only Spark can tell."""
    common: SqlType = VOID
    for type_ in types:
        if type_ is None:
            return None
        if type_ in (VOID, common):
            continue
        widened = type_ if common == VOID else common_number(common, type_)
        widened = widened or wider_decimal(common, type_)
        if widened is None:
            return None
        common = widened
    return common


def wider_decimal(left: SqlType, right: SqlType) -> SqlType | None:
    """The decimal that holds all values of two decimals, or of a decimal and an integer.

    >>> wider_decimal("decimal(10,2)", "int"), wider_decimal("decimal(38,0)", "decimal(4,2)")
    ('decimal(12,2)', None)
    """
    if not decimal_parameters(left) and not decimal_parameters(right):
        return None
    pairs = [decimal_parameters(type_) or DECIMAL_OF.get(type_) for type_ in (left, right)]
    known = [pair for pair in pairs if pair is not None]
    if len(known) < 2:
        return None
    scale = max(places for _, places in known)
    digits = max(precision - places for precision, places in known) + scale
    return f"decimal({digits},{scale})" if digits <= MAX_PRECISION else None


def widens(source: SqlType, target: SqlType) -> bool:
    """Whether a cast only widens a number, so that it never raises."""
    if source in _WIDTH and target in _WIDTH:
        return _WIDTH[source] < _WIDTH[target]
    return target == DOUBLE and (source in _WIDTH or source == "float")


def promoted(value: Typed, type_: SqlType) -> Scalar | None:
    """The value's scalar in a wider type, None if it has none."""
    scalar = value.scalar
    if scalar is None or value.type == type_:
        return scalar
    if isinstance(scalar, Literal):
        return _promoted_literal(scalar, type_)
    if type_ in ARITHMETIC and value.type is not None and widens(value.type, type_):
        return Call(f"cast_{type_}", (scalar,), type_)
    return None


def _promoted_literal(literal: Literal, type_: SqlType) -> Literal | None:
    value = literal.value
    if value is None:
        return Literal(None, type_)
    if isinstance(value, bool) or not is_numeric(literal.type):
        return None
    if type_ == DOUBLE:
        number = value if isinstance(value, float) else float(value) or 0.0
        return Literal(number, DOUBLE)  # a decimal has no zero below zero
    if type_ in INTEGRAL and isinstance(value, int):
        return Literal(value, type_)
    parameters = decimal_parameters(type_)
    if parameters and not isinstance(value, float):
        return _decimal_of(str(value), type_, *parameters)
    return None


def _decimal_of(text: str, type_: SqlType, precision: int, scale: int) -> Literal | None:
    try:
        exact = Decimal(text).quantize(Decimal(1).scaleb(-scale))
    except InvalidOperation:
        return None
    if exact != Decimal(text) or len(exact.as_tuple().digits) > precision:
        return None
    return Literal(f"{exact:f}", type_)


def call(
    operator: str, arguments: Sequence[Typed], argument_type: SqlType, type_: SqlType
) -> Call | None:
    """The operator on all arguments in one type, None if one of them has no scalar."""
    return built(operator, [promoted(argument, argument_type) for argument in arguments], type_)


def built(operator: str, arguments: Sequence[Scalar | None], type_: SqlType) -> Call | None:
    present = [argument for argument in arguments if argument is not None]
    return Call(operator, tuple(present), type_) if len(present) == len(arguments) else None


def membership(operand: Typed, items: Sequence[Typed]) -> Call | None:
    """`in` with literals of the operand's type, None where a cast of the operand is needed."""
    if operand.type is None or operand.type not in COMPARED:
        return None
    literals = [promoted(item, operand.type) for item in items]
    if not all(isinstance(literal, Literal) for literal in literals):
        return None
    if any(item.type is None or not _same_family(item.type, operand.type) for item in items):
        return None
    return built("in", [operand.scalar, *literals], BOOLEAN)


def _same_family(item: SqlType, operand: SqlType) -> bool:
    """Whether Spark casts the item to the operand's type, not the other way round."""
    return item in (VOID, operand) or common_number(item, operand) == operand


def divisible(left: SqlType, right: SqlType) -> bool:
    """Whether `/` on the two is a division of doubles."""
    if DOUBLE in (left, right):
        return is_numeric(left) and is_numeric(right)
    plain = INTEGRAL | FRACTIONAL
    return left in plain and right in plain
