"""Charts of the Placement reproduction, from their data alone."""

from __future__ import annotations

import altair as alt

from weft.experiments.reproduction import Data

_READINGS = {"queries": "every query an item", "preprocessed": "with preprocessing"}


def quality_chart(data: Data) -> alt.HConcatChart:
    """Figure 2: a bar for each optimizer and metric, with one standard deviation."""
    panels = []
    for reading, title in _READINGS.items():
        rows = [
            row | {"low": row["mean"] - row["deviation"], "high": row["mean"] + row["deviation"]}
            for row in data["rows"]
            if row["reading"] == reading
        ]
        base = _chart(rows).encode(
            alt.X("optimizer:N", sort=None, title=None), alt.XOffset("metric:N")
        )
        # Where all 13 have nearly one cost, a lower one is far below 0 %: the axis does not follow it.
        scale = alt.Scale(domain=[-0.5, 1.2])
        bars = base.mark_bar(clip=True).encode(
            alt.Y(
                "mean:Q",
                title="0 % best, 100 % worst of the 13",
                axis=alt.Axis(format="%"),
                scale=scale,
            ),
            alt.Color("metric:N", title="cost"),
        )
        lines = base.mark_rule(clip=True).encode(alt.Y("low:Q", scale=scale), alt.Y2("high:Q"))
        panels.append(alt.layer(bars, lines).properties(width=420, height=240, title=title))
    return _framed(data, *panels)


def node_chart(data: Data) -> alt.HConcatChart:
    """Figure 3: the costs of the four nodes, for each optimizer."""
    bars = (
        _chart(data["rows"])
        .mark_bar()
        .encode(
            alt.X("optimizer:N", sort=None, title=None),
            alt.XOffset("node:N"),
            alt.Y("cost:Q", title="cost of a node"),
            alt.Color("node:N"),
        )
        .properties(width=640, height=260)
    )
    return _framed(data, bars)


def wins_chart(data: Data) -> alt.HConcatChart:
    """Table 3: how often each of the 13 is the best."""
    panels = [
        _chart([row for row in data["rows"] if row["reading"] == reading])
        .mark_bar()
        .encode(
            alt.X("optimizer:N", sort=None, title=None),
            alt.XOffset("metric:N"),
            alt.Y("best:Q", title="best in", axis=alt.Axis(format="%")),
            alt.Color("metric:N", title="cost"),
        )
        .properties(width=420, height=220, title=title)
        for reading, title in _READINGS.items()
    ]
    return _framed(data, *panels)


def time_chart(data: Data) -> alt.HConcatChart:
    """Table 4: our times beside the paper's."""
    rows = [
        {"optimizer": row["optimizer"], "who": who, "seconds": seconds}
        for row in data["rows"]
        if row["reading"] == "queries"
        for who, seconds in (("paper", row["paper"]), ("weft", row["seconds"]))
        if seconds is not None
    ]
    points = (
        _chart(rows)
        .mark_point(filled=True, size=70)
        .encode(
            alt.X("optimizer:N", sort=None, title=None),
            alt.Y("seconds:Q", scale=alt.Scale(type="log"), title="seconds for a plan"),
            alt.Color("who:N", title=None),
        )
        .properties(width=520, height=260)
    )
    return _framed(data, points)


def front_chart(data: Data) -> alt.HConcatChart:
    """The front as a line, the 13 as points; 1 is wg-tn's total cost and wg-i's max cost.

    All of them on the left; on the right those near the front, and its settings.
    """
    near = [row for row in data["rows"] if row["total"] < 2 and row["max"] < 2]
    left = _front_panel(data["rows"], labels=False).properties(title="all optimizers")
    right = _front_panel(near, labels=True).properties(title="near the front; labels: balance")
    return _framed(data, left, right)


def _front_panel(rows: list[dict[str, object]], labels: bool) -> alt.LayerChart | alt.FacetChart:
    scale = alt.Scale(type="log", nice=False, padding=20)
    x = alt.X("total:Q", scale=scale, title="total cost / that of wg-tn")
    y = alt.Y("max:Q", scale=scale, title="max cost / that of wg-i")
    ours = _chart([row for row in rows if row["balance"] is not None])
    theirs = _chart([row for row in rows if row["balance"] is None])
    layers = [
        ours.mark_line(point=True, color="#2ca02c").encode(x, y, alt.Order("balance:Q")),
        theirs.mark_point(filled=True, size=50, color="#1f77b4").encode(x, y),
        theirs.mark_text(align="left", dx=6, dy=-4, fontSize=10).encode(
            x, y, alt.Text("optimizer:N")
        ),
    ]
    if labels:
        text = ours.mark_text(align="left", angle=300, dx=8, fontSize=9, color="#2ca02c")
        layers.append(text.encode(x, y, alt.Text("balance:N")))
    return alt.layer(*layers).properties(width=420, height=380)


def _chart(rows: list[dict[str, object]]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=rows))


def _framed(data: Data, *panels: alt.Chart | alt.LayerChart | alt.FacetChart) -> alt.HConcatChart:
    if "subtitle" in data:
        title = alt.TitleParams(data["title"], subtitle=data["subtitle"], anchor="start")
        return alt.hconcat(*panels, title=title)
    settings = data["settings"]
    runs = "run" if len(settings["seeds"]) == 1 else "runs"
    subtitle = f"{settings['configurations']} configurations, {len(settings['seeds'])} {runs} each"
    title = alt.TitleParams(data["title"], subtitle=subtitle, anchor="start")
    config = alt.Config(legend=alt.LegendConfig(orient="bottom"))
    return alt.hconcat(*panels, title=title, config=config)
