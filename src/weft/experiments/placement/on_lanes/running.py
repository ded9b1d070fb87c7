"""Runs placements in lanes: as tasks in Spark's own process and its Python workers, and on executors of their own.

Every placement computes the same step: the same fragments, the same due windows. A lane's time is taken in its task, from
the first file that it reads to the last result that it has written: the processor's seconds, so that others on the machine do not
count, and the clock's beside them. The placements take turns, and of a lane's times the median counts. The rows of all
placements are compared.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from weft.experiments.placement.on_lanes.plans import STREAM, LanePlan, Prepared, Stream
from weft.experiments.reproduction import Progress
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.optimizers import OPTIMIZERS, load_compiled
from weft.optimizer.placement.placement import Placement, placement
from weft.runtime.api.class_archive import java_options
from weft.runtime.sinks.store import ResultStore
from weft.runtime.windows.lanes import LaneOutcome, LaneWork, run_lanes
from weft.workloads.sharing import WindowTable, any_slides, coprime_slides, zipf_windows

ONE_LANE = "one lane"
"""All queries in one tree on one lane, the others idle: as unbalanced as can be."""


@dataclass(frozen=True)
class LaneWorkload:
    """Queries by the parameters of table 2, with slides in seconds."""

    name: str
    queries: int
    largest_slide: int
    skew: float
    largest_overlap: int
    primes: bool
    seed: int = 1

    def table(self) -> WindowTable:
        slides = any_slides(self.largest_slide)
        if self.primes:
            slides = [prime for prime in coprime_slides(20) if prime <= self.largest_slide]
        return zipf_windows(
            self.queries,
            self.seed,
            slides,
            skew=self.skew,
            largest_overlap=self.largest_overlap,
            popular_first=False,
        )


@dataclass(frozen=True)
class LaneSettings:
    """What is run, and how often."""

    workloads: tuple[LaneWorkload, ...]
    masters: tuple[tuple[str, int], ...]
    """Spark's masters, and how many of the workloads each runs."""
    lanes: int
    stream: Stream
    rounds: int
    optimizers: tuple[str, ...] = (*OPTIMIZERS, ONE_LANE)


FULL = LaneSettings(
    workloads=(
        LaneWorkload("any slides, short ranges", 60, 25, 0, 10, primes=False),
        LaneWorkload("any slides, long ranges", 60, 25, 0, 40, primes=False),
        LaneWorkload("prime slides", 60, 50, 0, 10, primes=True),
        LaneWorkload("long slides popular", 120, 50, 1, 10, primes=False),
    ),
    masters=(("local[2]", 4), ("local-cluster[2,1,1024]", 2)),
    lanes=4,
    stream=Stream(keys=300, step_seconds=60),
    rounds=2,
)
QUICK = LaneSettings(
    workloads=(LaneWorkload("any slides", 12, 10, 0, 4, primes=False),),
    masters=(("local[2]", 1),),
    lanes=3,
    stream=Stream(keys=20, step_seconds=10),
    rounds=1,
    optimizers=("g-rand", "wg-tn", "balanced", ONE_LANE),
)
"""Small enough for a test; its times say nothing."""


@dataclass(frozen=True)
class Ran:
    """A placement, as it was predicted and as it ran."""

    master: str
    workload: str
    optimizer: str
    trees: int
    paper: tuple[float, ...]
    ours: tuple[float, ...]
    measured: tuple[float, ...]
    """The processor's seconds of each lane; 0 for an idle one."""
    clock: tuple[float, ...]
    """The same by the clock."""
    step_seconds: float
    """The whole Spark job."""
    rows: int
    equal: bool
    """Whether its rows are those of the workload's first placement."""


def run(settings: LaneSettings, say: Progress, spark: SparkSession | None = None) -> list[Ran]:
    """Every placement of every workload under every master. A session that is given is used, and not stopped."""
    load_compiled()
    ran: list[Ran] = []
    done, turns = 0, sum(count for _, count in settings.masters)
    for master, count in settings.masters:
        session = spark or _session(master)
        for workload in settings.workloads[:count]:
            say(done, turns, f"{workload.name} on {master}")
            ran += _of_workload(session, master, workload, settings)
            done += 1
        if spark is None:
            session.stop()
    say(turns, turns, "done")
    return ran


def _session(master: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.extraJavaOptions": java_options(),
        "spark.executor.extraJavaOptions": java_options(),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(master).appName("weft reproduce placement/lanes")
    spark = builder.config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _of_workload(
    spark: SparkSession, master: str, workload: LaneWorkload, settings: LaneSettings
) -> list[Ran]:
    with tempfile.TemporaryDirectory(prefix="weft-lanes-") as scratch:
        prepared = Prepared(workload.table(), settings.stream, Path(scratch) / "checkpoint")
        plans: dict[str, tuple[Placement, LanePlan]] = {}
        for name in settings.optimizers:
            placed = _placed(name, prepared, workload, settings.lanes)
            plans[name] = placed, prepared.planned(placed)
        times: dict[str, list[list[float]]] = {name: [] for name in plans}
        clock: dict[str, list[list[float]]] = {name: [] for name in plans}
        steps: dict[str, list[float]] = {name: [] for name in plans}
        first: pa.Table | None = None
        rows: dict[str, int] = {}
        equal: dict[str, bool] = {}
        for turn in range(settings.rounds + 1):
            for name, (_, plan) in plans.items():
                folder = Path(scratch) / "results" / f"{turn}-{name}"
                started = time.perf_counter()
                outcome = run_lanes(spark, _work(prepared, plan, folder))
                if turn:
                    steps[name].append(time.perf_counter() - started)
                    times[name].append(_of_busy_lanes(outcome.processor, plan))
                    clock[name].append(_of_busy_lanes(outcome.seconds, plan))
                    continue
                table = _rows(folder, outcome)
                first = table if first is None else first
                rows[name], equal[name] = table.num_rows, table.equals(first)
    return [
        Ran(
            master,
            workload.name,
            name,
            len(placed.node_of),
            plan.paper,
            plan.ours,
            tuple(np.median(times[name], axis=0).tolist()),
            tuple(np.median(clock[name], axis=0).tolist()),
            statistics.median(steps[name]),
            rows[name],
            equal[name],
        )
        for name, (placed, plan) in plans.items()
    ]


def _placed(name: str, prepared: Prepared, workload: LaneWorkload, lanes: int) -> Placement:
    demand = Demand.of(workload.table().workload(), prepared.rate, lanes, preprocess=True)
    if name == ONE_LANE:
        everything = np.zeros(demand.items, dtype=np.int64)
        return placement(ONE_LANE, demand, everything, np.zeros(1, dtype=np.int64))
    return OPTIMIZERS[name](demand, workload.seed)


def _work(prepared: Prepared, plan: LanePlan, folder: Path) -> LaneWork:
    return LaneWork(
        checkpoint=prepared.log.storage.uri,
        stream=STREAM,
        plan_version=plan.version,
        files=prepared.files(plan.version),
        new_files=[],
        before=prepared.before,
        now=prepared.now,
        ansi=False,
        shares=plan.shares,
        cap_bytes=1 << 30,
        step="step",
        batch=0,
        attempt="attempt",
        results_root=str(folder),
        owner="placement",
    )


def _of_busy_lanes(seconds: Mapping[int, float], plan: LanePlan) -> list[float]:
    """The time of every lane; 0 for those without work."""
    return [seconds[lane] if shares else 0.0 for lane, shares in enumerate(plan.shares)]


def _rows(folder: Path, outcome: LaneOutcome) -> pa.Table:
    """All results of a placement, in an order that does not depend on lanes."""
    store = ResultStore(str(folder))
    tables = [store.storage.read_table(entry["name"]) for entry in outcome.results]
    table = pa.concat_tables(_plain(table) for table in tables)
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries, which differ from file to file."""
    fields: list[Any] = [
        pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in table.schema
    ]
    return table.cast(pa.schema(fields))


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """The rank correlation; equal values have the average of their ranks. 0 if all values of one kind are equal.

    >>> round(spearman([1, 2, 3, 4], [10, 20, 40, 30]), 2), spearman([1, 2, 3], [3, 2, 1])
    (0.8, -1.0)
    """
    ranks = [_ranks(values) for values in (first, second)]
    if min(float(np.ptp(places)) for places in ranks) == 0:
        return 0.0
    return round(float(np.corrcoef(ranks[0], ranks[1])[0, 1]), 12)


def _ranks(values: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    averages: np.ndarray[Any, np.dtype[np.float64]] = last - (counts - 1) / 2
    return averages[places]
