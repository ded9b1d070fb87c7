"""A hundred thousand mixed queries beside a thousand: registered, planned, explained, run, planned again
(`weft bench mixed --only scale`).

- *Registering* is one `changes()`.
- *Planning* is what `Weft.plan` does before anything has run; *explaining* is the text of EXPLAIN, which has that plan.
- Both *run* over the same three micro-batches of a million bids, one after the other in one session, after a thousand
  queries have read one micro-batch to warm up Spark. All writes are included, and so is the run's own planning.
- *Planning again* is a re-plan of the running queries as a run does it: in another weft that has opened the checkpoint,
  one more query is registered and a fourth micro-batch comes. It is the planner's work of that step: the plan, its
  snapshot in the checkpoint, and the kernel's program. *Opening again* is until that weft knows all queries.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import weft
from weft.bench.measuring import loom
from weft.bench.measuring.measure import Measurement
from weft.bench.measuring.report import Comparison, rate
from weft.bench.measuring.scratch import fresh
from weft.workloads.events import WATERMARK
from weft.workloads.mixed import mixed_queries
from weft.workloads.stored import StoredStream

FEWER, MORE = 1_000, 100_000
BATCHES = 3
"""Of a million rows each; one more comes before planning again."""
MOST_MILLISECONDS_EACH = 0.5
MOST_SECONDS = 10.0
_ONE_MORE = (
    "SELECT channel, window.start AS start, COUNT(*) AS n FROM events WHERE auction < 7 "
    "GROUP BY channel, window(ts, '90 seconds', '45 seconds')"
)

Say = Callable[[str], None]


def scale(
    spark: SparkSession,
    stream: StoredStream,
    work: Path,
    say: Say,
    counts: tuple[int, int] = (FEWER, MORE),
) -> tuple[list[Comparison], list[Measurement]]:
    """The comparisons, and the two runs. The stream has a file more than are read at first."""
    if stream.files <= BATCHES:
        raise ValueError(f"{BATCHES + 1} files are needed, there are {stream.files}")
    few, many = counts
    say("warming up")
    w, _ = loom.opened(
        spark, stream.first(1).open(spark, 1), mixed_queries(few), fresh(work / "scale")
    )
    loom.measured(spark, w, "warming up")
    w.close()
    seconds: dict[int, dict[str, float]] = {}
    runs: dict[int, Measurement] = {}
    for count in counts:
        seconds[count], runs[count] = _measured(spark, stream, work, count, say)
    return _comparisons(few, many, seconds, runs), list(runs.values())


def _measured(
    spark: SparkSession, stream: StoredStream, work: Path, count: int, say: Say
) -> tuple[dict[str, float], Measurement]:
    begun = stream.first(BATCHES)
    source, checkpoint = begun.open(spark, 1), fresh(work / "scale")
    w, registering = loom.opened(spark, source, mixed_queries(count), checkpoint)
    seconds = {"registering": registering}
    started = time.perf_counter()
    w.plan("events")
    planned = time.perf_counter()
    str(w.explain())
    seconds |= {"planning": planned - started, "explaining": time.perf_counter() - planned}
    say(f"{count:,} queries: {_shown(seconds)}")
    run = loom.measured(spark, w, f"weft, {count:,} mixed queries")
    started = time.perf_counter()
    str(w.explain())
    seconds["explaining after the run"] = time.perf_counter() - started
    w.close()
    following = stream.paths()[BATCHES]
    os.link(following, begun.folder / following.name)
    seconds |= _again(spark, begun.open(spark, 1), checkpoint)
    seconds["driver's peak, MB"] = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # of Python, so far
    )
    say(f"{count:,} queries: {_shown(seconds)}")
    return seconds, run


def _again(spark: SparkSession, source: DataFrame, checkpoint: Path) -> dict[str, float]:
    """Open the checkpoint again, register one more query and run: seconds of opening and of planning."""
    started = time.perf_counter()
    w = weft.Weft(spark, checkpoint=str(checkpoint))
    w.add_stream("events", source, time="ts", watermark=WATERMARK)
    w.plan("events")
    opening = time.perf_counter() - started
    w.register("one_more", _ONE_MORE)
    run = w.start(availableNow=True)
    run.awaitTermination()
    planning = sum(step["durations"].get("planning", 0.0) for step in run.recentProgress)
    w.close()
    return {"opening again": opening, "planning again": planning}


def _comparisons(
    few: int, many: int, seconds: dict[int, dict[str, float]], runs: dict[int, Measurement]
) -> list[Comparison]:
    each = seconds[many]["registering"] / many * 1000
    comparisons = [
        Comparison(
            f"registering {many:,} queries, each",
            f"{seconds[many]['registering']:.1f} s",
            f"{few:,}: {seconds[few]['registering']:.2f} s",
            each,
            "at most",
            MOST_MILLISECONDS_EACH,
            "ms",
        )
    ]
    for step, target in (
        ("planning", MOST_SECONDS),
        ("planning again", MOST_SECONDS),
        ("explaining", None),
        ("explaining after the run", None),
        ("opening again", None),
    ):
        name = f"{step} {many:,} queries"
        ours, fewer = f"{seconds[many][step]:.1f} s", f"{few:,}: {seconds[few][step]:.2f} s"
        comparisons.append(
            Comparison(name, ours, fewer, seconds[many][step], "at most", target, "s")
        )
    ratio = runs[few].rows_per_second / runs[many].rows_per_second
    name = f"running {many:,} queries, times slower than {few:,}"
    comparisons.append(Comparison(name, rate(runs[many]), rate(runs[few]), ratio))
    return comparisons


def _shown(seconds: dict[str, float]) -> str:
    return ", ".join(f"{step} {value:.2f}" for step, value in seconds.items())
