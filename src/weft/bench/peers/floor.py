"""The floor: what any Spark stream pays on this source. One tumbling 10 s count, written nowhere."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.bench.measuring.measure import (
    Measurement,
    data_batches,
    input_rows,
    phase_seconds,
    seconds_from_first_batch,
)
from weft.bench.measuring.scratch import fresh
from weft.workloads.events import WATERMARK
from weft.workloads.stored import StoredStream


def floor(
    spark: SparkSession, stream: StoredStream, files_per_batch: int, work: Path
) -> Measurement:
    """Count the whole stream in 10 s windows and measure it."""
    folder = fresh(work / "floor")
    source = stream.open(spark, files_per_batch).withWatermark("ts", WATERMARK)
    running = (
        source.groupBy(F.window("ts", "10 seconds"))
        .count()
        .writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    running.awaitTermination()
    ended = time.time()
    progress = running.recentProgress
    return Measurement(
        name="floor: one tumbling 10 s count, noop sink",
        rows=input_rows(progress),
        seconds=(seconds_from_first_batch(progress, ended),),
        batches=data_batches(progress),
        details=phase_seconds(progress),
    )
