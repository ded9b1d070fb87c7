"""What `weft reproduce triops` runs.

`FIGURES` is the place for more: a figure whose `run` ignores the points of the simulation, such as
one that runs plans on Spark, is added there by name, and to `default` only if it is quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

from weft.experiments.reproduction import Data, Figure, Paper, Progress, Reproduction
from weft.experiments.triops.charts import model_chart, rate_chart
from weft.experiments.triops.claims import claims_and_details
from weft.experiments.triops.figures import TITLES, query_sweep, rate_sweep
from weft.experiments.triops.grid import Point, measure
from weft.experiments.triops.parameters import FULL, MODEL_RATES, QUICK, Settings

_TITLE = "Three-level processing of multiple aggregate continuous queries (TriOps, TriWeave)"


class Run:
    """One run: its settings, and the points of all its simulated figures, measured once."""

    def __init__(self, figures: Sequence[str], settings: Settings, progress: Progress) -> None:
        self.simulated = [figure for figure in figures if figure in TITLES]
        self.settings = settings
        self.progress = progress

    @cached_property
    def points(self) -> list[Point]:
        return measure(self.settings, self.simulated, self.progress)


def _rates(run: Run) -> Data:
    return rate_sweep(run.settings, run.points)


def _models(figure: str, run: Run) -> Data:
    return query_sweep(figure, run.settings, run.points)


FIGURES: dict[str, Figure[Run]] = {
    "fig10": Figure(TITLES["fig10"], _rates, rate_chart),
    **{
        figure: Figure(TITLES[figure], partial(_models, figure), model_chart)
        for figure in MODEL_RATES
    },
}


def reproduce(figures: Sequence[str], quick: bool, progress: Progress) -> Reproduction:
    """Measure these figures, and judge the claims that are about them."""
    run = Run(figures, QUICK if quick else FULL, progress)
    data = {figure: FIGURES[figure].run(run) for figure in figures}
    claims, details = (
        claims_and_details(run.settings, run.points, run.simulated) if run.simulated else ([], "")
    )
    title = f"{_TITLE}: few settings, which say nothing about the paper" if quick else _TITLE
    return Reproduction("triops", title, data, claims, details)


TRIOPS = Paper(title=_TITLE, figures=FIGURES, default=tuple(TITLES), run=reproduce)
