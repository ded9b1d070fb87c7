"""What `weft reproduce triops` runs.

Figures 10 to 13 are simulated. `spark` runs the same plans on Spark; it needs Java, and is run
only if it is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

from weft.experiments.reproduction import Claim, Data, Figure, Paper, Progress, Reproduction
from weft.experiments.triops.charts import model_chart, rate_chart, spark_chart
from weft.experiments.triops.claims import claims_and_details
from weft.experiments.triops.figures import TITLES, query_sweep, rate_sweep
from weft.experiments.triops.grid import SimulatedPoint, measure
from weft.experiments.triops.parameters import FULL, MODEL_RATES, QUICK, TriopsSettings

_TITLE = "Three-level processing of multiple aggregate continuous queries (TriOps, TriWeave)"


class TriopsRun:
    """One run: its settings, and the points of all its simulated figures, measured once."""

    def __init__(
        self, figures: Sequence[str], settings: TriopsSettings, progress: Progress
    ) -> None:
        self.simulated = [figure for figure in figures if figure in TITLES]
        self.settings = settings
        self.quick = settings is QUICK
        self.progress = progress

    @cached_property
    def points(self) -> list[SimulatedPoint]:
        return measure(self.settings, self.simulated, self.progress)


def _rates(run: TriopsRun) -> Data:
    return rate_sweep(run.settings, run.points)


def _models(figure: str, run: TriopsRun) -> Data:
    return query_sweep(figure, run.settings, run.points)


def _spark(run: TriopsRun) -> Data:
    from weft.experiments.triops.on_spark import spark_data

    return spark_data(run.quick, run.progress)


def _spark_claims(data: Data | None) -> list[Claim]:
    from weft.experiments.triops.on_spark import spark_claims

    return spark_claims(data) if data is not None else []


FIGURES: dict[str, Figure[TriopsRun]] = {
    "fig10": Figure(TITLES["fig10"], _rates, rate_chart),
    **{
        figure: Figure(TITLES[figure], partial(_models, figure), model_chart)
        for figure in MODEL_RATES
    },
    "spark": Figure("Plans on Spark", _spark, spark_chart),
}


def reproduce(figures: Sequence[str], quick: bool, progress: Progress) -> Reproduction:
    """Measure these figures, and judge the claims that are about them."""
    run = TriopsRun(figures, QUICK if quick else FULL, progress)
    data = {figure: FIGURES[figure].run(run) for figure in figures}
    claims, details = (
        claims_and_details(run.settings, run.points, run.simulated) if run.simulated else ([], "")
    )
    claims = [*claims, *_spark_claims(data.get("spark"))]
    title = f"{_TITLE}: few settings, which say nothing about the paper" if quick else _TITLE
    return Reproduction("triops", title, data, claims, details)


TRIOPS = Paper(title=_TITLE, figures=FIGURES, default=tuple(TITLES), run=reproduce)
