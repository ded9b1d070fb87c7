"""What `weft reproduce placement` runs: simulations without Spark, and `lanes`, the same plans on Spark.

`readings` tries other readings of the paper, `scale` plans far more queries and lanes than it has; these two are run
only if they are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from weft.experiments.placement.charts import (
    front_chart,
    node_chart,
    quality_chart,
    time_chart,
    wins_chart,
)
from weft.experiments.placement.claims import claims_and_details
from weft.experiments.placement.figures import TITLES, front, node_costs, quality, times, wins
from weft.experiments.placement.grid import measure
from weft.experiments.placement.on_lanes.outcome import TITLE as LANES_TITLE
from weft.experiments.placement.on_lanes.outcome import lane_chart, lane_data
from weft.experiments.placement.parameters import FULL, QUICK, PlacementSettings
from weft.experiments.placement.readings import TITLE as READINGS_TITLE
from weft.experiments.placement.readings import readings_chart, readings_data, readings_table
from weft.experiments.placement.scale import TITLE, scale_chart, scale_data
from weft.experiments.placement.simulation import Experiment
from weft.experiments.reproduction import Data, Figure, Paper, Progress, Reproduction

_TITLE = "Processing of aggregate continuous queries in a distributed environment (Placement)"


class PlacementRun:
    """One run: its settings, and the outcomes of experiment 1, measured once if a figure needs them."""

    def __init__(self, settings: PlacementSettings, progress: Progress) -> None:
        self.settings = settings
        self.progress = progress

    @cached_property
    def experiments(self) -> list[Experiment]:
        return measure(self.settings, self.progress)

    @property
    def measured(self) -> list[Experiment]:
        """The outcomes, if a figure has asked for them."""
        found: list[Experiment] = self.__dict__.get("experiments", [])
        return found


def _of_experiments(
    make: Callable[[PlacementSettings, Sequence[Experiment]], Data],
) -> Callable[[PlacementRun], Data]:
    return lambda run: make(run.settings, run.experiments)


FIGURES: dict[str, Figure[PlacementRun]] = {
    "fig2": Figure(TITLES["fig2"], _of_experiments(quality), quality_chart),
    "fig3": Figure(TITLES["fig3"], lambda run: node_costs(run.settings), node_chart),
    "tab3": Figure(TITLES["tab3"], _of_experiments(wins), wins_chart),
    "tab4": Figure(TITLES["tab4"], _of_experiments(times), time_chart),
    "front": Figure(TITLES["front"], _of_experiments(front), front_chart),
    "lanes": Figure(
        LANES_TITLE, lambda run: lane_data(run.settings is QUICK, run.progress), lane_chart
    ),
    "readings": Figure(
        READINGS_TITLE, lambda run: readings_data(run.settings, run.progress), readings_chart
    ),
    "scale": Figure(
        TITLE, lambda run: scale_data(run.settings is QUICK, run.progress), scale_chart
    ),
}


def reproduce(figures: Sequence[str], quick: bool, progress: Progress) -> Reproduction:
    """Measure these figures, and judge the claims that are about them."""
    run = PlacementRun(QUICK if quick else FULL, progress)
    data = {figure: FIGURES[figure].run(run) for figure in figures}
    claims, details = claims_and_details(run.measured, data)
    if "readings" in data:
        details += readings_table(data["readings"])
    title = f"{_TITLE}: few settings, which say nothing about the paper" if quick else _TITLE
    return Reproduction("placement", title, data, claims, details)


PLACEMENT = Paper(title=_TITLE, figures=FIGURES, default=(*TITLES, "lanes"), run=reproduce)
