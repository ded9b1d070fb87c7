"""Golden plans are executed: every shared query gives the rows of plain Spark's batch of its SQL.

The streams end with a row so late that all windows of the other rows are closed, and that no join
matches; the batch is over those other rows. A query that falls back is plain Spark already, and is not run here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.golden.support import (
    DELAYS,
    GOLDEN,
    IN_PLAIN_SQL,
    SCHEMAS,
    SHARING,
    TIMES,
    closing_row,
    rows_of,
    shared_queries,
    without,
)
from tests.oracle import compare
from tests.oracle.plain_spark import arrow_schema, ddl, python_rows, write_batches
from tests.oracle.values import Value
from tests.support import seeds
from tests.support.harness import session
from tests.support.stored import stored_rows

import weft
from weft.algebra.plan import PASS_NAMES, Sharing

CASES = sorted(GOLDEN.glob("*.sql"))
FALLBACKS = {"names"}
Rows = dict[str, list[tuple[Value, ...]]]


def shared(case: Path) -> dict[str, str]:
    return {name: sql for name, sql in shared_queries(case) if name not in FALLBACKS}


def executed(
    spark: SparkSession, case: Path, directory: Path, sharing: Sharing | None = None
) -> Rows:
    """The rows of a case's queries in one shared stream."""
    own_session = session(spark)
    chosen: dict[str, Any] = {}
    if sharing is not None:
        chosen = {
            "optimizer": sharing.optimizer,
            "model": sharing.model,
            "passes": sharing.passes,
            "assumed_rate": sharing.rate,
        }
    w = weft.Weft(own_session, directory / "checkpoint", **chosen)
    texts = shared(case)
    for stream, schema in SCHEMAS.items():
        if not any(re.search(rf"\b{stream}\b", text) for text in texts.values()):
            continue
        rows = rows_of(stream)
        batches = [rows[:900], [*rows[900:], closing_row(stream)]]
        write_batches(directory / stream, schema, batches)
        source = own_session.readStream.schema(ddl(schema)).option("maxFilesPerTrigger", 1)
        frame = source.parquet(str(directory / stream))
        w.add_stream(stream, frame, time=TIMES[stream], watermark=DELAYS[stream])
    with w.changes():
        for name, text in texts.items():
            w.register(name, text)
    w.start(availableNow=True).awaitTermination()
    assert {handle.status for handle in w.queries} == {"active"}
    return {name: stored_rows(w, name) for name in texts}


def in_plain_spark(spark: SparkSession, case: Path) -> Rows:
    """The rows of plain Spark's batch over the same rows, in the order of their times."""
    own_session = session(spark)
    for stream, schema in SCHEMAS.items():
        table = pa.Table.from_pylist(rows_of(stream), arrow_schema(schema))
        own_session.createDataFrame(table, ddl(schema)).coalesce(1).createOrReplaceTempView(stream)
    return {
        name: python_rows(own_session.sql(IN_PLAIN_SQL.get((case.stem, name), text)).toArrow())
        for name, text in shared(case).items()
    }


def assert_equal(rows: Rows, expected: Rows) -> None:
    for name in expected:
        assert expected[name], f"nothing to compare for {name}"
        difference = compare.difference(
            [(0, row) for row in rows[name]], [(0, row) for row in expected[name]]
        )
        assert difference is None, f"{name}\n{difference}"


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_a_golden_plan_gives_the_rows_of_plain_spark(
    spark: SparkSession, case: Path, tmp_path: Path
) -> None:
    assert_equal(executed(spark, case, tmp_path), in_plain_spark(spark, case))


@pytest.mark.parametrize("name", seeds.some(__name__, PASS_NAMES, 1))
def test_a_pass_off_and_on_gives_equal_rows(spark: SparkSession, name: str, tmp_path: Path) -> None:
    case = GOLDEN / "passes" / f"{name}.sql"
    expected = in_plain_spark(spark, case)
    assert_equal(executed(spark, case, tmp_path / "off", without(name)), expected)
    assert_equal(executed(spark, case, tmp_path / "on", SHARING), expected)
