"""Events ``(key, value, ts)`` for the window sweeps: dense, a hundred keys, slightly out of order.

A thousand queries on a hundred keys emit thousands of rows per second of event time. At 100,000
events per second of event time that is a few per cent of the input, so a benchmark measures the
engine and not the sink.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.workloads.hashing import uniform, uniform_below
from weft.workloads.stored import StoredStream, store

RATE = 100_000
KEYS = 100
VALUES = 10_000
BASE = datetime(2024, 1, 1, tzinfo=UTC)
DISORDER_SECONDS = 1.0
WATERMARK = "10 seconds"


def events(
    numbers: DataFrame,
    seed: int = 1,
    rate: int = RATE,
    keys: int = KEYS,
    disorder: float = DISORDER_SECONDS,
) -> DataFrame:
    """``(key INT, value BIGINT, ts TIMESTAMP)`` for the row numbers in column ``id``.

    Event n belongs to base + n / rate, and is up to ``disorder`` seconds older than that.
    """
    n = F.col("id")
    delay = uniform(n, seed, "disorder") * F.lit(disorder * 1e6)
    micros = F.lit(_micros(BASE)) + (n * F.lit(1e6 / rate) - delay).cast("bigint")
    return numbers.select(
        uniform_below(keys, n, seed, "key").cast("int").alias("key"),
        uniform_below(VALUES, n, seed, "value").alias("value"),
        F.timestamp_micros(micros).alias("ts"),
    )


def events_in_milliseconds(numbers: DataFrame, seed: int = 1, rate: int = RATE) -> DataFrame:
    """``(key, value, ts_ms BIGINT)``: for CSV, where every engine reads an integer the same way."""
    rows = events(numbers, seed, rate)
    return rows.select("key", "value", F.unix_millis("ts").alias("ts_ms"))


def store_events(
    spark: SparkSession, folder: Path, rows: int, files: int, seed: int = 1, rate: int = RATE
) -> StoredStream:
    """The events as Parquet files in stream order."""
    recipe = f"events seed={seed} rate={rate}"
    return store(spark, lambda n: events(n, seed, rate), folder, rows, files, recipe)


def store_events_csv(
    spark: SparkSession,
    folder: Path,
    rows: int,
    files: int,
    seed: int = 1,
    rate: int = RATE,
    interleaved: bool = False,
) -> StoredStream:
    """The events as CSV files, times in milliseconds.

    Files follow each other in stream order, or with ``interleaved`` each holds every
    ``files``-th event: for an engine that reads all of its files at the same time.
    """
    recipe = f"events in milliseconds seed={seed} rate={rate} interleaved={interleaved}"

    def make(numbers: DataFrame) -> DataFrame:
        if interleaved:
            rows_per_file = rows // files
            numbers = numbers.selectExpr(
                f"(id % {rows_per_file}) * {files} + id DIV {rows_per_file} AS id"
            )
        return events_in_milliseconds(numbers, seed, rate)

    return store(spark, make, folder, rows, files, recipe, format="csv")


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)
