"""``weft bench windows``: hundreds of window queries beside plain Spark, the floor and Flink.

Every comparison is a ratio measured in one run: same Parquet files, same micro-batches, warm, all
writes included, shuffle partitions equal to the cores for all. ``weft.bench.measuring.measure`` says how
seconds are taken. Runs that are compared closely (weft against the floor, the points of a sweep)
take turns several times and the median counts, so that a busy moment hits all of them. Slow peers
get fewer micro-batches of the same size: their rate per second is what is compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

import weft
from weft.bench.first_result import time_to_first_result
from weft.bench.measuring import loom
from weft.bench.measuring.measure import Measurement
from weft.bench.measuring.report import Comparison, Report, number, rate, render
from weft.bench.measuring.scratch import fresh
from weft.bench.measuring.session import cores, machine, session
from weft.bench.measuring.turns import Contender, Say, take_turns
from weft.bench.peers.flink import FlinkUnavailableError, flink, flink_folder, install
from weft.bench.peers.floor import floor
from weft.bench.peers.plain_spark import plain_spark
from weft.workloads.events import RATE, store_events, store_events_csv
from weft.workloads.stored import StoredStream
from weft.workloads.windows import (
    HOUR_BY_MINUTE,
    WINDOW_COUNTS,
    WindowQuery,
    hundred_hopping,
    random_tumbling,
    slide_sweep,
    ten_sliding,
    thousand_sliding,
)

MILLION = 1_000_000


@dataclass(frozen=True)
class WindowsOptions:
    """How much is run. A file holds a million rows."""

    rows_millions: int = 48
    batch_millions: int = 4
    repeats: int = 3
    plain_one_batches: int = 3
    plain_ten_batches: int = 3
    csv_millions: int = 12
    flink_short_rows: int = 500_000
    flink_long_rows: int = 2_500_000
    flink: bool = True
    flink_folder: Path = field(default_factory=flink_folder)
    work: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "weft-bench")

    def __post_init__(self) -> None:
        if self.rows_millions % self.batch_millions:
            raise ValueError("micro-batches must divide the rows evenly")


class WindowBench:
    """The parts of the benchmark, each measured when asked for, and kept."""

    def __init__(self, spark: SparkSession, options: WindowsOptions, say: Say) -> None:
        self._spark, self._options, self._say = spark, options, say
        self._work = options.work
        self.measurements: list[Measurement] = []
        say(f"making {options.rows_millions} million events")
        self._stream = store_events(
            spark,
            self._work / "events",
            options.rows_millions * MILLION,
            options.rows_millions,
        )

    def plain_one(self) -> list[Comparison]:
        """One sliding query of plain Spark."""
        return [
            self._against_plain(
                "one query, 1 h / 1 min", [HOUR_BY_MINUTE], self._options.plain_one_batches, 20
            )
        ]

    def plain_ten(self) -> list[Comparison]:
        """Ten sliding queries of plain Spark, side by side."""
        queries = ten_sliding()
        overlap = sum(query.window.overlap for query in queries)
        name = f"ten sliding queries, Σ range/slide = {overlap:.0f}"
        return [self._against_plain(name, queries, self._options.plain_ten_batches, 100)]

    def floor(self) -> list[Comparison]:
        """One scan with a count; weft with 1 and with 1000 queries."""
        thousand = thousand_sliding()
        contenders: dict[str, Contender] = {
            "floor": lambda stream: floor(
                self._spark, stream, self._options.batch_millions, self._work
            ),
            "one": self._weft("weft, 1 sliding query", thousand[:1]),
            "thousand": self._weft("weft, 1000 sliding queries", thousand),
        }
        measured = self._take_turns(contenders)
        lowest, one, many = measured["floor"], measured["one"], measured["thousand"]
        return [
            Comparison(
                "1000 window queries against the floor",
                rate(many),
                rate(lowest),
                many.rows_per_second / lowest.rows_per_second,
                "at least",
                0.5,
            ),
            Comparison(
                "1000 window queries against one: times slower",
                rate(many),
                f"weft, one: {rate(one)}",
                one.rows_per_second / many.rows_per_second,
                "at most",
                2,
            ),
        ]

    def slides(self) -> list[Comparison]:
        """A 60 s window with ever shorter slides."""
        contenders = {
            query.name: self._weft(f"weft, 60 s / {query.window.slide / 1000:g} s", [query])
            for query in slide_sweep()
        }
        return [self._flatness("slide sweep, 60 s window: fastest / slowest", contenders)]

    def counts(self) -> list[Comparison]:
        """More and more tumbling windows."""
        contenders = {
            str(count): self._weft(f"weft, {count} tumbling of 1–20 s", random_tumbling(count))
            for count in WINDOW_COUNTS
        }
        return [self._flatness("window count sweep, 1 to 1000: fastest / slowest", contenders)]

    def milliseconds(self) -> list[Comparison]:
        """The window count sweep with lengths in milliseconds: almost no two windows alike."""
        contenders = {
            str(count): self._weft(
                f"weft, {count} tumbling of 1–20 s, any millisecond",
                random_tumbling(count, step=1),
            )
            for count in WINDOW_COUNTS
        }
        name = "window count sweep, any millisecond: fastest / slowest"
        return [self._flatness(name, contenders, target=None)]

    def flink(self) -> list[Comparison]:
        """A hundred distinct sliding windows of Flink on the same CSV."""
        options = self._options
        name = "100 distinct sliding windows on CSV, against Flink"
        queries = hundred_hopping()
        csv = store_events_csv(
            self._spark,
            self._work / "events-csv",
            options.csv_millions * MILLION,
            options.csv_millions,
        )

        def run(stream: StoredStream) -> Measurement:
            source = _timestamped(stream.open(self._spark, options.batch_millions))
            label = "weft, 100 sliding windows, CSV"
            return loom.shared(self._spark, source, queries, self._work, label)

        ours = self._take_turns({"weft": run}, csv)["weft"]
        if not options.flink:
            return [_unmeasured(name, rate(ours), "switched off", 10)]
        try:
            self._say("Flink: preparing its environment")
            interpreter = install(options.flink_folder)
            self._say("Flink: 100 sliding windows, twice")
            theirs = flink(
                interpreter,
                self._for_flink(options.flink_short_rows),
                self._for_flink(options.flink_long_rows),
                queries,
                self._work,
            )
        except FlinkUnavailableError as reason:
            return [_unmeasured(name, rate(ours), str(reason), 10)]
        self.measurements.append(theirs)
        ratio = ours.rows_per_second / theirs.rows_per_second
        return [Comparison(name, rate(ours), rate(theirs), ratio, "at least", 10)]

    def register(self) -> list[Comparison]:
        """Registering a thousand queries in a new checkpoint."""
        seconds = []
        for turn in range(self._options.repeats + 1):
            self._say(f"registering 1000 queries, turn {turn}")
            w = weft.Weft(self._spark, checkpoint=str(fresh(self._work / "register")))
            source = self._stream.open(self._spark, self._options.batch_millions)
            w.add_stream("events", source, time="ts", watermark="10 seconds")
            seconds.append(loom.register(w, thousand_sliding()))
        worst = max(seconds)
        shown = f"{worst:.2f} s"
        return [Comparison("registering 1000 queries", shown, "–", worst, "at most", 5, unit="s")]

    def start(self) -> list[Comparison]:
        """From a new process to its first result."""
        stream, size = self._stream.first(8), min(2, self._options.batch_millions)
        self._say("first result of a new process: plain Spark, 1 query")
        plain = time_to_first_result(stream, size, 1, engine="plain")
        self.measurements.append(plain)
        comparisons = []
        for count in (1, 1000):
            self._say(f"first result of a new process, {count} queries")
            measured = time_to_first_result(stream, size, count)
            self.measurements.append(measured)
            seconds = measured.median_seconds
            comparisons.append(
                Comparison(
                    f"first result of a new process, {count} quer{'y' if count == 1 else 'ies'}",
                    f"{seconds:.1f} s",
                    f"plain Spark, one query: {plain.median_seconds:.1f} s",
                    seconds,
                    "at most",
                    15,
                    unit="s",
                )
            )
        return comparisons

    def _against_plain(
        self, name: str, queries: Sequence[WindowQuery], batches: int, target: float
    ) -> Comparison:
        size = self._options.batch_millions
        self._say(f"plain Spark: {name}")
        plain_spark(self._spark, self._stream.first(1), 1, queries, self._work)
        stream = self._stream.first(batches * size)
        theirs = plain_spark(self._spark, stream, size, queries, self._work)
        self.measurements.append(theirs)
        ours = self._take_turns({"weft": self._weft(f"weft, {name}", queries)})["weft"]
        ratio = ours.rows_per_second / theirs.rows_per_second
        title = f"{name}, against plain Spark"
        return Comparison(title, rate(ours), rate(theirs), ratio, "at least", target)

    def _weft(self, name: str, queries: Sequence[WindowQuery]) -> Contender:
        def run(stream: StoredStream) -> Measurement:
            source = stream.open(self._spark, self._options.batch_millions)
            return loom.shared(self._spark, source, queries, self._work, name)

        return run

    def _take_turns(
        self,
        contenders: Mapping[str, Contender],
        stream: StoredStream | None = None,
    ) -> dict[str, Measurement]:
        """Warm up every contender, then let them take turns."""
        stream = stream or self._stream
        beginning = stream.first(min(stream.files, 2 * self._options.batch_millions))
        measured = take_turns(contenders, stream, self._options.repeats, self._say, beginning)
        self.measurements += measured.values()
        return measured

    def _flatness(
        self,
        name: str,
        contenders: Mapping[str, Contender],
        target: float | None = 1.5,
    ) -> Comparison:
        rates = sorted(m.rows_per_second for m in self._take_turns(contenders).values())
        shown = f"{number(rates[0])}–{number(rates[-1])} rows/s"
        return Comparison(name, shown, "–", rates[-1] / rates[0], "at most", target)

    def _for_flink(self, rows: int) -> StoredStream:
        folder = self._work / f"events-csv-flink-{rows}"
        return store_events_csv(self._spark, folder, rows, 2, interleaved=True)


PARTS: Mapping[str, Callable[[WindowBench], list[Comparison]]] = {
    "floor": WindowBench.floor,
    "plain-one": WindowBench.plain_one,
    "plain-ten": WindowBench.plain_ten,
    "slides": WindowBench.slides,
    "counts": WindowBench.counts,
    "milliseconds": WindowBench.milliseconds,
    "register": WindowBench.register,
    "start": WindowBench.start,
    "flink": WindowBench.flink,
}


def run(
    options: WindowsOptions | None = None,
    only: Sequence[str] | None = None,
    say: Say = lambda _: None,
) -> Report:
    """Measure the parts (all, or those named in ``only``) and report."""
    options = options or WindowsOptions()
    unknown = set(only or ()) - PARTS.keys()
    if unknown:
        raise ValueError(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    spark = session("weft bench windows")
    bench = WindowBench(spark, options, say)
    comparisons: list[Comparison] = []
    for name, part in PARTS.items():
        if only is None or name in only:
            comparisons += _done(name, part, bench, say)
    return Report(
        title="weft bench windows",
        machine=machine(spark),
        settings={
            "rows": options.rows_millions * MILLION,
            "rows per micro-batch": options.batch_millions * MILLION,
            "rows per second of event time": RATE,
            "keys": 100,
            "shuffle partitions": cores(),
            "turns": options.repeats,
        },
        comparisons=tuple(comparisons),
        measurements=tuple(bench.measurements),
    )


def _done(
    name: str, part: Callable[[WindowBench], list[Comparison]], bench: WindowBench, say: Say
) -> list[Comparison]:
    """A part's comparisons, said at once. A part that fails leaves the others their figures."""
    try:
        comparisons = part(bench)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        comparisons = [Comparison(f"part {name}", "–", "–", None, reason=reason)]
    for comparison in comparisons:
        say(
            f"= {comparison.name}: {comparison.weft} | {comparison.peer} | {comparison.shown_value}"
        )
    return comparisons


def main(
    json: bool = False,
    only: Sequence[str] | None = None,
    rows_millions: int = 48,
    flink: bool = True,
    work: Path | None = None,
) -> Report:
    """What the command does: progress on standard error, the report on standard output."""
    progress = Console(stderr=True)
    options = WindowsOptions(rows_millions=rows_millions, flink=flink)
    if work is not None:
        options = WindowsOptions(rows_millions=rows_millions, flink=flink, work=work)

    def say(line: str) -> None:
        progress.print(line, style="dim", highlight=False)

    report = run(options, only, say)
    if json:
        print(report.to_json())
    else:
        Console().print(render(report))
    return report


def _timestamped(source: DataFrame) -> DataFrame:
    return source.select("key", "value", F.timestamp_millis("ts_ms").alias("ts"))


def _unmeasured(name: str, ours: str, reason: str, target: float) -> Comparison:
    return Comparison(name, ours, "–", None, "at least", target, reason=reason)
