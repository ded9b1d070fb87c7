"""What `weft bench aggjoin` measures: ratios in one run.

`fit` measures the kernel's constants of weft's costs at points drawn at random, and `choice` judges weft's choice of plans at all points of figures 4 and 5, in the kernel. `early` runs the paper's default queries in whole steps on Spark, late
and early, with rates and windows scaled up until the late plan's join is most of a step. `many` runs queries that differ in grouping
and selections over two streams, all in one weft, one of them in weft, and some of them alone on plain Spark; the time of all on Spark is the mean of these times
their number. Spark reads the first file of either stream. `finer` runs queries that drill down, with finer aggregation sets that serve coarser ones and without. `publish` measures
the constants of weft's costs that are no part of the kernel, and `unite` judges which queries join as one. `matches` joins late inputs in the query network and at instants.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console

from weft.bench.aggjoin.fitting import drawn, fitted
from weft.bench.aggjoin.matching import JOINING, Rarely
from weft.bench.aggjoin.matching import measured as matched
from weft.bench.aggjoin.points import NEAR, JudgedPoint, judged, papers_points
from weft.bench.aggjoin.publishing import Sizes, of_each_set, published
from weft.bench.aggjoin.uniting import best_test, losses
from weft.bench.aggjoin.uniting import measured as united
from weft.bench.aggjoin.whole import in_weft, on_spark, published_sets_of
from weft.bench.measuring.measure import Measurement, combine
from weft.bench.measuring.report import Comparison, Report, number, rate, render
from weft.bench.measuring.session import cores, machine, session
from weft.bench.measuring.turns import Say
from weft.bench.peers.in_full import sampled
from weft.experiments.aggjoin.kernel_run import PointKernel
from weft.experiments.aggjoin.on_spark.steps import Setting, stepped
from weft.experiments.aggjoin.parameters import Budget, Point
from weft.kernel.joinagg import together
from weft.optimizer.joinagg import published_sets, weft_cost
from weft.optimizer.joinagg.plans import Plan, all_plans, plan_name
from weft.optimizer.joinagg.statistics import InputStatistics
from weft.workloads.aggjoin.queries import WindowJoin, drilled, varied
from weft.workloads.aggjoin.stored import store_stream
from weft.workloads.aggjoin.streams import StreamShape
from weft.workloads.stored import StoredStream

TWO_WAY = Setting(
    (StreamShape(1200, 150, 10), StreamShape(1200, 1, 10)), seconds=30, every=10, warm=1, timed=3
)
"""The default setting of figure 4 with 4 times the rates and windows of 36,000 rows, 7.2 times the paper's."""
THREE_WAY = Setting(
    (StreamShape(1000, 20, 10), StreamShape(1000, 1, 10), StreamShape(1000, 1, 10)),
    seconds=3,
    every=1,
    warm=1,
    timed=3,
)
"""The default setting of figure 5 with 5 times the rates and windows of 3,000 rows, 10 times the paper's."""


@dataclass(frozen=True)
class AggJoinOptions:
    """How much is run."""

    factors: tuple[float, float] = (2, 3)
    """By which rates and windows of two-way and three-way points are multiplied in `choice`."""
    drawn: int = 60
    """Points that `fit` draws at random."""
    rounds: int = 80
    most_seconds: float = 0.4
    """A plan that has used up so many at a point is not run again."""
    uniting_rounds: int = 5
    publishing: Sizes = field(default_factory=Sizes)
    rarely: Rarely = field(default_factory=Rarely)
    selections: int = 3
    """Of the queries of `finer`, each with all groupings."""
    settings: tuple[Setting, ...] = (TWO_WAY, THREE_WAY)
    queries: int = 100
    shapes: tuple[StreamShape, ...] = (StreamShape(5000, 150, 100), StreamShape(5000, 20, 100))
    """Of the two streams of `many`: windows of 10 seconds have 50,000 rows, 500 of which match a row, as at the paper's defaults."""
    file_rows: int = 150_000
    files: int = 3
    spark_sample: int = 2
    repeats: int = 3
    work: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "weft-bench")


class AggJoinBench:
    """The parts of the benchmark."""

    def __init__(
        self, spark: Callable[[], SparkSession], options: AggJoinOptions, say: Say
    ) -> None:
        self._start_spark, self._options, self._say = spark, options, say
        self._work = options.work
        self.measurements: list[Measurement] = []

    @cached_property
    def _spark(self) -> SparkSession:
        return self._start_spark()

    def choice(self) -> list[Comparison]:
        """At how many points of figures 4 and 5 the chosen plan is as good as the best, within 10 %."""
        options = self._options
        points = papers_points(options.factors)
        self._say(f"kernel: {len(points)} points")
        found = self._judged(points)
        good = sum(point.good for point in found)
        losses = [point.loss for point in found]
        return [
            Comparison(
                f"points at which the chosen plan is the best or within 10 %, of {len(found)}",
                f"{good} points",
                f"{statistics.mean(losses):.1%} more than the best on average, {max(losses):.0%} at most",
                100 * good / len(found),
                "at least",
                95,
                "%",
            )
        ]

    def fit(self) -> list[Comparison]:
        """The kernel's constants in weft's costs, fitted to points that are not judged."""
        options = self._options
        points = drawn(options.drawn)
        self._say(f"kernel: {len(points)} points drawn at random")
        constants = fitted(self._judged(points))
        return [
            _constant(name, value, weft_cost.KERNEL.get(name)) for name, value in constants.items()
        ]

    def unite(self) -> list[Comparison]:
        """Queries with different selections as one join and one by one, and what the rule makes of it."""
        cases = united(self._options.uniting_rounds)
        lost = losses(cases)
        for case, loss in zip(cases, lost, strict=True):
            self._say(
                f"{case.queries} queries of {case.fraction:g}: as one {_milliseconds(case.together)}, "
                f"one by one {_milliseconds(case.alone)}; chosen {loss:.0%} more than the better"
            )
        near = sum(loss <= NEAR - 1 for loss in lost)
        return [
            Comparison(
                f"as one join or one by one: cases decided right or within 10 %, of {len(cases)}",
                f"{near} cases",
                f"{statistics.mean(lost):.1%} more than the better on average, {max(lost):.0%} at most",
                100 * near / len(cases),
                unit="%",
            ),
            _constant("TEST", best_test(cases), together.TEST, "of a join"),
        ]

    def publish(self) -> list[Comparison]:
        """What publishing panes and rows costs in whole runs, without the kernel."""
        options = self._options
        constants = published(
            self._spark, options.publishing, options.repeats, self._work, self._say
        )
        return [
            _constant(name, value, getattr(weft_cost, name)) for name, value in constants.items()
        ]

    def finer(self) -> list[Comparison]:
        """Queries that drill down: sets that serve several inputs, against every set published."""
        options = self._options
        queries = drilled(options.selections)
        ways = {"shared sets": True, "every set published": False}
        beginning = [stored.first(1) for stored in self._streams]
        runs: dict[str, list[Measurement]] = {name: [] for name in ways}
        for name, finer in ways.items():
            self._run(beginning, queries, f"warming up: {name}", finer_sets=finer)
        sets = dict.fromkeys(ways, 0)
        for _ in range(options.repeats):
            for name, finer in ways.items():
                runs[name].append(self._run(self._streams, queries, name, finer_sets=finer))
                sets[name] = published_sets_of(self._work)
        served, alone = (combine(measured) for measured in runs.values())
        self.measurements += [served, alone]
        few, many = sets.values()
        steps = served.batches or 1
        of_set = of_each_set(alone.seconds, served.seconds, many - few, steps)
        return [
            Comparison(
                f"{len(queries)} queries that drill down: {few} sets published, against {many}",
                rate(served),
                rate(alone),
                served.rows_per_second / alone.rows_per_second,
            ),
            _constant("PUBLISHED_SET", of_set, published_sets.PUBLISHED_SET),
        ]

    def matches(self) -> list[Comparison]:
        """Late inputs joined by the query network, against joined at every instant, where few rows match."""
        options, comparisons = self._options, []
        sizes = options.rarely
        self._say(
            f"windows of {sizes.rows_of_window:,} rows with {sizes.matches:,} matches, two streams"
        )
        for beside in (False, True):
            found, at_instants = matched(
                self._spark, sizes, options.repeats, self._work, self._say, beside=beside
            )
            self.measurements += [found, at_instants]
            case = "beside a join query" if beside else "alone"
            joining = [run.details[JOINING] for run in (found, at_instants)]
            comparisons += [
                Comparison(
                    f"late inputs joined by the network, against at instants, {case}: whole runs",
                    rate(found),
                    rate(at_instants),
                    found.rows_per_second / at_instants.rows_per_second,
                ),
                Comparison(
                    f"the same, {case}: seconds of the steps that join",
                    f"{joining[0]:.1f} s",
                    f"{joining[1]:.1f} s",
                    joining[1] / joining[0],
                ),
            ]
        return comparisons

    def _judged(self, points: Sequence[Point]) -> list[JudgedPoint]:
        found = []
        for point in judged(points, self._options.rounds, self._options.most_seconds):
            self._say(_told(point))
            found.append(point)
        return found

    def early(self) -> list[Comparison]:
        """The best early plan against the late one, in whole steps and in the kernel."""
        comparisons = []
        for setting, target in zip(self._options.settings, (5, 10), strict=True):
            ways = len(setting.shapes)
            late, *early = (self._stepped(setting, plan) for plan in all_plans(ways))
            best = min(early, key=lambda measured: measured.median_seconds)
            comparisons.append(
                Comparison(
                    f"the best early plan against the late one, {ways}-way, whole steps",
                    f"{best.name}: {_milliseconds(best.median_seconds)}",
                    _milliseconds(late.median_seconds),
                    late.median_seconds / best.median_seconds,
                    "at least",
                    target,
                )
            )
            comparisons.append(_in_kernel(setting))
        return comparisons

    def many(self) -> list[Comparison]:
        """Queries that differ, all in one weft, against one of them, and against each alone on plain Spark."""
        options = self._options
        queries = varied(options.queries)
        one = f"weft, {queries[0].name} alone"
        all_queries = f"weft, {len(queries)} aggregation joins"
        runs: dict[str, list[Measurement]] = {one: [], all_queries: []}
        beginning = [stored.first(1) for stored in self._streams]
        self._run(self._streams, queries, f"warming up: {all_queries}")
        self._run(self._streams, queries[:1], f"warming up: {one}")
        for _ in range(options.repeats):
            runs[one].append(self._run(self._streams, queries[:1], one))
            runs[all_queries].append(self._run(self._streams, queries, all_queries))
        single, many = combine(runs[one]), combine(runs[all_queries])
        self._say(f"{all_queries}: {_phases(runs[all_queries][-1])}")
        chosen = sampled(queries, options.spark_sample)
        alone = []
        for query in chosen:
            self._say(f"plain Spark: {query.name}")
            alone.append(on_spark(self._spark, beginning, query, self._work))
            self._say(f"plain Spark: {query.name}: {rate(alone[-1])}")
        self.measurements += [single, many, *alone]
        per_row = statistics.mean(run.median_seconds / run.rows for run in alone)
        on_spark_rate = 1 / (per_row * len(queries))
        return [
            Comparison(
                f"{len(queries)} aggregation joins against each alone on plain Spark, extrapolated",
                rate(many),
                f"{number(on_spark_rate)} rows/s (from {len(alone)} of them)",
                many.rows_per_second / on_spark_rate,
                "at least",
                50,
            ),
            Comparison(
                f"{len(queries)} aggregation joins against one: times slower",
                rate(many),
                f"one: {rate(single)}",
                single.rows_per_second / many.rows_per_second,
                "at most",
                3,
            ),
        ]

    @cached_property
    def _streams(self) -> list[StoredStream]:
        options = self._options
        rows = options.file_rows * options.files
        self._say(f"making two streams of {rows:,} rows")
        return [
            store_stream(
                self._work / f"aggjoin-many-{place}-{rows}", shape, rows, options.file_rows, place
            )
            for place, shape in enumerate(options.shapes)
        ]

    def _run(
        self,
        streams: Sequence[StoredStream],
        queries: Sequence[WindowJoin],
        name: str,
        **settings: Any,
    ) -> Measurement:
        measured = in_weft(self._spark, streams, queries, self._work, name, **settings)
        self._say(f"{name}: {rate(measured)}")
        return measured

    def _stepped(self, setting: Setting, plan: Plan) -> Measurement:
        name = f"weft, {len(plan)}-way, {plan_name(plan)}"
        self._say(name)
        measured = stepped(self._spark, setting, plan, self._work, name)
        self._say(f"{name}: {_milliseconds(measured.median_seconds)}")
        self.measurements.append(measured)
        return measured


def _in_kernel(setting: Setting) -> Comparison:
    """The same setting without Spark."""
    inputs = tuple(
        InputStatistics(
            shape.rate * setting.every,
            shape.rate * setting.seconds,
            shape.groups,
            1 / shape.join_values,
        )
        for shape in setting.shapes
    )
    kernel = PointKernel(Point("", 0, inputs), Budget(5, 0, 0, 0, seconds=1), seed=1)
    for _ in range(5):
        kernel.round()
    late, *early = kernel.runs
    best = min(early, key=lambda run: run.seconds)
    return Comparison(
        f"the same in the kernel, {len(inputs)}-way",
        f"{plan_name(best.plan)}: {best.seconds * 1000:.1f} ms",
        _milliseconds(late.seconds),
        late.seconds / best.seconds,
    )


def _constant(name: str, found: float, used: float | None, unit: str = "µs") -> Comparison:
    """A constant as it was measured now, beside the one in use."""
    in_use = "not in use" if used is None else f"{used:g} {unit} in use"
    return Comparison(
        f"constant {name}",
        f"{found:.3g} {unit}",
        in_use,
        found / used if used else None,
        reason="not in use",
    )


def _told(point: JudgedPoint) -> str:
    times = ", ".join(f"{plan_name(p)} {s * 1000:.2f} ms" for p, s in point.seconds.items())
    return f"{point.point.label}: chosen {plan_name(point.chosen)}, {point.loss:.0%} more; {times}"


def _phases(measured: Measurement) -> str:
    """Where the time went, the most first."""
    spent = sorted(measured.details.items(), key=lambda phase: -phase[1])[:12]
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


PARTS: Mapping[str, Callable[[AggJoinBench], list[Comparison]]] = {
    "fit": AggJoinBench.fit,
    "choice": AggJoinBench.choice,
    "unite": AggJoinBench.unite,
    "early": AggJoinBench.early,
    "many": AggJoinBench.many,
    "finer": AggJoinBench.finer,
    "publish": AggJoinBench.publish,
    "matches": AggJoinBench.matches,
}


def run(
    options: AggJoinOptions | None = None,
    only: Sequence[str] | None = None,
    say: Say = lambda _: None,
) -> Report:
    """Measure the parts (all, or those named in `only`) and report."""
    options = options or AggJoinOptions()
    sessions: list[SparkSession] = []

    def spark() -> SparkSession:
        sessions.append(session("weft bench aggjoin", heap="4g"))
        return sessions[0]

    bench = AggJoinBench(spark, options, say)
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
    return Report(
        title="weft bench aggjoin",
        machine=machine(sessions[0] if sessions else None),
        settings={
            "factors of two-way and three-way points": " and ".join(
                f"{f:g}" for f in options.factors
            ),
            "aggregation joins": options.queries,
            "rows of a stream": options.file_rows * options.files,
            "shuffle partitions": cores(),
        },
        comparisons=tuple(comparisons),
        measurements=tuple(bench.measurements),
    )


def main(json: bool = False, only: Sequence[str] | None = None, work: Path | None = None) -> Report:
    """What the command does: progress on standard error, the report on standard output."""
    progress = Console(stderr=True)
    options = AggJoinOptions()
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
