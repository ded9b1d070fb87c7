"""Whole steps of weft, timed: from the arrival of an increment's file to the commit of its results.

A run watches the folder. The history arrives first, then some increments to warm up, then those that
count. The seconds of an increment are those of `processAllAvailable`: Spark's micro-batch, the stream's
step, the network's step, all files and commits. Spark looks for new files all the time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import weft
from weft.bench.measuring.arrivals import Arrivals
from weft.bench.measuring.loom import register
from weft.bench.measuring.measure import Measurement
from weft.bench.measuring.scratch import fresh
from weft.workloads.fed.stream import STREAM, TIME, WATERMARK
from weft.workloads.named import NamedSql
from weft.workloads.stored import StoredStream


@dataclass(frozen=True)
class _Query:
    name: str
    sql: str


_NOTHING = _Query("nothing", f"SELECT tranid FROM {STREAM} WHERE tranid < 0")
"""A run needs a query to begin with. This one is dropped at once: then the stream is read and committed
without any."""


@dataclass(frozen=True)
class Increments:
    """What arrives: rows of history, rows of an increment, how many to warm up and to time."""

    history: int
    increment: int
    warm: int
    timed: int

    @property
    def rows(self) -> int:
        return self.history + self.increment * (self.warm + self.timed)


def stepped(
    spark: SparkSession,
    stored: StoredStream,
    queries: Sequence[NamedSql],
    increments: Increments,
    work: Path,
    name: str,
    **settings: Any,
) -> Measurement:
    """The seconds of every timed increment; without queries, those of a stream that is only read."""
    arrivals = Arrivals(stored, work / "arriving")
    with weft.Weft(spark, checkpoint=str(fresh(work / "weft")), **settings) as w:
        w.add_stream(STREAM, arrivals.open(spark), time=TIME, watermark=WATERMARK)
        registering = register(w, queries or [_NOTHING])
        running = w.start(processingTime="0 seconds")
        if not queries:
            w.drop(_NOTHING.name)
        try:
            loading = _arrived(running, arrivals, increments.history)
            for _ in range(increments.warm):
                _arrived(running, arrivals, increments.increment)
            before = len(running.recentProgress)
            seconds = tuple(
                _arrived(running, arrivals, increments.increment) for _ in range(increments.timed)
            )
            steps = running.recentProgress[before:]
        finally:
            running.stop()
    details = {"registering": registering, "loading the history": loading}
    for step in steps:
        for phase, spent in step["durations"].items():
            key = f"{step['stream']} {phase}"
            details[key] = details.get(key, 0.0) + spent
    return Measurement(
        name=name,
        rows=increments.increment,
        seconds=seconds,
        results=sum(int(step["results"]) for step in steps) // max(1, increments.timed),
        batches=1,
        details=details,
    )


def _arrived(running: Any, arrivals: Arrivals, rows: int) -> float:
    """Let rows arrive, and wait until they are done."""
    arrivals.arrive(rows)
    started = time.perf_counter()
    running.processAllAvailable()
    return time.perf_counter() - started


def in_full_on_spark(
    spark: SparkSession, stored: StoredStream, queries: Sequence[NamedSql], rows: int
) -> Measurement:
    """Each query in full over all rows, one after the other, results counted and thrown away. The
    rows are read from files as a stream's batch is; each query runs once before, to warm up."""
    paths = [str(path) for path in stored.paths()[: rows // stored.rows_per_file]]
    spark.read.schema(stored.schema).parquet(*paths).createOrReplaceTempView(STREAM)
    seconds = []
    for query in queries:
        spark.sql(query.sql).write.format("noop").mode("overwrite").save()
        started = time.perf_counter()
        spark.sql(query.sql).write.format("noop").mode("overwrite").save()
        seconds.append(time.perf_counter() - started)
    spark.catalog.dropTempView(STREAM)
    return Measurement(
        name=f"Spark, each query in full, mean of {len(queries)}",
        rows=rows,
        seconds=(statistics.mean(seconds),),
        details={query.name: spent for query, spent in zip(queries, seconds)},
    )
