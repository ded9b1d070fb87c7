"""``weft bench state``: what a step costs beside more and more open fragments.

One query: an hour sliding by a minute, three aggregates, keys that hardly ever come again. The first
micro-batch brings all open fragments at once, as many in every minute of event time; a long watermark delay
makes most of them wait. Then come micro-batches of 20,000 rows. Their event times lie in the
newest minutes, and the watermark advances by a minute with each. So in every step one window is due, of as
many fragments whatever is open, and the number of results is the same.

The step's time is that of weft's own step, the commit included; plain Spark's is that of its trigger. The first
steps warm up, and those after them count: their median. Plain Spark keeps a row of state for each of
the 60 windows that a fragment is in, so only the smallest size is run with it.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

import weft
from weft.bench.measuring.measure import Measurement
from weft.bench.measuring.report import Comparison, Report, number, render
from weft.bench.measuring.scratch import fresh
from weft.bench.measuring.session import machine, session
from weft.bench.measuring.turns import Say
from weft.bench.state.kernel import KernelSteps, measure

MINUTE = 60_000_000
RANGE = 60
"""Minutes of a window."""
BEGINNING = 28_000_000 * MINUTE
NEWEST = 20
"""The rows of a step lie in this many newest minutes."""
TARGET = 3.0
PARTS = ("kernel", "lanes", "driver", "plain-spark", "executors")
SQL = """SELECT key, window.start AS start, COUNT(*) AS n, SUM(value) AS total, MAX(value) AS most
    FROM events GROUP BY window(ts, '1 hour', '1 minute'), key"""
_SCHEMA = "ts timestamp, key bigint, value bigint"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True)
class StateOptions:
    """How much is run."""

    open_fragments: tuple[int, ...] = (100_000, 1_000_000, 10_000_000)
    per_minute: int = 1000
    """Open fragments in a minute of event time."""
    step_rows: int = 20_000
    warm_steps: int = 4
    steps: int = 7
    leads: int = 0
    """Micro-batches of one row that come first, as late as the latest of all open fragments. With two of them the windows of the first hour are
    closed, and empty, before their rows come: these then cost nothing."""
    plain_most: int = 100_000
    """Up to how many open fragments plain Spark is run with."""
    cap_bytes: int = 4 << 30
    """`driver_cap_bytes`: enough for the most fragments."""

    def __post_init__(self) -> None:
        least = (RANGE + NEWEST + self.warm_steps + self.steps) * self.per_minute
        if min(self.open_fragments) < least:
            raise ValueError(f"an hour and the newest rows are {least} fragments at least")

    @property
    def unmeasured(self) -> int:
        """The first micro-batches: those of the open fragments, and those that warm up."""
        return self.leads + 1 + self.warm_steps

    def delay(self, fragments: int) -> int:
        """The watermark's delay in minutes, so that so many fragments are open."""
        return fragments // self.per_minute - RANGE


@dataclass(frozen=True)
class Steps:
    """What the measured steps of a run took."""

    name: str
    fragments: int
    seconds: tuple[float, ...]
    results: int | None
    """In a step; None where it is not told."""
    details: Mapping[str, float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def measurement(self, rows: int) -> Measurement:
        return Measurement(
            name=self.name,
            rows=rows,
            seconds=(self.median,),
            results=self.results,
            batches=len(self.seconds),
            note="median step",
            details=self.details,
        )


def store(folder: Path, fragments: int, options: StateOptions) -> Path:
    """The stream: a file for each micro-batch."""
    fresh(folder)
    chance = np.random.default_rng(fragments)
    minutes = fragments // options.per_minute

    def write(number: int, times: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        keys = chance.integers(0, 1 << 40, len(times))
        columns = {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "key": keys,
            "value": chance.integers(0, 1000, len(times)),
        }
        path = folder / f"{number:05d}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (BEGINNING // 1_000_000 + number,) * 2)

    times = np.repeat(np.arange(minutes), options.per_minute)[:fragments]
    last = BEGINNING + minutes * MINUTE
    for lead in range(options.leads):
        write(lead, np.array([last]))
    write(options.leads, BEGINNING + times * MINUTE + chance.integers(0, MINUTE, len(times)))
    for step in range(1, options.warm_steps + options.steps + 1):
        newest = last + step * MINUTE
        times = newest - chance.integers(0, NEWEST * MINUTE, options.step_rows)
        times[0] = newest
        write(options.leads + step, times)
    return folder


def of_weft(
    spark: SparkSession,
    folder: Path,
    fragments: int,
    kernel: Any,
    options: StateOptions,
    work: Path,
) -> Steps:
    """The steps of weft, with its kernel on the driver or in lanes."""
    w = weft.Weft(
        spark,
        checkpoint=str(fresh(work / "weft")),
        kernel=kernel,
        overlap=False,
        driver_cap_bytes=options.cap_bytes,
        statistics_every=0,
    )
    delay = f"{options.delay(fragments)} minutes"
    w.add_stream("events", _opened(spark, folder), time="ts", watermark=delay)
    w.register("hour", SQL)
    with peak_memory() as peaks:
        run = w.start(availableNow=True)
        run.awaitTermination()
    steps = [step for step in run.recentProgress if step["kind"] == "data"]
    counted = steps[options.unmeasured :]
    details = {
        f"weft {phase}": statistics.median(step["durations"].get(phase, 0.0) for step in counted)
        for phase in counted[-1]["durations"]
    }
    details |= {"driver MB": peaks["driver"], "lanes MB": peaks["lanes"]}
    details["state rows"] = counted[-1]["state_rows"]
    return Steps(
        f"weft, {kernel}, {number(fragments)} open",
        fragments,
        tuple(step["seconds"] for step in counted),
        round(statistics.median(step["results"] for step in counted)),
        details,
    )


def of_plain_spark(
    spark: SparkSession, folder: Path, fragments: int, options: StateOptions, work: Path
) -> Steps:
    """The steps of plain Spark with the RocksDB state store."""
    own = spark.newSession()
    own.conf.set("spark.sql.streaming.stateStore.providerClass", _ROCKSDB)
    events = _opened(own, folder).withWatermark("ts", f"{options.delay(fragments)} minutes")
    events.createOrReplaceTempView("events")
    out = fresh(work / "plain")
    query = (
        own.sql(SQL)
        .writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out / "out"))
    )
    query.awaitTermination()
    steps = [event for event in query.recentProgress if event["numInputRows"]]
    counted = steps[options.unmeasured :]
    return Steps(
        f"plain Spark (RocksDB), {number(fragments)} open",
        fragments,
        tuple(event["durationMs"]["triggerExecution"] / 1000 for event in counted),
        None,
        {"state rows": float(counted[-1]["stateOperators"][0]["numRowsTotal"])},
    )


def _opened(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.option("latestFirst", "false").parquet(str(folder))


@contextmanager
def peak_memory(every: float = 0.2) -> Iterator[dict[str, float]]:
    """The largest memory of this process, and of its Python workers together, in megabytes."""
    peaks = {"driver": 0.0, "lanes": 0.0}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every):
            own = os.getpid()
            peaks["driver"] = max(peaks["driver"], _resident(own))
            workers = sum(_resident(pid) for pid in _python_workers(own))
            peaks["lanes"] = max(peaks["lanes"], workers)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _python_workers(root: int) -> list[int]:
    """The Python processes below a process, without itself."""
    parents: dict[int, tuple[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = path.read_text().rsplit(")", 1)
            parents[int(path.parent.name)] = (int(rest.split()[1]), name.split("(", 1)[1])
        except (OSError, ValueError, IndexError):
            continue
    below = {root}
    for _ in range(4):
        below |= {pid for pid, (parent, _) in parents.items() if parent in below}
    return [pid for pid in below - {root} if parents[pid][1].startswith("python")]


def run(
    options: StateOptions,
    only: Sequence[str] | None = None,
    work: Path | None = None,
    say: Say = lambda _: None,
) -> Report:
    """Measure and report."""
    parts = tuple(only or PARTS)
    alone = {
        fragments: measure(fragments, options.per_minute, options.step_rows, options.steps)
        for fragments in options.open_fragments
        if "kernel" in parts
    }
    for fragments, steps_alone in alone.items():
        say(f"kernel alone, {number(fragments)} open: {steps_alone}")
    executors = _executors(work, say) if "executors" in parts else []
    parts = tuple(part for part in parts if part != "executors")
    if set(parts) <= {"kernel"}:
        return Report(
            title="weft bench state",
            machine=machine(),
            settings={"rows per step": options.step_rows, "steps": options.steps},
            comparisons=(*_of_kernel(alone), *executors),
        )
    spark = session("weft bench state")
    measured: dict[tuple[str, int], Steps] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = work or Path(scratch)
        least = min(options.open_fragments)
        stream = store(folder / "events", least, options)
        of_weft(spark, stream, least, "driver", options, folder)  # Spark itself warms up
        for fragments in options.open_fragments:
            stream = store(folder / "events", fragments, options)
            for part in parts:
                if part == "kernel":
                    continue
                if part == "plain-spark":
                    if fragments > options.plain_most:
                        continue
                    steps = of_plain_spark(spark, stream, fragments, options, folder)
                else:
                    kernel = "driver" if part == "driver" else "lanes"
                    steps = of_weft(spark, stream, fragments, kernel, options, folder)
                measured[part, fragments] = steps
                seconds = ", ".join(f"{second:.2f}" for second in steps.seconds)
                say(f"{steps.name}: {seconds} s; {steps.results} results; {steps.details}")
    return Report(
        title="weft bench state",
        machine=machine(spark),
        settings={
            "rows per step": options.step_rows,
            "fragments per minute": options.per_minute,
            "steps": options.steps,
            "warm-up steps": options.warm_steps,
        },
        comparisons=(*_of_kernel(alone), *executors, *_comparisons(measured, options)),
        measurements=tuple(s.measurement(options.step_rows) for s in measured.values()),
    )


def _executors(work: Path | None, say: Say) -> list[Comparison]:
    """What a second executor brings. It is measured first, since it has sessions of its own."""
    from weft.bench.state.executors import ExecutorOptions, report_lines

    return report_lines(ExecutorOptions(), work, say)


def _of_kernel(alone: Mapping[int, KernelSteps]) -> Iterator[Comparison]:
    """The processor's time of the kernel beside the least and the most open fragments."""
    for fragments in list(alone)[1:]:
        small, large = alone[min(alone)], alone[fragments]
        for where in ("driver", "lane"):
            before, after = getattr(small, where), getattr(large, where)
            yield Comparison(
                f"kernel alone, {where}: {number(fragments)} / {number(min(alone))} open",
                f"{1000 * after:.0f} ms",
                f"{1000 * before:.0f} ms",
                after / before,
                "at most",
                TARGET,
            )


def _comparisons(
    measured: dict[tuple[str, int], Steps], options: StateOptions
) -> Iterator[Comparison]:
    least = min(options.open_fragments)
    for (part, fragments), steps in measured.items():
        if part == "plain-spark":
            continue
        small = measured[part, least]
        if fragments != least:
            yield Comparison(
                f"{part}: step with {number(fragments)} / with {number(least)} open",
                f"{steps.median:.2f} s",
                f"{small.median:.2f} s",
                steps.median / small.median,
                "at most",
                TARGET if fragments == max(options.open_fragments) else None,
            )
        plain = measured.get(("plain-spark", fragments))
        yield Comparison(
            f"{part}: plain Spark (RocksDB) / weft, {number(fragments)} open",
            f"{steps.median:.2f} s",
            "–" if plain is None else f"{plain.median:.2f} s",
            None if plain is None else plain.median / steps.median,
            reason=f"{number(RANGE * fragments)} rows of state",
        )


def main(json: bool = False, only: Sequence[str] | None = None, work: Path | None = None) -> None:
    """What the command does."""
    progress = Console(stderr=True)

    def say(line: str) -> None:
        progress.print(line, style="dim", highlight=False)

    report = run(StateOptions(), only, work, say)
    if json:
        print(report.to_json())
    else:
        Console().print(render(report))
