"""Mixed predicates, group-bys and settings for which weft's rows are not plain Spark's."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.oracle import compare
from tests.oracle.plain_spark import ddl, python_rows, write_batches
from tests.oracle.sparktypes import BIGINT, STRING, TIMESTAMP, Type, decimal
from tests.support.harness import session

import weft

SECOND = 1_000_000
START = 1_699_999_980 * SECOND
LARGE = 12345678901234567890123456789012345678

Row = dict[str, Any]


def check(
    spark: SparkSession,
    folder: Path,
    schema: dict[str, Type],
    rows: list[Row],
    queries: dict[str, str],
    *runs: dict[str, Any],
) -> None:
    """The rows in the first run, one that closes all windows in the last; against batch SQL."""
    own_session = session(spark)
    own_session.conf.set("spark.sql.parquet.filterPushdown", "false")
    closing = dict.fromkeys(schema) | {"ts": START + 1_000_000 * SECOND}
    batches = [rows, [closing]]
    write_batches(folder / "made", schema, batches)
    made = sorted((folder / "made").iterdir())
    own_session.read.schema(ddl(schema)).parquet(str(made[0])).createOrReplaceTempView("s")
    wanted = {name: python_rows(own_session.sql(sql).toArrow()) for name, sql in queries.items()}
    (folder / "input").mkdir()
    for path, settings in zip(made, runs or ({}, {}), strict=True):
        w = weft.Weft(own_session, folder / "checkpoint", **settings)
        reader = own_session.readStream.schema(ddl(schema)).option("maxFilesPerTrigger", 1)
        source = reader.parquet(str(folder / "input"))
        w.add_stream("s", source, time="ts", watermark="100000 seconds")
        with w.changes():
            for name, sql in queries.items():
                w.register(name, sql)
        path.rename(folder / "input" / path.name)
        w.start(availableNow=True).awaitTermination()
    for name, expected in wanted.items():
        assert expected
        found = python_rows(w.results(name).toArrow())
        compare.assert_same([(0, r) for r in found], [(0, r) for r in expected], batch_ids=False)


def test_the_predicates_pass_can_be_switched_on_while_windows_are_open(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [{"ts": START + i * SECOND, "a": i % 7, "p": i, "c": "ab"[i % 2]} for i in range(40)]
    queries = {
        "q0": "SELECT a, count(*) AS n FROM s WHERE a = 2 AND p < 30 "
        "GROUP BY window(ts, '1 minute'), a",
        "q1": "SELECT a, count(DISTINCT p) AS n FROM s WHERE c = 'b' "
        "GROUP BY window(ts, '1 minute'), a",
    }
    schema = {"ts": TIMESTAMP, "a": BIGINT, "p": BIGINT, "c": STRING}
    check(spark, tmp_path, schema, rows, queries, {"passes": ()}, {})


def test_decimal_constants_of_38_digits_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"ts": START + i * SECOND, "d": Decimal(str(LARGE + i))} for i in range(6)]
    window = "GROUP BY window(ts, '1 minute')"
    queries = {
        "one": f"SELECT count(*) AS n FROM s WHERE d = {LARGE + 1} {window}",
        "above": f"SELECT count(*) AS n FROM s WHERE d > {LARGE + 2} {window}",
        "below": f"SELECT count(*) AS n FROM s WHERE d < {LARGE + 3} {window}",
    }
    check(spark, tmp_path, {"ts": TIMESTAMP, "d": decimal(38, 0)}, rows, queries)


def test_a_text_may_hold_the_quoted_name_of_a_key(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"ts": START, "c": "`c`'s"}, {"ts": START, "c": "k0's"}]
    where = 'c LIKE "`c`\'s%"'
    queries = {"q": f"SELECT c FROM s WHERE {where} GROUP BY window(ts, '1 minute'), c"}
    check(spark, tmp_path, {"ts": TIMESTAMP, "c": STRING}, rows, queries)


def test_a_column_may_be_named_like_one_of_level_1(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"ts": START, "weft_end": 1}]
    sql = "SELECT count(*) AS n FROM s WHERE weft_end = 1 GROUP BY window(ts, '1 minute')"
    check(spark, tmp_path, {"ts": TIMESTAMP, "weft_end": BIGINT}, rows, {"q": sql})


def test_a_number_beyond_all_doubles_is_refused_with_a_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    own_session = session(spark)
    write_batches(tmp_path / "input", {"ts": TIMESTAMP, "x": BIGINT}, [[]])
    w = weft.Weft(own_session, tmp_path / "checkpoint")
    source = own_session.readStream.schema("ts timestamp, x double").parquet(
        str(tmp_path / "input")
    )
    w.add_stream("s", source, time="ts", watermark="1 second")
    with pytest.raises(weft.WeftError, match=r"1[eE]400"):
        w.register(
            "q", "SELECT count(*) AS n FROM s WHERE x > 1e400 GROUP BY window(ts, '1 minute')"
        )
