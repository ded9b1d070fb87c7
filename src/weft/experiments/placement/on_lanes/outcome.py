"""The figure `lanes`: predicted costs beside measured times of lanes; its chart, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

import altair as alt

from weft.experiments.placement.on_lanes.running import FULL, ONE_LANE, QUICK, run, spearman
from weft.experiments.reproduction import Claim, Data, Progress, markdown_table

TITLE = "Placements on Spark lanes: measured times beside predicted costs"
MODELS = {"paper": "equation 1", "ours": "weft's own model"}


def lane_data(quick: bool, progress: Progress) -> Data:
    """Every placement as predicted and as measured."""
    settings = QUICK if quick else FULL
    ran = [asdict(one) for one in run(settings, progress)]
    return {
        "figure": "lanes",
        "title": TITLE,
        "settings": asdict(settings),
        "placements": ran,
        "correlations": correlations(ran),
    }


def correlations(ran: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """By master and workload: rank correlations of lanes and of slowest lanes, and how often the lane that was predicted
    to be the slowest was."""
    rows: list[dict[str, Any]] = []
    for master, workload in dict.fromkeys((one["master"], one["workload"]) for one in ran):
        ours = [one for one in ran if (one["master"], one["workload"]) == (master, workload)]
        measured = [seconds for one in ours for seconds in one["measured"]]
        slowest = [max(one["measured"]) for one in ours]
        for model in MODELS:
            predicted = [cost for one in ours for cost in one[model]]
            rows.append(
                {
                    "master": master,
                    "workload": workload,
                    "model": model,
                    "lanes": spearman(predicted, measured),
                    "slowest": spearman([max(one[model]) for one in ours], slowest),
                    "found": fmean(
                        _slowest(one[model]) == _slowest(one["measured"]) for one in ours
                    ),
                }
            )
    return rows


def _slowest(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)


def lane_claims(data: Data) -> Iterator[Claim]:
    """What the paper assumed and did not measure."""
    for master in dict.fromkeys(row["master"] for row in data["correlations"]):
        for model, name in MODELS.items():
            rows = [
                row
                for row in data["correlations"]
                if (row["master"], row["model"]) == (master, model)
            ]
            lanes, slowest, found = (
                fmean(row[key] for row in rows) for key in ("lanes", "slowest", "found")
            )
            yield Claim(
                f"a lane's time follows its predicted cost by {name} ({master})",
                "assumed",
                f"rank correlation of lanes {lanes:.2f}, of the slowest lanes of placements {slowest:.2f}, on average over "
                f"{len(rows)} workloads; the lane predicted to be the slowest was it in {100 * found:.0f} % of placements",
                "holds"
                if min(lanes, slowest) >= 0.8
                else "holds in part"
                if min(lanes, slowest) >= 0.5
                else "does not hold",
                "Equation 1 counts E·Ω operations at level 3; weft's final aggregation is incremental, so Ω hardly counts, "
                "and every lane reads the fragments of the stream once, however many trees it has."
                if model == "paper"
                else "Levels 2 and 3 and the results, by constants that are calibrated on the driver; reading files is not in it.",
            )
        yield _slowest_lane_claim(data, master)
    placements = data["placements"]
    equal = sum(one["equal"] for one in placements)
    yield Claim(
        "all placements give equal results",
        "–",
        f"{equal} of {len(placements)} placements with the same rows, {sum(one['rows'] for one in placements):,} in all",
        "holds" if equal == len(placements) else "does not hold",
        "A placement says where a group is computed, and nothing else.",
    )


def _slowest_lane_claim(data: Data, master: str) -> Claim:
    """What the choice of the placement is worth."""
    slowest: dict[str, list[float]] = {}
    steps: dict[str, list[float]] = {}
    for one in data["placements"]:
        if one["master"] == master:
            slowest.setdefault(one["optimizer"], []).append(max(one["measured"]))
            steps.setdefault(one["optimizer"], []).append(one["step_seconds"])
    average = {name: fmean(times) for name, times in slowest.items()}
    best = min(average, key=lambda name: average[name])
    names = [name for name in ("balanced", "wg-i", "wg-tn", "g-rand", ONE_LANE) if name in average]
    return Claim(
        f"the slowest lane is what a step waits for ({master})",
        "max cost",
        "slowest lane, seconds of the processor on average, and of the whole step by the clock: "
        + "; ".join(f"{name} {average[name]:.2f}, {fmean(steps[name]):.2f}" for name in names)
        + f"; least {best} {average[best]:.2f}",
        "balanced is the best" if best == "balanced" else f"{best} is the best",
        "With more lanes than cores the step waits for the sum, too.",
    )


def lane_tables(data: Data) -> str:
    """The correlations, and the slowest lanes, in Markdown."""
    heading = ("master", "workload", "model", "lanes", "slowest lanes", "slowest found")
    rows = [
        (
            row["master"],
            row["workload"],
            MODELS[row["model"]],
            f"{row['lanes']:.2f}",
            f"{row['slowest']:.2f}",
            f"{100 * row['found']:.0f} %",
        )
        for row in data["correlations"]
    ]
    text = f"\n## Rank correlation of predicted and measured\n\n{markdown_table(heading, rows)}"
    columns = (
        "master",
        "workload",
        "optimizer",
        "trees",
        "lanes, processor's ms",
        "lanes by the clock, ms",
        "step by the clock, s",
    )
    placements = [
        (
            one["master"],
            one["workload"],
            one["optimizer"],
            str(one["trees"]),
            ", ".join(f"{1000 * seconds:.0f}" for seconds in one["measured"]),
            ", ".join(f"{1000 * seconds:.0f}" for seconds in one["clock"]),
            f"{one['step_seconds']:.2f}",
        )
        for one in data["placements"]
    ]
    return text + f"\n## Placements on lanes\n\n{markdown_table(columns, placements)}"


def lane_chart(data: Data) -> alt.VConcatChart:
    """A point for every lane: predicted by either model, and measured; a bar for every slowest lane."""
    master = data["placements"][0]["master"]
    shown = [one for one in data["placements"] if one["master"] == master]
    points = [
        {
            "workload": one["workload"],
            "optimizer": one["optimizer"],
            "predicted": predicted,
            "measured": measured,
            "model": name,
        }
        for one in shown
        for model, name in MODELS.items()
        for predicted, measured in zip(one[model], one["measured"], strict=True)
        if measured
    ]
    scale = alt.Scale(type="log", nice=False, padding=10)
    panels = [
        alt.Chart(alt.InlineData(values=[point for point in points if point["model"] == name]))
        .mark_point(filled=True, size=25)
        .encode(
            alt.X("predicted:Q", scale=scale, title=f"predicted by {name}"),
            alt.Y("measured:Q", scale=scale, title="processor's seconds of a lane"),
            alt.Color("workload:N", legend=alt.Legend(orient="bottom", columns=2, title=None)),
        )
        .properties(width=320, height=240)
        for name in MODELS.values()
    ]
    bars = [
        {
            "workload": one["workload"],
            "optimizer": one["optimizer"],
            "slowest": max(one["measured"]),
        }
        for one in shown
    ]
    below = (
        alt.Chart(alt.InlineData(values=bars))
        .mark_bar()
        .encode(
            alt.X("optimizer:N", sort=None, title=None),
            alt.XOffset("workload:N"),
            alt.Y("slowest:Q", title="processor's seconds of the slowest lane"),
            alt.Color("workload:N"),
        )
        .properties(width=700, height=200)
    )
    title = alt.TitleParams(data["title"], subtitle=f"on {master}", anchor="start")
    return alt.vconcat(alt.hconcat(*panels), below, title=title)
