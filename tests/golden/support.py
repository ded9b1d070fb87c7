"""What the golden cases are planned and run with: the sharing, the rows, and their oracle in SQL."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tests.oracle.sparktypes import BIGINT, DOUBLE, STRING, TIMESTAMP, Type
from tests.oracle.values import Value

from weft.algebra.plan import Sharing
from weft.sql import statements

GOLDEN = Path(__file__).parent
SECOND = 1_000_000
SHARING = Sharing("triweave", "triops", rate=2.0)
"""An optimizer and a rate with which every pass changes its case."""

SCHEMAS: Mapping[str, Mapping[str, Type]] = {
    "bids": {
        "auction": BIGINT,
        "bidder": BIGINT,
        "price": BIGINT,
        "channel": STRING,
        "weight": DOUBLE,
        "ts": TIMESTAMP,
    },
    "clicks": {"page": STRING, "at": TIMESTAMP},
}
TIMES = {"bids": "ts", "clicks": "at"}
DELAYS = {"bids": "10 seconds", "clicks": "2 seconds"}
START = 1_600_000_000 * SECOND + 123_457

Row = dict[str, Value]


def without(name: str) -> Sharing:
    """The sharing with a pass switched off."""
    return replace(SHARING, passes=tuple(kept for kept in SHARING.passes if kept != name))


def shared_queries(case: Path) -> Iterator[tuple[str, str]]:
    """The names and texts of a case's statements."""
    for number, statement in enumerate(statements(case.read_text()), 1):
        yield statement.name or f"q{number}", statement.sql


def rows_of(stream: str) -> list[Row]:
    """A quarter of an hour of a stream: no two rows at one time, NULL and zero among the values."""
    dice = random.Random(stream)
    times = sorted(dice.sample(range(900 * SECOND), 1_500))
    if stream == "clicks":
        return [{"page": dice.choice(["/", "/a", None]), "at": START + time} for time in times]
    return [
        {
            "auction": dice.choice([None, *range(1, 12)]),
            "bidder": dice.randrange(6),
            "price": dice.choice([None, 0, -5, 50, 500, 20_000, dice.randrange(30_000)]),
            "channel": dice.choice(["Google", "Apple", "", None]),
            "weight": dice.choice([None, 0.5, 1e9]),
            "ts": START + time,
        }
        for time in times
    ]


def closing_row(stream: str) -> Row:
    """A row so late that every window of the others is closed, and in no window of theirs."""
    row: Row = dict.fromkeys(SCHEMAS[stream])
    row[TIMES[stream]] = START + 7 * 86_400 * SECOND
    return row


NUMBERED = """
WITH numbered AS (
    SELECT *, row_number() OVER (ORDER BY ts, auction, bidder, price, channel, weight) - 1 AS number
    FROM bids
), paired AS (
    SELECT *, explode(sequence(floor((number - {range}) / {slide}) + 1, floor(number / {slide}))) AS k
    FROM numbered WHERE floor((number - {range}) / {slide}) + 1 <= floor(number / {slide})
), held AS (
    SELECT *, k * {slide} AS first, k * {slide} + {range} AS beyond FROM paired
    WHERE k * {slide} + {range} <= (SELECT count(*) FROM bids)
)
"""

IN_PLAIN_SQL: Mapping[tuple[str, str], str] = {
    ("windows", "bracket"): """
        SELECT auction, MIN(price) AS lowest FROM bids WHERE pmod(unix_micros(ts), 10000000) < 1000000
        GROUP BY unix_micros(ts) DIV 10000000, auction""",
    ("row_windows", "sliding"): NUMBERED.format(range=1000, slide=100)
    + "SELECT first, auction, COUNT(*) AS n FROM held GROUP BY k, first, auction",
    ("row_windows", "uneven"): NUMBERED.format(range=250, slide=100)
    + """SELECT named_struct('start', first, 'end', beyond) AS window, auction, MAX(price) AS highest
        FROM held WHERE channel = 'Google' GROUP BY k, first, beyond, auction""",
    ("row_windows", "sample"): NUMBERED.format(range=10, slide=1000)
    + "SELECT beyond, AVG(price) AS mean FROM held GROUP BY k, beyond",
}
"""Queries that plain Spark has no form for, in one that it has, by case and name."""
