"""Constants of conditions: from Spark's types to the form that bounds have, and back to SQL."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import Final

from weft.algebra.scalar import Literal, Value, to_sql
from weft.algebra.types import (
    BOOLEAN,
    FRACTIONAL,
    INTEGRAL_LIMITS,
    STRING,
    SqlType,
    decimal_parameters,
)

EXACT: Final = Context(prec=100)
"""Decimals have up to 38 digits; Python's own context rounds to 28."""
_SUFFIXES: Final = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}


def is_indexable(type_: SqlType) -> bool:
    """Whether conditions on attributes of the type become selections."""
    return type_ in FRACTIONAL or type_ in (STRING, "date") or limits(type_) is not None


def normal(value: Value, type_: SqlType) -> Value:
    """A constant in the form that bounds have."""
    if type_ in FRACTIONAL:
        assert value is not None
        number = float(value)
        return None if math.isnan(number) else number + 0.0
    parameters = decimal_parameters(type_)
    if parameters:
        return int(Decimal(str(value)).scaleb(parameters[1], EXACT))
    return int(value) if isinstance(value, bool) else value


def limits(type_: SqlType) -> tuple[int, int] | None:
    """The lowest and highest value of a type of integers."""
    parameters = decimal_parameters(type_)
    if parameters:
        return 1 - 10 ** parameters[0], 10 ** parameters[0] - 1
    return (0, 1) if type_ == BOOLEAN else INTEGRAL_LIMITS.get(type_)


def constant(value: Value, type_: SqlType) -> Value:
    """A bound's value as a constant of its type; decimals, NaN and infinities as text."""
    parameters = decimal_parameters(type_)
    if parameters:
        return f"{Decimal(str(value)).scaleb(-parameters[1], EXACT):f}"
    if type_ == BOOLEAN:
        return bool(value)
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "NaN" if value is None else value


def constant_sql(value: Value, type_: SqlType) -> str:
    """A bound's value as Spark SQL."""
    value = constant(value, type_)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and type_ in _SUFFIXES:
        return f"{value}{_SUFFIXES[type_]}"
    elif isinstance(value, float) and math.isfinite(value) and type_ == "double":
        return f"{value!r}D"
    elif type_ == "date":
        return f"DATE '{value}'"
    return to_sql(Literal(value, type_))
