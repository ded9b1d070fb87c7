"""What a sample of a micro-batch costs, and how good the statistics are.

Nexmark's bids in micro-batches of a million rows, for one light query and for group-bys over three sets
of keys with twenty predicates. The stream runs without statistics; then its last micro-batch is sampled
several times, as the running stream would. The groups in a fragment, as these samples estimate them,
stand beside those that Spark counts in the fragments of that micro-batch.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import weft
from weft.algebra.plan import SharedPlan
from weft.bench.measuring.scratch import fresh
from weft.bench.measuring.session import session
from weft.runtime.planning.sampling import MOST_SHARE, sampled
from weft.runtime.settings import Settings
from weft.stats import StreamStatistics
from weft.workloads.bids import WATERMARK, store_bids
from weft.workloads.stored import StoredStream

ROWS, BATCHES = 1_000_000, 5
RATE = 100_000
SECONDS = (1, 5)
SETS = (("auction",), ("bidder", "channel"), ("auction", "bidder"))
PREDICATES = 20
_WARM, _TURNS = 2, 5


@dataclass(frozen=True)
class Groups:
    """Groups in a fragment: estimated, and counted by Spark."""

    keys: str
    seconds: int
    rows: float
    estimated: float
    counted: float


@dataclass(frozen=True)
class SamplingCost:
    """Medians in seconds of a step and of sampling its micro-batch; their ratio if every one is
    sampled, and if one in `statistics_every` is. The running stream samples less often where that
    would be above `MOST_SHARE`."""

    workload: str
    rows: int
    step: float
    sample: float
    share_if_always: float
    share: float


@dataclass(frozen=True)
class StatisticsReport:
    costs: tuple[SamplingCost, ...]
    groups: tuple[Groups, ...]


def group_bys() -> dict[str, str]:
    """A query by name for every set of keys."""
    return {
        "_".join(keys): f"SELECT {', '.join(keys)}, COUNT(*) AS n, SUM(price) AS total FROM bids "
        f"GROUP BY window(dateTime, '10 seconds'), {', '.join(keys)}"
        for keys in SETS
    }


def predicates() -> dict[str, str]:
    """Queries with predicates of two kinds."""
    conditions = {}
    for number in range(PREDICATES):
        equal, within = f"channel = 'channel-{number}'", f"price BETWEEN {number} AND 10{number}"
        conditions[f"p{number}"] = (
            f"SELECT auction, COUNT(*) AS n FROM bids WHERE {equal if number % 2 else within} "
            "GROUP BY window(dateTime, '10 seconds'), auction"
        )
    return conditions


def workloads() -> dict[str, dict[str, str]]:
    """Queries by name, light and mixed."""
    every = group_bys()
    return {"one query": {"auction": every["auction"]}, "mixed": every | predicates()}


def measure(spark: SparkSession, work: Path) -> StatisticsReport:
    """Run the stream under both workloads; the groups are those of the last, which has all keys."""
    stream = store_bids(spark, work / "bids", ROWS * BATCHES, BATCHES, rate=RATE)
    costs = []
    for name, queries in workloads().items():
        w = weft.Weft(spark, fresh(work / "checkpoint"), statistics_every=0)
        w.add_stream("bids", stream.open(spark, 1), time="dateTime", watermark=WATERMARK)
        with w.changes():
            for query, sql in queries.items():
                w.register(query, sql)
        run = w.start(availableNow=True)
        run.awaitTermination()
        steps = [step for step in run.recentProgress if step["kind"] == "data"][_WARM:]
        step = statistics.median(step["seconds"] for step in steps)
        seconds, measured = _sampled(spark, stream, w.plan("bids"), w.statistics("bids"))
        every = Settings().statistics_every
        costs.append(
            SamplingCost(name, ROWS, step, seconds, seconds / step, seconds / step / every)
        )
    pairs = [(keys, seconds) for keys in SETS for seconds in SECONDS]
    groups = [_groups(spark, stream, measured, keys, seconds) for keys, seconds in pairs]
    return StatisticsReport(tuple(costs), tuple(groups))


def _sampled(
    spark: SparkSession, stream: StoredStream, plan: SharedPlan, measured: StreamStatistics
) -> tuple[float, StreamStatistics]:
    """The median time of a sample of the last micro-batch, and what is then known."""
    rows = spark.read.parquet(str(stream.paths()[-1]))
    seconds = []
    for turn in range(_WARM + _TURNS):
        started = time.perf_counter()
        measured = sampled(measured, rows, plan, ROWS, turn)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[_WARM:]), measured


def _groups(
    spark: SparkSession,
    stream: StoredStream,
    measured: StreamStatistics,
    keys: tuple[str, ...],
    seconds: int,
) -> Groups:
    last = spark.read.parquet(str(stream.paths()[-1]))
    fragment = F.floor(F.unix_seconds("dateTime") / seconds)
    fragments = last.groupBy(fragment.alias("fragment")).agg(
        F.count(F.lit(1)).alias("rows"), F.count_distinct(*keys).alias("groups")
    )
    full = sorted(fragments.collect())[1:-1]
    rows = statistics.fmean(row["rows"] for row in full)
    estimated = measured.groups([f"`{key}`" for key in keys], rows)
    counted = statistics.fmean(row["groups"] for row in full)
    return Groups(", ".join(keys), seconds, rows, estimated, counted)


def main(json: bool = False, work: Path | None = None) -> StatisticsReport:
    """Measure and print."""
    spark = session("weft bench statistics")
    with tempfile.TemporaryDirectory(prefix="weft-statistics-") as scratch:
        report = measure(spark, work or Path(scratch))
    console = Console()
    if json:
        console.print_json(data=asdict(report))
        return report
    for cost in report.costs:
        console.print(
            f"{cost.workload}: a step of {cost.rows:,} rows takes {cost.step:.2f} s, a sample "
            f"{cost.sample:.2f} s; {100 * cost.share:.1f} % at one in {Settings().statistics_every} "
            f"(limited to {100 * MOST_SHARE:.0f} %)"
        )
    table = Table(title="groups in a fragment")
    for heading in ("keys", "seconds", "rows", "estimated", "counted"):
        table.add_column(heading, justify="left" if heading == "keys" else "right")
    for group in report.groups:
        figures = (f"{value:,.0f}" for value in (group.rows, group.estimated, group.counted))
        table.add_row(group.keys, str(group.seconds), *figures)
    console.print(table)
    return report
