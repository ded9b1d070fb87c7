"""Intervals of fixed length, in microseconds.

Spark's interval strings, as `window` takes them: `1 hour`, `1 day 2 hours`, `-5 seconds`,
`interval 90 seconds`; only seconds may have a fraction. Months and years have no fixed length.
"""

from __future__ import annotations

import re
from typing import Final

MICROS: Final = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_CALENDAR: Final = ("month", "year")
_PART = re.compile(
    r"\s*(?P<sign>[+-])?\s*(?P<whole>\d*)(?P<fraction>\.\d*)?\s+(?P<unit>[a-z]+)(?=\s|\Z)",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"\s*interval(?=\s|\Z)", re.IGNORECASE)
_LONGEST: Final = 2**63 - 1


class IntervalProblem(ValueError):
    """Why a text is not an interval of fixed length."""


def interval_micros(text: str) -> int:
    """The length of an interval.

    >>> interval_micros("1 day 2 hours"), interval_micros("INTERVAL 1.5 Seconds")
    (93600000000, 1500000)
    >>> interval_micros("1 month")
    Traceback (most recent call last):
    weft.sql.reading.intervals.IntervalProblem: months and years differ in length; use days
    """
    prefix = _PREFIX.match(text)
    at = prefix.end() if prefix else 0
    rest = text.rstrip()
    total = 0
    if at >= len(rest):
        raise IntervalProblem("it is empty")
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None or not (match["whole"] or (match["fraction"] or "")[1:]):
            raise IntervalProblem("write a number and a unit, such as '90 seconds'")
        total += _part(match)
        at = match.end()
    if abs(total) > _LONGEST:
        raise IntervalProblem("it is longer than 292 000 years")
    return total


def _part(match: re.Match[str]) -> int:
    unit = match["unit"].lower()
    unit = unit.removesuffix("s")
    if unit in _CALENDAR:
        raise IntervalProblem("months and years differ in length; use days")
    if unit not in MICROS:
        units = ", ".join(name + "s" for name in MICROS)
        raise IntervalProblem(f"'{match['unit']}' is not a unit; units are {units}")
    fraction = match["fraction"] or ""
    if fraction and unit != "second":
        raise IntervalProblem("only seconds may have a fraction")
    if len(fraction) > 10:
        raise IntervalProblem("a fraction has at most nine digits")
    number = int(match["whole"] or 0) * MICROS[unit]
    # Spark keeps nine digits and cuts what is below a microsecond.
    number += int((fraction[1:] or "0").ljust(6, "0")[:6])
    return -number if match["sign"] == "-" else number
