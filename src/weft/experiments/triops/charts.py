"""Charts of figures 10 to 13, from their data alone.

Lines are the drawn guess at its first seed; grey areas are the spread over all guesses and seeds;
dashed lines are the paper's claims.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import altair as alt
import numpy as np

from weft.experiments.reproduction import Data

_WIDTH, _HEIGHT = 300, 260
_ALL, _HALF = "all guesses", "middle half of them"
_UP_TO, _LOW = "paper: up to 65 % less", "paper: less than 40 % less at low rates"
_COLOURS = {_ALL: "#e3e3e3", _HALF: "#c4c4c4", _UP_TO: "#c0392b", _LOW: "#d68910"}
_OPTIMIZERS = {
    "shared": "#7f7f7f",
    "weaveshare": "#1f77b4",
    "triweave": "#d62728",
    "best": "#2ca02c",
}
_MODELS = {"twoops": [5, 4], "triops": [1, 0]}

Rows = list[dict[str, Any]]
Panel = alt.LayerChart | alt.FacetChart


def rate_chart(data: Data) -> alt.HConcatChart:
    """Figure 10: one panel for each number of queries."""
    drawn = f"drawn: {data['settings']['drawn']}"
    colours = _COLOURS | {drawn: "#1f4e8c"}
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return _framed(data, *(_rate_panel(data, count, drawn, scale) for count in _panels(data)))


def model_chart(data: Data) -> alt.HConcatChart:
    """Figures 11 to 13: costs on the left, what TriOps saves of each plan on the right."""
    return _framed(data, _cost_panel(data), _gain_panel(data))


def _framed(data: Data, *panels: Panel) -> alt.HConcatChart:
    config = alt.Config(
        axis=alt.AxisConfig(grid=False),
        legend=alt.LegendConfig(orient="bottom", labelLimit=400),
    )
    return alt.hconcat(*panels, title=_title(data), config=config)


def _rate_panel(data: Data, queries: int, drawn: str, scale: alt.Scale) -> Panel:
    series = [line for line in data["series"] if line["queries"] == queries]
    ends = alt.Scale(
        type="log", domain=[min(series[0]["rate"]), max(series[0]["rate"])], nice=False
    )
    decades = alt.Axis(values=[0.5, 1, 10, 100, 1000, 10_000])
    x = alt.X("rate:Q", scale=ends, axis=decades, title="input rate (tuples/s)")
    y = alt.Y("low:Q", title="cost of TriWeave / cost of WeaveShare")
    colour = alt.Color("what:N", scale=scale, title=None)
    spread = _spread(series, "rate")
    line = _line(_drawn(data, series)[0], "rate")
    claims = [{"what": _UP_TO, "at": 0.35}, {"what": _LOW, "at": 0.60}]
    return alt.layer(
        _named(_ALL, spread).mark_area().encode(x, y, alt.Y2("high:Q"), colour),
        _named(_HALF, spread)
        .mark_area()
        .encode(x, alt.Y("quarter:Q"), alt.Y2("three_quarters:Q"), colour),
        _chart(claims).mark_rule(strokeDash=[6, 4]).encode(alt.Y("at:Q"), colour),
        _named(drawn, line).mark_line(point=True).encode(x, alt.Y("normalized:Q"), colour),
    ).properties(width=_WIDTH, height=_HEIGHT, title=f"{queries} queries")


def _cost_panel(data: Data) -> Panel:
    lines = [
        row | {"optimizer": series["optimizer"], "model": series["model"]}
        for series in _drawn(data, data["series"])
        for row in _line(series, "queries")
    ]
    every = [s for s in data["series"] if (s["optimizer"], s["model"]) == ("triweave", "triops")]
    scale = alt.Scale(type="log")
    x = alt.X("queries:Q", title="number of queries")
    y = alt.Y("normalized:Q", scale=scale, title="cost / cost of Shared under TwoOps")
    dashes = alt.StrokeDash(
        "model:N",
        scale=alt.Scale(domain=list(_MODELS), range=list(_MODELS.values())),
        legend=alt.Legend(
            title="model", symbolType="stroke", symbolSize=500, symbolStrokeColor="black"
        ),
    )
    best = [row for row in lines if row["optimizer"] == "best"]
    others = [row for row in lines if row["optimizer"] != "best"]
    return alt.layer(
        _chart(_spread(every, "queries"))
        .mark_area(color=_COLOURS[_ALL])
        .encode(x, alt.Y("low:Q", scale=scale), alt.Y2("high:Q")),
        _chart([{"at": 1.0}])
        .mark_rule(color="black", strokeDash=[2, 3])
        .encode(alt.Y("at:Q", scale=scale)),
        # Wide and below the others, so that a line on top of it can be seen.
        _chart(best)
        .mark_line(strokeWidth=6, opacity=0.45)
        .encode(x, y, _optimizer_colour(), dashes),
        _chart(others).mark_line(point=True).encode(x, y, _optimizer_colour(), dashes),
    ).properties(
        width=_WIDTH * 1.3,
        height=_HEIGHT,
        title=_panel_title("normalized cost", "grey: triweave under triops, all guesses"),
    )


def _gain_panel(data: Data) -> Panel:
    rows = [row for series in _gains(_drawn(data, data["series"])) for row in series]
    x = alt.X("queries:Q", title="number of queries")
    scale = alt.Scale(domain=[0, 1])
    y = alt.Y("gain:Q", scale=scale, title="saved by TriOps", axis=alt.Axis(format="%"))
    return alt.layer(
        _chart([{"from": 0.4, "to": 0.6}])
        .mark_rect(color=_COLOURS[_LOW], opacity=0.2)
        .encode(alt.Y("from:Q", scale=scale), alt.Y2("to:Q")),
        _chart(rows).mark_line(point=True).encode(x, y, _optimizer_colour()),
    ).properties(
        width=_WIDTH,
        height=_HEIGHT,
        title=_panel_title(
            "what TriOps saves of each plan of two groups or more", "shaded: paper, 40 to 60 %"
        ),
    )


def _panel_title(text: str, subtitle: str) -> alt.TitleParams:
    return alt.TitleParams(text, subtitle=subtitle, fontSize=11, subtitleFontSize=10)


def _optimizer_colour() -> alt.Color:
    scale = alt.Scale(domain=list(_OPTIMIZERS), range=list(_OPTIMIZERS.values()))
    return alt.Color(
        "optimizer:N", scale=scale, legend=alt.Legend(title="optimizer", symbolOpacity=1)
    )


def _gains(series: Iterable[Data]) -> list[Rows]:
    """What TriOps saves where a plan has two groups or more.

    `best` makes a plan of its own for each model, so it has no such figure.
    """
    by_model: dict[str, dict[str, Data]] = defaultdict(dict)
    for line in series:
        by_model[line["optimizer"]][line["model"]] = line
    return [
        [
            {"optimizer": optimizer, "queries": queries, "gain": 1 - tri / two}
            for queries, groups, two, tri in zip(
                models["twoops"]["queries"],
                models["twoops"]["groups"],
                models["twoops"]["normalized"],
                models["triops"]["normalized"],
            )
            if groups > 1
        ]
        for optimizer, models in by_model.items()
        if optimizer != "best"
    ]


def _chart(rows: Rows) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=rows))


def _named(what: str, rows: Rows) -> alt.Chart:
    """With a name for the legend in each row."""
    return _chart([row | {"what": what} for row in rows])


def _drawn(data: Data, series: Iterable[Data]) -> list[Data]:
    settings = data["settings"]
    wanted = settings["drawn"], settings["seeds"][0]
    return [line for line in series if (line["guess"], line["seed"]) == wanted]


def _panels(data: Data) -> list[int]:
    return sorted({line["queries"] for line in data["series"]})


def _line(series: Data, axis: str) -> Rows:
    return [{axis: x, "normalized": y} for x, y in zip(series[axis], series["normalized"])]


def _spread(series: Iterable[Data], axis: str) -> Rows:
    """The least, the largest and the quartiles at each place of the axis."""
    values: dict[float, list[float]] = defaultdict(list)
    for line in series:
        for x, y in zip(line[axis], line["normalized"]):
            values[x].append(y)
    names = ("low", "quarter", "three_quarters", "high")
    return [
        {axis: x} | dict(zip(names, np.quantile(values[x], (0, 0.25, 0.75, 1)).tolist()))
        for x in sorted(values)
    ]


def _title(data: Data) -> alt.TitleParams:
    settings = data["settings"]
    return alt.TitleParams(
        data["title"],
        subtitle=f"drawn: {settings['drawn']}, seed {settings['seeds'][0]}; "
        f"spread: {len(settings['guesses'])} guesses of the template, "
        f"{len(settings['seeds'])} seeds each",
        anchor="start",
    )


def spark_chart(data: Data) -> alt.HConcatChart:
    """Operations by level on the left, predicted beside counted; seconds on the right."""
    operations = [
        {
            "plan": _plan_name(plan),
            "level": level.replace("level", "level "),
            "what": what,
            "operations": plan[what][level],
        }
        for plan in data["plans"]
        for what in ("predicted", "counted")
        for level in plan[what]
    ]
    times = [
        {"plan": _plan_name(plan), "what": what, "seconds": seconds}
        for plan in data["plans"]
        for what, seconds in (
            ("kernel (levels 2 and 3)", plan["kernel_seconds"]),
            ("all else", plan["seconds"] - plan["kernel_seconds"]),
        )
    ]
    plan_axis = alt.Y("plan:N", title=None, sort=None)
    counted = (
        _chart(operations)
        .mark_bar()
        .encode(
            alt.X("operations:Q", title="aggregate operations"),
            plan_axis,
            alt.Color("level:N", title=None),
            alt.Row("what:N", title=None),
        )
    )
    taken = (
        _chart(times)
        .mark_bar()
        .encode(alt.X("seconds:Q"), plan_axis, alt.Color("what:N", title=None))
    )
    panels = counted.properties(width=_WIDTH), taken.properties(width=_WIDTH)
    drawn = alt.hconcat(*panels, title=data["title"])
    return drawn.resolve_scale(color="independent")  # type: ignore[no-any-return]


def _plan_name(plan: dict[str, Any]) -> str:
    return f"{plan['optimizer']}, {plan['model']}, {plan['groups']} groups"
