"""Windowed aggregates over joins of streams: the derived stream, what is read of it, and what falls back."""

from __future__ import annotations

import pytest
from tests.sql.support import STREAMS, FakeAnalyzer

from weft.algebra.network.derived import DerivedQuery
from weft.algebra.query import Field, Query
from weft.errors import SqlError
from weft.sql import Fallback, bind

PEOPLE = {"people": (Field("name", "string"), Field("city", "string"), Field("age", "int"))}
PAIR = "bids a JOIN bids b ON a.auction = b.auction AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 MINUTES"
WINDOW = "GROUP BY window(a.ts, '10 minutes')"


def bound(sql: str, time_zone: str = "UTC") -> Query | Fallback:
    query = bind(
        "q", sql, STREAMS, FakeAnalyzer(), query_id="q@1", tables=PEOPLE, time_zone=time_zone
    )
    assert isinstance(query, Query | Fallback)
    return query


def derived(sql: str) -> DerivedQuery:
    query = bound(sql)
    assert isinstance(query, DerivedQuery), query
    return query


def test_the_query_reads_the_columns_of_a_derived_stream() -> None:
    query = derived(
        f"SELECT window.start, b.channel, sum(a.price) FILTER (WHERE b.ok) AS s FROM {PAIR} "
        f"WHERE a.price > 3 {WINDOW}, b.channel HAVING count(*) > 2"
    )
    stream = query.derived
    assert [entry.alias for entry in stream.inputs] == ["a", "b"]
    assert query.stream == stream.name
    assert query.predicate is None
    assert stream.predicates.sql.endswith("AND `0.price` >= 4")
    assert [key.sql for key in query.keys] == ["`bids#2.channel`"]
    aggregate = query.aggregates[0]
    assert [argument.sql for argument in aggregate.arguments] == ["`bids.price`"]
    assert aggregate.filter is not None
    assert aggregate.filter.sql == "`bids#2.ok`"
    assert query.fields == (
        Field("bids#2.channel", "string"),
        Field("bids#2.ok", "boolean"),
        Field("bids.price", "int"),
        Field("bids.ts", "timestamp"),
    )
    assert stream.time == "bids.ts"
    assert stream.delay == 300_000_000


@pytest.mark.parametrize(
    "source",
    [
        "bids b JOIN bids a ON a.auction = b.auction AND a.ts <= b.ts WHERE b.ts <= a.ts + INTERVAL 5 MINUTES",
        "(SELECT auction AS k, ts, price FROM bids) a, bids b WHERE a.k = b.auction "
        "AND b.ts - INTERVAL 5 MINUTES <= a.ts AND NOT b.ts < a.ts",
    ],
)
def test_queries_over_the_same_join_have_the_same_stream(source: str) -> None:
    one = derived(f"SELECT count(*) AS n FROM {PAIR} {WINDOW}")
    other = derived(f"SELECT max(a.price) AS m FROM {source} GROUP BY window(a.ts, '3 minutes')")
    assert one.stream == other.stream
    assert one.fields == (Field("bids.ts", "timestamp"),)
    assert other.fields == (Field("bids.price", "int"), Field("bids.ts", "timestamp"))


def test_a_window_over_the_other_input_is_another_stream() -> None:
    one = derived(f"SELECT count(*) AS n FROM {PAIR} {WINDOW}")
    other = derived(f"SELECT count(*) AS n FROM {PAIR} GROUP BY window(b.ts, '10 minutes')")
    narrower = derived(f"SELECT count(*) AS n FROM {PAIR} WHERE a.price > 3 {WINDOW}")
    assert len({one.stream, other.stream, narrower.stream}) == 3
    assert (one.derived.delay, other.derived.delay) == (300_000_000, 0)


def test_several_streams_with_tables() -> None:
    query = derived(
        "SELECT p.city, count(*) AS n FROM bids a JOIN Packets s ON a.auction = s.size "
        "AND s.Time BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR LEFT JOIN people p ON p.name = a.channel "
        "WHERE a.channel IN (SELECT name FROM people) GROUP BY 1, window(a.ts, '10 minutes')"
    )
    assert [entry.relation for entry in query.derived.inputs] == ["Packets", "bids"]
    assert query.derived.times == ("Time", "ts")
    (key,) = query.keys
    assert key.columns == (key.sql.strip("`"),)
    assert key.columns[0].startswith("bids.people@")


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            f"SELECT count(*) FROM bids a JOIN bids b ON a.auction = b.auction {WINDOW}",
            "without bounds on event times; add a bound such as b.ts <= a.ts + INTERVAL 1 HOUR",
        ),
        (
            "SELECT count(*) FROM bids a JOIN bids b ON a.auction = b.auction AND b.ts > a.ts "
            "GROUP BY window(b.ts, '1 hour')",
            "add a bound such as b.ts <= a.ts + INTERVAL 1 HOUR",
        ),
        (f"SELECT count(*) FROM {PAIR} GROUP BY a.channel", "needs a window of event time"),
        (
            f"SELECT count(*) FROM {PAIR} GROUP BY window(a.ts + INTERVAL 1 HOUR, '1 hour')",
            "something else than a stream's event time",
        ),
        (f"SELECT count(a.payload) FROM {PAIR} {WINDOW}", "a column of type struct"),
        (
            f"SELECT count(*) FROM {PAIR} WHERE a.price / b.price > 2 {WINDOW}",
            "a condition in WHERE may raise",
        ),
        (
            f"SELECT count(*) FROM bids a LEFT JOIN bids b ON a.auction = b.auction {WINDOW}",
            "LEFT JOIN has no shared form unless",
        ),
    ],
)
def test_what_falls_back_says_why(sql: str, reason: str) -> None:
    query = bound(sql)
    assert isinstance(query, Fallback), query
    assert reason in query.detail


def test_days_are_no_bound_where_clocks_change() -> None:
    sql = (
        "SELECT count(*) AS n FROM bids a JOIN bids b ON a.auction = b.auction "
        f"AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 2 DAYS {WINDOW}"
    )
    assert isinstance(bound(sql), DerivedQuery)
    assert isinstance(bound(sql, "Europe/Berlin"), Fallback)


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        (f"SELECT count(*) FROM {PAIR} GROUP BY window(ts, '1 hour')", "AMBIGUOUS_COLUMN"),
        (f"SELECT a.price, count(*) FROM {PAIR} {WINDOW}", "NOT_GROUPED"),
        (f"SELECT count(*) FROM bids a, bids b {WINDOW}", "CARTESIAN"),
        (f"SELECT count(*) AS n, 1 AS N FROM {PAIR} {WINDOW}", "DUPLICATE_COLUMN"),
    ],
)
def test_errors_have_a_place(sql: str, error: str) -> None:
    with pytest.raises(SqlError, match=error) as raised:
        bound(sql)
    assert "line 1" in str(raised.value)
