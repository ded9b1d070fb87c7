"""weft as a contender: the same files, the same micro-batches, results in its Parquet store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import weft
from weft.bench.measuring.measure import (
    Measurement,
    data_batches,
    phase_seconds,
    seconds_from_first_batch,
)
from weft.bench.measuring.scratch import fresh
from weft.workloads.events import WATERMARK
from weft.workloads.named import NamedSql


def register(w: weft.Weft, queries: Sequence[NamedSql]) -> float:
    """Register the queries as one change; the seconds it took."""
    started = time.perf_counter()
    with w.changes():
        for query in queries:
            w.register(query.name, query.sql)
    return time.perf_counter() - started


def opened(
    spark: SparkSession,
    source: DataFrame,
    queries: Sequence[NamedSql],
    checkpoint: Path,
    **settings: Any,
) -> tuple[weft.Weft, float]:
    """A weft with the queries on the events, and the seconds that registering took."""
    w = weft.Weft(spark, checkpoint=str(checkpoint), **settings)
    w.add_stream("events", source, time="ts", watermark=WATERMARK)
    return w, register(w, queries)


def measured(spark: SparkSession, w: weft.Weft, name: str, stream: str = "events") -> Measurement:
    """Run over the whole stream and measure.

    Seconds begin with Spark's first micro-batch and end when the run has ended, its last flush
    included. Rows are those that the commits counted: Spark counts a row as often as it is read.
    """
    running = w.start(availableNow=True)
    (spark_query,) = spark.streams.active
    running.awaitTermination()
    ended = time.time()
    progress = spark_query.recentProgress
    steps = running.recentProgress
    details = phase_seconds(progress)
    for step in steps:
        for phase, seconds in step["durations"].items():
            details[f"weft {phase}"] = details.get(f"weft {phase}", 0.0) + seconds
    return Measurement(
        name=name,
        rows=int(w.counted(stream).get("rows", 0)),
        seconds=(seconds_from_first_batch(progress, ended),),
        results=sum(int(step["results"]) for step in steps),
        batches=data_batches(progress),
        details=details,
    )


def shared(
    spark: SparkSession,
    source: DataFrame,
    queries: Sequence[NamedSql],
    work: Path,
    name: str,
    **settings: Any,
) -> Measurement:
    """Register the queries in a new checkpoint and measure them; registering is outside, and
    measured for itself."""
    w, registering = opened(spark, source, queries, fresh(work / "weft"), **settings)
    measurement = measured(spark, w, name)
    return replace(measurement, details={**measurement.details, "registering": registering})
