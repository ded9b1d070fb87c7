"""Whole steps of weft on several streams, timed: from the arrival of their files to the commit of the results.

All streams get a file for each increment of event time. The history that fills the windows arrives first, then increments to warm up, then those that
count. The seconds of an increment are those of `processAllAvailable`: micro-batches and steps of all streams, the step of the joins, all
files and commits.
"""

from __future__ import annotations

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
from weft.optimizer.joinagg.plans import Plan
from weft.workloads.aggjoin.queries import papers_query
from weft.workloads.aggjoin.stored import store_stream
from weft.workloads.aggjoin.streams import StreamShape
from weft.workloads.stored import StoredStream

WATERMARK = "0 seconds"
"""Rows come in order."""


@dataclass(frozen=True)
class Setting:
    """The paper's query over streams of equal rate and window: an instant every `every` seconds, which is an increment."""

    shapes: tuple[StreamShape, ...]
    seconds: int
    every: int
    warm: int
    timed: int

    @property
    def increment(self) -> int:
        """Rows of each stream in an increment."""
        return round(self.shapes[0].rate * self.every)

    @property
    def history(self) -> int:
        """Rows of each stream before the first increment: the windows, and one instant more."""
        return round(self.shapes[0].rate * (self.seconds + self.every))

    @property
    def rows(self) -> int:
        return self.history + self.increment * (self.warm + self.timed)

    def stored(self, work: Path) -> list[StoredStream]:
        """The streams as files, one for each increment."""
        return [
            store_stream(
                work / f"aggjoin-{len(self.shapes)}-{number}",
                shape,
                self.rows,
                self.increment,
                number,
            )
            for number, shape in enumerate(self.shapes)
        ]


def stepped(
    spark: SparkSession, setting: Setting, plan: Plan, work: Path, name: str
) -> Measurement:
    """The seconds of every timed increment by a plan. The late plan, whose steps are long, is timed once: loading its history has warmed it up."""
    warm, timed = (setting.warm, setting.timed) if any(plan) else (0, 1)
    arriving = [
        Arrivals(stored, work / f"arriving-{number}")
        for number, stored in enumerate(setting.stored(work))
    ]
    grouped = [shape.groups > 1 for shape in setting.shapes]
    query = papers_query([setting.seconds] * len(arriving), grouped, setting.every)
    with weft.Weft(spark, checkpoint=str(fresh(work / "weft")), early=plan) as w:
        for number, arrivals in enumerate(arriving):
            w.add_stream(f"s{number}", arrivals.open(spark), time="ts", watermark=WATERMARK)
        register(w, [query])
        running = w.start(processingTime="0 seconds")
        try:
            _arrived(running, arriving, setting.history)
            for _ in range(warm):
                _arrived(running, arriving, setting.increment)
            before = len(running.recentProgress)
            seconds = tuple(_arrived(running, arriving, setting.increment) for _ in range(timed))
            steps = running.recentProgress[before:]
        finally:
            running.stop()
    details: dict[str, float] = {}
    for step in steps:
        for phase, spent in step["durations"].items():
            key = f"{step['stream']} {phase}"
            details[key] = details.get(key, 0.0) + spent
    return Measurement(
        name=name,
        rows=setting.increment * len(arriving),
        seconds=seconds,
        results=sum(int(step["results"]) for step in steps) // timed,
        batches=1,
        details=details,
    )


def _arrived(running: Any, arriving: Sequence[Arrivals], rows: int) -> float:
    """Let rows of every stream arrive, and wait until they are done."""
    for arrivals in arriving:
        arrivals.arrive(rows)
    started = time.perf_counter()
    running.processAllAvailable()
    return time.perf_counter() - started
