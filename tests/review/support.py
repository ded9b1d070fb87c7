"""A stream of small files, and sinks that fail or record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from tests.oracle.plain_spark import python_rows
from tests.support.input_files import put_file
from tests.support.stored import stored_rows

import weft
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.sinks.delivery import StepResults

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", tz="UTC")), ("k", pa.string()), ("v", pa.int64())],
)
DDL = "ts timestamp, k string, v bigint"
COUNTS = "SELECT k, count(*) AS n FROM s GROUP BY window(ts, '10 seconds'), k"


def put(folder: Path, number: int, columns: dict[str, list[Any]], schema: pa.Schema) -> None:
    """One input file; files are taken in the order of their numbers."""
    put_file(pa.table(columns, schema=schema), folder, number)


def put_rows(folder: Path, number: int, rows: Sequence[tuple[int, str, int]]) -> None:
    columns: dict[str, list[Any]] = {
        "ts": [START + t * SECOND for t, _, _ in rows],
        "k": [k for _, k, _ in rows],
        "v": [v for _, _, v in rows],
    }
    put(folder, number, columns, SCHEMA)


def read(spark: SparkSession, folder: Path, ddl: str = DDL) -> DataFrame:
    folder.mkdir(parents=True, exist_ok=True)
    reader = spark.readStream.schema(ddl).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def opened(spark: SparkSession, folder: Path, **settings: Any) -> weft.Weft:
    w = weft.Weft(spark, folder / "checkpoint", **settings)
    w.add_stream("s", read(spark, folder / "input"), time="ts", watermark="0 seconds")
    return w


def rows_of(w: weft.Weft, name: str) -> list[tuple[Any, ...]]:
    return sorted(stored_rows(w, name), key=str)


class Broken:
    """A sink that takes no rows."""

    name = "broken"

    def write(self, results: StepResults) -> list[Entry]:
        if results.families:
            raise OSError("down")
        return []


class Recorded:
    """A sink that keeps (query, step, row)."""

    name = "recorded"

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, tuple[Any, ...]]] = []

    def write(self, results: StepResults) -> list[Entry]:
        for query, table in results.by_query():
            self.rows += [(query.name, results.step, row) for row in python_rows(table)]
        return []
