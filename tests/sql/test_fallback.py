"""Spark SQL that weft does not share: it runs by itself, and EXPLAIN says why."""

from __future__ import annotations

import pytest
from tests.sql.support import FakeAnalyzer, fallback, grouped, query

WINDOW = "GROUP BY window(ts, '1 hour')"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (grouped("collect_list(price)"), "collect_list has no partial form"),
        (grouped("percentile(price, 0.5)"), "percentile has no partial form"),
        (grouped("corr(price, d)"), "corr has no partial form"),
        (grouped("sum(DISTINCT price)"), "sum(DISTINCT …) has no partial form"),
        (grouped("count(DISTINCT tags)"), "count of a array<string> has no shared form"),
        (grouped("max_by(price, d, 2)"), "max_by of 3 arguments"),
        (grouped("approx_percentile(price, price)"), "not a number"),
        (grouped("approx_percentile(price, 2)"), "these parameters"),
        (grouped("first(price, ok)"), "second argument"),
        (grouped("max(window.end)"), "the window inside an aggregate"),
        (grouped("listagg(channel) WITHIN GROUP (ORDER BY price)"), "WITHIN GROUP"),
        (grouped("count(*)", keys="tags"), "grouping by a array<string>"),
        (grouped("window_time(window)"), "window_time has no shared form"),
        (grouped("my_function(price)", keys="price"), "my_function is a user's function"),
        (grouped("sum(my_function(price))"), "my_function is a user's function"),
        (grouped("count(*)", where="rand() > 0.5"), "rand may change"),
        (grouped("current_timestamp()"), "current_timestamp may change"),
        (grouped("current_date"), "current_date changes"),
        (grouped("count(*)", where="price IN (SELECT 1)"), "subquery"),
        (grouped("count(*)", where="EXISTS (SELECT 1)"), "subquery"),
        (grouped("(SELECT max(price) FROM bids)"), "subquery"),
        (grouped("transform(tags, x -> x)"), "'->'"),
        (grouped("reduce(tags, 0, (a, b) -> a)"), "a lambda ('->')"),
        (grouped("count(*)", where="exists(tags, x -> x = 'a')"), "a lambda ('->')"),
        (grouped("count(*)", where="NOT EXISTS (TABLE people)"), "subquery"),
        (grouped("count(*)", where="channel = '${limit}'"), "${…} is replaced by Spark"),
        (grouped("count(*)", where="price > ${limit}"), "${…} is replaced by Spark"),
        (grouped("round(number => d)"), "a named argument"),
        (grouped("count(*)", having="count(*)"), "HAVING with a bigint"),
        (grouped("NULL AS nothing"), "a result column of type void"),
        (grouped("map('n', count(*)) AS m"), "a result column of type map"),
        (grouped("struct(price)", keys="price"), "struct has no shared form"),
        (grouped("dateadd(DAY, 1, ts)", keys="ts"), "dateadd with a unit"),
        (grouped("price + 1", keys="1 + price"), "part of a group-by expression"),
        (grouped("count(*)") + " ORDER BY 1", "ORDER BY has no shared form"),
        (grouped("count(*)") + " LIMIT 3", "LIMIT has no shared form"),
        (grouped("DISTINCT count(*)"), "SELECT DISTINCT with aggregates has no shared form"),
        (grouped("/*+ COALESCE(1) */ count(*)"), "hints have no shared form"),
        (grouped("count(*)", keys="auction WITH ROLLUP"), "GROUP BY … WITH ROLLUP"),
        ("SELECT 1 FROM bids GROUP BY CUBE (window(ts, '1 hour'), price)", "GROUP BY CUBE"),
        ("SELECT window(ts, '1 hour'), count(*) FROM bids GROUP BY ALL", "GROUP BY ALL"),
        ("SELECT count(*) FROM bids GROUP BY session_window(ts, '5 minutes')", "session_window"),
        ("SELECT count(*) FROM bids GROUP BY window(ts, '1 hour').start", "bound of the window"),
        ("SELECT ts, count(*) FROM bids GROUP BY ts", "the event time itself"),
        ("SELECT * FROM bids", "a result column of type struct<kind:string,n:int>"),
        ("SELECT price FROM bids WHERE 1 / d > 2", "a condition in WHERE may raise"),
        ("SELECT price FROM bids JOIN people ON name = channel", "a join with a table"),
        ("SELECT price FROM people, bids", "a join with a table"),
        (
            "SELECT count(*) FROM bids a JOIN bids b ON a.d = b.d GROUP BY window(a.ts, '1 hour')",
            "a windowed aggregate over a join without bounds on event times",
        ),
        ("SELECT a.price FROM bids a LEFT OUTER JOIN bids b ON a.d = b.d", "LEFT JOIN has no"),
        ("SELECT a.price FROM bids a LEFT JOIN bids b ON a.d = b.d", "LEFT JOIN"),
        ("SELECT price FROM (SELECT count(*) AS price FROM bids)", "groups or aggregates"),
        ("SELECT price FROM (SELECT DISTINCT price, channel FROM bids)", "removes duplicates"),
        ("SELECT price FROM (SELECT price FROM bids LIMIT 3)", "LIMIT has no shared form"),
        ("SELECT price FROM bids, (SELECT 1 AS one)", "a subquery without FROM"),
        (
            "WITH a(p) AS (SELECT 1), `B b` AS (SELECT 1) SELECT * FROM a, `b B`, bids",
            "a subquery without FROM",
        ),
        ("SELECT price AS p, p + 1 FROM bids", "an alias used in an expression without one"),
        ("FROM bids SELECT price", "start with SELECT"),
        ("SELECT price FROM bids UNION ALL VALUES (1)", "starts with VALUES"),
        (
            f"SELECT price FROM bids UNION ALL SELECT count(*) FROM bids {WINDOW}",
            "a set operation on queries",
        ),
        (
            f"SELECT count(*) FROM (SELECT price, ts FROM bids UNION ALL SELECT 1, ts FROM bids) {WINDOW}",
            "UNION ALL below GROUP BY",
        ),
        (f"SELECT count(*) FROM bids LATERAL VIEW explode(tags) t AS x {WINDOW}", "LATERAL VIEW"),
        (
            f"SELECT trim(BOTH 'x' FROM channel) FROM bids {WINDOW}",
            "does not know the syntax at 'x'",
        ),
    ],
)
def test_the_reason_is_given(sql: str, reason: str) -> None:
    found = fallback(
        sql, FakeAnalyzer({"map('n', `a0`)": "map<string,bigint>"}), tables=("people",)
    )
    assert reason in found.reason
    assert (found.name, found.sql, found.stream) == ("q", sql, "bids")


@pytest.mark.parametrize(
    ("sql", "advice"),
    [
        (grouped("median(price)"), "approx_percentile(x, p) is shared"),
        (grouped("collect_set(price)"), "count(DISTINCT x) is shared, if the number of values"),
        (grouped("sum(DISTINCT price)"), "count(DISTINCT x) and approx_count_distinct(x)"),
        (grouped("count(*)") + " ORDER BY 1", "sort what results(name) gives"),
        (grouped("count(*)") + " LIMIT 3", "limit what results(name) gives"),
        (grouped("DISTINCT price", keys="price"), "GROUP BY the columns and a window"),
        (grouped("/*+ COALESCE(1) */ count(*)"), "leave the hint out"),
        (grouped("count(*)", keys="CUBE (auction)"), "a query for each set of keys"),
        (grouped("count(*)", where="channel LIKE ANY ('a', 'b')"), "LIKE … OR LIKE …"),
        (grouped("current_timestamp()"), "window.end is the time of a result"),
        ("SELECT count(*) FROM bids GROUP BY window(ts, '1 hour').end", "select window.end"),
        ("SELECT count(*) FROM bids GROUP BY session_window(ts, '1 hour')", "fixed length"),
        (grouped("kurtosis(price)"), ""),
    ],
)
def test_what_to_write_instead(sql: str, advice: str) -> None:
    alone = fallback(sql)
    assert advice in alone.advice and bool(advice) == bool(alone.advice)
    assert alone.advice in alone.detail


SLIDING = "GROUP BY window(ts, '1 hour', '7 minutes')"


@pytest.mark.parametrize(
    ("sql", "cost"),
    [
        ("SELECT tags FROM bids", "Alone it costs its own scan of bids"),
        (grouped("median(price)"), "Alone it costs its own scan of bids and its own state"),
        (
            f"SELECT median(price) FROM bids {SLIDING}",
            "Alone it costs its own scan of bids and its own state; "
            "Spark copies each row 9 times (range / slide)",
        ),
        (
            "SELECT b.tags FROM packets p JOIN bids b ON p.size = b.price CROSS JOIN packets q",
            "Alone it costs its own scan of Packets and its own scan of bids and its own state",
        ),
        ("SELECT price FROM bids, people WHERE price IS DISTINCT FROM d",
         "Alone it costs its own scan of bids"),
    ],
)  # fmt: skip
def test_what_running_alone_costs(sql: str, cost: str) -> None:
    alone = fallback(sql, tables=("people",))
    assert alone.cost == cost
    assert alone.detail.endswith(cost)


def test_an_aggregate_that_spark_takes_and_weft_does_not() -> None:
    found = fallback(grouped("sum(channel)"), FakeAnalyzer({"sum(`channel`)": "double"}))
    assert found.reason == "sum of string has no partial form"


def test_deep_nesting_is_left_to_spark() -> None:
    deep = "(" * 2000 + "price" + ")" * 2000
    assert fallback(grouped("count(*)", where=f"{deep} > 1")).reason.endswith("too deeply for weft")


def test_long_conditions_are_shared() -> None:
    long = " OR ".join(f"price = {number}" for number in range(3000))
    found = query(grouped("count(*)", where=long))
    assert found.predicate is not None and found.predicate.condition is not None
    (selection,) = found.predicate.condition.selections
    assert selection.sql == "(`price` >= 0 AND `price` < 3000)"
