"""What statistics cost on a running stream, and how good they are.

Nexmark's bids in micro-batches of a million rows, with group-bys over three sets of keys and twenty
predicates. Every micro-batch is sampled, to have many measurements; the cost at the usual rate is
that over `statistics_every`. The groups in a fragment, as the last statistics estimate them, stand
beside those that Spark counts in the fragments of the last micro-batch.
"""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

import weft
from weft.bench.scratch import fresh
from weft.bench.session import session
from weft.runtime.settings import Settings
from weft.stats import StreamStatistics
from weft.workloads.bids import WATERMARK, store_bids
from weft.workloads.stored import StoredStream

ROWS, BATCHES = 1_000_000, 7
RATE = 100_000
SECONDS = (1, 5)
SETS = (("auction",), ("bidder", "channel"), ("auction", "bidder"))
PREDICATES = 20
_WARM = 3


@dataclass(frozen=True)
class Groups:
    """Groups in a fragment: estimated, and counted by Spark."""

    keys: str
    seconds: int
    rows: float
    estimated: float
    counted: float


@dataclass(frozen=True)
class Report:
    """Medians over the steps after the first few, in seconds."""

    rows: int
    steps: int
    step_without: float
    sampling: float
    share_if_always: float
    share: float
    rate: float
    groups: tuple[Groups, ...]


def queries() -> dict[str, str]:
    """By name: every set of keys, and predicates of all kinds over the first."""
    found = {
        "_".join(keys): f"SELECT {', '.join(keys)}, COUNT(*) AS n, SUM(price) AS total FROM bids "
        f"GROUP BY window(dateTime, '10 seconds'), {', '.join(keys)}"
        for keys in SETS
    }
    for number in range(PREDICATES):
        condition = (
            f"channel = 'channel-{number}'"
            if number % 2
            else f"price BETWEEN {number} AND 10{number}"
        )
        found[f"p{number}"] = (
            f"SELECT auction, COUNT(*) AS n FROM bids WHERE {condition} "
            "GROUP BY window(dateTime, '10 seconds'), auction"
        )
    return found


def measure(spark: SparkSession, work: Path) -> Report:
    """Run the stream once and compare."""
    stream = store_bids(spark, work / "bids", ROWS * BATCHES, BATCHES, rate=RATE)
    w = weft.Weft(spark, fresh(work / "checkpoint"), statistics_every=1)
    w.add_stream("bids", stream.open(spark, 1), time="dateTime", watermark=WATERMARK)
    with w.changes():
        for name, sql in queries().items():
            w.register(name, sql)
    run = w.start(availableNow=True)
    run.awaitTermination()
    steps = [step for step in run.recentProgress if step["kind"] == "data"][_WARM:]
    sampling = statistics.median(step["durations"]["statistics"] for step in steps)
    without = statistics.median(step["seconds"] - step["durations"]["statistics"] for step in steps)
    known = w.statistics("bids")
    every = Settings().statistics_every
    return Report(
        rows=ROWS,
        steps=len(steps),
        step_without=without,
        sampling=sampling,
        share_if_always=sampling / without,
        share=sampling / without / every,
        rate=known.rate.value,
        groups=tuple(
            _groups(spark, stream, known, keys, seconds) for keys in SETS for seconds in SECONDS
        ),
    )


def _groups(
    spark: SparkSession,
    stream: StoredStream,
    known: StreamStatistics,
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
    estimated = known.groups([f"`{key}`" for key in keys], rows)
    counted = statistics.fmean(row["groups"] for row in full)
    return Groups(", ".join(keys), seconds, rows, estimated, counted)


def main(json: bool = False, work: Path | None = None) -> Report:
    """Measure and print."""
    spark = session("weft bench statistics")
    with tempfile.TemporaryDirectory(prefix="weft-statistics-") as scratch:
        found = measure(spark, work or Path(scratch))
    console = Console()
    if json:
        console.print_json(data=asdict(found))
        return found
    console.print(
        f"sampling a micro-batch of {found.rows:,} rows: {found.sampling:.2f} s beside "
        f"{found.step_without:.2f} s for the rest of its step, medians of {found.steps}; "
        f"at one in {Settings().statistics_every} that is {100 * found.share:.1f} %"
    )
    table = Table(title="groups in a fragment")
    for heading in ("keys", "seconds", "rows", "estimated", "counted"):
        table.add_column(heading, justify="left" if heading == "keys" else "right")
    for each in found.groups:
        figures = (f"{value:,.0f}" for value in (each.rows, each.estimated, each.counted))
        table.add_row(each.keys, str(each.seconds), *figures)
    console.print(table)
    return found
