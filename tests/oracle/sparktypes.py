"""Spark SQL types, and the rules by which operands of different types meet."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal

MAX_PRECISION = 38
MINIMUM_ADJUSTED_SCALE = 6

#: Wide enough that no intermediate result of two 38-digit decimals is rounded.
EXACT = Context(prec=120, rounding=ROUND_HALF_UP)


@dataclass(frozen=True)
class Type:
    """A Spark SQL type; `str()` gives the name that `DataFrame.dtypes` shows.

    >>> str(decimal(10, 2))
    'decimal(10,2)'
    """

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        return self.name

    @property
    def is_integral(self) -> bool:
        return self.name in INTEGRAL_BITS

    @property
    def is_floating(self) -> bool:
        return self.name in ("float", "double")

    @property
    def is_decimal(self) -> bool:
        return self.name == "decimal"

    @property
    def is_numeric(self) -> bool:
        return self.is_integral or self.is_floating or self.is_decimal


def decimal(precision: int, scale: int) -> Type:
    """The type `decimal(precision, scale)`."""
    return Type("decimal", precision, scale)


BIGINT, INT, SMALLINT = Type("bigint"), Type("int"), Type("smallint")
DOUBLE, FLOAT = Type("double"), Type("float")
STRING, BOOLEAN, DATE, TIMESTAMP = (
    Type("string"),
    Type("boolean"),
    Type("date"),
    Type("timestamp"),
)
WINDOW = Type("struct<start:timestamp,end:timestamp>")
VOID = Type("void")

INTEGRAL_BITS = {"smallint": 16, "int": 32, "bigint": 64}
INTEGRAL_DIGITS = {"smallint": 5, "int": 10, "bigint": 20}


def bounded(precision: int, scale: int) -> Type:
    """`decimal(precision, scale)` cut to Spark's 38 digits, as sums and averages do."""
    return decimal(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted(precision: int, scale: int) -> Type:
    """The result type of decimal arithmetic: gives up scale before integral digits."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    integral = precision - scale
    return decimal(MAX_PRECISION, max(MAX_PRECISION - integral, min(scale, MINIMUM_ADJUSTED_SCALE)))


def decimal_of_literal(value: Decimal) -> Type:
    """The type that Spark gives a decimal literal.

    >>> str(decimal_of_literal(Decimal("0.50")))
    'decimal(2,2)'
    """
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    return decimal(max(len(digits) + max(exponent, 0), scale), scale)


def as_decimal_type(kind: Type) -> Type:
    """The decimal type that holds every value of an integral type."""
    return kind if kind.is_decimal else decimal(INTEGRAL_DIGITS[kind.name], 0)


def decimal_result(operator: str, left: Type, right: Type) -> Type:
    """The result type of `left operator right` for two decimals."""
    integral_left, integral_right = left.precision - left.scale, right.precision - right.scale
    scale = max(left.scale, right.scale)
    if operator in "+-":
        return adjusted(max(integral_left, integral_right) + scale + 1, scale)
    if operator == "*":
        return adjusted(left.precision + right.precision + 1, left.scale + right.scale)
    if operator == "/":
        scale = max(MINIMUM_ADJUSTED_SCALE, left.scale + right.precision + 1)
        return adjusted(integral_left + right.scale + scale, scale)
    if operator == "%":
        return adjusted(min(integral_left, integral_right) + scale, scale)
    raise ValueError(f"no decimal operator {operator!r}")


def common_type(left: Type, right: Type, *, ansi: bool) -> Type:
    """The type in which two values are compared, or in which CASE branches meet."""
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if not (left.is_numeric and right.is_numeric):
        raise TypeError(f"no common type of {left} and {right}")
    if left.is_integral and right.is_integral:
        return max(left, right, key=lambda kind: INTEGRAL_BITS[kind.name])
    if left.is_floating or right.is_floating:
        if "double" in (left.name, right.name) or left.is_decimal or right.is_decimal or ansi:
            return DOUBLE
        return FLOAT
    left, right = as_decimal_type(left), as_decimal_type(right)
    scale = max(left.scale, right.scale)
    integral = max(left.precision - left.scale, right.precision - right.scale)
    if integral + scale > MAX_PRECISION:
        raise TypeError(f"the common type of {left} and {right} is beyond {MAX_PRECISION} digits")
    return decimal(integral + scale, scale)


def fit(value: Decimal, kind: Type) -> Decimal | None:
    """`value` rounded half up to the scale of `kind`; None if it has too many digits."""
    rounded = value.quantize(Decimal(1).scaleb(-kind.scale), context=EXACT)
    return rounded if abs(rounded) < Decimal(10) ** (kind.precision - kind.scale) else None
