"""The plot of ``weft bench plan``: seconds against number of queries, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import pandas as pd

from weft.bench.plan import SETTINGS, PlannedPoint


def save(points: Sequence[PlannedPoint], folder: Path) -> list[Path]:
    """Draw the points into ``bench-plan.svg`` and ``bench-plan.png`` of a folder."""
    if not points:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    drawn = chart(points)
    paths = [folder / "bench-plan.svg", folder / "bench-plan.png"]
    for path in paths:
        drawn.save(str(path), scale_factor=2)
    return paths


def chart(points: Sequence[PlannedPoint]) -> alt.HConcatChart:
    """One panel for each kind of workload, one line for each optimizer; both axes logarithmic."""
    panels = []
    for name in dict.fromkeys(point.setting for point in points):
        rows = pd.DataFrame(
            [
                {"queries": p.queries, "seconds": p.seconds, "optimizer": p.optimizer}
                for p in points
                if p.setting == name
            ]
        )
        panels.append(
            alt.Chart(rows, title=SETTINGS[name].title)
            .mark_line(point=True)
            .encode(
                x=alt.X("queries:Q", title="queries", scale=alt.Scale(type="log")),
                y=alt.Y("seconds:Q", title="seconds", scale=alt.Scale(type="log")),
                color=alt.Color("optimizer:N", title="optimizer"),
            )
            .properties(width=240, height=240)
        )
    return alt.hconcat(*panels)
