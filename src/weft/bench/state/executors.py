"""Two executors against one, on a step whose kernel dominates.

The stream is that of `steps` with many keys: every step closes one window of an hour, of as many fragments as a minute has
keys, times 60. Lanes read and combine these and write their results, in as many tasks as there are cores; the rest of the step,
level 1 and the commit, is small. The same steps run on Spark's `local-cluster[1,1,…]` and `local-cluster[2,1,…]`, in
turns, with executors that are processes of their own and have one core each.

What the machine allows is measured in the same run, without Spark: two processes that each compute one lane's work at the
same time, against one process that computes both. It is below 2 where cores share memory or caches, or are not whole.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from weft.bench.measuring.report import Comparison
from weft.bench.measuring.scratch import fresh
from weft.bench.measuring.turns import Say
from weft.bench.state.kernel import MINUTE, RANGE, FragmentStream, lane_work, program
from weft.bench.state.steps import StateOptions, Steps, of_weft, store
from weft.kernel.windows.weave import Step
from weft.runtime.api.class_archive import java_options
from weft.runtime.windows.lanes import LaneWork, run_here

TARGET = 1.6
EXECUTORS = (1, 2)


@dataclass(frozen=True)
class ExecutorOptions:
    """How much is run."""

    keys: int = 200_000
    """Open fragments in a minute of event time."""
    step_rows: int = 5_000
    warm_steps: int = 3
    steps: int = 3
    turns: int = 2
    """How often each number of executors has its turn."""
    rounds: int = 5
    """How often the two processes compute their work."""

    @property
    def stream(self) -> StateOptions:
        open_minutes = RANGE + 20 + self.warm_steps + self.steps
        return StateOptions(
            open_fragments=(open_minutes * self.keys,),
            per_minute=self.keys,
            step_rows=self.step_rows,
            warm_steps=self.warm_steps,
            steps=self.steps,
            leads=2,
        )


@dataclass(frozen=True)
class Measured:
    """By number of executors, the steps of all turns; and what two processes gain."""

    seconds: Mapping[int, tuple[float, ...]]
    kernel: Mapping[int, tuple[float, ...]]
    allowed: float

    @property
    def gain(self) -> float:
        return statistics.median(self.seconds[1]) / statistics.median(self.seconds[2])

    @property
    def kernel_gain(self) -> float:
        return statistics.median(self.kernel[1]) / statistics.median(self.kernel[2])


def measure(options: ExecutorOptions, work: Path, say: Say) -> Measured:
    """The steps on one executor and on two, and what the machine allows."""
    allowed = two_processes(options, work / "processes")
    say(f"two processes against one: {allowed:.2f}×")
    state = options.stream
    (fragments,) = state.open_fragments
    stream = store(work / "many-keys", fragments, state)
    seconds: dict[int, list[float]] = {count: [] for count in EXECUTORS}
    kernel: dict[int, list[float]] = {count: [] for count in EXECUTORS}
    for turn in range(options.turns):
        for count in EXECUTORS if turn % 2 == 0 else reversed(EXECUTORS):
            spark = _session(count)
            steps: Steps = of_weft(spark, stream, fragments, "lanes", state, work)
            spark.stop()
            seconds[count] += steps.seconds
            kernel[count].append(steps.details["weft kernel"])
            took = ", ".join(f"{second:.2f}" for second in steps.seconds)
            say(f"executors: {count}: {took} s; {steps.results} results; {steps.details}")
    return Measured(
        {count: tuple(times) for count, times in seconds.items()},
        {count: tuple(times) for count, times in kernel.items()},
        allowed,
    )


def comparisons(measured: Measured) -> Iterator[Comparison]:
    """The gain of a second executor, against its target or what the machine allows."""
    one, two = (statistics.median(measured.seconds[count]) for count in EXECUTORS)
    yield Comparison(
        "two executors / one: whole step",
        f"{two:.2f} s",
        f"{one:.2f} s",
        measured.gain,
        "at least",
        min(TARGET, measured.allowed),
    )
    one, two = (statistics.median(measured.kernel[count]) for count in EXECUTORS)
    yield Comparison(
        "two executors / one: kernel in lanes", f"{two:.2f} s", f"{one:.2f} s", measured.kernel_gain
    )
    yield Comparison("two processes / one, without Spark", "–", "–", measured.allowed)


def _session(executors: int) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": java_options(),
        "spark.executor.extraJavaOptions": java_options(),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": 2,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.numRecentProgressUpdates": 10_000,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local-cluster[{executors},1,1024]")
    spark = builder.appName("weft bench state").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def two_processes(options: ExecutorOptions, folder: Path) -> float:
    """How much sooner two processes have both halves of a step's kernel than one process has."""
    stream = FragmentStream(fresh(folder / "state"), program())
    file = stream.put(1 + np.repeat(np.arange(RANGE), options.keys))
    step = Step((RANGE - 1) * MINUTE, RANGE * MINUTE, ansi=False)
    new = stream.put(stream.newest(RANGE, options.step_rows))
    context = multiprocessing.get_context("spawn")
    with _one_thread(), context.Pool(1) as first, context.Pool(1) as second:
        pools = (first, second)
        alone: list[float] = []
        together: list[float] = []
        for number in range(options.rounds + 1):
            work = lane_work(stream, [file], new, step, folder / f"results-{number}")
            started = time.perf_counter()
            for lane in range(len(pools)):
                pools[number % 2].apply(_lane, (work, lane))
            alone.append(time.perf_counter() - started)
            started = time.perf_counter()
            waiting = [pool.apply_async(_lane, (work, lane)) for lane, pool in enumerate(pools)]
            for result in waiting:
                result.get()
            together.append(time.perf_counter() - started)
    # The first round starts the processes.
    return statistics.median(alone[1:]) / statistics.median(together[1:])


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that are started inside have one thread of Arrow, as Spark gives them to tasks of an executor with one core."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def _lane(work: LaneWork, lane: int) -> int:
    return len(run_here(work, lane))


def report_lines(options: ExecutorOptions, work: Path | None, say: Say) -> list[Comparison]:
    """Measure, in a folder of its own if none is given."""
    with tempfile.TemporaryDirectory() as scratch:
        return list(comparisons(measure(options, work or Path(scratch), say)))
