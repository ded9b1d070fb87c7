from __future__ import annotations

import pytest

from weft.sql.reading.intervals import IntervalProblem, interval_micros

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1 hour", 3600 * SECOND),
        ("1 HOURS", 3600 * SECOND),
        ("90 seconds", 90 * SECOND),
        ("1 day 2 hours", 26 * 3600 * SECOND),
        ("  1   minute  30 Seconds ", 90 * SECOND),
        ("1.5 seconds", 1_500_000),
        (".5 second", 500_000),
        ("1.0000019 seconds", 1_000_001),
        ("500 milliseconds", 500_000),
        ("7 microseconds", 7),
        ("2 weeks", 14 * 86400 * SECOND),
        ("INTERVAL 1 HOUR", 3600 * SECOND),
        ("interval 5 minutes", 300 * SECOND),
        ("-5 seconds", -5 * SECOND),
        ("- 5 seconds", -5 * SECOND),
        ("+5 seconds", 5 * SECOND),
        ("1 hour -30 minutes", 1800 * SECOND),
        ("0 seconds", 0),
    ],
)
def test_an_interval_has_a_length_in_microseconds(text: str, micros: int) -> None:
    assert interval_micros(text) == micros


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 month", "months"),
        ("2 years", "months"),
        ("1 day 1 month", "months"),
        ("", "empty"),
        ("interval", "empty"),
        ("abc", "number and a unit"),
        ("1h", "number and a unit"),
        ("1hour", "number and a unit"),
        ("1", "number and a unit"),
        ("hour", "number and a unit"),
        ("1 parsec", "parsec"),
        (". seconds", "number and a unit"),
        ("1.5 hours", "fraction"),
        ("1.1234567890 seconds", "nine digits"),
        ("99999999999999 weeks", "longer"),
    ],
)
def test_what_has_no_fixed_length_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(IntervalProblem, match=reason):
        interval_micros(text)
