"""From a new process to the first result, as a user waits for it.

``time_to_first_result`` starts this module in a new interpreter and takes the time until that
has read a result row: Python, the JVM, the session, registering, two micro-batches (the
first can emit nothing, its watermark is still at the beginning) and reading the result back.
The same for one query of plain Spark shows how much of it is Spark's own start.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from weft.bench.measuring.measure import Measurement
from weft.workloads.stored import StoredStream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from weft.workloads.windows import WindowQuery

_MODULE = "weft.bench.first_result"
_REACHED = "reached:"
_READY = "first result"


def time_to_first_result(
    stream: StoredStream, files_per_batch: int, queries: int, engine: str = "weft"
) -> Measurement:
    """From starting a process to its first readable result, of weft or of plain Spark; details are
    the seconds after which each phase was reached."""
    command = [sys.executable, "-m", _MODULE]
    arguments = [str(stream.folder), stream.schema, str(files_per_batch), str(queries), engine]
    started = time.perf_counter()
    child = subprocess.Popen(
        command + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    reached: dict[str, float] = {}
    try:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith(_REACHED):
                reached[line.removeprefix(_REACHED).strip()] = time.perf_counter() - started
            if _READY in reached:
                name = f"first result, {engine}, {queries} quer{'y' if queries == 1 else 'ies'}"
                return Measurement(name, 0, (reached[_READY],), details=reached)
        _, errors = child.communicate()
        raise RuntimeError(f"the process ended without a result:\n{errors[-2000:]}")
    finally:
        child.kill()
        child.communicate()


def _reach(phase: str) -> None:
    print(_REACHED, phase, flush=True)


def main(folder: str, schema: str, files_per_batch: int, count: int, engine: str) -> None:
    """What the new process does."""
    from weft.bench.measuring.session import session
    from weft.workloads.windows import MillisecondWindow, WindowQuery, thousand_sliding

    first = WindowQuery("first", MillisecondWindow(10_000, 10_000))
    queries = [first, *thousand_sliding(count - 1)]
    _reach("imports")
    spark = session("weft bench: first result")
    _reach("session")
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", files_per_batch)
    with tempfile.TemporaryDirectory() as work:
        run = _weft if engine == "weft" else _plain_spark
        run(spark, reader.parquet(folder), queries, work)


def _weft(
    spark: SparkSession, source: DataFrame, queries: Sequence[WindowQuery], work: str
) -> None:
    import weft
    from weft.bench.measuring.loom import register
    from weft.workloads.events import WATERMARK

    w = weft.Weft(spark, checkpoint=work)
    w.add_stream("events", source, time="ts", watermark=WATERMARK)
    _reach("stream")
    register(w, queries)
    _reach("registered")
    running = w.start()
    _reach("started")
    while not any(step["results"] for step in running.recentProgress):
        time.sleep(0.05)
        if not running.isActive:
            running.awaitTermination()
    _reach("results committed")
    if w.results(queries[0].name).limit(1).count():
        _reach(_READY)
    running.stop()


def _plain_spark(
    spark: SparkSession, source: DataFrame, queries: Sequence[WindowQuery], work: str
) -> None:
    """One query as plain Spark runs it."""
    from weft.workloads.events import WATERMARK

    source.withWatermark("ts", WATERMARK).createOrReplaceTempView("events")
    writer = spark.sql(queries[0].sql).writeStream.format("parquet").outputMode("append")
    writer = writer.option("checkpointLocation", f"{work}/checkpoint")
    running = writer.start(f"{work}/out")
    while not _has_rows(f"{work}/out"):
        time.sleep(0.05)
        if not running.isActive:
            running.awaitTermination()
    _reach("results committed")
    if spark.read.parquet(f"{work}/out").limit(1).count():
        _reach(_READY)
    running.stop()


def _has_rows(folder: str) -> bool:
    """Whether a file that Spark's file sink has committed holds rows."""
    for log in Path(folder, "_spark_metadata").glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            file = Path(folder, Path(json.loads(line)["path"]).name)
            if pq.ParquetFile(file).metadata.num_rows:
                return True
    return False


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
