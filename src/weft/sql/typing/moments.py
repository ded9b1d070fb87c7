"""Literals of time: timestamps and intervals as microseconds, as Spark reads them.

A timestamp without an offset is local time of the session. In a gap of daylight saving Spark goes
forward by the gap, in an overlap it takes the earlier instant; Python's `fold=0` does the same.

Spark adds the whole days of an interval as calendar days of the session's time zone. That is an exact sum
of microseconds only in zones whose offset never changes.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from weft.sql.reading.intervals import MICROS, IntervalProblem, interval_micros

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_YEAR: Final = 1900
"""Before, zones had local mean time, for which sources differ."""
_TIMESTAMP = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)(?:[ T](?P<time>\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d{1,6}))?)?"
    r"(?P<utc>Z)?"
)
_INTERVAL = re.compile(r"INTERVAL\s+(?:'(?P<quoted>[^']*)'(?:\s+(?P<unit>\w+))?|(?P<plain>.*))\Z")
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d\d?)(?::(?P<minutes>\d\d))?")
_FIXED: Final = frozenset({"UTC", "GMT", "UT", "Z", "UCT", "Zulu", "Universal"})


class IntervalLiteral(NamedTuple):
    """An interval of fixed length; `days` is its number of days if it is written in days alone."""

    micros: int
    days: int | None

    @property
    def has_whole_days(self) -> bool:
        return abs(self.micros) >= MICROS["day"]


def interval_literal(text: str) -> IntervalLiteral | None:
    """What an INTERVAL literal means, None where only Spark can tell.

    >>> interval_literal("INTERVAL '20' DAY"), interval_literal("INTERVAL 1 HOUR 30 MINUTES")
    (IntervalLiteral(micros=1728000000000, days=20), IntervalLiteral(micros=5400000000, days=None))
    >>> interval_literal("INTERVAL '1' MONTH") is None
    True
    """
    match = _INTERVAL.match(text)
    if match is None:
        return None
    words = match["plain"] or f"{match['quoted']} {match['unit'] or ''}"
    try:
        micros = interval_micros(words)
    except IntervalProblem:
        return None
    in_days = re.fullmatch(r"\s*[+-]?\s*\d+\s+days?\s*", words, re.IGNORECASE)
    return IntervalLiteral(micros, micros // MICROS["day"] if in_days else None)


def timestamp_micros(text: str, time_zone: str | None) -> int | None:
    """A timestamp in microseconds since 1970, None where only Spark can tell.

    >>> timestamp_micros("1970-01-01 00:00:01", "UTC"), timestamp_micros("1970-01-01", "+01:00")
    (1000000, -3600000000)
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    zone = UTC if match is not None and match["utc"] else zone_of(time_zone)
    if match is None or zone is None:
        return None
    fraction = (match["fraction"] or "").ljust(6, "0")
    try:
        local = datetime.fromisoformat(f"{match['date']}T{match['time'] or '00:00:00'}.{fraction}")
    except ValueError:
        return None
    if local.year < _FIRST_YEAR:
        return None
    return (local.replace(tzinfo=zone) - _EPOCH) // timedelta(microseconds=1)


def is_date(text: str) -> bool:
    """Whether a text is a date in the form 2020-01-31.

    >>> is_date("2020-02-29"), is_date("2020-02-30")
    (True, False)
    """
    try:
        return len(text) == 10 and date.fromisoformat(text) is not None
    except ValueError:
        return False


def has_fixed_offset(time_zone: str | None) -> bool:
    """Whether the offset of a zone from UTC never changes.

    >>> has_fixed_offset("UTC"), has_fixed_offset("+02:00"), has_fixed_offset("Europe/Berlin")
    (True, True, False)
    """
    if time_zone is None:
        return False
    return time_zone.removeprefix("Etc/") in _FIXED or _OFFSET.fullmatch(time_zone) is not None


@lru_cache(maxsize=64)
def zone_of(time_zone: str | None) -> tzinfo | None:
    """A session's time zone, None if Python does not know it."""
    if time_zone is None:
        return None
    match = _OFFSET.fullmatch(time_zone)
    if match is not None:
        offset = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"] or 0))
        return timezone(offset if match["sign"] == "+" else -offset)
    if has_fixed_offset(time_zone):
        return UTC
    try:
        return ZoneInfo(time_zone)
    except (KeyError, ValueError, OSError):
        return None
