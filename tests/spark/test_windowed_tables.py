"""Windowed aggregates over a stream joined with tables, against plain Spark and DuckDB.

Plain Spark joins every micro-batch with the tables, and aggregates in append mode. DuckDB gets every row with
the watermarks of its micro-batch, so one query gives the windows of the whole run, and the step that emits each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.oracle import compare, plain_spark
from tests.oracle.sparktypes import Type
from tests.support.harness import Recorder, session

import weft

SECOND = 1_000_000
DELAY = 5 * SECOND
SCHEMA = {
    "ts": Type("timestamp"),
    "id": Type("bigint"),
    "k": Type("int"),
    "s": Type("string"),
    "x": Type("bigint"),
}
COLOURS = "code string, name string, rank int, shop bigint"
SHOPS = "id int, city string"
FIRST = [
    ("x1", "red", 2, 1),
    ("x2", "blue", 1, None),
    ("x3", "green", 3, 2),
    ("x3", "lime", 4, 9),
    (None, "none", 5, 1),
]
SECOND_ROWS = [("x1", "crimson", 2, 1), ("x2", "blue", 5, 2)]
CITIES = [(1, "Rome"), (2, "Oslo"), (2, "Bergen"), (None, "-")]
WINDOW = "window(s.ts, '10 seconds', '5 seconds')"

QUERIES = {
    "inner": f"SELECT c.name, window.start AS w, sum(s.x) AS total, count(*) AS n FROM s JOIN colours c "
    f"ON s.s = c.code GROUP BY {WINDOW}, c.name",
    "left": "SELECT c.name, c.rank, window.start AS w, sum(s.x) AS total FROM s LEFT JOIN colours c "
    f"ON s.s = c.code AND c.rank > 1 WHERE s.x > 3 GROUP BY {WINDOW}, c.name, c.rank",
    "same_left": "SELECT c.rank, window.start AS w, max(s.x) AS m FROM s LEFT JOIN colours c "
    f"ON c.code = s.s AND 1 < c.rank GROUP BY {WINDOW}, c.rank HAVING count(*) > 1",
    "having": "SELECT h.city, window.start AS w, count(DISTINCT c.name) AS names, "
    "sum(s.x) FILTER (WHERE c.rank > 2) AS high FROM s LEFT JOIN colours c ON s.s = c.code "
    f"LEFT JOIN shops h ON c.shop = h.id GROUP BY {WINDOW}, h.city HAVING sum(s.x) > 10",
    "unmatched": "SELECT window.start AS w, count(*) AS n FROM s LEFT JOIN colours c ON s.s = c.code "
    f"WHERE c.code IS NULL GROUP BY {WINDOW}",
    "member": f"SELECT s.k, window.start AS w, count(*) AS n FROM s WHERE s.s IN "
    f"(SELECT code FROM colours WHERE rank > 1) GROUP BY {WINDOW}, s.k",
    "no_member": f"SELECT s.k, window.start AS w, count(*) AS n FROM s WHERE s.s NOT IN "
    f"(SELECT code FROM colours WHERE rank < 5) GROUP BY {WINDOW}, s.k",
    "never_known": f"SELECT window.start AS w, count(*) AS n FROM s WHERE s.s NOT IN "
    f"(SELECT code FROM colours) GROUP BY {WINDOW}",
    "exists": "SELECT window.start AS w, count(*) AS n FROM s WHERE EXISTS (SELECT 1 FROM colours c "
    "WHERE c.code = s.s AND c.rank >= s.k) OR NOT EXISTS (SELECT 1 FROM shops h WHERE h.id = s.k) "
    f"GROUP BY {WINDOW}",
    "nested": "SELECT h.city, window.start AS w, count(*) AS n, sum(c.rank) AS ranks FROM s LEFT JOIN "
    f"(colours c JOIN shops h ON c.shop = h.id) ON s.s = c.code GROUP BY {WINDOW}, h.city",
    "alone": f"SELECT s.k, window.start AS w, sum(s.x) AS total FROM s GROUP BY {WINDOW}, s.k",
    "filtered": f"SELECT s.k, window.start AS w, avg(s.x) AS mean FROM s WHERE s.x > 3 GROUP BY {WINDOW}, s.k",
}
PLAIN = ("inner", "left", "having", "no_member")


def some_batches() -> list[list[dict[str, Any]]]:
    """Five micro-batches with NULL keys, NULL times, late rows, and duplicates."""
    batches: list[list[dict[str, Any]]] = []
    codes = ["x1", "x2", "x3", None, "x9"]
    number = 0
    for batch in range(5):
        rows = []
        for place in range(14):
            number += 1
            at: int | None = (batch * 9 + place) * SECOND + 250_000
            if place == 5:
                at = max(batch * 9 - 20, 0) * SECOND  # late from the third batch on
            if place == 9:
                at = None
            code = codes[(number * 7 + place // 3) % 5]
            rows.append({"ts": at, "id": number, "k": number % 3, "s": code, "x": number % 11})
        batches.append(rows)
    batches.append([{"ts": 200 * SECOND, "id": 999, "k": 0, "s": "x1", "x": 1}])
    return batches


def run_weft(
    spark: SparkSession,
    queries: Mapping[str, str],
    batches: Sequence[Sequence[Mapping[str, Any]]],
    folder: Path,
    colours: Sequence[tuple[Any, ...]] = FIRST,
    **settings: Any,
) -> tuple[Recorder, weft.Weft]:
    plain_spark.write_batches(folder / "input", SCHEMA, batches)
    source = spark.readStream.schema(plain_spark.ddl(SCHEMA)).option("maxFilesPerTrigger", 1)
    w = weft.Weft(spark, folder / "checkpoint", **settings)
    w.add_stream("s", source.parquet(str(folder / "input")), time="ts", watermark="5 seconds")
    w.add_table("colours", spark.createDataFrame(list(colours), COLOURS))
    w.add_table("shops", spark.createDataFrame(CITIES, SHOPS))
    with w.changes():
        for name, sql in queries.items():
            handle = w.register(name, sql)
            assert handle.status == "active", (name, handle.detail)
    recorder = Recorder()
    w.start(sink=recorder, availableNow=True).awaitTermination()
    return recorder, w


def test_results_are_those_of_plain_spark(spark: SparkSession, tmp_path: Path) -> None:
    own = session(spark)
    batches = some_batches()
    recorder, w = run_weft(own, QUERIES, batches, tmp_path / "weft")
    print(w.explain())
    for name in PLAIN:
        output = plain_spark.run(
            spark,
            QUERIES[name],
            SCHEMA,
            batches,
            DELAY,
            directory=tmp_path / name,
            tables={"colours": (COLOURS, FIRST), "shops": (SHOPS, CITIES)},
        )
        assert output.rows, name
        compare.assert_same(recorder.rows[name], output.rows)
