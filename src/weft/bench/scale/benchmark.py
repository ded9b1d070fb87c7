"""A hundred thousand mixed queries beside a thousand: registered, planned, explained, run (`weft bench mixed --only scale`).

Registering is one `changes()`. Planning is what `Weft.plan` does before the first step; planning again is the planner's own
work for the same queries. All runs read the same beginning of the bids, a million rows in a micro-batch, not
warmed up; the results are written.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import weft
from weft.bench.measuring import loom
from weft.bench.measuring.measure import Measurement
from weft.bench.measuring.report import Comparison, rate
from weft.bench.measuring.scratch import fresh
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import WindowWeaving
from weft.workloads.mixed import mixed_queries
from weft.workloads.stored import StoredStream

FEWER, MORE = 1_000, 100_000
MOST_MILLISECONDS_EACH = 0.5
MOST_SECONDS = 10.0


def scale(
    spark: SparkSession, stream: StoredStream, work: Path, say: Callable[[str], None]
) -> tuple[list[Comparison], list[Measurement]]:
    """The comparisons, and the two runs."""
    seconds: dict[int, dict[str, float]] = {}
    runs: dict[int, Measurement] = {}
    for count in (FEWER, MORE):
        queries = mixed_queries(count)
        source, checkpoint = stream.open(spark, 1), fresh(work / "scale")
        w, registering = loom.opened(spark, source, queries, checkpoint)
        seconds[count] = {"registering": registering, **_planned(w)}
        say(f"{count:,} queries: {seconds[count]}")
        runs[count] = loom.measured(spark, w, f"weft, {count:,} mixed queries, cold")
        w.close()
    few, many = seconds[FEWER], seconds[MORE]
    each = many["registering"] / MORE * 1000
    comparisons = [
        Comparison(
            f"registering {MORE:,} queries, each",
            f"{many['registering']:.1f} s",
            f"{FEWER:,}: {few['registering']:.2f} s",
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
    ):
        name = f"{step} {MORE:,} queries"
        ours, fewer = f"{many[step]:.1f} s", f"{FEWER:,}: {few[step]:.2f} s"
        comparisons.append(Comparison(name, ours, fewer, many[step], "at most", target, "s"))
    ratio = runs[FEWER].rows_per_second / runs[MORE].rows_per_second
    name = f"running {MORE:,} queries, times slower than {FEWER:,}"
    comparisons.append(Comparison(name, rate(runs[MORE]), rate(runs[FEWER]), ratio))
    return comparisons, list(runs.values())


def _planned(w: weft.Weft) -> dict[str, float]:
    """Seconds of the first plan, of a later one for the same queries, and of the text of EXPLAIN, whose plan is made anew."""
    started = time.perf_counter()
    plan = w.plan("events")
    planned = time.perf_counter()
    share(
        plan.version + 1, plan.stream, plan.queries, plan.complete_from, WindowWeaving(plan.sharing)
    )
    again = time.perf_counter()
    str(w.explain())
    explained = time.perf_counter()
    return {
        "planning": planned - started,
        "planning again": again - planned,
        "explaining": explained - again,
    }
