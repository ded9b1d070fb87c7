"""The paper's plans in whole steps of weft on Spark, at points where they differ by more than the fixed cost of a step.

A step of two or three streams has a fixed cost of most of a second: micro-batches of Spark, files, commits. At the paper's own sizes the late plan's join
takes a part of that, so all plans would take the same. Here rates and windows of the paper's settings are multiplied (`Scaled`), and a point is
one of: the defaults of figure 4, the ends of its sweep by groups, the defaults of figure 5, and its first two inputs alone. Beside the seconds of a
step stand the model's operations for the same, multiplied, setting, and the seconds of the kernel alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from weft.bench.measuring.session import session
from weft.experiments.aggjoin.kernel_run import PointKernel
from weft.experiments.aggjoin.on_spark.steps import Setting, stepped
from weft.experiments.aggjoin.parameters import THREE_WAY, TWO_WAY, Budget, Inputs, Point
from weft.experiments.aggjoin.prototype.measuring import model_costs
from weft.experiments.aggjoin.ranking import CLEAR, agreement, together
from weft.experiments.reproduction import Claim, Data, Progress, markdown_table
from weft.optimizer.joinagg.generic_cost import plan_cost
from weft.optimizer.joinagg.plans import all_plans, plan_name
from weft.workloads.aggjoin.streams import StreamShape

TITLE = "Plans in whole steps of weft on Spark (rates and windows multiplied)"
_BUDGET = Budget(rounds=5, operations=0, least_rows=0, most_units=0, seconds=0.5)


@dataclass(frozen=True)
class Scaled:
    """A setting of the paper with more rows, run for some steps."""

    label: str
    inputs: Inputs
    rates: float
    """By which factor rates are multiplied."""
    seconds: int
    """The length of the windows: they have rates times so many rows."""
    every: int
    timed: int = 3

    @property
    def setting(self) -> Setting:
        shapes = tuple(
            StreamShape(given.rate * self.rates, int(given.groups), round(1 / given.selectivity))
            for given in self.inputs
        )
        return Setting(shapes, self.seconds, self.every, warm=1, timed=self.timed)

    @property
    def windows(self) -> float:
        """By which factor windows are multiplied."""
        given = self.inputs[0]
        return given.rate * self.rates * self.seconds / given.window

    @property
    def point(self) -> Point:
        """What is run, as the model and the kernel see it: a unit of time is the time between two instants."""
        inputs = tuple(
            replace(
                given,
                rate=given.rate * self.rates * self.every,
                window=given.rate * self.rates * self.seconds,
            )
            for given in self.inputs
        )
        return Point(self.label, len(inputs), inputs)


def _with_groups(groups: float) -> Inputs:
    return (replace(TWO_WAY[0], groups=groups), TWO_WAY[1])


FULL = (
    Scaled("two-way", TWO_WAY, rates=3, seconds=30, every=10),
    Scaled("two-way, 3 groups", _with_groups(3), rates=3, seconds=30, every=10),
    Scaled("two-way, 19683 groups", _with_groups(19683), rates=3, seconds=30, every=10),
    Scaled("two inputs of figure 5", THREE_WAY[:2], rates=5, seconds=3, every=1),
    Scaled("three-way", THREE_WAY, rates=5, seconds=3, every=1),
)
QUICK = (Scaled("two-way", TWO_WAY, rates=0.1, seconds=4, every=2, timed=1),)


def runtime_data(quick: bool, progress: Progress) -> Data:
    """Every plan at every point: operations by the model, seconds of the kernel, seconds of a step."""
    points = QUICK if quick else FULL
    total = sum(len(all_plans(len(scaled.inputs))) for scaled in points)
    spark, done = session("weft reproduce aggjoin/runtime", heap="4g"), 0
    shown = []
    with tempfile.TemporaryDirectory(prefix="weft-aggjoin-") as work:
        for number, scaled in enumerate(points):
            plans = []
            kernel = _kernel(scaled.point)
            costs = model_costs(scaled.point)
            for plan in all_plans(len(scaled.inputs)):
                name = f"{scaled.label}: {plan_name(plan)}"
                progress(done, total, name)
                seconds = _seconds(spark, scaled.setting, plan, Path(work) / str(number))
                plans.append(
                    {
                        "plan": plan_name(plan),
                        "model": plan_cost(costs, plan),
                        "kernel": kernel[plan],
                        "runtime": seconds,
                    }
                )
                done += 1
            shown.append(
                {
                    "label": scaled.label,
                    "rates": scaled.rates,
                    "windows": scaled.windows,
                    "inputs": [asdict(given) for given in scaled.point.inputs],
                    "plans": plans,
                }
            )
    progress(total, total, "done")
    return {"figure": "runtime", "title": TITLE, "points": shown}


def _seconds(spark: SparkSession, setting: Setting, plan: tuple[bool, ...], folder: Path) -> float:
    folder.mkdir(exist_ok=True)
    return stepped(spark, setting, plan, folder, plan_name(plan)).median_seconds


def _kernel(point: Point) -> dict[tuple[bool, ...], float]:
    kernel = PointKernel(point, _BUDGET, seed=1)
    for _ in range(_BUDGET.rounds):
        kernel.round()
    return {run.plan: run.seconds for run in kernel.runs}


def runtime_claims(data: Data) -> list[Claim]:
    """The order of plans, and what early aggregation gains, two-way and three-way."""
    claims = []
    for measure, of in (("model", "the cost functions"), ("kernel", "weft's kernel alone")):
        agreements = [
            agreement([p[measure] for p in point["plans"]], [p["runtime"] for p in point["plans"]])
            for point in data["points"]
        ]
        clear, same = sum(a.pairs for a in agreements), sum(a.agreeing for a in agreements)
        claims.append(
            Claim(
                f"plans have the order of {of} in whole steps of weft",
                "the same, most of the time" if measure == "model" else "–",
                together(agreements),
                "holds"
                if same >= 0.9 * clear
                else "most of the time"
                if 2 * same > clear
                else "does not hold",
                f"Pairs are clear if they differ by {CLEAR - 1:.0%} there. What a plan costs beside the fixed cost of a step is "
                "seen only where it is a part of it that can be told from noise.",
            )
        )
    gains = {point["label"]: _gain(point["plans"]) for point in data["points"]}
    claims.append(
        Claim(
            "early aggregation's advantage is larger for three-way joins, in whole steps of weft",
            "larger",
            "LAP beside the best plan: "
            + "; ".join(f"{label}: {gain:.1f} ({best})" for label, (gain, best) in gains.items()),
            _larger({label: gain for label, (gain, _) in gains.items()}),
            "Each setting is multiplied by a factor of its own; figure 5's first two inputs alone are the same setting with one input less.",
        )
    )
    return claims


def _gain(plans: Sequence[Data]) -> tuple[float, str]:
    best = min(plans, key=lambda plan: float(plan["runtime"]))
    return plans[0]["runtime"] / best["runtime"], best["plan"]


def _larger(gains: dict[str, float]) -> str:
    three = gains.get("three-way")
    if three is None:
        return "not measured"
    two = [gain for label, gain in gains.items() if label in ("two-way", "two inputs of figure 5")]
    return "holds" if all(three > gain for gain in two) else "does not hold"


def runtime_details(data: Data) -> str:
    """Every plan at every point."""
    rows = [
        (
            point["label"],
            plan["plan"],
            f"{plan['model']:,.0f}",
            f"{plan['kernel'] * 1000:,.1f}",
            f"{plan['runtime'] * 1000:,.0f}",
        )
        for point in data["points"]
        for plan in point["plans"]
    ]
    factors = "; ".join(
        f"{p['label']}: rates × {p['rates']:g}, windows × {p['windows']:g}" for p in data["points"]
    )
    heading = ("point", "plan", "model", "kernel, ms", "step, ms")
    return f"\n## {data['title']}\n\n{factors}.\n\n" + markdown_table(heading, rows)
