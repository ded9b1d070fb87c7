"""What `weft bench network` measures: ratios in one run.

Whole steps (`fed`, `floor`, `alone`) are those of `steps`: an increment of 4,000 transfers on 300,000.
Queries in full are run on a random sample, and the time of all is the mean of these times their number;
the same goes for queries that run incrementally but alone. `no-join-sharing` and `scaling` compare
networks in the kernel, without Spark and files, which would hide the difference.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console

import weft
from weft.bench.measuring import loom
from weft.bench.measuring.measure import Measurement, combine
from weft.bench.measuring.report import Comparison, Report, number, rate, render
from weft.bench.measuring.scratch import fresh
from weft.bench.measuring.session import cores, machine, session
from weft.bench.measuring.turns import Contender, Say, take_turns
from weft.bench.network.kernel import fed_inputs, grown
from weft.bench.network.lookups import addition_chart, additions
from weft.bench.network.steps import Increments, in_full_on_spark, stepped
from weft.bench.peers.in_full import InFull, available, sampled
from weft.catalog.store import Catalog
from weft.experiments.argus.inputs import bound
from weft.experiments.argus.run import estimate_of
from weft.optimizer.network.options import Options
from weft.workloads.categories import JoinSql
from weft.workloads.fed import queries as fed
from weft.workloads.fed.rules import filter_rules
from weft.workloads.fed.stream import (
    HISTORY,
    INCREMENT,
    STREAM,
    TIME,
    WATERMARK,
    store_transfers,
    transfers,
)
from weft.workloads.named import NamedSql
from weft.workloads.stored import StoredStream

FED_INCREMENTS = Increments(HISTORY, INCREMENT, warm=4, timed=10)


@dataclass(frozen=True)
class NetworkOptions:
    """How much is run."""

    queries: int = fed.QUERIES
    increments: Increments = FED_INCREMENTS
    spark_sample: int = 24
    duckdb_sample: int = 96
    alone_sample: int = 6
    scaling: tuple[int, ...] = (100, 300, 768, 10_000)
    lookups: tuple[int, ...] = (100, 300, 768, 1500, 3000, 5000, 7500, 10_000)
    rules: int = 1000
    rule_rows: int = 4_000_000
    rule_files: int = 8
    repeats: int = 3
    work: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "weft-bench")


class NetworkBench:
    """The parts of the benchmark, each measured when asked for, and kept."""

    def __init__(self, spark: SparkSession, options: NetworkOptions, say: Say) -> None:
        self._spark, self._options, self._say = spark, options, say
        self._work = options.work
        self.measurements: list[Measurement] = []

    @cached_property
    def _stored(self) -> StoredStream:
        rows = self._options.increments.rows
        self._say(f"making {rows:,} transfers")
        per_file = self._options.increments.increment
        return store_transfers(self._work / f"transfers-{rows}", 1, rows, per_file)

    @cached_property
    def _queries(self) -> list[JoinSql]:
        return fed.queries(self._options.queries)

    @cached_property
    def _turns(self) -> tuple[Measurement, Measurement]:
        """All queries in one weft, and the floor: they take turns, so that a busy moment of the machine
        hits both."""
        runs = [
            self._stepped(name, queries)
            for _ in range(self._options.repeats)
            for name, queries in (
                (f"weft, {len(self._queries)} join queries", self._queries),
                ("floor: weft without queries", []),
            )
        ]
        shared, lowest = combine(runs[::2]), combine(runs[1::2])
        self.measurements += [shared, lowest]
        return shared, lowest

    @property
    def _shared(self) -> Measurement:
        return self._turns[0]

    def fed(self) -> list[Comparison]:
        """An increment with all queries; no target of its own."""
        ours = self._shared
        return [
            Comparison(
                f"{len(self._queries)} join queries, an increment",
                _milliseconds(ours),
                f"{number(ours.results or 0)} results",
                ours.median_seconds * 1000,
                unit="ms",
            )
        ]

    def floor(self) -> list[Comparison]:
        """The same increments, read and committed with no query."""
        lowest = self._turns[1]
        ratio = self._shared.median_seconds / lowest.median_seconds
        return [
            Comparison(
                "an increment against reading and committing it: times slower",
                _milliseconds(self._shared),
                _milliseconds(lowest),
                ratio,
                "at most",
                3,
            )
        ]

    def baseline_spark(self) -> list[Comparison]:
        """Every query in full over all rows, on Spark."""
        chosen = sampled(self._queries, self._options.spark_sample)
        self._say(f"Spark: {len(chosen)} of {len(self._queries)} queries in full")
        each = in_full_on_spark(self._spark, self._stored, chosen, self._full_rows)
        self.measurements.append(each)
        return [self._against("every query in full on Spark", each, len(chosen), 1000)]

    def baseline_duckdb(self) -> list[Comparison]:
        """Every query in full over all rows, on DuckDB."""
        name = "every query in full on DuckDB"
        if not available():
            return [
                Comparison(name, "", "", None, "at least", 10, reason="DuckDB is not installed")
            ]
        chosen = sampled(self._queries, self._options.duckdb_sample)
        self._say(f"DuckDB: {len(chosen)} of {len(self._queries)} queries in full")
        rows = transfers(records=self._options.increments.rows).slice(0, self._full_rows)
        database = InFull(STREAM, rows, cores())
        database.run(chosen[0])
        mean = statistics.mean(database.run(query).seconds for query in chosen)
        each = Measurement(f"DuckDB, mean of {len(chosen)}", self._full_rows, (mean,))
        self.measurements.append(each)
        return [self._against(name, each, len(chosen), 10)]

    def alone(self) -> list[Comparison]:
        """Each query incremental, in a weft of its own."""
        chosen = sampled(self._queries, self._options.alone_sample)
        runs = [self._stepped(f"weft, {query.name} alone", [query]) for query in chosen]
        self.measurements += runs
        mean = statistics.mean(run.median_seconds for run in runs)
        each = Measurement(f"weft, alone, mean of {len(chosen)}", INCREMENT, (mean,))
        return [self._against("each query incremental but alone in weft", each, len(chosen), 20)]

    def no_join_sharing(self) -> list[Comparison]:
        """The kernel's time with and without sharing of joins."""
        increments = self._options.increments
        given = fed_inputs(
            self._queries, increments.history, increments.increment, increments.timed
        )
        self._say("kernel: all sharing")
        shared = grown(given, Options())
        self._say("kernel: no join sharing")
        unshared = grown(given, Options(share_joins=False), by_node=True)
        if shared.executed.results != unshared.executed.results:
            raise RuntimeError("sharing of joins has changed the results")
        ratio = unshared.executed.seconds_per_increment / shared.executed.seconds_per_increment
        return [
            Comparison(
                "all sharing against no join sharing, in the kernel",
                f"{shared.executed.seconds_per_increment * 1000:.1f} ms, "
                f"{shared.executed.physical_joins} physical joins",
                f"{unshared.executed.seconds_per_increment * 1000:.1f} ms, "
                f"{unshared.executed.physical_joins} physical joins",
                ratio,
                "at least",
                5,
            )
        ]

    def scaling(self) -> list[Comparison]:
        """The kernel's time by number of queries, made by varying constants."""
        increments = self._options.increments
        comparisons: list[Comparison] = []
        first: float | None = None
        for count in self._options.scaling:
            self._say(f"kernel: {count} queries")
            given = fed_inputs(
                fed.varied(count), increments.history, increments.increment, increments.timed
            )
            network = grown(given, Options())
            seconds = network.executed.seconds_per_increment
            first = seconds if first is None else first
            comparisons.append(
                Comparison(
                    f"{count} queries against {self._options.scaling[0]}: times the work of a step",
                    f"{seconds * 1000:.1f} ms, {network.joins} joins, "
                    f"{network.executed.physical_joins} physical joins, "
                    f"{network.executed.results // increments.timed:,} results",
                    f"{count / self._options.scaling[0]:.1f} times the queries",
                    seconds / first,
                )
            )
        return comparisons

    def rules(self) -> list[Comparison]:
        """Filter-and-route rules on one stream, against one of them."""
        options = self._options
        rows, per_file = options.rule_rows, options.rule_rows // options.rule_files
        self._say(f"making {rows:,} transfers")
        stored = store_transfers(self._work / f"rules-{rows}", 2, rows, per_file)
        rules = filter_rules(options.rules)
        measured = take_turns(
            {
                "one": self._filtering("weft, one rule", rules[:1]),
                "all": self._filtering(f"weft, {len(rules)} rules", rules),
            },
            stored,
            options.repeats,
            self._say,
            stored,
        )
        self.measurements += measured.values()
        one, many = measured["one"], measured["all"]
        return [
            Comparison(
                f"{len(rules)} filter-and-route rules against one",
                rate(many),
                f"one: {rate(one)}",
                many.rows_per_second / one.rows_per_second,
                "at least",
                0.5,
            )
        ]

    def register(self) -> list[Comparison]:
        """Registering all queries, and the time to add one by the size of the network."""
        bound_seconds, planned_seconds = self._registered()
        seconds = bound_seconds + planned_seconds
        sizes = self._options.lookups
        given = fed_inputs(fed.varied(max(sizes)), 20_000, INCREMENT, 1)
        self._say(f"binding {max(sizes)} queries")
        queries = bound(given.queries, given.schema)
        self._say(f"adding {max(sizes)} queries")
        catalog = Catalog(f"sqlite:///{fresh(self._work / 'lookups') / 'catalog.db'}")
        points = additions(queries, given.schema, catalog.network(), estimate_of(given), sizes)
        catalog.close()
        chart = addition_chart(points)
        for suffix in ("svg", "png"):
            chart.save(self._work / f"bench-network-register.{suffix}")
        slow = points[-1].seconds / points[0].seconds
        growth = points[-1].nodes / points[0].nodes
        return [
            Comparison(
                f"registering {len(self._queries)} queries",
                f"{bound_seconds:.1f} s to bind, {planned_seconds:.1f} s to make the network",
                "–",
                seconds,
                "at most",
                15,
                "s",
            ),
            Comparison(
                f"adding a query to {sizes[-1]} queries against {sizes[0]}: times slower",
                f"{points[-1].seconds * 1000:.1f} ms, {points[-1].nodes} nodes",
                f"{points[0].seconds * 1000:.1f} ms, {points[0].nodes} nodes",
                slow,
                "at most",
                growth,
            ),
        ]

    def _registered(self) -> tuple[float, float]:
        """Seconds to bind all queries, and to make their network, which is done by the first step."""
        with weft.Weft(self._spark, checkpoint=str(fresh(self._work / "registering"))) as w:
            source = self._stored.first(1).open(self._spark, 1)
            w.add_stream(STREAM, source, time=TIME, watermark=WATERMARK)
            bound_seconds = loom.register(w, self._queries)
            running = w.start(availableNow=True)
            running.awaitTermination()
            steps = running.recentProgress
        return bound_seconds, sum(step["durations"].get("planning", 0.0) for step in steps)

    @property
    def _full_rows(self) -> int:
        """History and one increment: what a query in full reads for each increment."""
        return self._options.increments.history + self._options.increments.increment

    def _against(self, name: str, each: Measurement, measured: int, target: float) -> Comparison:
        """The shared network beside all queries at the mean time of some."""
        count = len(self._queries)
        seconds = each.median_seconds * count
        return Comparison(
            f"an increment, {count} queries shared, against {name}, extrapolated",
            _milliseconds(self._shared),
            f"{number(seconds)} s (from {measured} of them)",
            seconds / self._shared.median_seconds,
            "at least",
            target,
        )

    def _stepped(self, name: str, queries: Sequence[NamedSql]) -> Measurement:
        self._say(name)
        measured = stepped(
            self._spark, self._stored, queries, self._options.increments, self._work, name
        )
        self._say(f"{name}: {_milliseconds(measured)}")
        return measured

    def _filtering(self, name: str, rules: Sequence[NamedSql]) -> Contender:
        def run(stored: StoredStream) -> Measurement:
            with weft.Weft(self._spark, checkpoint=str(fresh(self._work / "weft"))) as w:
                source = stored.open(self._spark, 1)
                w.add_stream(STREAM, source, time=TIME, watermark=WATERMARK)
                loom.register(w, rules)
                return loom.measured(self._spark, w, name, STREAM)

        return run


def _milliseconds(measurement: Measurement) -> str:
    return f"{measurement.median_seconds * 1000:.0f} ms"


PARTS: Mapping[str, Callable[[NetworkBench], list[Comparison]]] = {
    "fed": NetworkBench.fed,
    "floor": NetworkBench.floor,
    "baseline-spark": NetworkBench.baseline_spark,
    "baseline-duckdb": NetworkBench.baseline_duckdb,
    "alone": NetworkBench.alone,
    "no-join-sharing": NetworkBench.no_join_sharing,
    "scaling": NetworkBench.scaling,
    "rules": NetworkBench.rules,
    "register": NetworkBench.register,
}


def run(
    options: NetworkOptions | None = None,
    only: Sequence[str] | None = None,
    say: Say = lambda _: None,
) -> Report:
    """Measure the parts (all, or those named in `only`) and report."""
    options = options or NetworkOptions()
    spark = session("weft bench network", heap="4g")
    bench = NetworkBench(spark, options, say)
    comparisons: list[Comparison] = []
    for name, part in PARTS.items():
        if only is None or name in only:
            compared = part(bench)
            for comparison in compared:
                say(
                    f"= {comparison.name}: {comparison.weft} | {comparison.peer} | "
                    f"{comparison.shown_value}"
                )
            comparisons += compared
    increments = options.increments
    return Report(
        title="weft bench network",
        machine=machine(spark),
        settings={
            "join queries": options.queries,
            "rows of history": increments.history,
            "rows of an increment": increments.increment,
            "increments": increments.timed,
            "shuffle partitions": cores(),
        },
        comparisons=tuple(comparisons),
        measurements=tuple(bench.measurements),
    )


def main(json: bool = False, only: Sequence[str] | None = None, work: Path | None = None) -> Report:
    """What the command does: progress on standard error, the report on standard output."""
    progress = Console(stderr=True)
    options = NetworkOptions()
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
