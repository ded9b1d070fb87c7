"""Queries as people write them for dashboards, alerts and fraud patterns, and what each becomes."""

from __future__ import annotations

import pytest
from tests.sql.support import FakeAnalyzer

from weft.algebra.network.query import JoinQuery
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import Field, Query, StreamSchema
from weft.sql import Fallback, bind


def stream(name: str, time: str, /, **types: str) -> StreamSchema:
    return StreamSchema(name, tuple(Field(*pair) for pair in types.items()), time, 10_000_000)


STREAMS = {
    schema.name: schema
    for schema in (
        stream("impressions", "impression_time", ad_id="bigint", impression_time="timestamp",
               site="string", cost="decimal(10,4)"),
        stream("clicks", "click_time", ad_id="bigint", click_time="timestamp", user_id="string",
               click_id="bigint"),
        stream("logins", "at", user_id="string", ip="string", country="string", ok="boolean",
               at="timestamp"),
        stream("payments", "at", id="bigint", account="string", payee="string", amount="decimal(12,2)",
               currency="string", country="string", at="timestamp", day="date"),
        stream("metrics", "ts", host="string", name="string", value="double", ts="timestamp"),
        stream("orders", "ordered", id="bigint", customer="bigint", total="double", status="string",
               ordered="timestamp", note="string"),
        stream("shipments", "shipped", order_id="bigint", carrier="string", shipped="timestamp"),
    )
}  # fmt: skip
TABLES = {
    "countries": (Field("code", "string"), Field("risk", "int")),
    "hosts": (Field("host", "string"), Field("team", "string")),
}
ANSWERS = {
    "date_format(`0.ordered`, 'HH')": "string",
    "regexp_replace(`0.note`, '[0-9]', '#')": "string",
    "round(`0.total`, 2)": "double",
    "(`0.note` RLIKE '^VIP')": "boolean",
    "((`0.status` = 'x') AND ((`0.total` > 5) OR (CAST(`0.note` AS INT) > 3)))": "boolean",
}

JOINS = {
    # Spark's documentation: ads, an inner join with watermarks
    "ads": (
        """SELECT i.ad_id, impression_time, click_time FROM impressions i JOIN clicks c
           ON i.ad_id = c.ad_id AND click_time >= impression_time
           AND click_time <= impression_time + interval 1 hour""",
        ["(`0.impression_time` - `1.click_time` >= -3600000000 AND "
         "`0.impression_time` - `1.click_time` <= 0)", "`0.ad_id` - `1.ad_id` = 0"],
    ),
    # rules of alerts
    "large payment": (
        "SELECT * FROM payments WHERE amount >= 10000 AND currency IN ('EUR', 'USD')",
        ["`0.amount` >= 10000.00", "`0.currency` IN ('EUR', 'USD')"],
    ),
    "hot host": (
        "SELECT host, value FROM metrics WHERE name = 'cpu' AND value > 0.95",
        ["`0.name` = 'cpu'", "`0.value` > 0.95"],
    ),
    "not in a country": (
        "SELECT user_id, ip FROM logins WHERE NOT (ok OR country = 'DE')",
        ["(`0.country` < 'DE' OR `0.country` > 'DE')", "NOT `0.ok`"],
    ),
    "projected by Spark": (
        """SELECT id, date_format(ordered, 'HH') AS hour, round(total, 2) AS total,
                  regexp_replace(note, '[0-9]', '#') AS note
           FROM orders WHERE status <> 'cancelled' AND note LIKE 'VIP%'""",
        ["(`0.note` >= 'VIP' AND `0.note` < 'VIQ')",
         "(`0.status` < 'cancelled' OR `0.status` > 'cancelled')"],
    ),
    "since a time": (
        "SELECT id FROM orders WHERE ordered >= '2024-01-01 00:00:00' AND total BETWEEN 10 AND 20",
        ["(`0.total` >= 10.0 AND `0.total` <= 20.0)", "`0.ordered` >= TIMESTAMP '2024-01-01 00:00:00Z'"],
    ),
    "of a day": (
        """SELECT id FROM orders WHERE ordered >= DATE '2024-01-31'
           AND ordered < DATE '2024-01-31' + INTERVAL 1 DAY AND date_sub(DATE '2024-03-01', 1) > ordered""",
        ["(`0.ordered` >= TIMESTAMP '2024-01-31 00:00:00Z' AND "
         "`0.ordered` <= TIMESTAMP '2024-01-31 23:59:59.999999Z')"],
    ),
    "on the same day": (
        """SELECT o.id, s.carrier FROM orders o JOIN shipments s ON o.id = s.order_id
           AND to_date(shipped) = to_date(ordered)""",
        ["(to_date(`0.ordered`)) = (to_date(`1.shipped`))", "`0.id` - `1.order_id` = 0"],
    ),
    "in the same hour": (
        """SELECT o.id FROM orders o JOIN shipments s ON o.id = s.order_id
           AND date_trunc('HOUR', ordered) = date_trunc('HOUR', shipped)""",
        ["(date_trunc('HOUR', `0.ordered`)) = (date_trunc('HOUR', `1.shipped`))",
         "`0.id` - `1.order_id` = 0"],
    ),
    "seconds between": (
        """SELECT o.id FROM orders o JOIN shipments s ON o.id = s.order_id
           WHERE unix_timestamp(shipped) - unix_timestamp(ordered) BETWEEN 0 AND 3600""",
        ["(((unix_timestamp(`1.shipped`)) - (unix_timestamp(`0.ordered`))) >= 0 AND "
         "((unix_timestamp(`1.shipped`)) - (unix_timestamp(`0.ordered`))) <= 3600)",
         "`0.id` - `1.order_id` = 0"],
    ),
    "a number in a text": (
        """SELECT o.id, s.carrier FROM orders o JOIN shipments s
           ON s.order_id = try_cast(substring(o.note, 4) AS BIGINT) WHERE o.note LIKE 'ref%'""",
        ["(TRY_CAST(substring(`0.note`, 4) AS BIGINT)) = `1.order_id`",
         "(`0.note` >= 'ref' AND `0.note` < 'reg')"],
    ),
    # fraud
    "impossible travel": (
        """SELECT a.user_id AS who, a.country AS first, b.country AS then FROM logins a, logins b
           WHERE a.user_id = b.user_id AND a.country <> b.country AND a.ok AND b.ok
             AND b.at BETWEEN a.at AND a.at + INTERVAL '1' HOUR""",
        ["(`0.at` - `1.at` >= -3600000000 AND `0.at` - `1.at` <= 0)", "`0.country` <> `1.country`",
         "`0.ok`", "`0.user_id` = `1.user_id`", "`1.ok`"],
    ),
    "through an account": (
        """WITH large AS (SELECT id, account, payee, amount, day FROM payments WHERE amount > 500)
           SELECT x.id AS one, y.id AS two FROM large x JOIN large y
             ON y.account = x.payee AND y.amount >= 0.9 * x.amount AND datediff(y.day, x.day) <= 3
           WHERE y.day >= x.day""",
        ["(`0.day` - `1.day` >= -3 AND `0.day` - `1.day` <= 0)",
         "9 * `0.amount` - 10 * `1.amount` <= 0", "`0.amount` >= 500.01",
         "`0.payee` = `1.account`", "`1.amount` >= 500.01"],
    ),
    "three in a row": (
        """SELECT p1.id AS a, p2.id AS b, p3.id AS c
           FROM payments p1 JOIN payments p2 ON p1.payee = p2.account
           JOIN payments p3 ON p2.payee = p3.account
           WHERE p2.at > p1.at AND p3.at > p2.at AND p3.at < p1.at + INTERVAL 2 HOURS""",
        ["`0.at` - `1.at` <= -1", "`0.at` - `2.at` >= -7199999999",
         "`0.payee` = `1.account`", "`1.at` - `2.at` <= -1", "`1.payee` = `2.account`"],
    ),
    # with tables
    "risky country": (
        """SELECT p.id, c.risk FROM payments p JOIN countries c ON p.country = c.code
           WHERE c.risk >= 7 AND p.amount > 100""",
        ["`0.amount` >= 100.01", "`0.countries@0.risk` >= 7"],
    ),
    "using a table": (
        "SELECT host, team, value FROM metrics JOIN hosts USING (host) WHERE value > 99.0D",
        ["`0.value` > 99.0"],
    ),
    "the team, where it is known": (
        "SELECT m.host, team FROM metrics m LEFT JOIN hosts h ON m.host = h.host WHERE value > 9.0D",
        ["`0.value` > 9.0"],
    ),
    "in a list that is kept as a table": (
        "SELECT id FROM payments WHERE country IN (SELECT code FROM countries WHERE risk > 5)",
        ["`0.countries@0.#found`"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", JOINS)
def test_filters_and_joins(name: str) -> None:
    sql, expected = JOINS[name]
    query = bound(sql)
    assert isinstance(query, JoinQuery), query
    texts = [predicate.sql for predicate in query.predicates.predicates]
    assert texts == expected


def bound(sql: str) -> Query | NetworkQuery | Fallback:
    analyzer = FakeAnalyzer(ANSWERS)
    return bind("q", sql, STREAMS, analyzer, query_id="q@1", tables=TABLES, time_zone="UTC")


WINDOWED = [
    """WITH cpu AS (SELECT host AS h, value AS v, ts FROM metrics WHERE name = 'cpu')
       SELECT h, window.start AS start, avg(v) AS load FROM cpu
       GROUP BY window(ts, '5 minutes', '1 minute'), h HAVING avg(v) > 0.8""",
    """SELECT country, count(*) AS n, count_if(NOT ok) AS failed
       FROM (SELECT country, ok, at AS t FROM logins WHERE country IS NOT NULL) l
       GROUP BY window(t, '1 hour'), country""",
    """SELECT hour, sum(cents) AS s FROM (
         SELECT hour(at) AS hour, amount * 100 AS cents, at FROM payments)
       GROUP BY window(at, '1 day'), hour""",
    # beside tables
    """SELECT team, count(*) AS n FROM metrics JOIN hosts USING (host)
       GROUP BY window(ts, '1 hour'), team""",
    """SELECT coalesce(c.risk, 0) AS risk, window.start, sum(p.amount) AS total
       FROM payments p LEFT JOIN countries c ON p.country = c.code WHERE p.currency = 'EUR'
       GROUP BY window(p.at, '1 hour', '5 minutes'), c.risk HAVING sum(p.amount) > 10000""",
    """SELECT account, count(*) AS n FROM payments
       WHERE country IN (SELECT code FROM countries WHERE risk > 5)
       GROUP BY window(at, '1 day', '1 hour'), account""",
]


@pytest.mark.parametrize("sql", WINDOWED)
def test_windowed_aggregates_over_subqueries_and_tables(sql: str) -> None:
    analyzer = FakeAnalyzer({"(`amount` * 100)": "decimal(16,2)"})
    query = bind("q", sql, STREAMS, analyzer, query_id="q@1", tables=TABLES)
    assert isinstance(query, Query), query


ALONE = {
    """SELECT o.id, s.carrier FROM orders o LEFT JOIN shipments s ON o.id = s.order_id
       AND shipped BETWEEN ordered AND ordered + INTERVAL 1 DAY""": "LEFT JOIN",
    """SELECT id FROM payments WHERE country IN (SELECT country FROM logins)
       OR amount > 100""": "IN (SELECT …)",
    """SELECT carrier, count(*) AS n FROM orders o JOIN shipments s ON o.id = s.order_id
       GROUP BY window(ordered, '1 hour'), carrier""": "a windowed aggregate over a join without bounds",
    "SELECT id FROM orders WHERE note RLIKE '^VIP'": "a condition in WHERE may raise",
    "SELECT id FROM orders WHERE total / customer > 3": "a condition in WHERE may raise",
    "SELECT id FROM orders WHERE status = 'x' AND (total > 5 OR CAST(note AS INT) > 3)": "some rows: CAST(note AS INT)",
    "SELECT id FROM orders WHERE ordered > now() - INTERVAL 1 HOUR": "now may change",
    """SELECT user_id, n FROM (SELECT user_id, count(*) AS n FROM clicks
       GROUP BY window(click_time, '1 hour'), user_id) WHERE n > 3""": "groups or aggregates",
}


@pytest.mark.parametrize("sql", ALONE)
def test_what_still_runs_alone(sql: str) -> None:
    query = bound(sql)
    assert isinstance(query, Fallback), query
    assert ALONE[sql] in query.reason
