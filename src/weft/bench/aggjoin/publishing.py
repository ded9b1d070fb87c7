"""What it costs in whole runs to publish what aggregation joins read: constants of weft's costs (`optimizer/joinagg/weft_cost`, `runtime/joinagg/serving`).

Two streams run to their end, with few and with many rows; the difference of both, by row, is without what every run costs. The kernel's own seconds are
taken out: they are fitted elsewhere (`fitting`). What remains of a row is

    AGGREGATED            by a plan that is all early, if nearly all rows have the keys of others
    AGGREGATED + ENTRY    by the same plan, if all rows have keys of their own: then each is an entry of its pane
    ROW                   by a plan that is all late

All three include reading the row from its file, which every plan does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from weft.bench.aggjoin.whole import in_weft
from weft.bench.measuring.measure import Measurement
from weft.workloads.aggjoin.queries import papers_query
from weft.workloads.aggjoin.stored import store_stream
from weft.workloads.aggjoin.streams import StreamShape

RATE: Final = 50_000
"""Rows per second of event time: a window and a pane is one second."""
_NONE_JOINS: Final = 5_000_000
"""So many join values that rows have keys of their own, and few of a window join."""


@dataclass(frozen=True)
class Way:
    """How rows are published: with few or many keys, early or late."""

    name: str
    join_values: int
    early: str


WAYS: Final = (
    Way("AGGREGATED", 10, "all"),
    Way("AGGREGATED + ENTRY", _NONE_JOINS, "all"),
    Way("ROW", _NONE_JOINS, "none"),
)


@dataclass(frozen=True)
class Sizes:
    """Rows of a file, and files of the short and of the long run."""

    file_rows: int = 250_000
    few: int = 2
    many: int = 8


def ran(
    spark: SparkSession, way: Way, sizes: Sizes, files: int, work: Path, say: Callable[[str], None]
) -> float:
    """The seconds of a run without those of the kernel."""
    rows = sizes.file_rows * sizes.many
    streams = [
        store_stream(
            work / f"aggjoin-publish-{way.join_values}-{number}-{rows}",
            StreamShape(RATE, 1, way.join_values),
            rows,
            sizes.file_rows,
            number,
        ).first(files)
        for number in range(2)
    ]
    query = papers_query([1, 1], [False, False], every=1)
    name = f"publishing, {way.name}: {files} files"
    measured = in_weft(spark, streams, [query], work, name, early=way.early)
    seconds = measured.median_seconds - _kernel(measured)
    say(f"{name}: {seconds:.2f} s without the kernel's {_kernel(measured):.2f}")
    return seconds


def _kernel(measured: Measurement) -> float:
    return float(measured.details.get("@aggjoin kernel", 0.0))


def published(
    spark: SparkSession, sizes: Sizes, turns: int, work: Path, say: Callable[[str], None]
) -> dict[str, float]:
    """The constants in microseconds: of all turns the least seconds of each run count."""
    ran(spark, WAYS[0], sizes, sizes.few, work, say)  # a warm-up
    seconds: dict[tuple[str, int], list[float]] = {}
    for _ in range(turns):
        for way in WAYS:
            for files in (sizes.few, sizes.many):
                times = seconds.setdefault((way.name, files), [])
                times.append(ran(spark, way, sizes, files, work, say))
    more = 2 * sizes.file_rows * (sizes.many - sizes.few)
    least = {key: min(times) for key, times in seconds.items()}
    by_row = {w.name: (least[w.name, sizes.many] - least[w.name, sizes.few]) / more for w in WAYS}
    return constants({name: value * 1e6 for name, value in by_row.items()})


def constants(by_row: Mapping[str, float]) -> dict[str, float]:
    """The constants, from the microseconds of a row by each way.

    >>> constants({"AGGREGATED": 0.5, "AGGREGATED + ENTRY": 2.0, "ROW": 1.0})
    {'AGGREGATED': 0.5, 'ENTRY': 1.5, 'ROW': 1.0}
    """
    aggregated = by_row["AGGREGATED"]
    entry = by_row["AGGREGATED + ENTRY"] - aggregated
    return {"AGGREGATED": aggregated, "ENTRY": entry, "ROW": by_row["ROW"]}


def of_each_set(
    alone: Sequence[float], served: Sequence[float], sets_less: int, steps: int
) -> float:
    """Microseconds of a step for one more published set, from the seconds of runs that publish every set and of runs that publish few.

    >>> of_each_set([5.0, 4.0], [3.0, 2.0], sets_less=10, steps=4)
    50000.0
    """
    return (min(alone) - min(served)) / (sets_less * steps) * 1e6
