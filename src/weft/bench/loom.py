"""weft as a contender: the same files, the same micro-batches, results in its Parquet store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import weft
from weft.bench.measure import (
    Measurement,
    data_batches,
    input_rows,
    phase_seconds,
    seconds_from_first_batch,
)
from weft.bench.scratch import fresh
from weft.workloads.events import WATERMARK
from weft.workloads.windows import WindowQuery


def register(w: weft.Weft, queries: Sequence[WindowQuery]) -> float:
    """Register the queries as one change; the seconds it took."""
    started = time.perf_counter()
    with w.changes():
        for query in queries:
            w.register(query.name, query.sql)
    return time.perf_counter() - started


def shared(
    spark: SparkSession, source: DataFrame, queries: Sequence[WindowQuery], work: Path, name: str
) -> Measurement:
    """Run the queries with weft over the whole stream and measure them.

    Seconds begin with Spark's first micro-batch and end when the run has ended, its last flush
    included. Registering is outside, and measured for itself.
    """
    folder = fresh(work / "weft")
    w = weft.Weft(spark, checkpoint=str(folder))
    w.add_stream("events", source, time="ts", watermark=WATERMARK)
    registering = register(w, queries)
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
    details["registering"] = registering
    return Measurement(
        name=name,
        rows=input_rows(progress),
        seconds=(seconds_from_first_batch(progress, ended),),
        results=sum(int(step["results"]) for step in steps),
        batches=data_batches(progress),
        details=details,
    )
