"""The sentences of ARGUS' section 8 beside our figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.experiments.argus.configurations import (
    ALL_SHARING,
    CONFIGURATIONS,
    MATCH_PLAN,
    MATCH_PLAN_NOT_CANONICAL,
    NO_JOIN_SHARING,
    NOT_CANONICAL,
)
from weft.experiments.argus.run import BY_NODE, MERGED
from weft.experiments.reproduction import Claim, Data, markdown_table

NOTABLE = 1.2
"""A ratio from which on a difference counts as one."""
LINEAR = 0.9
"""A correlation from which on times count as linear in the size."""
FOLD = 100

_BY_NODE = "Each join node evaluated by itself, as ARGUS does, on a part of the history (settings in the data); "
_WORKLOADS = {"fed": "Fed", "med": "Med"}


def claims_of(data: Mapping[str, Data]) -> list[Claim]:
    """The claims that the measured figures are about."""
    claims: list[Claim] = []
    if "fig14" in data:
        claims += _time_claims(data["fig14"]["series"])
    if "fig15" in data:
        claims += _size_claims(data["fig15"]["series"])
    if "baseline" in data:
        claims += [_direct(series) for series in data["baseline"]["series"]]
    return claims


def details_of(data: Mapping[str, Data]) -> str:
    """Every point of the figures."""
    sections = []
    if "fig14" in data:
        sections.append("## Figure 14\n\n" + _times(data["fig14"]["series"]))
    if "fig15" in data:
        sections.append("## Figure 15\n\n" + _sizes(data["fig15"]["series"]))
    return "\n" + "\n".join(sections)


def _times(series: Sequence[Data]) -> str:
    rows = [
        (
            curve["workload"],
            curve["configuration"],
            curve["execution"],
            str(point["queries"]),
            f"{point['seconds'] * 1000:.1f}",
            str(point["physical_joins"]),
            f"{point['candidates']:,}",
            f"{point['results']:,}",
        )
        for curve in series
        for point in curve["points"]
    ]
    heading = (
        "workload", "configuration", "joins", "queries", "ms per increment", "physical joins",
        "pairs looked at", "results",
    )  # fmt: skip
    return markdown_table(heading, rows)


def _sizes(series: Sequence[Data]) -> str:
    rows = [
        (
            curve["workload"],
            curve["configuration"],
            str(point["queries"]),
            str(point["joins"]),
            str(point["selections"]),
            f"{point['weighted']:.0f}",
            f"{point['generation_seconds']:.2f}",
        )
        for curve in series
        for point in curve["points"]
    ]
    heading = (
        "workload", "configuration", "queries", "joins", "selections", "weighted size",
        "seconds to add them",
    )  # fmt: skip
    return markdown_table(heading, rows)


def _time_claims(series: Sequence[Data]) -> list[Claim]:
    sentences = (
        (
            "join sharing is significantly faster than no join sharing (figures 14a, b)",
            NO_JOIN_SHARING,
            "significant",
        ),
        (
            "canonicalization has a significant effect, particularly on Fed (figures 14c, d)",
            NOT_CANONICAL,
            "significant",
        ),
        ("sharing-selection is faster than match-plan (figures 14e, f)", MATCH_PLAN, "better"),
        (
            "match-plan without canonicalization is the worst of the three (figures 14e, f)",
            MATCH_PLAN_NOT_CANONICAL,
            "worse",
        ),
    )
    claims = []
    for sentence, configuration, paper in sentences:
        ratios = {
            (workload, how): _last(series, workload, configuration, how)
            / _last(series, workload, ALL_SHARING, how)
            for workload in _workloads(series)
            for how in (BY_NODE, MERGED)
        }
        by_node = [ratio for (_, how), ratio in ratios.items() if how == BY_NODE]
        claims.append(
            Claim(
                sentence,
                paper,
                "; ".join(
                    f"{_WORKLOADS[workload]}, {how}: {ratio:.2f} times the time of AllSharing"
                    for (workload, how), ratio in ratios.items()
                ),
                _verdict(by_node),
                _BY_NODE + "merged: as weft runs it, where joins of the same inputs and keys are "
                "searched once whatever the network is." + _why(series, configuration),
            )
        )
    return [*claims, *(_linear(series, workload) for workload in _workloads(series))]


def _why(series: Sequence[Data], configuration: str) -> str:
    """Why match-plan is hardly slower on these workloads."""
    if configuration != MATCH_PLAN:
        return ""
    sizes = {
        workload: tuple(
            _point(series, workload, name, BY_NODE)["weighted"]
            for name in (ALL_SHARING, MATCH_PLAN)
        )
        for workload in _workloads(series)
    }
    compared = "; ".join(
        f"{_WORKLOADS[workload]}: {'the same' if shared == matched else f'{matched / shared - 1:.0%} larger'}"
        for workload, (shared, matched) in sizes.items()
    )
    return (
        f" Weighted size of match-plan's network against sharing-selection's: {compared}. Our queries of a category "
        "differ in constants, so their own best plans begin with the same joins, and match-plan meets what is there. "
        "The paper's difference (its figures 11 and 12) comes from queries that have a join in common and "
        "different best plans."
    )


def _verdict(ratios: Sequence[float]) -> str:
    holding = sum(ratio >= NOTABLE for ratio in ratios)
    if holding == len(ratios):
        return "holds"
    return "does not hold" if holding == 0 else f"holds for {holding} of {len(ratios)} workloads"


def _linear(series: Sequence[Data], workload: str) -> Claim:
    points = [
        point
        for curve in series
        if curve["workload"] == workload and curve["execution"] == BY_NODE
        for point in curve["points"]
    ]
    sizes = [point["weighted"] for point in points]
    seconds = [point["seconds"] for point in points]
    varied = len(points) > 2 and np.std(sizes) > 0 and np.std(seconds) > 0
    correlation = float(np.corrcoef(sizes, seconds)[0, 1]) if varied else float("nan")
    return Claim(
        f"execution time is linear in the weighted size of the network ({_WORKLOADS[workload]}, "
        "figure 15)",
        "in general",
        f"correlation {correlation:.3f} over {len(points)} networks",
        "holds" if correlation >= LINEAR else "does not hold",
        _BY_NODE + "weights are ours (`sizes`), since the paper does not give its own.",
    )


def _size_claims(series: Sequence[Data]) -> list[Claim]:
    claims = []
    for workload in _workloads(series):
        last = {
            curve["configuration"]: curve["points"][-1]
            for curve in series
            if curve["workload"] == workload
        }
        smallest = last[ALL_SHARING]["weighted"]
        claims.append(
            Claim(
                f"AllSharing builds the smallest network ({_WORKLOADS[workload]}, figure 15)",
                "smallest",
                "; ".join(
                    f"{name}: {last[name]['weighted']:.0f} ({last[name]['joins']} joins, "
                    f"{last[name]['selections']} selections)"
                    for name in CONFIGURATIONS
                ),
                "holds"
                if all(point["weighted"] >= smallest for point in last.values())
                else "does not hold",
                f"With all {last[ALL_SHARING]['queries']} queries.",
            )
        )
    return claims


def _direct(series: Data) -> Claim:
    return Claim(
        f"more than 100 times faster than running the queries directly ({_WORKLOADS[series['workload']]})",
        f"> {FOLD}",
        f"{series['ratio']:,.0f} times: {series['shared'] * 1000:.1f} ms against "
        f"{series['direct']:.1f} s for an increment",
        "holds" if series["ratio"] > FOLD else "does not hold",
        f"On {series['history']:,} rows of history. {series['measured']} of {series['queries']} queries "
        "were run in full on DuckDB, "
        f"{series['seconds_of_one'] * 1000:.0f} ms each; the others are taken to cost as much. "
        "The paper's figure is from a DBMS of 2006, on disks.",
    )


def _workloads(series: Sequence[Data]) -> list[str]:
    return list(dict.fromkeys(curve["workload"] for curve in series))


def _last(series: Sequence[Data], workload: str, configuration: str, how: str) -> float:
    """The seconds with all queries."""
    return float(_point(series, workload, configuration, how)["seconds"])


def _point(
    series: Sequence[Data], workload: str, configuration: str, how: str
) -> Mapping[str, Any]:
    """What was measured with all queries."""
    (all_queries,) = (
        curve
        for curve in series
        if (curve["workload"], curve["configuration"], curve["execution"])
        == (workload, configuration, how)
    )
    point: dict[str, Any] = all_queries["points"][-1]
    return point
