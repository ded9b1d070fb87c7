"""Data of figures 4 to 6: of every plan and point the model's operations, those with expected sizes, those that were
counted, the model's seconds with tuned constants, those of the prototype, and those of weft's kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from weft.experiments.aggjoin.expected_costs import expected_costs
from weft.experiments.aggjoin.parameters import FULL
from weft.experiments.aggjoin.prototype.measuring import model_costs
from weft.experiments.aggjoin.run import ARITY, SHOWCASE, AggJoinRun, MeasuredPoint
from weft.experiments.aggjoin.tuning import tuned
from weft.experiments.reproduction import Data
from weft.optimizer.joinagg.generic_cost import plan_cost
from weft.optimizer.joinagg.plans import plan_name

TITLES = {
    **{sweep.figure: sweep.title for sweep in FULL.sweeps},
    SHOWCASE: "Figure 6: each plan is best somewhere (two-way nested loop join)",
    ARITY: "Early aggregation by number of inputs (hash join, settings of figure 5)",
}


def sweep_data(figure: str, run: AggJoinRun) -> Data:
    """Figures 4 and 5."""
    sweep = run.sweep(figure)
    return _data(figure, run, run.measured(figure)) | {
        "axis": sweep.axis,
        "logarithmic": sweep.logarithmic,
    }


def case_data(figure: str, run: AggJoinRun) -> Data:
    """Figure 6, and joins of more and more inputs."""
    return _data(figure, run, run.measured(figure))


def _data(figure: str, run: AggJoinRun, measured: Sequence[MeasuredPoint]) -> Data:
    join = measured[0].point.join
    constants = tuned([run for point in measured for run in point.prototype], join)
    points = []
    for measured_point in measured:
        point = measured_point.point
        operations, seconds = model_costs(point), model_costs(point, constants)
        expected = expected_costs(point.statistics, point.join)
        points.append(
            {
                "label": point.label,
                "value": point.value,
                "plans": [
                    {
                        "plan": plan_name(in_prototype.plan),
                        "model": plan_cost(operations, in_prototype.plan),
                        "expected": plan_cost(expected, in_prototype.plan),
                        "counted": in_prototype.operations.total,
                        "joined": in_prototype.operations.joined,
                        "tuned": plan_cost(seconds, in_prototype.plan),
                        "seconds": in_prototype.seconds,
                        "kernel": in_kernel.seconds,
                    }
                    for in_prototype, in_kernel in zip(
                        measured_point.prototype, measured_point.kernel, strict=True
                    )
                ],
            }
        )
    return {
        "figure": figure,
        "title": TITLES[figure],
        "settings": run.settings.to_json(),
        "constants": asdict(constants),
        "points": points,
    }
