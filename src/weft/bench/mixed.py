"""``weft bench mixed``: windows, predicates and group-bys together, beside plain Spark and the floor.

Every comparison is a ratio measured in one run, as in ``weft bench windows``: same files, same
micro-batches, warm, all writes included. Plain Spark cannot run a thousand queries: it runs a few of
them, drawn evenly from those in which a row is in at most six windows, side by side; each has its own
scan and its own state, so the time of all is taken as the time of these, times how many more there
are. That leaves out what a thousand states would cost in memory, and the queries with up to 8640
windows per row, which it copies as often.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from weft.algebra.plan import Sharing
from weft.bench.measuring import loom
from weft.bench.measuring.measure import Measurement
from weft.bench.measuring.report import Comparison, Report, rate, render
from weft.bench.measuring.scratch import fresh
from weft.bench.measuring.session import cores, machine, session
from weft.bench.measuring.turns import Contender, Say, take_turns
from weft.bench.peers.floor import floor
from weft.bench.peers.plain_spark import plain_spark
from weft.bench.scale.benchmark import BATCHES, scale
from weft.optimizer.groupby.planner import plan_tree
from weft.optimizer.groupby.trees.statistics import GroupStatistics
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import WindowWeaving, assumed_groups
from weft.workloads.flows import ATTRIBUTES, PAIRS, RECORDS, flows
from weft.workloads.mixed import (
    FEW,
    MANY,
    Keys,
    NamedQuery,
    equality_rules,
    mixed_queries,
    range_rules,
    store_bids,
    store_records,
)
from weft.workloads.stored import StoredStream

MILLION = 1_000_000
QUERIES = 1000
MOST_OVERLAP = 6
"""Windows per row of the queries that plain Spark is given; a third of all have up to 8640."""


@dataclass(frozen=True)
class MixedOptions:
    """How much is run. A file of bids or records holds a million rows, one of flows an epoch."""

    rows_millions: int = 24
    batch_millions: int = 4
    many_millions: int = 4
    repeats: int = 3
    plain_queries: int = 4
    plain_batches: int = 1
    epochs: int = 2
    tasks: int | None = None
    """Tasks that Spark runs at a time; None: as many as there are cores."""
    work: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "weft-bench")

    def __post_init__(self) -> None:
        if self.rows_millions % self.batch_millions:
            raise ValueError("micro-batches must divide the rows evenly")


class MixedBench:
    """The parts of the benchmark, each measured when asked for, and kept."""

    def __init__(self, spark: SparkSession, options: MixedOptions, say: Say) -> None:
        self._spark, self._options, self._say = spark, options, say
        self._work = options.work
        self.measurements: list[Measurement] = []

    def mixed(self) -> list[Comparison]:
        """A thousand mixed queries with few keys: the floor, and plain Spark."""
        stream = self._bids(FEW, self._options.rows_millions)
        queries = mixed_queries(QUERIES)
        measured = self._take_turns(
            {"floor": self._floor, "weft": self._weft("weft, 1000 mixed queries", queries)}, stream
        )
        ours, lowest = measured["weft"], measured["floor"]
        plain = self._plain(queries, stream)
        return [
            Comparison(
                "1000 mixed queries against the floor",
                rate(ours),
                rate(lowest),
                ours.rows_per_second / lowest.rows_per_second,
                "at least",
                0.25,
            ),
            Comparison(
                "1000 mixed queries against plain Spark, extrapolated",
                rate(ours),
                f"{rate(plain)} (from {self._options.plain_queries} of them)",
                ours.rows_per_second / plain.rows_per_second,
                "at least",
                100,
            ),
        ]

    def overlap(self) -> list[Comparison]:
        """The thousand mixed queries with steps beside each other, and one after the other."""
        stream = self._bids(FEW, self._options.rows_millions)
        queries = mixed_queries(QUERIES)
        measured = self._take_turns(
            {
                "beside": self._weft("weft, steps beside each other", queries),
                "after": self._weft("weft, steps one after the other", queries, overlap=False),
            },
            stream,
        )
        beside, after = measured["beside"], measured["after"]
        ratio = beside.rows_per_second / after.rows_per_second
        name = "1000 mixed queries, steps beside each other"
        return [Comparison(name, rate(beside), f"one after the other: {rate(after)}", ratio)]

    def many(self) -> list[Comparison]:
        """The same with keys of high cardinality; no target."""
        stream = self._bids(MANY, self._options.many_millions)
        queries = mixed_queries(QUERIES, MANY)
        runs = {"floor": self._floor, "weft": self._weft("weft, 1000 mixed, many keys", queries)}
        measured = self._take_turns(runs, stream, repeats=1, warm=False)
        ours, lowest = measured["weft"], measured["floor"]
        ratio = ours.rows_per_second / lowest.rows_per_second
        name = "1000 mixed queries, many keys, against the floor"
        return [Comparison(name, rate(ours), rate(lowest), ratio)]

    def equality(self) -> list[Comparison]:
        """A thousand equality conditions on one attribute."""
        return [self._rules("1000 equality filters on one attribute", equality_rules(), 1.5)]

    def ranges(self) -> list[Comparison]:
        """A thousand range conditions on one attribute."""
        return [self._rules("1000 range filters on one attribute", range_rules(), 2)]

    def pairs(self) -> list[Comparison]:
        """The 78 pairs of flow attributes, beside Spark's GROUPING SETS over the same pairs."""
        stream = self._flows()
        queries = pair_queries()
        epochs = self._options.epochs
        measured = self._take_turns(
            {"weft": self._weft("weft, 78 pairs", queries, epochs), "sets": self._grouping_sets},
            stream,
            repeats=1,
        )
        ours, theirs = measured["weft"], measured["sets"]
        return [
            Comparison(
                "78 pair queries against GROUPING SETS",
                rate(ours),
                rate(theirs),
                ours.rows_per_second / theirs.rows_per_second,
                "at least",
                3,
            )
        ]

    def planning(self) -> list[Comparison]:
        """Planning a thousand mixed queries, and the tree of the 78 pairs by the FPTAS."""
        w, _ = loom.opened(
            self._spark,
            self._bids(FEW, self._options.rows_millions).open(self._spark, 1),
            mixed_queries(QUERIES),
            fresh(self._work / "planning"),
        )
        plan = w.plan("events")
        sharing = Sharing("best", "calibrated", rate=100_000.0, step=40.0, measured=True)
        weaving = WindowWeaving(sharing, assumed_groups(10))
        started = time.perf_counter()
        share(1, plan.stream, plan.queries, {}, weaving)
        planned = time.perf_counter() - started
        tree = self._fptas_seconds()
        return [
            Comparison(
                "planning 1000 mixed queries", f"{planned:.2f} s", "–", planned, "at most", 10, "s"
            ),
            Comparison(
                "FPTAS tree of the 78 pairs, ε = 0.05",
                f"{tree:.2f} s",
                "–",
                tree,
                "at most",
                10,
                "s",
            ),
        ]

    def scale(self) -> list[Comparison]:
        """A hundred thousand mixed queries beside a thousand, over the first millions of rows."""
        stream = self._bids(FEW, max(BATCHES + 1, self._options.rows_millions))
        comparisons, runs = scale(self._spark, stream, self._work, self._say)
        self.measurements += runs
        return comparisons

    def _fptas_seconds(self) -> float:
        table = flows(epochs=1)
        groups = {
            pair: len(table.select(sorted(pair)).group_by(sorted(pair)).aggregate([]))
            for pair in PAIRS
        }
        groups |= {
            frozenset({name}): len(table.group_by([name]).aggregate([])) for name in ATTRIBUTES
        }
        statistics = GroupStatistics(table.num_rows, {k: float(v) for k, v in groups.items()})
        started = time.perf_counter()
        plan_tree(PAIRS, statistics, 500_000, "fptas", 0.05)
        return time.perf_counter() - started

    def _rules(self, name: str, queries: Sequence[NamedQuery], target: float) -> Comparison:
        rows = self._options.rows_millions
        stream = store_records(self._spark, self._work / "records", rows * MILLION, rows)
        measured = self._take_turns(
            {
                "one": self._weft(f"weft, one of {name}", queries[:1]),
                "all": self._weft(f"weft, {name}", queries),
            },
            stream,
        )
        single, together = measured["one"], measured["all"]
        ratio = single.rows_per_second / together.rows_per_second
        title = f"{name}, against one: times slower"
        return Comparison(title, rate(together), f"one: {rate(single)}", ratio, "at most", target)

    def _bids(self, keys: Keys, millions: int) -> StoredStream:
        self._say(f"making {millions} million bids, {keys}")
        folder = self._work / f"bids-{keys.auctions}-{keys.bidders}-{keys.channels}"
        return store_bids(self._spark, folder, millions * MILLION, millions, keys)

    def _flows(self) -> StoredStream:
        """Flows as ordered Parquet files, an epoch each."""
        folder = self._work / f"flows-{self._options.epochs}"
        if not folder.exists():
            self._say(f"making {self._options.epochs} epochs of flows")
            writing = fresh(self._work / "flows-writing")
            table = flows(epochs=self._options.epochs)
            for epoch in range(self._options.epochs):
                part = table.slice(epoch * RECORDS, RECORDS)
                pq.write_table(part, writing / f"{epoch:06d}.parquet")
            writing.rename(folder)
        schema = self._spark.read.parquet(str(folder)).schema
        text = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in schema.fields)
        epochs = self._options.epochs
        return StoredStream(folder, "parquet", text, epochs * RECORDS, epochs)

    def _floor(self, stream: StoredStream) -> Measurement:
        return floor(self._spark, stream, self._options.batch_millions, self._work)

    def _weft(
        self,
        name: str,
        queries: Sequence[NamedQuery],
        files: int | None = None,
        **settings: Any,
    ) -> Contender:
        def run(stream: StoredStream) -> Measurement:
            source = stream.open(self._spark, files or self._options.batch_millions)
            return loom.shared(self._spark, source, queries, self._work, name, **settings)

        return run

    def _plain(self, queries: Sequence[NamedQuery], stream: StoredStream) -> Measurement:
        """A few of the queries in plain Spark; the measurement stands for all of them."""
        options = self._options
        light = [query for query in queries if query.overlap <= MOST_OVERLAP]
        step = len(light) // options.plain_queries
        chosen = light[step // 2 :: step][: options.plain_queries]
        self._say(f"plain Spark: {len(chosen)} of {len(queries)} queries")
        plain_spark(self._spark, stream.first(1), 1, chosen, self._work)
        beginning = stream.first(options.plain_batches * options.batch_millions)
        measured = plain_spark(self._spark, beginning, options.batch_millions, chosen, self._work)
        self.measurements.append(measured)
        times = len(queries) / len(chosen)
        return replace(
            measured,
            name=f"plain Spark, {len(queries)} queries, extrapolated",
            seconds=tuple(second * times for second in measured.seconds),
        )

    def _grouping_sets(self, stream: StoredStream) -> Measurement:
        """All pairs at once as one batch query, written to Parquet."""
        folder = fresh(self._work / "grouping-sets")
        started = time.perf_counter()
        rows = self._spark.read.schema(stream.schema).parquet(*map(str, stream.paths()))
        rows = rows.select(F.window("ts", "5 minutes").alias("window"), *ATTRIBUTES, "bytes")
        sets = [[F.col("window"), *map(F.col, sorted(pair))] for pair in PAIRS]
        aggregated = rows.groupingSets(sets, "window", *ATTRIBUTES).agg(
            F.grouping_id().alias("pair"), F.count("*").alias("n"), F.sum("bytes").alias("total")
        )
        aggregated.write.parquet(str(folder / "out"))
        seconds = time.perf_counter() - started
        return Measurement("Spark, GROUPING SETS of 78 pairs", stream.rows, (seconds,))

    def _take_turns(
        self,
        contenders: Mapping[str, Contender],
        stream: StoredStream,
        repeats: int | None = None,
        warm: bool = True,
    ) -> dict[str, Measurement]:
        """Let every contender read the whole stream once to warm up, as streams are that have run for a
        while; then let them take turns."""
        turns = repeats or self._options.repeats
        measured = take_turns(contenders, stream, turns, self._say, stream if warm else None)
        self.measurements += measured.values()
        return measured


def pair_queries() -> list[NamedQuery]:
    """A query for every pair of flow attributes."""
    return [
        NamedQuery(
            f"pair_{number}",
            f"SELECT {', '.join(sorted(pair))}, COUNT(*) AS n, SUM(bytes) AS total FROM events "
            f"GROUP BY {', '.join(sorted(pair))}, window(ts, '5 minutes')",
        )
        for number, pair in enumerate(PAIRS)
    ]


PARTS: Mapping[str, Callable[[MixedBench], list[Comparison]]] = {
    "planning": MixedBench.planning,
    "equality": MixedBench.equality,
    "ranges": MixedBench.ranges,
    "mixed": MixedBench.mixed,
    "overlap": MixedBench.overlap,
    "pairs": MixedBench.pairs,
    "many": MixedBench.many,
    "scale": MixedBench.scale,
}


def run(
    options: MixedOptions | None = None,
    only: Sequence[str] | None = None,
    say: Say = lambda _: None,
) -> Report:
    """Measure the parts (all, or those named in ``only``) and report."""
    options = options or MixedOptions()
    spark = session("weft bench mixed", tasks=options.tasks)
    bench = MixedBench(spark, options, say)
    comparisons: list[Comparison] = []
    for name, part in PARTS.items():
        if only is None or name in only:
            compared = part(bench)
            for comparison in compared:
                say(
                    f"= {comparison.name}: {comparison.weft} | {comparison.peer} | {comparison.shown_value}"
                )
            comparisons += compared
    return Report(
        title="weft bench mixed",
        machine=machine(spark),
        settings={
            "rows": options.rows_millions * MILLION,
            "rows per micro-batch": options.batch_millions * MILLION,
            "tasks at a time": options.tasks or cores(),
            "shuffle partitions": cores(),
            "turns": options.repeats,
        },
        comparisons=tuple(comparisons),
        measurements=tuple(bench.measurements),
    )


def main(
    json: bool = False,
    only: Sequence[str] | None = None,
    rows_millions: int = 24,
    work: Path | None = None,
    tasks: int | None = None,
) -> Report:
    """What the command does: progress on standard error, the report on standard output."""
    progress = Console(stderr=True)
    options = MixedOptions(rows_millions=rows_millions, tasks=tasks)
    if work is not None:
        options = replace(options, work=work)

    def say(line: str) -> None:
        progress.print(line, style="dim", highlight=False)

    report = run(options, only, say)
    if json:
        print(report.to_json())
    else:
        Console().print(render(report))
    return report
