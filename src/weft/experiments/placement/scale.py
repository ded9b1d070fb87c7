"""Many queries on many lanes: time, memory and loads of planning by stream, slide class and lane.

Not in the paper. Streams have Zipf shares of the queries; slides are those that people choose, from a second to a
day, ranges up to 50 slides. Beside the whole hierarchy (`by class`) are the paper's winners, run on each stream as a
whole with lanes in proportion to its cost (`by stream`). Each run is a process of its own. Memory is what planning
takes on top of the queries' windows and of Python with its libraries: the highest resident size while it plans, less the one
before.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import altair as alt
import numpy as np

from weft.experiments.reproduction import Data, Progress
from weft.optimizer.edges.workload import Workload
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.hierarchy import LanePlan, Part, StreamWindows, lanes_of, planned
from weft.optimizer.placement.optimizers import PAPERS, load_compiled
from weft.optimizer.placement.papers.to_nodes import wg_tn
from weft.optimizer.placement.placement import Placement
from weft.workloads.sharing import round_slides, zipf_windows

TITLE = "Planning many queries on many lanes: seconds, memory and balance"
BALANCE = 0.9
"""The slowest lane is what a step waits for."""
RATE = 100.0
TRIALS_PER_ITEM = 100
DAY = 86_400
STREAMS = 20


@dataclass(frozen=True)
class ScaleRun:
    """How one size was planned, and what that took."""

    how: str
    queries: int
    lanes: int
    seconds: float
    """Of the processor: one thread plans, and nothing waits."""
    process_megabytes: float | None
    """What the process had in memory before: Python, its libraries, and the windows of all queries."""
    megabytes: float | None
    """What planning took on top of that, at its peak; None where the system does not say."""
    total_cost: float
    max_over_mean: float
    placed_once: bool


SIZES = ((10_000, 100), (100_000, 1_000))
QUICK_SIZES = ((300, 12),)
HOW = ("by class, balanced", "by stream, wg-tn", "by stream, wg-i")


def streams(queries: int) -> list[StreamWindows]:
    """Streams with Zipf shares of the queries."""
    shares = 1 / np.arange(1, STREAMS + 1)
    sizes = np.maximum(1, np.floor(shares / shares.sum() * queries)).astype(int)
    sizes[0] += queries - int(sizes.sum())
    made = []
    for number, size in enumerate(sizes.tolist()):
        table = zipf_windows(size, number + 1, round_slides(DAY))
        rate = RATE / (1 + number % 5)
        made.append(StreamWindows(f"stream{number}", rate, table.names, table.ranges, table.slides))
    return made


def scale_data(quick: bool, progress: Progress) -> Data:
    """Every size planned in every way."""
    load_compiled()
    work = [(how, size) for size in (QUICK_SIZES if quick else SIZES) for how in HOW]
    rows = []
    for number, (how, (queries, lanes)) in enumerate(work):
        progress(number, len(work), f"{queries:,} queries on {lanes:,} lanes, {how}")
        if quick:
            rows.append(asdict(run(how, queries, lanes)))
            continue
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            rows.append(asdict(pool.submit(run, how, queries, lanes).result()))
    progress(len(work), len(work), "done")
    return {"figure": "scale", "title": TITLE, "balance": BALANCE, "rows": rows}


def run(how: str, queries: int, lanes: int) -> ScaleRun:
    """Plan one size in one way."""
    load_compiled()
    given = streams(queries)
    before = _begin_peak()
    started = time.process_time()
    if how.startswith("by class"):
        plan = planned(given, lanes, balance=BALANCE, trials_per_item=TRIALS_PER_ITEM)
    else:
        plan = _by_stream(given, lanes, PAPERS[how.removeprefix("by stream, ")])
    largest, mean = plan.max_cost, float(plan.loads.mean())
    seconds = time.process_time() - started
    return ScaleRun(
        how=how,
        queries=queries,
        lanes=lanes,
        seconds=seconds,
        process_megabytes=before,
        megabytes=None if before is None else _resident("VmHWM") - before,
        total_cost=plan.total_cost,
        max_over_mean=largest / mean,
        placed_once=_placed_once(given, plan),
    )


def _by_stream(
    given: Sequence[StreamWindows], lanes: int, optimizer: Callable[[Demand, int], Placement]
) -> LanePlan:
    weights = np.ones(lanes)
    workloads = [
        Workload.of_columns(stream.names, stream.ranges, stream.slides) for stream in given
    ]
    costs = [
        wg_tn(Demand.of(workload, stream.rate, 1, preprocess=True)).total_cost
        for workload, stream in zip(workloads, given)
    ]
    parts = []
    for stream, workload, own in zip(given, workloads, lanes_of(np.array(costs), weights)):
        demand = Demand.of(workload, stream.rate, list(own.values()))
        parts.append(Part(stream.name, 0, optimizer(demand, 1), tuple(own)))
    return LanePlan(tuple(parts), weights)


def _begin_peak() -> float | None:
    """Let the process's peak of memory begin now; its resident megabytes, None where that cannot be done."""
    gc.collect()
    try:
        # What was freed before would count as in memory, and be used again unseen.
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (AttributeError, OSError):  # no Linux, or not allowed
        return None
    return _resident("VmRSS")


def _resident(field: str) -> float:
    """Megabytes of this process: what is resident now (VmRSS) or was at most (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines[field].split()[0]) / 1024


def _placed_once(given: Sequence[StreamWindows], plan: LanePlan) -> bool:
    placed: dict[str, list[str]] = {stream.name: [] for stream in given}
    for part in plan.parts:
        trees = part.placement.trees()
        placed[part.stream] += [name for node in trees for tree in node for name in tree]
    return all(sorted(placed[stream.name]) == sorted(stream.names) for stream in given)


def scale_chart(data: Data) -> alt.HConcatChart:
    """Seconds, memory and balance by size."""
    rows = [row | {"size": f"{row['queries']:,} on {row['lanes']:,}"} for row in data["rows"]]
    panels = [
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            alt.X("size:N", title="queries on lanes", sort=None),
            alt.XOffset("how:N"),
            alt.Y(f"{field}:Q", title=title),
            alt.Color("how:N", title=None),
        )
        .properties(width=200, height=220)
        for field, title in (
            ("seconds", "seconds"),
            ("megabytes", "MB for planning"),
            ("max_over_mean", "slowest lane / average lane"),
        )
    ]
    config = alt.Config(legend=alt.LegendConfig(orient="bottom"))
    return alt.hconcat(*panels, title=data["title"], config=config)
