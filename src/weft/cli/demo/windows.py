"""The first act: hundreds of different windowed queries on one auction stream, beside plain Spark.

weft runs all queries; plain Spark runs a few of the same queries on the beginning of the same files. Both
rates are taken by the rule of `weft.bench.measuring.measure`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from weft.bench.measuring.measure import input_rows, seconds_from_first_batch
from weft.cli.demo.telling import indented, say, show_rows
from weft.cli.run.progress import display
from weft.cli.run.running import follow
from weft.cli.stopping import stop_signal
from weft.explain.wording import counted, figure
from weft.runtime.api.weft import Weft
from weft.workloads import demo as workload
from weft.workloads.bids import WATERMARK, bids
from weft.workloads.stored import StoredStream, store

FILES = 4
PLAIN_FILES, PLAIN_QUERIES = 1, 4
_SAMPLED, _SAMPLE_ROWS = 4, 3
_EVENT_RATE = 36_000


@dataclass(frozen=True)
class Rate:
    """What a contender did."""

    queries: int
    rows: int
    seconds: float
    results: int

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds

    @property
    def queries_times_rows(self) -> float:
        return self.queries * self.rows_per_second

    def __str__(self) -> str:
        return (
            f"{counted(self.rows, 'row')} in {self.seconds:.1f} s: "
            f"{figure(self.rows_per_second)} rows/s, "
            f"{figure(self.results / self.seconds)} results/s"
        )


def windows_act(spark: SparkSession, folder: Path, rows: int, queries: int) -> None:
    """Run the act and print it."""
    registered = workload.queries(queries)
    say(f"1. making {rows // FILES * FILES:,} bids (seeded, as Nexmark has them)")
    stream = _bids(spark, folder / "bids", rows // FILES * FILES)
    shared = _weft(spark, stream, registered, folder)
    chosen = registered[:PLAIN_QUERIES]
    say(f"5. plain Spark, {counted(len(chosen), 'query', 'queries')} of the same")
    plain = _plain_spark(spark, stream.first(PLAIN_FILES), chosen, folder)
    print(f"   {plain}")
    print()
    print(_compared(shared, plain))


def _bids(spark: SparkSession, folder: Path, rows: int) -> StoredStream:
    """The columns of the bids that the queries use, some seventy seconds of them."""

    def make(numbers: DataFrame) -> DataFrame:
        return bids(numbers, rate=_EVENT_RATE).drop("url", "extra")

    return store(spark, make, folder, rows, FILES, recipe=f"demo bids rate={_EVENT_RATE}")


def _compared(shared: Rate, plain: Rate) -> str:
    times = shared.queries_times_rows / plain.queries_times_rows
    return (
        f"weft ran {shared.queries} queries at {figure(shared.rows_per_second)} rows/s, plain "
        f"Spark {plain.queries} of them at {figure(plain.rows_per_second)} rows/s.\n"
        f"In queries × rows per second: {figure(shared.queries_times_rows)} against "
        f"{figure(plain.queries_times_rows)}, {figure(times)} times as much, measured in this run."
    )


def _weft(
    spark: SparkSession, stream: StoredStream, queries: Sequence[tuple[str, str]], folder: Path
) -> Rate:
    weft = Weft(spark, folder / "checkpoint")
    frame = stream.open(spark, files_per_batch=1)
    weft.add_stream(workload.STREAM, frame, time=workload.TIME, watermark=WATERMARK)
    started = time.perf_counter()
    with weft.changes():
        for name, sql in queries:
            weft.register(name, sql)
    took = time.perf_counter() - started
    say(f"2. registered {len(queries)} different queries in {took:.1f} s; they share")
    print(indented(weft.explain().summary()))
    say("3. running all of them as one stream")
    running = weft.start(availableNow=True)
    (spark_query,) = spark.streams.active
    with stop_signal() as stopping:
        tally = follow(running, display("weft demo"), stopping)
    ended = time.time()
    total = tally.totals[workload.STREAM]
    seconds = seconds_from_first_batch(spark_query.recentProgress, ended)
    rate = Rate(len(queries), total.rows, seconds, total.results)
    print(f"   {rate}")
    say("4. some of the results")
    _sample(weft, queries)
    return rate


def _sample(weft: Weft, queries: Sequence[tuple[str, str]]) -> None:
    """A few rows of a query of each kind."""
    for name, _ in queries[:_SAMPLED]:
        rows = weft.results(name).orderBy("start").limit(_SAMPLE_ROWS)
        show_rows(name, rows, "no window has ended yet")


def _plain_spark(
    spark: SparkSession, stream: StoredStream, queries: Sequence[tuple[str, str]], folder: Path
) -> Rate:
    """Each query as a streaming query of its own, all at once, as one would run them today."""
    running = []
    for name, sql in queries:
        frame = stream.open(spark, files_per_batch=1)
        frame.withWatermark(workload.TIME, WATERMARK).createOrReplaceTempView(workload.STREAM)
        writer = spark.sql(sql).writeStream.format("parquet").outputMode("append")
        writer = writer.option("checkpointLocation", str(folder / "plain" / name / "checkpoint"))
        running.append(
            writer.trigger(availableNow=True).start(str(folder / "plain" / name / "out"))
        )
    for query in running:
        query.awaitTermination()
    ended = time.time()
    spark.catalog.dropTempView(workload.STREAM)
    progress = [event for query in running for event in query.recentProgress]
    results = sum(
        spark.read.parquet(str(folder / "plain" / name / "out")).count() for name, _ in queries
    )
    read = input_rows(progress) // len(queries)
    return Rate(len(queries), read, seconds_from_first_batch(progress, ended), results)
