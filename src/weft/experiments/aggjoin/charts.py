"""Charts of figures 4 to 6, from their data alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from weft.experiments.reproduction import Data

_WIDTH, _HEIGHT = 260, 220
_FAR = 10
"""Costs that are so many times the cheapest have a logarithmic axis."""
Rows = list[dict[str, Any]]
_PANELS = (
    (
        "operations: model, with expected sizes (dashed), counted",
        ("model", "expected"),
        "counted",
        1.0,
    ),
    ("seconds of the prototype: tuned model, measured", ("tuned",), "seconds", 1.0),
    ("milliseconds of weft's kernel for an instant", ("kernel",), "kernel", 1000.0),
)
"""Title, lines, points, and their unit."""


def sweep_chart(data: Data) -> alt.HConcatChart:
    """Figures 4 and 5: a panel for operations, for the prototype and for the kernel."""
    # Where a parameter is varied by factors costs are, too.
    scale = alt.Scale(type="log") if data["logarithmic"] else alt.Scale(zero=True)
    panels = []
    for title, lines, points, factor in _PANELS:
        rows = _rows(data, (*lines, points), factor)
        base = alt.Chart(alt.InlineData(values=rows), title=title).encode(
            alt.X(
                "value:Q",
                title=data["axis"],
                scale=alt.Scale(
                    type="log" if data["logarithmic"] else "linear", zero=False, nice=False
                ),
            ),
            alt.Color("plan:N", title=None, sort=None),
        )
        layers = [
            base.mark_line(strokeDash=[4, 3] if line == "expected" else []).encode(
                alt.Y(f"{line}:Q", title=None, scale=scale)
            )
            for line in lines
        ]
        layers.append(
            base.mark_point(filled=True).encode(
                alt.Y(f"{points}:Q", title=None, scale=scale),
                alt.Shape("plan:N", legend=None, sort=None),
            )
        )
        panels.append(alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT))
    return _beside(panels, data)


def case_chart(data: Data) -> alt.HConcatChart:
    """What a plan costs beside the cheapest one of its case."""
    names = {
        "model": "model",
        "counted": "counted",
        "seconds": "prototype",
        "kernel": "weft's kernel",
    }
    rows: Rows = []
    for point in data["points"]:
        for measure, name in names.items():
            least = min(plan[measure] for plan in point["plans"])
            rows += [
                {
                    "case": point["label"],
                    "measure": name,
                    "plan": plan["plan"],
                    "cost": plan[measure] / least,
                }
                for plan in point["plans"]
            ]
    far = max(row["cost"] for row in rows) > _FAR
    scale = alt.Scale(type="log") if far else alt.Scale(zero=False)
    panels = [
        alt.Chart(
            alt.InlineData(values=[row for row in rows if row["case"] == point["label"]]),
            title=point["label"],
        )
        .mark_point(filled=True, size=60)
        .encode(
            alt.X("cost:Q", scale=scale, title="times the cheapest"),
            alt.Y("plan:N", title=None, sort=None),
            alt.Color("measure:N", title=None, sort=None),
            alt.Shape("measure:N", title=None, sort=None),
        )
        .properties(width=_WIDTH * 3 // 4, height=_HEIGHT)
        for point in data["points"]
    ]
    return _beside(panels, data)


def runtime_chart(data: Data) -> alt.HConcatChart:
    """The seconds of a step by plan, and of these the kernel's."""
    panels = []
    for point in data["points"]:
        rows = [
            {"plan": plan["plan"], "part": name, "seconds": plan[measure]}
            for plan in point["plans"]
            for measure, name in (("runtime", "a step"), ("kernel", "the kernel alone"))
        ]
        panels.append(
            alt.Chart(alt.InlineData(values=rows), title=point["label"])
            .mark_point(filled=True, size=60)
            .encode(
                alt.X("seconds:Q", scale=alt.Scale(type="log"), title="seconds"),
                alt.Y("plan:N", title=None, sort=None),
                alt.Color("part:N", title=None, sort=None),
            )
            .properties(width=_WIDTH * 3 // 4, height=_HEIGHT)
        )
    return _beside(panels, data)


def _rows(data: Data, measures: Sequence[str], factor: float) -> Rows:
    return [
        {"plan": plan["plan"], "value": point["value"]}
        | {measure: plan[measure] * factor for measure in measures}
        for point in data["points"]
        for plan in point["plans"]
    ]


def _beside(panels: list[Any], data: Data) -> alt.HConcatChart:
    chart: alt.HConcatChart = alt.hconcat(*panels).properties(title=data["title"])
    return chart
