"""Filters and joins against Spark: the rows that pass, and the names, types and values of results.

Conditions are bound, and then evaluated by the kernel on all pairs of rows, with the columns that Spark
computes beside them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from tests.sql.support import COLUMNS, STREAMS
from tests.sql.test_spark import ROWS

from weft.algebra.network.bits import bits_of
from weft.algebra.network.query import JoinQuery
from weft.algebra.predicates.slots import column_name
from weft.algebra.query import quote
from weft.algebra.scalar import quoted_sql
from weft.errors import SqlError
from weft.kernel.columns.column import column
from weft.kernel.network.conditions import Compiler, Evaluation
from weft.kernel.network.rows import ColumnRows
from weft.runtime.queries.analyzer import SparkAnalyzer
from weft.sql import Fallback, bind

pytestmark = pytest.mark.spark

SUMMER = dt.datetime(2020, 3, 29, 0, 30)
"""Half an hour before the clocks of Berlin are put forward."""
MORE = [
    (4, 20, "Google", SUMMER, 5.0, 2.0, Decimal("5.25"), dt.date(2020, 1, 21), True, 2, None, [], b""),
    (4, 40, "google", SUMMER + dt.timedelta(hours=24), 10.0, 4.0, Decimal("10.50"),
     dt.date(2020, 2, 10), False, 9, None, None, b"x"),
]  # fmt: skip

CONDITIONS = [
    "a.price = b.price",
    "a.price < b.price",
    "a.price <> b.auction",
    "a.price <=> b.price",
    "NOT a.price <=> b.price",
    "2 * a.price > b.price",
    "a.price + a.auction >= b.price - 3",
    "a.price > 0.5 * b.price",
    "a.price * 1.5 = b.price",
    "a.dec > 0.5 * b.dec",
    "a.dec * 2 = b.dec",
    "a.dec + 1.75 <= b.dec",
    "a.dec - b.dec BETWEEN -4 AND 4.25",
    "- a.dec < b.dec",
    "a.dec < b.price",
    "a.dec = b.auction",
    "a.auction * a.dec > b.price",
    "cast(a.price AS decimal(12,3)) / 2 > 3 OR a.d > b.d",
    "cast(a.price AS decimal(13,3)) = b.dec * 4",
    "a.d < b.d",
    "a.d = b.d",
    "a.d > 0.5 * b.d",
    "a.d + b.d > 4",
    "a.d * 2 >= b.price",
    "a.f < b.d",
    "a.f = b.f",
    "a.tiny < b.price",
    "a.tiny + b.tiny > 6",
    "a.channel = b.channel",
    "a.channel < b.channel",
    "upper(a.channel) = upper(b.channel)",
    "a.channel LIKE 'G%' AND b.channel NOT LIKE 'G%'",
    "length(a.channel) + 1 > length(b.channel)",
    "a.day = b.day",
    "a.day <= b.day + 20",
    "a.day - 20 > b.day",
    "date_add(a.day, 20) = b.day",
    "date_sub(b.day, a.tiny) < a.day",
    "datediff(a.day, b.day) BETWEEN 0 AND 31",
    "a.day + INTERVAL '20' DAY >= b.day",
    "a.day > '2020-01-15'",
    "b.day IN (DATE '2020-01-01', DATE '2021-06-01')",
    "b.day IN ('2020-01-01', '2021-06-01')",
    "a.day BETWEEN '2020-01-01' AND '2020-01-31'",
    "a.ts < b.ts",
    "a.ts = b.ts",
    "b.ts <= a.ts + INTERVAL 1 HOUR",
    "b.ts <= a.ts + INTERVAL 1 DAY",
    "b.ts < a.ts + INTERVAL '1' DAY",
    "b.ts - INTERVAL 1 DAY <= a.ts",
    "b.ts <= a.ts + INTERVAL '23 hours'",
    "b.ts = INTERVAL 1 DAY + a.ts",
    "b.ts - a.ts < INTERVAL 1 DAY",
    "a.ts >= TIMESTAMP '2020-03-29 01:30:00'",
    "a.ts > '2020-03-29 02:30:00'",
    "a.ts >= '2020-03-29'",
    "cast(a.ts AS date) = b.day",
    "hour(a.ts) = hour(b.ts)",
    "a.ok = b.ok",
    "a.ok AND NOT b.ok",
    "a.ok OR a.price = b.price",
    "NOT (a.ok OR a.price < b.price)",
    "a.price IS NULL OR a.price > b.price",
    "a.ok IS NOT TRUE",
    "coalesce(a.price, 0) >= b.price",
    "coalesce(a.dec, 0.00) >= b.dec",
    "CASE WHEN a.ok THEN a.price ELSE b.price END > 7",
    "CASE WHEN a.ok THEN a.dec * 2 ELSE a.dec END > b.dec",
    "a.price IN (10, 20, NULL)",
    "a.price NOT IN (10, 20)",
    "a.dec IN (3.5, 7)",
    "a.raw = b.raw",
    "NULL = a.price",
    "1 = 1",
    "1 > 2 OR a.price = 10",
]


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "1")
    own.conf.set("spark.sql.adaptive.enabled", "false")
    own.conf.set("spark.sql.codegen.wholeStage", "false")
    own.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    ddl = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    frame = own.createDataFrame([*ROWS, *MORE], ddl).coalesce(1)
    frame = own.createDataFrame(frame.toArrow(), ddl)
    frame.createOrReplaceTempView("bids")
    return own


@pytest.fixture(params=["UTC", "Europe/Berlin"])
def time_zone(session: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    session.conf.set("spark.sql.session.timeZone", before)


def bound(sql: str, session: Any, time_zone: str) -> JoinQuery | Fallback:
    analyzer = SparkAnalyzer(session)
    query = bind("q", sql, STREAMS, analyzer, query_id="q@1", time_zone=time_zone)
    assert isinstance(query, (JoinQuery, Fallback))
    return query


def pairs(session: Any, queries: list[JoinQuery]) -> Any:
    """All pairs of rows as the kernel sees them: columns by slot, and what Spark computes."""
    sides = []
    for slot, alias in enumerate("ab"):
        sides += [f"{alias}.{quote(name)} AS {quote(column_name(slot, name))}" for name in COLUMNS]
        bits = {bit.name: bit for query in queries for bit in bits_of(query, "bids")}
        sides += [
            f"{alias}.{quote(name)} AS {quote(column_name(slot, name))}" for name in sorted(bits)
        ]
    computed = ", ".join([f"{bit.sql} AS {quote(bit.name)}" for bit in bits.values()])
    session.sql(f"SELECT *, {computed} FROM bids").createOrReplaceTempView("computed")
    return session.sql(f"SELECT {', '.join(sides)} FROM computed a CROSS JOIN computed b").toArrow()


def passing(query: JoinQuery, table: Any, rows: ColumnRows) -> list[bool]:
    if query.predicates.never:
        return [False] * table.num_rows
    compiler = Compiler()
    numbers = compiler.numbers(query.predicates.predicates)
    chosen = Evaluation(compiler.compiled(), rows, ansi=True).filtered(numbers)
    passes = np.full(table.num_rows, chosen is None)
    if chosen is not None:
        passes[chosen] = True
    return [bool(value) for value in passes]


def test_the_same_rows_pass(session: Any, time_zone: str) -> None:
    queries = {}
    for text in CONDITIONS:
        query = bound(
            f"SELECT a.price AS p FROM bids a CROSS JOIN bids b WHERE {text}", session, time_zone
        )
        if isinstance(query, JoinQuery):
            queries[text] = query
    alone = set(CONDITIONS) - set(queries)
    assert alone <= {
        "cast(a.price AS decimal(12,3)) / 2 > 3 OR a.d > b.d",
        "b.ts - a.ts < INTERVAL 1 DAY",
        "a.auction * a.dec > b.price",
        "a.raw = b.raw",
    }
    table = pairs(session, list(queries.values()))
    nested = {"payload", "tags"}
    columns = {
        name: column(table.column(name))
        for name in table.column_names
        if name.split(".", 1)[1] not in nested
    }
    rows = ColumnRows(columns, table.num_rows)
    texts = ", ".join(f"({text}) IS TRUE AS c{at}" for at, text in enumerate(queries))
    truths = session.sql(f"SELECT {texts} FROM bids a CROSS JOIN bids b").collect()
    for at, (text, query) in enumerate(queries.items()):
        assert passing(query, table, rows) == [row[at] for row in truths], text


OUTPUTS = [
    "a.price",
    "b.PRICE AS x",
    "a.price + b.price",
    "a.dec * 2",
    "a.dec * b.price",
    "a.day + 3",
    "a.ts + INTERVAL 1 DAY",
    "a.price / b.auction",
    "cast(a.price AS string) || b.channel",
    "upper(a.channel)",
    "round(a.d, 1)",
    "a.price > b.price AND a.ok",
    "coalesce(a.price, b.tiny)",
    "if(a.ok, 1, 2) + 1",
    "date_format(a.ts, 'HH')",
    "- a.dec",
    "1.5",
    "a.price AS n, n + 1 AS m",
]


def test_names_types_and_values_of_results(session: Any, time_zone: str) -> None:
    """Names and types one by one; the values of all of them together, for a job costs more than they."""
    joined = "FROM bids a JOIN bids b ON a.auction = b.auction"
    ours: list[str] = []
    for text in OUTPUTS:
        query = bound(f"SELECT {text} {joined}", session, time_zone)
        assert isinstance(query, JoinQuery), (text, query)
        theirs = session.sql(f"SELECT {text} {joined}").schema
        wanted = [(field.name, field.dataType.simpleString()) for field in theirs]
        assert [(entry.name, entry.type) for entry in query.columns] == wanted, text
        ours += [quoted_sql(entry.value) for entry in query.columns]
    sides = ", ".join(
        f"{alias}.{quote(name)} AS {quote(column_name(slot, name))}"
        for slot, alias in enumerate("ab")
        for name in COLUMNS
    )
    session.sql(f"SELECT {sides} {joined}").createOrReplaceTempView("matches")
    rows = session.sql(f"SELECT {', '.join(ours)} FROM matches").collect()
    expected = session.sql(f"SELECT {', '.join(OUTPUTS)} {joined}").collect()
    assert len(rows) > 5
    assert sorted(map(repr, map(tuple, rows))) == sorted(map(repr, map(tuple, expected)))


FORMS = [
    "SELECT a.price FROM bids a, bids b JOIN bids c ON a.auction = c.auction WHERE a.d = b.d",
    "SELECT * FROM (SELECT auction, price FROM bids) a JOIN (SELECT d, auction FROM bids) b USING (auction)",
    "SELECT * FROM (SELECT auction, tiny FROM bids) a NATURAL JOIN (SELECT tiny, d, auction FROM bids) b",
    "SELECT b.auction, auction AS x FROM bids a JOIN bids b USING (auction)",
    "SELECT b.* FROM (SELECT d AS x FROM bids) a JOIN (SELECT d, f FROM bids) b ON a.x = b.d",
    "WITH c(k) AS (SELECT auction FROM bids), e AS (SELECT k AS kk FROM c) "
    "SELECT x.kk, k FROM e x JOIN c ON x.kk = c.k",
    "WITH bids AS (SELECT auction + 1 AS n FROM bids) SELECT * FROM bids WHERE n > 2",
    "SELECT * FROM ((SELECT price FROM bids) a CROSS JOIN (SELECT d FROM bids) b)",
    "SELECT DISTINCT channel FROM bids WHERE ok",
]


def test_names_and_types_of_every_form_of_from(session: Any) -> None:
    for sql in FORMS:
        query = bound(sql, session, "UTC")
        assert isinstance(query, JoinQuery), (sql, query)
        wanted = [(field.name, field.dataType.simpleString()) for field in session.sql(sql).schema]
        assert [(entry.name, entry.type) for entry in query.columns] == wanted, sql


REFUSED = [
    "SELECT a.d FROM bids a JOIN bids b ON a.d = c.d JOIN bids c ON a.d = c.d",
    "SELECT price FROM bids a JOIN bids b ON a.d = b.d",
    "SELECT a.d FROM bids a JOIN bids b ON a.day = b.price",
    "SELECT a.d FROM bids a JOIN bids b ON a.ts <= b.ts + 20",
    "SELECT a.d FROM bids a JOIN bids b ON a.day - b.day < 20",
    "SELECT a.d FROM bids a JOIN bids b ON a.ok > b.ts",
    "SELECT c.* FROM bids a",
    "SELECT x FROM (SELECT d FROM bids) s(x, y)",
    "SELECT d.x FROM bids",
]


def test_what_spark_refuses_is_refused(session: Any) -> None:
    from pyspark.errors import PySparkException

    for sql in REFUSED:
        with pytest.raises(PySparkException):
            session.sql(sql)
        with pytest.raises(SqlError) as refused:
            bound(sql, session, "UTC")
        assert refused.value.line == 1, sql
