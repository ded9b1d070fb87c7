"""Aggregation joins against Spark: what Spark evaluates of them, and the rows, names and types that come out.

Spark evaluates the selections, attributes and partials of every bound query on rows; the kernel joins and aggregates them at
instants. The same SQL with the windows as conditions is plain Spark's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.sql.joinagg_rows import groups_at, shown
from tests.sql.joinagg_support import STREAMS, TABLES, query

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.query import quote
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.column import column
from weft.kernel.joinagg.entries import entries_of
from weft.kernel.joinagg.evaluation import Side
from weft.runtime.queries.analyzer import SparkAnalyzer

pytestmark = pytest.mark.spark

ZONE = "Asia/Kolkata"
NOON = 1_577_880_000
"""2020-01-01 12:00 UTC, half past five in the afternoon there."""
TIME = "unix_micros(`ts`)"
INSTANTS = [NOON + 900 * number for number in (0, 2, 4, 7)]
AUCTIONS = """(-600, 1, 10, 5), (30, 2, 11, 20), (1500, 3, NULL, 7), (2000, NULL, 10, 3), (1700, 1, 11, NULL)"""
BIDS = """(-1200, 1, 10, 6, 1.50, 'Web'), (60, 1, 11, 9, 2.00, 'web'), (61, 2, 11, 15, 11.00, NULL),
    (899, 2, NULL, 30, NULL, 'App'), (900, 1, 10, NULL, 10.00, 'app'), (2500, 3, 12, 8, 3.00, 'web'),
    (3599, 1, 12, -4, 1.00, 'App'), (3600, NULL, 10, 2, 0.50, 'app')"""
PEOPLE = """(10, 'ann', 'VT'), (11, 'bob', 'NY'), (12, NULL, 'VT'), (NULL, 'web', NULL)"""


@dataclass(frozen=True)
class Text:
    """A query: FROM has a relation, an alias, and the seconds of a sliding window; 0 is a landmark, None a table."""

    select: str
    inputs: tuple[tuple[str, str, int | None], ...]
    where: str
    rest: str = ""

    @property
    def sql(self) -> str:
        brackets = {None: "", 0: " [WINDOW UNTIL NOW]"}
        from_ = [
            f"{name} {alias}{brackets.get(length, f' [WINDOW {length} SECONDS]')}"
            for name, alias, length in self.inputs
        ]
        return f"SELECT {self.select} FROM {', '.join(from_)} WHERE {self.where} {self.rest} EVERY 15 MINUTES"

    def plain(self, at: int) -> str:
        """The same with conditions in place of windows."""
        parts = [self.where]
        for _, alias, length in self.inputs:
            if length is not None:
                parts.append(f"{alias}.ts < timestamp_seconds({at})")
            if length:
                parts.append(f"{alias}.ts >= timestamp_seconds({at - length})")
        from_ = ", ".join(f"{name} {alias}" for name, alias, _ in self.inputs)
        return f"SELECT {self.select} FROM {from_} WHERE {' AND '.join(parts)} {self.rest}"


PAIR = (("Auction", "a", 0), ("Bid", "b", 3600))
SAME = "a.auctionID = b.auctionID"
TEXTS = [
    Text(
        "p.state, count(*), sum(b.amount) AS s, avg(b.bidPrice) AS v, max(a.startPrice)",
        (*PAIR, ("Person", "p", None)),
        f"{SAME} AND a.sellerID = p.personID",
        "GROUP BY p.state",
    ),
    Text(
        "date_format(b.ts, 'HH') AS hour, upper(b.channel), count(b.channel), min(b.amount), stddev_pop(b.bidPrice)",
        PAIR,
        f"{SAME} AND b.bidPrice % 2 = 1",
        "GROUP BY hour, upper(b.channel)",
    ),
    Text(
        "b.bidPrice - a.startPrice AS rise, count(*) AS n, sum(b.bidPrice * 2) AS s",
        PAIR,
        f"{SAME} AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 30 MINUTES",
        "GROUP BY rise HAVING count(*) > 0 AND sum(b.bidPrice) > 10",
    ),
    Text(
        "count(*) AS n, approx_count_distinct(b.channel) AS d, count(*) FILTER (WHERE p.name IS NULL) AS f,"
        " max_by(b.channel, b.bidPrice) AS m",
        (("Bid", "b", 1800), ("Person", "p", None)),
        "b.amount < p.personID AND (b.bidderID = p.personID OR lower(b.channel) = p.name)",
    ),
    Text(
        "x.channel, sum(y.bidPrice) AS s, bool_or(x.bidPrice > 5) AS o",
        (("Bid", "x", 3600), ("Bid", "y", 1800)),
        "x.auctionID = y.auctionID AND x.channel <=> y.channel AND x.bidPrice <= y.bidPrice + 30",
        "GROUP BY x.channel",
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    own_session = spark.newSession()
    own_session.conf.set("spark.sql.session.timeZone", ZONE)
    own_session.conf.set("spark.sql.shuffle.partitions", "1")
    own_session.conf.set("spark.sql.adaptive.enabled", "false")
    time = f"timestamp_seconds({NOON} + s)"
    for name, rows, names, items in (
        ("Auction", AUCTIONS, "s, auctionID, sellerID, startPrice", f"{time} AS ts, *"),
        (
            "Bid",
            BIDS,
            "s, auctionID, bidderID, bidPrice, amount, channel",
            f"{time} AS ts, *, {time} AS at",
        ),
        ("Person", PEOPLE, "personID, name, state", "*"),
    ):
        fields = STREAMS[name].fields if name in STREAMS else TABLES[name]
        typed = ", ".join(f"cast({field.name} AS {field.type})" for field in fields)
        loaded = own_session.sql(
            f"SELECT {typed} FROM (SELECT {items} FROM VALUES {rows} AS t({names}))"
        )
        ddl = ", ".join(f"{field.name} {field.type}" for field in fields)
        local = own_session.createDataFrame(loaded.coalesce(1).toArrow(), ddl)
        local.createOrReplaceTempView(name)
    return own_session


def side(session: Any, join: AggregationJoin, slot: int) -> Side:
    """An input with what Spark evaluates of it: a group for each row."""
    entry = join.inputs[slot]
    partials = {
        partial.name: partial
        for joined in join.aggregates
        if joined.slot == slot
        for partial in joined.partials(TIME)
    }
    time = TIME if entry.window is not None else "0L"
    values = {"time#": time, **{a.name: a.value.sql for a in entry.attributes}}
    items = [f"any_value({sql}) AS {quote(name)}" for name, sql in values.items()]
    items += [f"{partial.lift} AS {quote(name)}" for name, partial in partials.items()]
    where = "" if entry.predicate is None else f"WHERE {entry.predicate.sql}"
    numbered = f"SELECT *, monotonically_increasing_id() AS `row#` FROM {entry.relation} {where}"
    grouped = session.sql(f"SELECT {', '.join(items)} FROM ({numbered}) GROUP BY `row#`").toArrow()
    times = grouped.column("time#").to_numpy()
    first, last = np.zeros((2, len(times)), np.int64)
    if entry.window is not None:
        pane = entry.window.pane(join.step)
        for place, micros in enumerate(times):
            first[place], last[place] = entry.window.instants(
                (int(micros) // pane + 1) * pane, join.step
            )
    columns = {
        a.name: column(grouped.column(a.name).combine_chunks().cast(arrow_type(a.value.type)))
        for a in entry.attributes
    }
    kept = entries_of(
        grouped, first, last, columns, np.ones(len(times), np.int64), list(partials.values())
    )
    return Side(kept, False, tuple(partials.values()), entry.window is None)


def rounded(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.select[:24])
def test_spark_gives_the_same_at_every_instant(session: Any, text: Text) -> None:
    join = query(text.sql, SparkAnalyzer(session), time_zone=ZONE)
    fields = session.sql(text.plain(INSTANTS[0])).schema.fields
    wanted = [(field.name, field.dataType.simpleString()) for field in fields]
    assert [(c.name, c.type) for c in join.columns] == [("at", "timestamp"), *wanted]
    expected: Counter[Any] = Counter()
    together = " UNION ALL ".join(
        f"SELECT {at} AS `at#`, * FROM ({text.plain(at)})" for at in INSTANTS
    )
    for row in session.sql(together).collect():
        expected[tuple(map(rounded, row))] += 1
    assert len(expected) >= len(INSTANTS) / 2
    sides = [side(session, join, slot) for slot in range(len(join.inputs))]
    for early in (False, True):
        planned = [replace(part, early=early) for part in sides]
        found = Counter(
            (int(at.timestamp()), *map(rounded, row))
            for at, *row in shown(join, groups_at(join, planned, INSTANTS, TIME))
        )
        assert found == expected, early
