"""Charts of figures 2 to 5, from their data alone."""

from __future__ import annotations

from typing import Any

import altair as alt

from weft.experiments.reproduction import Data

_WIDTH, _HEIGHT = 420, 280

Rows = list[dict[str, Any]]


def rank_chart(data: Data) -> alt.Chart:
    """Figure 2, both axes logarithmic."""
    rows = [
        {"set": f"{series['set']} (α = {series['alpha']:.2f})", "rank": rank, "records": records}
        for series in data["series"]
        for rank, records in zip(series["rank"], series["records"])
    ]
    log = alt.Scale(type="log")
    return _framed(data, rows).encode(
        alt.X("rank:Q", scale=log),
        alt.Y("records:Q", scale=log),
        alt.Color("set:N", title=None),
    )


def eviction_chart(data: Data) -> alt.Chart:
    """Figure 3."""
    rows = [
        {"set": series["set"], "what": what, "entries by groups": share, "evicted": value}
        for series in data["series"]
        for what in ("measured", "lemma", "ranks", "recency")
        for share, value in zip(series["share"], series[what])
    ]
    return _framed(data, rows).encode(
        alt.X("entries by groups:Q", axis=alt.Axis(format="%")),
        alt.Y("evicted:Q", axis=alt.Axis(format="%"), title="records that evict an entry"),
        alt.Color("set:N", title=None),
        alt.StrokeDash("what:N", title=None),
    )


def memory_chart(data: Data) -> alt.Chart:
    """Figure 4a: what was counted, in all."""
    rows = [
        {"what": point["configuration"], "memory": point["memory"], "operations": point["counted"]}
        for point in data["series"]
    ]
    return _by_memory(data, rows)


def parts_chart(data: Data) -> alt.Chart:
    """Figures 4b and 4c: during the epoch and at its end."""
    rows = [
        {
            "what": f"{point['configuration']}, {name}",
            "memory": point["memory"],
            "operations": point[part],
        }
        for point in data["series"]
        for part, name in (("during", "during"), ("at_end", "at the end"), ("counted", "in all"))
    ]
    return _by_memory(data, rows)


def saving_chart(data: Data) -> alt.Chart:
    """Figure 5."""
    rows = [
        {
            "what": series["configuration"],
            "memory": f"{series['memory']:,.0f}",
            "queries": queries,
            "saved": saved,
        }
        for series in data["series"]
        for queries, saved in zip(series["queries"], series["saved"])
    ]
    return _framed(data, rows).encode(
        alt.X("queries:Q", scale=alt.Scale(zero=False)),
        alt.Y("saved:Q", axis=alt.Axis(format="%"), title="operations saved beside SLC"),
        alt.Color("memory:N", sort=None),
        alt.StrokeDash("what:N", title=None, sort=None),
    )


def _by_memory(data: Data, rows: Rows) -> alt.Chart:
    return _framed(data, rows).encode(
        alt.X("memory:Q", scale=alt.Scale(type="log"), title="memory (entries)"),
        alt.Y("operations:Q", title="hash operations of an epoch"),
        alt.Color("what:N", title=None, sort=None),
    )


def _framed(data: Data, rows: Rows) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), title=data["title"])
        .mark_line(point=True)
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    return chart
