"""Lookups as Spark's joins, against DuckDB: every way in which SQL reads a table beside a stream."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import Any, Final

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.support.harness import session

from weft.algebra.query import Field, Query, StreamSchema
from weft.runtime.frames import frame_of
from weft.runtime.level1.lookups import looked_up
from weft.runtime.queries.analyzer import SparkAnalyzer
from weft.sql import bind

TABLES: Final = {
    "s": """SELECT i AS id, (i % 3)::INT AS k, ['x1', 'x2', 'x3', NULL, 'x9'][1 + i % 5] AS s,
        CASE WHEN i % 7 > 0 THEN i % 11 END AS x, (i % 4)::DECIMAL(10, 2) AS d,
        (['0.0', '-0.0', 'nan', NULL, '1.5'][1 + i % 5])::DOUBLE AS f, DATE '2024-01-01' + (i % 6)::INT AS day,
        epoch_ms(i)::TIMESTAMPTZ AS ts FROM range(40) r(i)""",
    "colours": """SELECT code, name, rank::INT AS rank, shop::BIGINT AS shop, price::DECIMAL(12, 4) AS price,
        weight::DOUBLE AS weight, since::DATE AS since FROM (VALUES
        ('x1', 'red', 2, 1, 1, '0.0', '2024-01-04'), ('x2', 'blue', 1, NULL, 2, 'nan', '2024-01-05'),
        ('x3', 'green', 3, 2, NULL, '-0.0', NULL), ('x3', 'lime', 4, 9, 0, '1.5', '2024-01-02'),
        (NULL, 'none', 5, 1, 3, NULL, '2024-02-01')) c(code, name, rank, shop, price, weight, since)""",
    "shops": "SELECT id::INT AS id, city FROM (VALUES (1, 'Rome'), (2, 'Oslo'), (2, 'Bergen'), "
    "(NULL, '-')) h(id, city)",
    "nothing": "SELECT 1::INT AS id, 'x' AS city WHERE false",
}
NAME, CITY, BOTH, NONE = ("c.name",), ("c.city",), ("c.name", "h.city"), ()
QUERIES: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "inner": (NAME, "s JOIN colours c ON s.s = c.code"),
    "using": (CITY, "s JOIN shops c USING (id)"),
    "left": (NAME, "s LEFT JOIN colours c ON s.s = c.code AND c.rank > 1 AND s.x < 8"),
    "right": (NAME, "colours c RIGHT JOIN s ON s.s = c.code AND s.k = c.rank"),
    "decimals": (NAME, "s LEFT JOIN colours c ON s.d = c.price"),
    "floats": (NAME, "s LEFT JOIN colours c ON s.f = c.weight"),
    "days": (NAME, "s JOIN colours c ON s.day = c.since"),
    "next_day": (NAME, "s JOIN colours c ON date_add(s.day, 1) = c.since"),
    "ranges": (NAME, "s JOIN colours c ON s.x BETWEEN c.rank AND c.shop AND c.code >= 'x1'"),
    "null_safe": (NAME, "s LEFT JOIN colours c ON s.s IS NOT DISTINCT FROM c.code"),
    "either": (NAME, "s LEFT JOIN colours c ON s.s = c.code AND c.rank > 2 OR s.x = c.shop"),
    "all": (NAME, "s CROSS JOIN colours c"),
    "snowflake": (
        BOTH,
        "s LEFT JOIN colours c ON s.s = c.code LEFT JOIN shops h ON c.shop = h.id",
    ),
    "nested": (
        BOTH,
        "s LEFT JOIN (colours c JOIN shops h ON c.shop = h.id AND h.city <> 'Oslo') ON s.s = c.code",
    ),
    "twice": (
        ("c.name", "h.name"),
        "s JOIN colours c ON s.s = c.code LEFT JOIN colours h ON h.rank = c.shop",
    ),
    "unmatched": (NAME, "s LEFT JOIN colours c ON s.s = c.code WHERE c.code IS NULL AND s.x > 2"),
    "derived": (
        NAME,
        "s LEFT JOIN (SELECT code, 'found' AS name FROM colours WHERE rank < 5) c ON s.s = c.code",
    ),
    "empty": (CITY, "s LEFT JOIN nothing c ON s.k = c.id"),
    "member": (NONE, "s WHERE s.s IN (SELECT code FROM colours WHERE rank > 1)"),
    "no_member": (NONE, "s WHERE s.s NOT IN (SELECT code FROM colours WHERE rank < 5)"),
    "unknown": (NONE, "s WHERE (s.s NOT IN (SELECT code FROM colours)) IS NULL"),
    "no_member_of_none": (NONE, "s WHERE s.k NOT IN (SELECT id FROM nothing)"),
    "exists": (
        NONE,
        "s WHERE EXISTS (SELECT 1 FROM colours c WHERE c.code = s.s AND c.rank >= s.k) "
        "OR NOT EXISTS (SELECT 1 FROM shops h WHERE h.id = s.k)",
    ),
    "after_a_join": (
        NAME,
        "s JOIN colours c ON s.s = c.code WHERE c.shop IN (SELECT id FROM shops) AND s.x > c.rank",
    ),
    "semi": (NONE, "s LEFT SEMI JOIN colours c ON s.s = c.code AND c.rank > 1"),
    "anti": (NONE, "s LEFT ANTI JOIN colours c ON s.s = c.code"),
    "divided": (NAME, "s JOIN colours c ON s.s = c.code WHERE s.x > 0 AND 10 / s.x > c.rank"),
}
DUCK: Final = {
    "next_day": "s JOIN colours c ON s.day + 1 = c.since",
    "semi": "s SEMI JOIN (SELECT * FROM colours WHERE rank > 1) c ON s.s = c.code",
    "anti": "s ANTI JOIN colours c ON s.s = c.code",
}
"""Where DuckDB spells it in another way."""
BY_KEY = ("inner", "left", "decimals", "floats", "days", "next_day", "null_safe", "member", "semi")


def contents(database: duckdb.DuckDBPyConnection) -> dict[str, pa.Table]:
    """The stream and the tables, also in the database."""
    database.execute("SET TimeZone = 'UTC'")
    tables: dict[str, pa.Table] = {}
    for name, sql in TABLES.items():
        database.execute(f"CREATE TABLE {name} AS {sql}")
        tables[name] = database.table(name).to_arrow_table()
    return tables


def test_joined_rows_are_those_of_duckdb(spark: SparkSession) -> None:
    own_session = session(spark)
    wanted: dict[str, Counter[Any]] = {}
    queries: list[DataFrame] = []
    with duckdb.connect() as database:
        frames = {name: frame_of(own_session, rows) for name, rows in contents(database).items()}
        for name, (columns, text) in QUERIES.items():
            keys = ["id" if "USING" in text else "s.id", *columns]
            sql = f"SELECT {', '.join(keys)} FROM {DUCK.get(name, text)}"
            rows = database.execute(sql).fetchall()
            wanted[name] = Counter((*row, None, None)[:3] for row in rows)
            frame = joined(own_session, keys, text, frames)
            queries.append(frame.select(F.lit(name).alias("query"), "*"))
    found: dict[str, Counter[Any]] = {name: Counter() for name in QUERIES}
    for name, *row in reduce(DataFrame.unionAll, queries).collect():
        found[name][tuple(row)] += 1
    for name, (_, text) in QUERIES.items():
        assert found[name] == wanted[name], text
        assert wanted[name], f"{name} shows nothing"


def joined(
    spark: SparkSession, keys: list[str], text: str, frames: dict[str, DataFrame]
) -> DataFrame:
    """The rows of a windowed aggregate before it groups them, as its keys."""
    sql = f"SELECT count(*) AS n FROM {text} GROUP BY window(ts, '10 seconds'), {', '.join(keys)}"
    fields = {
        name: tuple(Field(f.name, f.dataType.simpleString()) for f in frame.schema.fields)
        for name, frame in frames.items()
    }
    stream = StreamSchema("s", fields.pop("s"), "ts", 0)
    analyzer = SparkAnalyzer(spark)
    query = bind("q", sql, {"s": stream}, analyzer, query_id="q@1", tables=fields, time_zone="UTC")
    assert isinstance(query, Query), (text, query)
    assert query.lookups
    rows = looked_up(frames["s"], query.lookups, frames.__getitem__)
    if query.predicate is not None:
        rows = rows.where(F.expr(query.predicate.sql))
    columns = [F.expr(key.sql) for key in query.keys]
    columns += [F.lit(None).cast("string")] * (3 - len(columns))
    return rows.select(*(column.alias(f"c{number}") for number, column in enumerate(columns)))


def test_equalities_are_keys_of_sparks_joins(spark: SparkSession) -> None:
    """Rows are found by a hash of the key. A nested loop would compare every row with every other."""
    own_session = session(spark)
    with duckdb.connect() as database:
        frames = {name: frame_of(own_session, rows) for name, rows in contents(database).items()}
    for name in BY_KEY:
        frame = joined(own_session, ["s.id"], QUERIES[name][1], frames)
        plan = frame._jdf.queryExecution().sparkPlan().toString()
        assert "BroadcastHashJoin" in plan, (name, plan)
