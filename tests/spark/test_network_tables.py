"""Tables beside streams through the whole runtime: LEFT JOIN, IN, EXISTS, against DuckDB and plain Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.crash.simulated import dying
from tests.spark.test_network import Streams, some_rows
from tests.support import seeds
from tests.support.harness import session

import weft

COLOURS = "code string, name string, rank int, shop bigint"
SHOPS = "id int, city string"
FIRST = [
    ("x1", "red", 2, 1),
    ("x2", "blue", 1, None),
    ("x3", "green", 3, 2),
    ("x3", "lime", 4, 9),
    (None, "none", 5, 1),
]
SECOND = [("x1", "crimson", 2, 1), ("x2", "blue", 5, 2)]
QUERIES = {
    "left": "SELECT t.id, c.name, c.rank FROM t LEFT JOIN colours c ON t.s = c.code AND c.rank > 1",
    "unmatched": "SELECT t.id, t.s FROM t LEFT JOIN colours c ON t.s = c.code WHERE c.code IS NULL",
    "snowflake": "SELECT t.id, c.name, h.city FROM t LEFT JOIN colours c ON t.s = c.code "
    "LEFT JOIN shops h ON c.shop = h.id WHERE t.a > 2",
    "right": "SELECT t.id, c.name FROM colours c RIGHT JOIN t ON t.s = c.code AND t.a = c.rank",
    "inner": "SELECT t.id, c.name FROM t JOIN colours c ON t.s = c.code WHERE upper(c.name) LIKE '%E%'",
    "function": "SELECT t.id, upper(c.name) AS big FROM t LEFT JOIN colours c ON t.s = c.code "
    "WHERE concat(coalesce(c.name, '?'), '!') <> 'blue!' AND substring(c.name, 1, 1) IS NOT NULL "
    "OR concat('?', coalesce(c.name, '?')) = '??'",
    "member": "SELECT t.id FROM t WHERE t.s IN (SELECT code FROM colours WHERE rank > 1)",
    "no_member": "SELECT t.id FROM t WHERE t.s NOT IN (SELECT code FROM colours WHERE rank < 5)",
    "never_known": "SELECT t.id FROM t WHERE t.s NOT IN (SELECT code FROM colours)",
    "exists": "SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM colours c WHERE c.code = t.s "
    "AND c.rank >= t.a) OR NOT EXISTS (SELECT 1 FROM shops h WHERE h.id = t.b)",
    "paired": "SELECT x.id AS x, y.id AS y, c.name, h.city FROM t x JOIN t y ON x.b = y.a "
    "LEFT JOIN colours c ON c.code = y.s LEFT JOIN shops h ON h.id = x.a "
    "WHERE y.id > x.id AND y.id <= x.id + 5",
    "chained": "SELECT x.id AS x, y.id AS y, z.id AS z, c.name FROM t x JOIN t y ON x.b = y.a "
    "JOIN u z ON y.b = z.a LEFT JOIN colours c ON c.code = x.s "
    "WHERE y.id BETWEEN x.id AND x.id + 5 AND z.id BETWEEN y.id AND y.id + 5",
}
IN_TASKS = ("left", "function", "no_member", "paired", "chained")
PLAIN = ("left", "unmatched", "snowflake", "function", "no_member", "exists")


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Streams:
    return Streams(session(spark), tmp_path)


def opened(streams: Streams, colours: list[tuple[Any, ...]], kernel: str) -> weft.Weft:
    w = streams.open(kernel=kernel, lanes=2)
    spark = streams.spark
    w.add_table("colours", spark.createDataFrame(colours, COLOURS))
    w.add_table("shops", spark.createDataFrame([(1, "Rome"), (2, "Oslo"), (None, "-")], SHOPS))
    return w


def expected(
    streams: Streams, sql: str, colours: list[tuple[Any, ...]], files: int
) -> Counter[Any]:
    """DuckDB's rows over the first files of every stream."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for name, tables in streams.rows.items():
            database.register(name, pa.concat_tables([some_rows(0, 0), *tables[:files]]))
        database.execute("CREATE TABLE colours (code VARCHAR, name VARCHAR, rank INT, shop BIGINT)")
        database.executemany("INSERT INTO colours VALUES (?, ?, ?, ?)", colours)
        database.execute("CREATE TABLE shops AS SELECT * FROM (VALUES (1, 'Rome'), (2, 'Oslo'), "
                         "(NULL, '-')) shops(id, city)")  # fmt: skip
        return Counter(database.execute(sql).fetchall())


def emitted(w: weft.Weft) -> dict[str, Counter[Any]]:
    return {q.name: Counter(map(tuple, w.results(q.name).collect())) for q in w.queries}


def register(w: weft.Weft, names: Iterable[str]) -> None:
    for name in names:
        handle = w.register(name, QUERIES[name])
        assert handle.status == "active", (name, handle.detail)


@pytest.mark.parametrize("kernel", seeds.some(__name__, ["driver", "lanes"], 1))
def test_matches_are_those_of_the_tables_when_they_are_emitted(
    streams: Streams, kernel: str
) -> None:
    """Two runs; the table changes in between. A match has the table's contents of the run that emits it,
    whenever its other rows came."""
    queries = {name: QUERIES[name] for name in (QUERIES if kernel == "driver" else IN_TASKS)}
    with opened(streams, FIRST, kernel) as w:
        register(w, queries)
        streams.add("t", some_rows(0, 40))
        streams.add("u", some_rows(0, 30, shift=2))
        w.start(availableNow=True).awaitTermination()
        first = emitted(w)
    for name, sql in queries.items():
        assert first[name] == expected(streams, sql, FIRST, 1), name
        assert first[name] or name == "never_known", name
    for name in PLAIN if kernel == "driver" else ():
        assert first[name] == of_plain_spark(streams, QUERIES[name], FIRST), name
    with opened(streams, SECOND, kernel) as w:
        streams.add("t", some_rows(40, 70))
        streams.add("u", some_rows(30, 60, shift=2))
        w.start(availableNow=True).awaitTermination()
        second = emitted(w)
    for name, sql in queries.items():
        new = expected(streams, sql, SECOND, 2) - expected(streams, sql, SECOND, 1)
        assert second[name] - first[name] == new, name
        assert first[name] <= second[name], name


def of_plain_spark(streams: Streams, sql: str, colours: list[tuple[Any, ...]]) -> Counter[Any]:
    """What Spark's own join of a stream with tables gives, in one micro-batch."""
    spark = streams.spark
    source = spark.readStream.schema(spark.read.parquet(str(streams.folder / "t")).schema)
    source.parquet(str(streams.folder / "t")).createOrReplaceTempView("t")
    spark.createDataFrame(colours, COLOURS).createOrReplaceTempView("colours")
    shops = spark.createDataFrame([(1, "Rome"), (2, "Oslo"), (None, "-")], SHOPS)
    shops.createOrReplaceTempView("shops")
    rows: list[Any] = []
    query = (
        spark.sql(sql)
        .writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return Counter(map(tuple, rows))


def test_a_step_that_runs_again_uses_the_tables_of_before(streams: Streams) -> None:
    """The run ends after the step's matches are found. The table changes before the next run, which
    finishes the step with the old contents, and goes on with the new ones."""
    names = ("left", "member", "paired")
    log = streams.folder / "checkpoint" / "streams" / "@network"

    def in_its_first_step() -> bool:
        return any((log / "intents").glob("*")) and not any((log / "commits").glob("*"))

    with dying("before_commit", when=in_its_first_step) as crash:
        w = opened(streams, FIRST, "driver")
        register(w, names)
        streams.add("t", some_rows(0, 40))
        run = w.start(availableNow=True)
        with pytest.raises(weft.WeftError):
            run.awaitTermination()
        w.close()
    assert crash.crashed
    with opened(streams, SECOND, "driver") as w:
        streams.add("t", some_rows(40, 70))
        w.start(availableNow=True).awaitTermination()
        rows = emitted(w)
    for name in names:
        before = expected(streams, QUERIES[name], FIRST, 1)
        after = expected(streams, QUERIES[name], SECOND, 2)
        assert rows[name] == before + (after - expected(streams, QUERIES[name], SECOND, 1)), name
        assert before != expected(streams, QUERIES[name], SECOND, 1), name
