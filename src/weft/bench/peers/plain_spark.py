"""Plain Structured Streaming: every query is a stream of its own, with its own scan and state.

Queries run side by side in one session, append mode, Parquet out. Shuffle partitions equal the
cores, set by the session. Rows are counted once, however many queries read them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from weft.bench.measuring.measure import (
    Measurement,
    data_batches,
    input_rows,
    phase_seconds,
    seconds_from_first_batch,
)
from weft.bench.measuring.scratch import fresh
from weft.workloads.events import WATERMARK
from weft.workloads.named import NamedSql
from weft.workloads.stored import StoredStream


def plain_spark(
    spark: SparkSession,
    stream: StoredStream,
    files_per_batch: int,
    queries: Sequence[NamedSql],
    work: Path,
) -> Measurement:
    """Run the queries on the whole stream and measure them."""
    folder = fresh(work / "plain-spark")
    running = [
        _start(spark, stream.open(spark, files_per_batch), query, folder) for query in queries
    ]
    for query in running:
        query.awaitTermination()
    ended = time.time()
    progress = [event for query in running for event in query.recentProgress]
    read = input_rows(progress) // len(queries)
    if read != stream.rows:
        raise RuntimeError(f"plain Spark read {read} rows of {stream.rows}")
    return Measurement(
        name=f"plain Spark, {len(queries)} quer{'y' if len(queries) == 1 else 'ies'}",
        rows=read,
        seconds=(seconds_from_first_batch(progress, ended),),
        results=sum(
            spark.read.parquet(str(folder / query.name / "out")).count() for query in queries
        ),
        batches=data_batches(running[0].recentProgress),
        details=phase_seconds(progress),
    )


def _start(spark: SparkSession, source: DataFrame, query: NamedSql, folder: Path) -> StreamingQuery:
    view = f"events_{query.name}"
    source.withWatermark("ts", WATERMARK).createOrReplaceTempView(view)
    result = spark.sql(query.sql.replace("FROM events", f"FROM {view}"))
    return (
        result.writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(folder / query.name / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / query.name / "out"))
    )
