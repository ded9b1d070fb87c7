"""What `weft reproduce aggjoin` runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from weft.experiments.aggjoin.charts import case_chart, sweep_chart
from weft.experiments.aggjoin.claims import claims_of, details_of
from weft.experiments.aggjoin.figures import TITLES, case_data, sweep_data
from weft.experiments.aggjoin.parameters import FULL, QUICK
from weft.experiments.aggjoin.run import ARITY, SHOWCASE, AggJoinRun
from weft.experiments.reproduction import Figure, Paper, Progress, Reproduction

_TITLE = "Transformation of continuous aggregation join queries (early and late aggregation)"

FIGURES: dict[str, Figure[AggJoinRun]] = {
    **{
        sweep.figure: Figure(sweep.title, partial(sweep_data, sweep.figure), sweep_chart)
        for sweep in FULL.sweeps
    },
    **{
        figure: Figure(TITLES[figure], partial(case_data, figure), case_chart)
        for figure in (SHOWCASE, ARITY)
    },
}


def reproduce(figures: Sequence[str], quick: bool, progress: Progress) -> Reproduction:
    """Measure these figures, and judge the claims that are about them."""
    run = AggJoinRun(figures, QUICK if quick else FULL, progress)
    data = {figure: FIGURES[figure].run(run) for figure in figures}
    run.finish()
    title = f"{_TITLE}: few settings, which say nothing about the paper" if quick else _TITLE
    return Reproduction("aggjoin", title, data, claims_of(data), details_of(data))


AGGJOIN = Paper(title=_TITLE, figures=FIGURES, default=tuple(FIGURES), run=reproduce)
