"""Two stored streams run to their end, in weft with any number of queries and on plain Spark with one.

Plain Spark joins rows of equal windows and then groups by the window (`WindowJoin.on_spark`), append mode, Parquet out. It has this form for
equal windows of both inputs. It cannot say windows of different lengths at one instant, landmark windows, tables of which a version is fixed, or which
groups have changed or gone since the instant before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import weft
from weft.bench.measuring.loom import register
from weft.bench.measuring.measure import (
    Measurement,
    data_batches,
    input_rows,
    phase_seconds,
    seconds_from_first_batch,
)
from weft.bench.measuring.scratch import fresh
from weft.experiments.aggjoin.on_spark.steps import WATERMARK
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.workloads.aggjoin.queries import WindowJoin
from weft.workloads.named import NamedSql
from weft.workloads.stored import StoredStream

_JOINING = ("@aggjoin", "@network")
"""The logs of what joins streams."""


def in_weft(
    spark: SparkSession,
    streams: Sequence[StoredStream],
    queries: Sequence[NamedSql],
    work: Path,
    name: str,
    **settings: Any,
) -> Measurement:
    """All queries in one weft."""
    with weft.Weft(spark, checkpoint=str(fresh(work / "weft")), **settings) as w:
        for number, stored in enumerate(streams):
            w.add_stream(f"s{number}", stored.open(spark, 1), time="ts", watermark=WATERMARK)
        registering = register(w, queries)
        running = w.start(availableNow=True)
        spark_queries = spark.streams.active
        running.awaitTermination()
        ended = time.time()
        progress = [event for query in spark_queries for event in query.recentProgress]
        steps = running.recentProgress
    details: dict[str, float] = {"registering": registering}
    details["joining"] = sum(_counted(work, log).get("seconds", 0.0) for log in _JOINING)
    for step in steps:
        for phase, spent in step["durations"].items():
            key = f"{step['stream']} {phase}"
            details[key] = details.get(key, 0.0) + spent
    return Measurement(
        name=name,
        rows=sum(stored.rows for stored in streams),
        seconds=(seconds_from_first_batch(progress, ended),),
        results=sum(_counted(work, log).get("results", 0) for log in _JOINING),
        batches=data_batches(spark_queries[0].recentProgress),
        details=details,
    )


def _counted(work: Path, log: str) -> Mapping[str, Any]:
    """What all steps of a log have counted. Progress is kept of the last steps only."""
    last = StreamLog(Storage(str(work / "weft")), log).last()
    return last.metrics if last is not None else {}


def published_sets_of(work: Path) -> int:
    """How many aggregation sets the last run published, for all its streams."""
    served = json.loads((work / "weft" / "streams" / "@aggjoin" / "sets.json").read_text())
    return len(served["sets"])


def on_spark(
    spark: SparkSession, streams: Sequence[StoredStream], query: WindowJoin, work: Path
) -> Measurement:
    """One query on plain Spark."""
    folder = fresh(work / "plain-spark")
    views = []
    for number, stored in enumerate(streams):
        views.append(f"aggjoin_{number}")
        stored.open(spark, 1).withWatermark("ts", WATERMARK).createOrReplaceTempView(views[-1])
    running = (
        spark.sql(query.on_spark(views))
        .writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    running.awaitTermination()
    ended = time.time()
    progress = running.recentProgress
    rows = sum(stored.rows for stored in streams)
    if input_rows(progress) != rows:
        raise RuntimeError(f"plain Spark read {input_rows(progress)} rows of {rows}")
    return Measurement(
        name=f"plain Spark, {query.name}",
        rows=rows,
        seconds=(seconds_from_first_batch(progress, ended),),
        results=spark.read.parquet(str(folder / "out")).count(),
        batches=data_batches(progress),
        details=phase_seconds(progress),
    )
