"""``weft bench plan``: how long the window optimizers take, by number of queries.

No stream runs. Each point plans a seeded workload of the TriOps paper's kind in a new process, so
that nothing is known from before; its seconds go from the columns of numbers to the plan with its
cost, without starting Python and reading files, and its memory is the process's peak. The papers'
own figures stand beside as far as they give any: the Placement paper reports up to 13 s for 500
queries.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from weft.bench.measuring.report import Comparison, Report, number, render
from weft.bench.measuring.session import machine
from weft.optimizer.windows.optimizers import OPTIMIZERS
from weft.workloads.sharing import (
    LARGEST_OVERLAP,
    WindowTable,
    coprime_slides,
    random_slides,
    zipf_windows,
)

Say = Callable[[str], None]
RATE = 300.0
"""Rows per unit of time: at the paper's middle rate both models have several groups."""

COUNTS = (50, 100, 256, 500, 1000)
TEMPLATE_COUNTS = (1000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Setting:
    """A kind of workload, its sizes, and the optimizers that plan it."""

    title: str
    windows: Callable[[int], WindowTable]
    counts: Sequence[int]
    optimizers: Sequence[str]


@dataclass(frozen=True)
class Target:
    """The most seconds that a point may take."""

    setting: str
    optimizer: str
    queries: int
    seconds: float


@dataclass(frozen=True)
class PlannedPoint:
    """One plan."""

    setting: str
    optimizer: str
    queries: int
    edge_sets: int
    groups: int
    model: str
    cost: float
    exact: bool
    gap: float | None
    seconds: float
    megabytes: float


def _coprime(count: int) -> WindowTable:
    """Every slide once, all of them primes."""
    slides = np.array(coprime_slides(count))
    overlaps = np.random.default_rng(count).integers(1, LARGEST_OVERLAP + 1, size=count)
    return WindowTable(tuple(f"q{i}" for i in range(count)), slides * overlaps, slides)


SETTINGS: Mapping[str, Setting] = {
    "any": Setting(
        "any slides up to 10,000", zipf_windows, COUNTS, [n for n in OPTIMIZERS if n != "noshare"]
    ),
    "template": Setting(
        "100 slides",
        lambda count: zipf_windows(count, slides=random_slides(100)),
        TEMPLATE_COUNTS,
        ["triweave", "best"],
    ),
    "general": Setting(
        "any ranges and slides",
        lambda count: zipf_windows(count, multiples=False),
        COUNTS,
        ["weaveshare", "triweave", "best"],
    ),
    "coprime": Setting("all slides coprime", _coprime, (1000, 10_000), ["shared", "triweave"]),
}

TARGETS = (
    Target("any", "triweave", 1000, 2),
    Target("any", "best", 1000, 10),
    Target("template", "triweave", 1000, 0.2),
    Target("template", "triweave", 1_000_000, 10),
    Target("general", "triweave", 1000, 10),
    Target("general", "best", 1000, 10),
)
MOST_MEGABYTES = 1024


def measure(setting: str, optimizer: str, queries: int) -> PlannedPoint:
    """Plan one workload in this process."""
    table = SETTINGS[setting].windows(queries)
    started = time.perf_counter()
    workload = table.workload()
    plan = OPTIMIZERS[optimizer](workload, RATE)
    cost = float(plan.cost)
    seconds = time.perf_counter() - started
    return PlannedPoint(
        setting=setting,
        optimizer=optimizer,
        queries=queries,
        edge_sets=len(workload.edge_sets),
        groups=len(plan.groups),
        model=plan.model.name,
        cost=cost,
        exact=plan.exact,
        gap=plan.gap,
        seconds=seconds,
        megabytes=_peak_megabytes(),
    )


def _peak_megabytes() -> float:
    """Of this program alone: getrusage would count what its parent had when it was started."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_apart(setting: str, optimizer: str, queries: int) -> PlannedPoint:
    """The same in a new process."""
    program = (
        "import json, sys; from dataclasses import asdict; from weft.bench.plan import measure; "
        "print(json.dumps(asdict(measure(sys.argv[1], sys.argv[2], int(sys.argv[3])))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, setting, optimizer, str(queries)],
        capture_output=True,
        text=True,
        check=True,
    )
    return PlannedPoint(**json.loads(done.stdout))


def run(only: Sequence[str] | None = None, say: Say = lambda _: None) -> list[PlannedPoint]:
    """All points of the settings named in ``only``, or of all."""
    points = []
    for name, setting in SETTINGS.items():
        if only is not None and name not in only:
            continue
        for optimizer in setting.optimizers:
            for queries in setting.counts:
                point = measure_apart(name, optimizer, queries)
                points.append(point)
                say(f"{setting.title}, {optimizer}, {queries:,} queries: {point.seconds:.2f} s")
    return points


def report(points: Sequence[PlannedPoint]) -> Report:
    """Targets and what was reached."""
    point_of = {(p.setting, p.optimizer, p.queries): p for p in points}
    comparisons = []
    for target in TARGETS:
        point = point_of.get((target.setting, target.optimizer, target.queries))
        if point is not None:
            title = SETTINGS[target.setting].title
            comparisons.append(
                Comparison(
                    f"{target.optimizer}, {target.queries:,} queries, {title}",
                    f"{point.edge_sets} edge sets",
                    "–",
                    point.seconds,
                    "at most",
                    target.seconds,
                    unit="s",
                )
            )
    if points:
        largest = max(points, key=lambda p: p.megabytes)
        shown = f"{largest.optimizer}, {largest.queries:,} queries"
        comparisons.append(
            Comparison(
                "most memory of all points",
                shown,
                "–",
                largest.megabytes,
                "at most",
                MOST_MEGABYTES,
                unit="MiB",
            )
        )
    settings = {"rows per unit of time": RATE}
    return Report("weft bench plan", machine(), settings, tuple(comparisons))


def main(
    json: bool = False, only: Sequence[str] | None = None, work: Path | None = None
) -> list[PlannedPoint]:
    """What the command does; plots go to ``work``, or into the current folder."""
    from weft.bench.plan_chart import save

    progress = Console(stderr=True)
    points = run(only, lambda line: progress.print(line, style="dim", highlight=False))
    plots = save(points, work or Path())
    if json:
        print(to_json(points))
    else:
        console = Console(width=None if sys.stdout.isatty() else 140)
        console.print(_table(points))
        console.print(render(report(points)))
    for plot in plots:
        progress.print(f"wrote {plot}", highlight=False)
    return points


def to_json(points: Sequence[PlannedPoint]) -> str:
    """The report, with every point."""
    whole: dict[str, Any] = json.loads(report(points).to_json())
    del whole["measurements"]
    return json.dumps(whole | {"points": [asdict(point) for point in points]}, indent=2)


def _table(points: Sequence[PlannedPoint]) -> Table:
    table = Table(title="plans", title_justify="left")
    for heading in ("windows", "optimizer", "queries", "edge sets", "groups", "cost", "gap"):
        table.add_column(
            heading, justify="left" if heading in ("windows", "optimizer") else "right"
        )
    table.add_column("seconds", justify="right")
    table.add_column("MiB", justify="right")
    for point in points:
        table.add_row(
            SETTINGS[point.setting].title,
            f"{point.optimizer} ({point.model})",
            f"{point.queries:,}",
            f"{point.edge_sets:,}",
            f"{point.groups:,}",
            number(point.cost) + ("" if point.exact else " ±"),
            "–" if point.gap is None else f"{point.gap:.1%}",
            f"{point.seconds:.2f}",
            f"{point.megabytes:.0f}",
        )
    return table
