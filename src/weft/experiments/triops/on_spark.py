"""The plans of the figures run on Spark: operations counted and seconds taken, beside the model.

The simulation of the paper counts operations by its formulas. Here the same plans run on the loom,
over a stream of events with few keys, and every level counts what it does. Predicted is the
model's cost for one key, times the keys, times the seconds of event time; windows that are still
open at the end have not been counted yet, so level 3 stays below its prediction by the share of
their ranges.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.bench.measuring import loom
from weft.bench.measuring.session import session
from weft.experiments.reproduction import Claim, Data, Progress
from weft.optimizer.cost import NodeCost, node_costs
from weft.workloads.events import events
from weft.workloads.stored import StoredStream, store
from weft.workloads.windows import MillisecondWindow, WindowQuery, named

TITLE = "Plans on Spark: operations counted and seconds taken, beside the model"
_LEVELS = ("level1", "level2", "level3")

PLANS = (
    ("shared", "twoops"),
    ("weaveshare", "twoops"),
    ("weaveshare", "triops"),
    ("triweave", "triops"),
    ("best", "triops"),
    ("best", "calibrated"),
)


@dataclass(frozen=True)
class Parameters:
    """What is run: slides from a template in seconds, ranges a multiple of them."""

    template: tuple[int, ...] = (2, 3, 5, 7, 10, 12, 15, 20, 30, 45, 60)
    queries: int = 40
    largest_overlap: int = 12
    keys: int = 10
    rate: int = 40
    seconds: int = 2400
    batches: int = 8
    seed: int = 1

    @property
    def rows(self) -> int:
        return self.rate * self.seconds


QUICK = Parameters(queries=6, keys=3, rate=50, seconds=240, batches=2, largest_overlap=3)


@dataclass(frozen=True)
class Ran:
    """One plan: how many groups it has, its operations by level, and the seconds it took."""

    optimizer: str
    model: str
    groups: int
    nodes: int
    predicted: Mapping[str, float]
    counted: Mapping[str, int]
    seconds: float
    kernel_seconds: float
    results: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def windows(parameters: Parameters) -> list[WindowQuery]:
    """The queries: slides of the template by Zipf's law, smaller ones more often."""
    choose = random.Random(parameters.seed)
    weights = [1 / (rank + 1) ** 0.6 for rank in range(len(parameters.template))]
    slides = choose.choices(parameters.template, weights, k=parameters.queries)
    lengths = [slide * choose.randint(1, parameters.largest_overlap) for slide in slides]
    drawn = zip(lengths, slides, strict=True)
    return named("acq", [MillisecondWindow(length * 1000, slide * 1000) for length, slide in drawn])


def spark_data(quick: bool, progress: Progress) -> Data:
    """The figure's data: every plan with predicted and counted operations and its seconds."""
    parameters = QUICK if quick else Parameters()
    ran = run(parameters, progress)
    return {
        "figure": "spark",
        "title": TITLE,
        "parameters": asdict(parameters),
        "plans": [plan.to_json() for plan in ran],
    }


def spark_claims(data: Data) -> list[Claim]:
    """Whether what the loom counts is what the models predict, and what takes how long."""
    claims = []
    for plan in data["plans"]:
        predicted, counted = plan["predicted"], plan["counted"]
        total = sum(counted.values())
        off = total / sum(predicted.values()) - 1
        claims.append(
            Claim(
                f"operations of {plan['optimizer']} under {plan['model']}, {plan['groups']} groups",
                f"{sum(predicted.values()):,.0f} by its equation",
                f"{total:,} counted ({100 * off:+.1f} %); {plan['seconds']:.1f} s, kernel "
                f"{plan['kernel_seconds']:.2f} s",
                "holds" if abs(off) < 0.05 else "differs",
                "windows that are open at the end are not counted",
            )
        )
    return claims


def run(
    parameters: Parameters, say: Progress, plans: Sequence[tuple[str, str]] = PLANS
) -> list[Ran]:
    """Run every plan over the same stream, in one session, after a warm-up."""
    spark = session("weft reproduce triops/spark")
    with tempfile.TemporaryDirectory(prefix="weft-triops-") as name:
        work = Path(name)
        stream = _stream(spark, parameters, work / "events")
        queries = windows(parameters)
        say(0, len(plans), "warming up")
        _run(spark, stream, queries, parameters, "shared", "twoops", work / "warm")
        ran = []
        for number, (optimizer, model) in enumerate(plans):
            say(number, len(plans), f"running {optimizer} under {model}")
            folder = work / f"plan-{number}"
            ran.append(_run(spark, stream, queries, parameters, optimizer, model, folder))
        say(len(plans), len(plans), "done")
    return ran


def _stream(spark: SparkSession, parameters: Parameters, folder: Path) -> StoredStream:
    def make(numbers: DataFrame) -> DataFrame:
        return events(numbers, parameters.seed, parameters.rate, parameters.keys, disorder=0.5)

    recipe = f"triops {parameters}"
    return store(spark, make, folder, parameters.rows, parameters.batches, recipe)


def _run(
    spark: SparkSession,
    stream: StoredStream,
    queries: Sequence[WindowQuery],
    parameters: Parameters,
    optimizer: str,
    model: str,
    checkpoint: Path,
) -> Ran:
    weft, _ = loom.opened(
        spark,
        stream.open(spark, files_per_batch=1),
        queries,
        checkpoint,
        optimizer=optimizer,
        model=model,
        assumed_rate=float(parameters.rate),
        replan_drift=float("inf"),
    )
    plan = weft.plan("events")
    measured = loom.measured(spark, weft, f"{optimizer}, {model}")
    counted = weft.counted("events")
    costs = list(node_costs(plan, float(parameters.rate)).values())
    return Ran(
        optimizer=optimizer,
        model=model,
        groups=len({(group.node, group.fragments) for group in plan.groups}),
        nodes=len(plan.nodes),
        predicted=_predicted(costs, parameters),
        counted={level: int(counted.get(level, 0)) for level in _LEVELS},
        seconds=measured.median_seconds,
        kernel_seconds=float(measured.details["weft kernel"]),
        results=int(counted.get("results", 0)),
    )


def _predicted(costs: Sequence[NodeCost], parameters: Parameters) -> dict[str, float]:
    per_key = parameters.keys * parameters.seconds
    return {
        "level1": sum(cost.level1 for cost in costs) * parameters.seconds,
        "level2": sum(cost.level2 for cost in costs) * per_key,
        "level3": sum(cost.level3 for cost in costs) * per_key,
    }
