"""Windows of many rows of which few match: late inputs joined by the query network, against joined anew at every instant, in whole runs.

Both have the same late plan and publish the same rows. Beside it runs nothing, or a join query with the same equality keys, which the network joins in any case. What is
compared is the rate of whole runs, and the seconds that the steps of aggregation joins and of the network took.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from weft.bench.aggjoin.whole import in_weft
from weft.bench.measuring.measure import Measurement, combine
from weft.workloads.aggjoin.queries import papers_query
from weft.workloads.aggjoin.stored import store_stream
from weft.workloads.aggjoin.streams import StreamShape
from weft.workloads.named import NamedSql
from weft.workloads.stored import StoredStream

WAYS = ("network", "instants")
JOINING = "joining"
"""The detail of a measurement with the seconds of all steps that join."""


@dataclass(frozen=True)
class Rarely:
    """Two streams of so many rows per second and join values, in files of some seconds, and the windows."""

    rate: int = 20_000
    join_values: int = 20_000_000
    files: int = 32
    seconds_of_file: int = 5
    window: int = 120

    @property
    def rows_of_window(self) -> int:
        return self.rate * self.window

    @property
    def matches(self) -> int:
        """Of two full windows."""
        return round(self.rows_of_window**2 / self.join_values)

    def streams(self, work: Path) -> list[StoredStream]:
        per_file = self.rate * self.seconds_of_file
        rows = per_file * self.files
        shapes = [StreamShape(self.rate, groups, self.join_values) for groups in (150, 1)]
        return [
            store_stream(
                work / f"aggjoin-rarely-{place}-{self.rate}-{rows}", shape, rows, per_file, place
            )
            for place, shape in enumerate(shapes)
        ]

    def queries(self, *, beside: bool) -> list[NamedSql]:
        every = self.seconds_of_file
        queries: list[NamedSql] = [papers_query([self.window] * 2, [True, False], every)]
        return [*queries, self.pairs] if beside else queries

    @property
    def pairs(self) -> NamedSql:
        """A join query with the same keys, which shows few rows."""
        return _Pairs(
            f"SELECT s0.j, s0.a, s1.a AS other FROM s0 JOIN s1 ON s0.j = s1.j AND s1.ts "
            f"BETWEEN s0.ts AND s0.ts + INTERVAL {self.window} SECONDS WHERE s0.a = 1 AND s1.a = 1"
        )


@dataclass(frozen=True)
class _Pairs:
    sql: str
    name: str = "pairs"


def measured(
    spark: SparkSession,
    sizes: Rarely,
    repeats: int,
    work: Path,
    say: Callable[[str], None],
    *,
    beside: bool,
) -> list[Measurement]:
    """Each way, in turns, after one run of each to warm up."""
    streams, queries = sizes.streams(work), sizes.queries(beside=beside)
    runs: dict[str, list[Measurement]] = {way: [] for way in WAYS}
    for turn in range(repeats + 1):
        for way in WAYS:
            run = _run(spark, streams, queries, work, way)
            joining = run.details[JOINING]
            say(f"{run.name}: {run.median_seconds:.1f} s, {joining:.2f} s of it joining")
            if turn:
                runs[way].append(run)
    results = {run.results for of_way in runs.values() for run in of_way}
    if len(results) != 1 or not results.pop():
        raise RuntimeError(f"the ways have different results: {runs}")
    return [_combined(of_way) for of_way in runs.values()]


def _combined(runs: Sequence[Measurement]) -> Measurement:
    together = combine(runs)
    joining = statistics.median(run.details[JOINING] for run in runs)
    return replace(together, details={**together.details, JOINING: joining})


def _run(
    spark: SparkSession,
    streams: Sequence[StoredStream],
    queries: Sequence[NamedSql],
    work: Path,
    way: str,
) -> Measurement:
    settings: dict[str, Any] = {"early": "none", "late_joins": way}
    name = f"late inputs joined {'by the network' if way == 'network' else 'at instants'}"
    name += ", a join query beside" if len(queries) > 1 else ""
    return in_weft(spark, streams, queries, work, name, **settings)
