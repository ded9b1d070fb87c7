"""SQL types by their Spark names.

A type is the text Spark prints for it (``bigint``, ``decimal(10,2)``), so that it needs
no translation at the border to Spark and reads well in plans and errors.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

SqlType = str

BIGINT: Final = "bigint"
DOUBLE: Final = "double"
BOOLEAN: Final = "boolean"
STRING: Final = "string"
TIMESTAMP: Final = "timestamp"
BINARY: Final = "binary"
WINDOW: Final = "struct<start:timestamp,end:timestamp>"
ROW_WINDOW: Final = "struct<start:bigint,end:bigint>"

INTEGRAL: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
FRACTIONAL: Final = frozenset({"float", "double"})
ORDERED: Final = (
    INTEGRAL | FRACTIONAL | {"boolean", "string", "date", "timestamp", "timestamp_ntz", "binary"}
)
INTEGRAL_LIMITS: Final = {
    "tinyint": (-(2**7), 2**7 - 1),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}

_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
MAX_PRECISION: Final = 38
_NOT_STORED = re.compile(r"\binterval\b(?! (?:day|hour|minute|second)\b)")


@lru_cache(maxsize=1024)
def decimal_parameters(type_: SqlType) -> tuple[int, int] | None:
    """Precision and scale of a decimal type, None for any other type.

    >>> decimal_parameters("decimal(10,2)")
    (10, 2)
    >>> decimal_parameters("bigint") is None
    True
    """
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def decimal(precision: int, scale: int) -> SqlType:
    """A decimal type bounded as Spark bounds it.

    >>> decimal(45, 10)
    'decimal(38,10)'
    """
    return f"decimal({min(precision, MAX_PRECISION)},{min(scale, MAX_PRECISION)})"


def is_numeric(type_: SqlType) -> bool:
    return type_ in INTEGRAL or type_ in FRACTIONAL or decimal_parameters(type_) is not None


def is_ordered(type_: SqlType) -> bool:
    """Whether weft can compare two values of the type, so that min and max exist."""
    return type_ in ORDERED or decimal_parameters(type_) is not None


def is_stored(type_: SqlType) -> bool:
    """Whether the contents of a table can be kept with a column of the type: not with calendar intervals, and
    intervals of months, which Arrow does not get from Spark.

    >>> is_stored("interval day to second"), is_stored("array<interval year to month>")
    (True, False)
    """
    return _NOT_STORED.search(type_) is None


def is_key(type_: SqlType) -> bool:
    """Whether a group-by key may have the type."""
    return is_ordered(type_)
