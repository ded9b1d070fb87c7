"""The range of an expression, from the ranges of its parts.

Ranges of doubles go through `+`, `-`, `*` and `/` with the rounding of the machine: rounding never
changes the order of two results, so bounds stay bounds, but a strict bound may become one that is
reached. NaN is above all numbers and comes out of every operation it goes into, so it never breaks a
lower bound; an upper bound is given only where no part can be NaN or infinite.

Declines (no bound) for products and quotients of two columns, and where a result is not finite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from weft.algebra.condition.values import Bound, Interval, Values
from weft.algebra.predicates.subject import Subject, is_exact, subject_of
from weft.algebra.scalar import Call, Literal, Scalar
from weft.algebra.types import DOUBLE, FRACTIONAL, decimal_parameters

UNBOUNDED: Final[Interval] = (None, None)


def hull(values: Values) -> Interval:
    """The least interval around the values of a set."""
    if not values.intervals:
        return UNBOUNDED
    return values.intervals[0][0], values.intervals[-1][1]


def range_of(scalar: Scalar, restricted: Mapping[Subject, Values]) -> Interval:
    """An interval in which the value of the expression lies, if it is not NULL."""
    values = restricted.get(subject_of(scalar))
    if values is not None:
        return hull(values)
    if isinstance(scalar, Literal):
        number = _number(scalar)
        return UNBOUNDED if number is None else _interval(number, number)
    if isinstance(scalar, Call) and scalar.type == DOUBLE:
        return _call(scalar, restricted)
    return UNBOUNDED


def _number(scalar: Scalar) -> float | None:
    """The value of a finite constant."""
    if not isinstance(scalar, Literal) or scalar.type not in FRACTIONAL:
        return None
    try:
        number = float(scalar.value) if scalar.value is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _call(call: Call, restricted: Mapping[Subject, Values]) -> Interval:
    operator = call.operator
    if operator == "cast_double":
        return _as_doubles(call.arguments[0], restricted)
    ranges = [range_of(argument, restricted) for argument in call.arguments]
    if operator == "negate":
        return _scaled(ranges[0], -1.0, False)
    if len(ranges) != 2:
        return UNBOUNDED
    if operator in ("*", "/"):
        constant, other = _number(call.arguments[1]), ranges[0]
        if constant is None and operator == "*":
            constant, other = _number(call.arguments[0]), ranges[1]
        return _scaled(other, constant, operator == "/") if constant else UNBOUNDED
    left, right = ranges
    if operator == "+":
        return _interval(_sum(_low(left), _low(right)), _sum(_high(left), _high(right)))
    if operator == "-":
        low, high = _low(right), _high(right)
        most = None if low is None or not _is_number(right) else _sum(_high(left), -low)
        return _interval(_sum(_low(left), None if high is None else -high), most)
    return UNBOUNDED


def _as_doubles(scalar: Scalar, restricted: Mapping[Subject, Values]) -> Interval:
    """Numbers as doubles: rounded to the nearest."""
    low, high = range_of(scalar, restricted)
    if scalar.type in FRACTIONAL:
        return low, high
    if not is_exact(scalar.type):
        return UNBOUNDED
    unit = 10 ** (decimal_parameters(scalar.type) or (0, 0))[1]
    least = None if low is None or not isinstance(low.value, int) else low.value
    beyond = None if high is None or not isinstance(high.value, int) else high.value
    return _interval(
        None if least is None else float(Fraction(least, unit)),
        None if beyond is None else float(Fraction(beyond - 1, unit)),
    )


def _low(interval: Interval) -> float | None:
    """A finite number that no value is below."""
    bound = interval[0]
    value = None if bound is None else bound.value
    return value if isinstance(value, float) and math.isfinite(value) else None


def _high(interval: Interval) -> float | None:
    """A finite number that no value is above; then none of them is NaN."""
    bound = interval[1]
    value = None if bound is None else bound.value
    return value if isinstance(value, float) and math.isfinite(value) else None


def _is_number(interval: Interval) -> bool:
    """Whether no value is NaN: something below NaN bounds them."""
    bound = interval[1]
    return bound is not None and (bound.value is not None or not bound.after)


def _sum(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left + right


def _scaled(interval: Interval, constant: float, divides: bool) -> Interval:
    low, high = _low(interval), _high(interval)
    if constant < 0:
        low, high = high, low if _is_number(interval) else None
    ends = [
        None if end is None else (end / constant if divides else end * constant)
        for end in (low, high)
    ]
    return _interval(*ends)


def _interval(low: float | None, high: float | None) -> Interval:
    return (
        None if low is None or not math.isfinite(low) else Bound(low + 0.0),
        None if high is None or not math.isfinite(high) else Bound(high + 0.0, after=True),
    )
