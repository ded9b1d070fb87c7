"""What `weft reproduce argus` runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weft.experiments.argus.charts import direct_chart, size_chart, time_chart
from weft.experiments.argus.claims import claims_of, details_of
from weft.experiments.argus.figures import TITLES, direct_queries, execution_times, network_sizes
from weft.experiments.argus.kept import Kept
from weft.experiments.argus.parameters import FULL, QUICK
from weft.experiments.argus.run import ArgusRun
from weft.experiments.reproduction import Figure, Paper, Progress, Reproduction

_TITLE = "ARGUS: efficient scalable continuous query optimization (the query network)"

FIGURES: dict[str, Figure[ArgusRun]] = {
    "fig14": Figure(TITLES["fig14"], execution_times, time_chart),
    "fig15": Figure(TITLES["fig15"], network_sizes, size_chart),
    "baseline": Figure(TITLES["baseline"], direct_queries, direct_chart),
}


def reproduce(
    figures: Sequence[str], quick: bool, progress: Progress, folder: Path | None = None
) -> Reproduction:
    """Measure these figures, and judge the claims that are about them. In the folder it keeps what it has
    measured until all figures are done: a run that is interrupted goes on there."""
    kept = Kept(None if folder is None else folder / "kept.jsonl")
    run = ArgusRun(figures, QUICK if quick else FULL, progress, kept)
    data = {figure: FIGURES[figure].run(run) for figure in figures}
    run.finish()
    if set(figures) == set(FIGURES):
        kept.forget()
    title = f"{_TITLE}: few settings, which say nothing about the paper" if quick else _TITLE
    return Reproduction("argus", title, data, claims_of(data), details_of(data))


ARGUS = Paper(
    title=_TITLE, figures=FIGURES, default=tuple(FIGURES), run=reproduce, keeps_parts=True
)
