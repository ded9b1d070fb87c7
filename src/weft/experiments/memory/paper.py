"""What `weft reproduce memory` runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from weft.experiments.memory.charts import (
    eviction_chart,
    memory_chart,
    parts_chart,
    rank_chart,
    saving_chart,
)
from weft.experiments.memory.claims import claims_of, details_of
from weft.experiments.memory.figures import (
    TITLES,
    MemoryRun,
    evictions,
    memory_sweep,
    query_sweep,
    ranks,
)
from weft.experiments.memory.parameters import FULL, QUICK
from weft.experiments.reproduction import Figure, Paper, Progress, Reproduction

_TITLE = "Memory-constrained aggregate computation over data streams (aggregate trees, FPTAS)"

FIGURES: dict[str, Figure[MemoryRun]] = {
    "fig2": Figure(TITLES["fig2"], ranks, rank_chart),
    "fig3": Figure(TITLES["fig3"], evictions, eviction_chart),
    "fig4a": Figure(TITLES["fig4a"], partial(memory_sweep, "fig4a"), memory_chart),
    "fig4b": Figure(TITLES["fig4b"], partial(memory_sweep, "fig4b"), parts_chart),
    "fig4c": Figure(TITLES["fig4c"], partial(memory_sweep, "fig4c"), parts_chart),
    "fig5": Figure(TITLES["fig5"], query_sweep, saving_chart),
}


def reproduce(figures: Sequence[str], quick: bool, progress: Progress) -> Reproduction:
    """Measure these figures, and judge the claims that are about them."""
    run = MemoryRun(figures, QUICK if quick else FULL, progress)
    data = {figure: FIGURES[figure].run(run) for figure in figures}
    run.finish()
    title = f"{_TITLE}: few settings, which say nothing about the paper" if quick else _TITLE
    return Reproduction("memory", title, data, claims_of(data), details_of(data))


MEMORY = Paper(title=_TITLE, figures=FIGURES, default=tuple(FIGURES), run=reproduce)
