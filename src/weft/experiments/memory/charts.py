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
        {"set": f"{each['set']} (α = {each['alpha']:.2f})", "rank": rank, "records": records}
        for each in data["series"]
        for rank, records in zip(each["rank"], each["records"])
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
        {"set": each["set"], "what": what, "entries by groups": share, "evicted": value}
        for each in data["series"]
        for what in ("measured", "lemma", "ranks", "recency")
        for share, value in zip(each["share"], each[what])
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
        {"what": each["configuration"], "memory": each["memory"], "operations": each["counted"]}
        for each in data["series"]
    ]
    return _by_memory(data, rows)


def parts_chart(data: Data) -> alt.Chart:
    """Figures 4b and 4c: during the epoch and at its end."""
    rows = [
        {
            "what": f"{each['configuration']}, {name}",
            "memory": each["memory"],
            "operations": each[part],
        }
        for each in data["series"]
        for part, name in (("during", "during"), ("at_end", "at the end"), ("counted", "in all"))
    ]
    return _by_memory(data, rows)


def saving_chart(data: Data) -> alt.Chart:
    """Figure 5."""
    rows = [
        {
            "what": each["configuration"],
            "memory": f"{each['memory']:,.0f}",
            "queries": queries,
            "saved": saved,
        }
        for each in data["series"]
        for queries, saved in zip(each["queries"], each["saved"])
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
