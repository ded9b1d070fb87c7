"""The run that is watched: hours of event time a minute, queries of every kind, coming and going.

Spark's `rate-micro-batch` makes the rows, as fast as they are taken, so event time runs ahead of the
clock and nothing is stored for the source. Windows, row windows and a fallback stay for the whole run;
every few seconds one more query is registered and the oldest of these is dropped. Every other one
reads a column that nobody else reads, so that Spark's query is replaced by another.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import weft
from weft.bench.measuring.turns import Say
from weft.bench.soak.resources import (
    Sample,
    count_files,
    java_live_mb,
    java_process,
    python_objects,
    resident_mb,
)

ROWS_PER_BATCH = 20_000
MILLISECONDS_PER_BATCH = 600_000
CHANGE_SECONDS = 10.0
_EXTRA_QUERIES = 4
_STREAM, _WATERMARK = "events", "10 seconds"
_START, _HOUR = 1_704_067_200_000_000, 3_600_000_000

QUERIES = {
    "minutes": "SELECT key, COUNT(*) AS n, SUM(value) AS total FROM events "
    "GROUP BY window(ts, '1 minute'), key",
    "sliding": "SELECT key, AVG(value) AS mean, MAX(value) AS top FROM events "
    "GROUP BY window(ts, '10 minutes', '1 minute'), key",
    "selected": "SELECT COUNT(*) AS n FROM events WHERE value % 7 = 3 "
    "GROUP BY window(ts, '5 minutes', '2 minutes')",
    "distinct": "SELECT COUNT(DISTINCT key) AS n FROM events GROUP BY window(ts, '3 minutes')",
    "rows": "SELECT SUM(value) AS total FROM events [RANGE 10000 ROWS SLIDE 2000 ROWS]",
    "alone": "SELECT COLLECT_SET(key) AS found FROM events GROUP BY window(ts, '10 minutes')",
}


@dataclass
class Soak:
    """A run under watch."""

    spark: SparkSession
    checkpoint: Path
    say: Say

    def run(self, minutes: float, every: float) -> list[Sample]:
        """Run for some minutes, and take a sample every few seconds."""
        samples: list[Sample] = []
        with closing(self.watch(every)) as watched:
            for sample in watched:
                samples.append(sample)
                if sample.minutes + every / 60 > minutes:
                    break
        return samples

    def watch(self, every: float) -> Generator[Sample]:
        """Run until the samples are closed, and take one every few seconds."""
        w = weft.Weft(self.spark, self.checkpoint)
        w.add_stream(_STREAM, self._events(), time="ts", watermark=_WATERMARK)
        with w.changes():
            for name, sql in QUERIES.items():
                w.register(name, sql)
        running = w.start(processingTime="0 seconds")
        try:
            yield from self._samples(w, running, every)
        finally:
            running.stop()

    def _samples(self, w: weft.Weft, running: weft.Run, every: float) -> Iterator[Sample]:
        started = changed = sampled = time.monotonic()
        extra: deque[str] = deque()
        number = 0
        while not running.awaitTermination(0.2):
            now = time.monotonic()
            if now - changed >= CHANGE_SECONDS:
                changed = now
                number += 1
                self._change(w, extra, number)
            if now - sampled >= every:
                sampled = now
                sample = self._sample(w, running, (now - started) / 60)
                self.say(_line(sample))
                yield sample
        raise RuntimeError("the run ended by itself")

    def _events(self) -> DataFrame:
        source = (
            self.spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", ROWS_PER_BATCH)
            .option("numPartitions", 2)
            .option("advanceMillisPerBatch", MILLISECONDS_PER_BATCH)
            .option("startTimestamp", _START // 1000)
            .load()
        )
        within = f"value % {ROWS_PER_BATCH} * {MILLISECONDS_PER_BATCH * 1000 // ROWS_PER_BATCH}"
        return source.selectExpr(
            f"timestamp_micros(unix_micros(timestamp) + {within}) AS ts",
            "value % 100 AS key",
            "value % 1013 AS value",
            "value % 31 AS other",
        )

    def _change(self, w: weft.Weft, extra: deque[str], number: int) -> None:
        """One query comes, and the oldest goes once there are enough."""
        column = "other" if number % 2 else "value"
        name = f"extra_{number}"
        seconds = 60 + number % 7 * 10
        w.register(
            name,
            f"SELECT key, SUM({column}) AS total FROM events "
            f"GROUP BY window(ts, '{seconds} seconds'), key",
        )
        extra.append(name)
        if len(extra) > _EXTRA_QUERIES:
            w.drop(extra.popleft())

    def _sample(self, w: weft.Weft, running: weft.Run, minutes: float) -> Sample:
        failed = [handle for handle in w.queries if handle.status == "quarantined"]
        if failed:
            raise RuntimeError(f"{failed[0].name} is quarantined: {failed[0].detail}")
        files, results = count_files(self.checkpoint)
        status = running.status
        return Sample(
            minutes=minutes,
            event_hours=max(0, (status["watermark"] or 0) - _START) / _HOUR,
            batches=status["batch"] or 0,
            queries=len(w.queries),
            python_mb=resident_mb(os.getpid()),
            python_objects=python_objects(),
            java_mb=resident_mb(java_process(self.spark)),
            java_live_mb=java_live_mb(self.spark),
            files=files,
            result_files=results,
        )


def _line(sample: Sample) -> str:
    return (
        f"{sample.minutes:.1f} min, {sample.event_hours:.1f} h of event time: "
        f"Python {sample.python_mb:.0f} MB, Java {sample.java_mb:.0f} MB "
        f"({sample.java_live_mb:.0f} live), {sample.files:,} files"
    )
