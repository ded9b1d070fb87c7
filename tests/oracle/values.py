"""Values as the model holds them, and their order and equality in Spark.

NULL is None; timestamps are ints of microseconds; a window is the pair of its bounds; the
rest are the Python types that pyspark uses.
"""

from __future__ import annotations

import ctypes
import functools
import math
from decimal import Decimal
from typing import Any

from .sparktypes import DOUBLE, FLOAT, INTEGRAL_BITS, Type, fit

Value = Any

NAN = math.nan


class ModelError(Exception):
    """The query raises on this input, as plain Spark does in ANSI mode.

    It is not `certain` if plain Spark raises or not according to the order in which it
    evaluates conditions, which differs between its compiled and interpreted modes.
    """

    certain = True


def compare(left: Value, right: Value) -> int:
    """-1, 0 or 1: NaN equals itself and is greater than everything, -0.0 equals 0.0."""
    if isinstance(left, float):
        left_nan, right_nan = math.isnan(left), math.isnan(right)
        if left_nan or right_nan:
            return left_nan - right_nan
    return int(left > right) - int(left < right)


#: A sort key for non-NULL values of one type.
sort_key = functools.cmp_to_key(compare)


def canonical(value: Value) -> Value:
    """A value as a group-by key: one NaN, and no negative zero."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    return value


def to_float32(value: float) -> float:
    """The nearest 32-bit float, as a Python float."""
    return ctypes.c_float(value).value


def wrap(value: int, kind: Type, *, ansi: bool) -> int:
    """`value` in the bits of an integral type: wrapped, or an error in ANSI mode."""
    bits = INTEGRAL_BITS[kind.name]
    wrapped = (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    if ansi and wrapped != value:
        raise ModelError(f"{kind} overflow: {value}")
    return wrapped


def checked(value: Decimal, kind: Type, *, ansi: bool) -> Decimal | None:
    """`value` as a decimal of a type: NULL if too large, or an error in ANSI mode."""
    fitted = fit(value, kind)
    if fitted is None and ansi:
        raise ModelError(f"{value} is out of range for {kind}")
    return fitted


def convert(value: Value, source: Type, target: Type) -> Value:
    """A value cast to a wider type, as Spark does when types meet."""
    if value is None or source == target:
        return value
    if target == DOUBLE:
        return float(value)
    if target == FLOAT:
        return to_float32(float(value))
    if target.is_decimal:
        return fit(Decimal(value), target)
    return value
