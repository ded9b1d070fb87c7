"""What `weft reproduce aggjoin` runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from weft.experiments.aggjoin.charts import case_chart, runtime_chart, sweep_chart
from weft.experiments.aggjoin.claims import claims_of, details_of
from weft.experiments.aggjoin.figures import TITLES, case_data, sweep_data
from weft.experiments.aggjoin.parameters import FULL, QUICK
from weft.experiments.aggjoin.run import ARITY, SHOWCASE, AggJoinRun
from weft.experiments.reproduction import Claim, Data, Figure, Paper, Progress, Reproduction

_TITLE = "Transformation of continuous aggregation join queries (early and late aggregation)"

RUNTIME = "runtime"


def _runtime(run: AggJoinRun) -> Data:
    from weft.experiments.aggjoin.on_spark.runtime import runtime_data

    return runtime_data(run.settings is QUICK, run.progress)


def _runtime_claims(data: Data) -> tuple[list[Claim], str]:
    from weft.experiments.aggjoin.on_spark.runtime import runtime_claims, runtime_details

    return runtime_claims(data), runtime_details(data)


FIGURES: dict[str, Figure[AggJoinRun]] = {
    **{
        sweep.figure: Figure(sweep.title, partial(sweep_data, sweep.figure), sweep_chart)
        for sweep in FULL.sweeps
    },
    **{
        figure: Figure(TITLES[figure], partial(case_data, figure), case_chart)
        for figure in (SHOWCASE, ARITY)
    },
    RUNTIME: Figure("Plans in whole steps on Spark", _runtime, runtime_chart),
}


def reproduce(figures: Sequence[str], quick: bool, progress: Progress) -> Reproduction:
    """Measure these figures, and judge the claims that are about them."""
    modelled = [figure for figure in figures if figure != RUNTIME]
    run = AggJoinRun(modelled, QUICK if quick else FULL, progress)
    data = {figure: FIGURES[figure].run(run) for figure in modelled}
    run.finish()
    claims, details = claims_of(data), details_of(data)
    if RUNTIME in figures:
        data[RUNTIME] = FIGURES[RUNTIME].run(run)
        of_runtime, more = _runtime_claims(data[RUNTIME])
        claims, details = [*claims, *of_runtime], details + more
    title = f"{_TITLE}: few settings, which say nothing about the paper" if quick else _TITLE
    return Reproduction("aggjoin", title, data, claims, details)


AGGJOIN = Paper(title=_TITLE, figures=FIGURES, default=tuple(FIGURES), run=reproduce)
