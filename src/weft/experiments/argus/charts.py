"""Charts of figures 14 and 15 and of the queries run directly, from their data alone."""

from __future__ import annotations

from typing import Any

import altair as alt

from weft.experiments.argus.configurations import CONFIGURATIONS
from weft.experiments.reproduction import Data

_WIDTH, _HEIGHT = 340, 260

Rows = list[dict[str, Any]]


def time_chart(data: Data) -> alt.FacetChart:
    """Figure 14: a column for each workload, a row for each way to run a network."""
    rows = [
        {
            "workload": series["workload"],
            "execution": series["execution"],
            "configuration": series["configuration"],
            "queries": point["queries"],
            "seconds": point["seconds"],
        }
        for series in data["series"]
        for point in series["points"]
    ]
    lines = _lines(rows).encode(alt.Y("seconds:Q", title="seconds per increment"))
    return _faceted(lines, data, row="execution")


def size_chart(data: Data) -> alt.FacetChart:
    """Figure 15."""
    rows = [
        {
            "workload": series["workload"],
            "configuration": series["configuration"],
            "queries": point["queries"],
            "weighted size": point["weighted"],
        }
        for series in data["series"]
        for point in series["points"]
    ]
    return _faceted(_lines(rows).encode(alt.Y("weighted size:Q")), data)


def direct_chart(data: Data) -> alt.Chart:
    """Bars on a logarithmic axis."""
    rows = [
        {"workload": series["workload"], "what": what, "seconds": series[key]}
        for series in data["series"]
        for what, key in (("every query in full", "direct"), ("shared network", "shared"))
    ]
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), title=data["title"])
        .mark_bar()
        .encode(
            alt.X("what:N", title=None, sort=None),
            alt.Y("seconds:Q", scale=alt.Scale(type="log"), title="seconds per increment"),
            alt.Color("what:N", title=None, sort=None),
            alt.Column("workload:N", title=None, sort=None),
        )
        .properties(width=_WIDTH // 3, height=_HEIGHT)
    )
    return chart


def _lines(rows: Rows) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(point=True)
        .encode(
            alt.X("queries:Q"),
            alt.Color("configuration:N", title=None, sort=list(CONFIGURATIONS)),
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    return chart


def _faceted(lines: alt.Chart, data: Data, row: str | None = None) -> alt.FacetChart:
    """A panel for each workload, each with axes of its own."""
    column = alt.Column("workload:N", title=None, sort=None)
    if row is None:
        panels = lines.facet(column=column)
    else:
        panels = lines.facet(column=column, row=alt.Row(f"{row}:N", title=None, sort=None))
    chart: alt.FacetChart = panels.resolve_scale(x="independent", y="independent")
    return chart.properties(title=data["title"])
