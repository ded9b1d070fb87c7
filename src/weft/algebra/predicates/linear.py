"""Comparisons of exact types as a sum of columns and a set of integers (ARGUS, section 6.1).

Integers, decimals, dates and timestamps are integers behind their spelling, so both sides of a
comparison can be moved to one: flattened, constants gathered, factors made relatively prime, columns
sorted, and the constant divided with the rounding that the operator needs. `2 * a > 7` is `a >= 4`,
`2 * a = 7` is never true, `a = a` is `a IS NOT NULL`.

Exact are columns and constants of these types, casts that keep the value, sums, differences, products
with a constant, `date_add`, `date_sub`, `datediff`, and a timestamp plus or minus a constant interval.

Sound, because a sum here has the value that Spark computes, wherever Spark computes one: decimals are
taken only where Spark's result type holds every digit. Integers are taken as exact: where Spark would
report an overflow (or wrap around, without ANSI mode), the sum is computed instead.

Declines (None) for everything else, and for sums too wide for a decimal of 38 digits, the widest
type in which Spark could compute them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Final

from weft.algebra.condition.values import NOT_NULL, NOTHING, Bound, Interval, Values, single
from weft.algebra.predicates.subject import DATE, Linear, is_exact
from weft.algebra.scalar import Call, Literal, Ref, Scalar
from weft.algebra.types import (
    INTEGRAL,
    MAX_PRECISION,
    TIMESTAMP,
    SqlType,
    decimal_parameters,
)

INTERVAL: Final = "interval"
_DIGITS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_WIDEST: Final[int] = 10**MAX_PRECISION
_EPOCH: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Sum:
    """A constant and columns with factors. Columns count as integers (decimals unscaled).

    `columns` are all that were read, also those that have cancelled out: the sum is NULL where one of
    them is. `is_null` says that it is NULL everywhere.
    """

    constant: Fraction = Fraction(0)
    factors: Mapping[Ref, Fraction] = field(default_factory=dict)
    columns: frozenset[Ref] = frozenset()
    is_null: bool = False

    def plus(self, other: Sum, sign: int = 1) -> Sum:
        factors = dict(self.factors)
        for ref, factor in other.factors.items():
            factors[ref] = factors.get(ref, Fraction(0)) + sign * factor
        return Sum(
            self.constant + sign * other.constant,
            {ref: factor for ref, factor in factors.items() if factor},
            self.columns | other.columns,
            self.is_null or other.is_null,
        )

    def times(self, factor: Fraction) -> Sum:
        factors = {ref: old * factor for ref, old in self.factors.items() if factor}
        return Sum(self.constant * factor, factors, self.columns, self.is_null)


def exact_sum(scalar: Scalar) -> Sum | None:
    """The expression as an exact sum, None if it is not one."""
    if isinstance(scalar, Ref):
        if not is_exact(scalar.type):
            return None
        unit = Fraction(1, 10 ** (decimal_parameters(scalar.type) or (0, 0))[1])
        return Sum(Fraction(0), {scalar: unit}, frozenset({scalar}))
    if isinstance(scalar, Literal):
        return _constant(scalar)
    if isinstance(scalar, Call):
        return _call(scalar)
    return None


def _constant(literal: Literal) -> Sum | None:
    value, type_ = literal.value, literal.type
    if not is_exact(type_) and type_ != INTERVAL:
        return None
    if value is None:
        return Sum(is_null=True)
    if isinstance(value, (bool, float)):
        return None
    if type_ == DATE and isinstance(value, str):
        days = date_days(value)
        return None if days is None else Sum(Fraction(days))
    if isinstance(value, int):
        return Sum(Fraction(value))
    if decimal_parameters(type_) is None:
        return None
    try:
        return Sum(Fraction(Decimal(value)))
    except (InvalidOperation, ValueError, OverflowError):
        return None


def date_days(text: str) -> int | None:
    """A date as days since 1970.

    >>> date_days("1970-01-02"), date_days("soon")
    (1, None)
    """
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError:
        return None


def _call(call: Call) -> Sum | None:
    sums = [exact_sum(argument) for argument in call.arguments]
    parts = [part for part in sums if part is not None]
    if len(parts) < len(sums) or not parts:
        return None
    operator, types = call.operator, [argument.type for argument in call.arguments]
    if operator.startswith("cast_"):
        return parts[0] if _keeps_value(types[0], call.type) else None
    if operator == "negate":
        return parts[0].times(Fraction(-1)) if call.type == types[0] != DATE else None
    if len(parts) != 2:
        return None
    left, right = parts
    if operator in ("date_add", "date_sub"):
        fits = types[0] == DATE and types[1] in INTEGRAL
        return left.plus(right, 1 if operator == "date_add" else -1) if fits else None
    if operator == "datediff":
        return left.plus(right, -1) if types == [DATE, DATE] else None
    if operator in ("+", "-"):
        moments = _moments(operator, types, call.type)
        if moments or _holds_result(operator, types, call.type):
            return left.plus(right, 1 if operator == "+" else -1)
    if operator == "*" and _holds_result(operator, types, call.type):
        if not left.columns:
            return right.plus(Sum(is_null=left.is_null)).times(left.constant)
        if not right.columns:
            return left.plus(Sum(is_null=right.is_null)).times(right.constant)
    return None


def _moments(operator: str, types: list[SqlType], result: SqlType) -> bool:
    """Whether this is arithmetic of timestamps and intervals."""
    if result == TIMESTAMP:
        return types == [TIMESTAMP, INTERVAL] or (
            operator == "+" and types == [INTERVAL, TIMESTAMP]
        )
    return result == INTERVAL and (
        types == [INTERVAL, INTERVAL] or (operator == "-" and types == [TIMESTAMP, TIMESTAMP])
    )


def _parameters(type_: SqlType) -> tuple[int, int] | None:
    """Precision and scale that hold every value of a number type."""
    return (_DIGITS[type_], 0) if type_ in _DIGITS else decimal_parameters(type_)


def _keeps_value(source: SqlType, target: SqlType) -> bool:
    if source == target:
        return True
    if source in _DIGITS and target in _DIGITS:
        return _DIGITS[source] <= _DIGITS[target]
    inner, outer = _parameters(source), decimal_parameters(target)
    if inner is None or outer is None:
        return False
    digits = 19 if source == "bigint" else inner[0]
    return inner[1] <= outer[1] and digits - inner[1] <= outer[0] - outer[1]


def _holds_result(operator: str, types: list[SqlType], result: SqlType) -> bool:
    """Whether the result type of a sum or product of numbers has room for every digit."""
    if result in INTEGRAL:
        return all(type_ in INTEGRAL for type_ in types)
    left, right, declared = *(_parameters(type_) for type_ in types), decimal_parameters(result)
    if left is None or right is None or declared is None:
        return False
    if operator == "*":
        precision, scale = left[0] + right[0] + 1, left[1] + right[1]
    else:
        scale = max(left[1], right[1])
        precision = max(left[0] - left[1], right[0] - right[1]) + scale + 1
    return declared[1] >= scale and declared[0] - declared[1] >= precision - scale


@dataclass(frozen=True, slots=True)
class Division:
    """What one side of a comparison with a constant becomes: a subject (None if no column is left),
    the number by which the other side is multiplied, and the columns that have cancelled out."""

    subject: Linear | None
    multiplier: Fraction
    cancelled: tuple[Ref, ...]


def divided(total: Sum) -> Division | None:
    """The columns of a sum with relatively prime factors; None where the sum is too wide."""
    cancelled = sorted(total.columns - total.factors.keys(), key=lambda ref: ref.name)
    terms = sorted(total.factors.items(), key=lambda term: term[0].name)
    if not terms:
        return Division(None, Fraction(1), tuple(cancelled))
    multiplier = Fraction(
        math.lcm(*(factor.denominator for _, factor in terms)),
        math.gcd(*(factor.numerator for _, factor in terms)),
    )
    if terms[0][1] < 0:
        multiplier = -multiplier
    subject = Linear(tuple((int(factor * multiplier), ref) for ref, factor in terms))
    return Division(subject, multiplier, tuple(cancelled)) if _fits(subject) else None


def _fits(subject: Linear) -> bool:
    """Whether Spark can compute the sum in decimals of 38 digits, without losing a digit."""
    if subject.is_column:
        return True
    for factor, ref in subject.terms:
        precision, scale = decimal_parameters(ref.type) or (0, 0)
        too_precise = scale > 0 and precision + scale + 2 > MAX_PRECISION
        if too_precise or abs(factor) >= _WIDEST:
            return False
    low, high = subject.limits
    return low > -_WIDEST and high < _WIDEST


def compared(operator: str, constant: Fraction) -> Values:
    """The integers that compare so with a constant."""
    low, high = math.ceil(constant), math.floor(constant)
    below, up_to = Values(((None, Bound(low)),)), Values(((None, Bound(high + 1)),))
    equal = Values((single(high),)) if low == high else NOTHING
    if operator in ("=", "<>"):
        return equal if operator == "=" else ~equal & NOT_NULL
    if operator in ("<", ">="):
        return below if operator == "<" else ~below & NOT_NULL
    return up_to if operator == "<=" else ~up_to & NOT_NULL


FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def compared_sum(operator: str, total: Sum, division: Division) -> Values:
    """The values of the subject for which `total operator 0` is true."""
    if division.multiplier < 0:
        operator = FLIPPED.get(operator, operator)
    return compared(operator, -total.constant * division.multiplier)


def quotient(ends: tuple[int | None, int | None], factor: int) -> Interval | None:
    """The integers whose product with the factor lies between two ends; None if there are none.

    >>> quotient((3, 8), 2), quotient((3, 3), 2)
    ((Bound(value=2, after=False), Bound(value=5, after=False)), None)
    """
    low, high = ends
    if factor < 0:
        low, high = (None if end is None else -end for end in (high, low))
    least = None if low is None else -(-low // abs(factor))
    most = None if high is None else high // abs(factor)
    if least is not None and most is not None and least > most:
        return None
    return (
        None if least is None else Bound(least),
        None if most is None else Bound(most + 1),
    )
