"""Section 7.2.2 of the AggJoin paper: how the costs of plans move along each sweep.

The sentences are about two-way joins; of three-way joins the paper says that the trends are the same. Plans are told
apart by whether their first input is early: only its parameters are varied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from weft.experiments.reproduction import Claim, Data

Value = TypeVar("Value")

MEASURES = {
    "model": "model",
    "counted": "counted",
    "seconds": "prototype",
    "kernel": "kernel",
}
LINEAR = 0.1
"""Costs within this share of a straight line are linear."""
LOST_AT = 6561
"""Groups from which on the paper sees no advantage of an early first input in figure 4b."""
FLAT = 1.1
"""Costs that differ by less than this factor are the same."""
_JUDGED = (
    "Judged by the model, by counted operations and by the prototype's time, not by the kernel."
)


def plans_of(data: Data) -> list[str]:
    return [plan["plan"] for plan in data["points"][0]["plans"]]


def costs(data: Data, plan: str, measure: str) -> list[float]:
    """Of a plan at every point."""
    place = plans_of(data).index(plan)
    return [float(point["plans"][place][measure]) for point in data["points"]]


def values(data: Data) -> list[float]:
    return [float(point["value"]) for point in data["points"]]


def first_early(plan: str) -> bool:
    return plan.startswith("EAP1")


def window_claims(data: Data) -> list[Claim]:
    """Figures 4a and 5a."""
    late = [plan for plan in plans_of(data) if not first_early(plan)]
    early = [plan for plan in plans_of(data) if first_early(plan)]
    windows = values(data)
    middle = len(windows) // 2 if data["figure"] == "fig5a" else 1
    by_measure = {
        measure: max(_bend(windows, costs(data, plan, measure)) for plan in late)
        for measure in MEASURES
    }
    rise = {
        measure: max(
            costs(data, plan, measure)[-1] / costs(data, plan, measure)[middle] for plan in early
        )
        for measure in MEASURES
    }
    worse = {
        measure: [
            f"{plan} at {window:g}"
            for plan in plans_of(data)[1:]
            for window, cost, of_late in zip(
                windows, costs(data, plan, measure), costs(data, "LAP", measure), strict=True
            )
            if cost >= of_late
        ]
        for measure in MEASURES
    }
    return [
        Claim(
            f"{_listed(late)} rise linearly with w₁ ({_name(data)})",
            "linearly",
            _each(by_measure, lambda value: f"within {value:.0%} of a line"),
            _verdict(by_measure, lambda value: value <= LINEAR),
            _JUDGED,
        ),
        Claim(
            f"{_listed(early)} stay constant once w₁ exceeds {windows[middle]:g} ({_name(data)})",
            "constant",
            f"cost at {windows[-1]:g} beside that at {windows[middle]:g}, at most: "
            + _each(rise, lambda value: f"{value:.2f}"),
            _verdict(rise, lambda value: value <= FLAT),
            "α₁ = min(w₁, g₁/σ₁) is an upper bound: of the 1500 equally likely groups of figure 4a 2000 rows hit "
            "1105, and 5000 rows 1446. So an aggregation set still grows where the model has it constant.",
        ),
        Claim(
            f"early plans are always better than LAP ({_name(data)})",
            "always",
            _each(worse, lambda plans: ", ".join(plans) + " not" if plans else "always"),
            _verdict(worse, lambda plans: not plans),
            "The paper's reason is that α₁ and α₂ are below the windows. At the smallest w₁ α₁ is w₁: by the "
            "model an early first input then saves nothing, and its set must be updated.",
        ),
    ]


def group_claims(data: Data) -> list[Claim]:
    """Figures 4b and 5b."""
    pairs = [(plan, _with_first_late(plan)) for plan in plans_of(data) if first_early(plan)]
    ratios = {
        measure: [
            [
                early / late
                for early, late in zip(
                    costs(data, plan, measure), costs(data, partner, measure), strict=True
                )
            ]
            for plan, partner in pairs
        ]
        for measure in MEASURES
    }
    approaching = {
        measure: all(line[-1] > line[0] and line[-1] > 1 / FLAT for line in lines)
        for measure, lines in ratios.items()
    }
    lost = {
        measure: next(
            (
                f"{group:g}"
                for place, group in enumerate(values(data))
                if all(line[place] > 1 / FLAT for line in lines)
            ),
            "none",
        )
        for measure, lines in ratios.items()
    }
    text = "; ".join(
        f"{MEASURES[measure]}: "
        + ", ".join(
            f"{plan}/{partner} {line[0]:.2f} to {line[-1]:.2f}"
            for (plan, partner), line in zip(pairs, lines, strict=True)
        )
        for measure, lines in ratios.items()
    )
    claim = Claim(
        f"as g₁ grows, an early first input loses its advantage ({_name(data)})",
        "; ".join(f"{plan} approaches {partner}" for plan, partner in pairs),
        text,
        _verdict(approaching, lambda value: value),
        "Beyond w₁·σ₁ groups nearly every row is a group of its own, and updating the set is extra.",
    )
    if data["figure"] != "fig4b":
        return [claim]
    return [
        claim,
        Claim(
            f"the number of groups at which it is lost ({_name(data)})",
            f"{LOST_AT} = 3⁸",
            _each(lost, lambda group: group),
            _verdict(lost, lambda group: group == str(LOST_AT)),
            "By Appendix A α₁ stops growing at g₁ = w₁·σ₁ = 500; the next point is 729 = 3⁶.",
        ),
    ]


def rate_claims(data: Data) -> list[Claim]:
    """Figures 4c and 5c."""
    rates = values(data)
    others_early = "EAP0" + "1" * (len(plans_of(data)[-1]) - len("EAP1"))
    both = {"LAP": others_early, "EAP1" + "0" * (len(others_early) - 4): plans_of(data)[-1]}
    slopes = {
        measure: [
            (
                plan,
                _slope(rates, costs(data, plan, measure)),
                early,
                _slope(rates, costs(data, early, measure)),
            )
            for plan, early in both.items()
        ]
        for measure in MEASURES
    }
    linear = {
        measure: max(_bend(rates, costs(data, plan, measure)) for plan in plans_of(data))
        for measure in MEASURES
    }
    return [
        Claim(
            f"all costs rise linearly with λ₁ ({_name(data)})",
            "linearly",
            _each(linear, lambda value: f"within {value:.0%} of a line"),
            _verdict(linear, lambda value: value <= LINEAR),
            "The kernel evaluates the windows' contents at every instant: its time does not depend on the rate, but for "
            "the number of panes.",
        ),
        Claim(
            f"they rise faster where the other inputs are late ({_name(data)})",
            "; ".join(f"{late} faster than {early}" for late, early in both.items()),
            "; ".join(
                f"{MEASURES[measure]}: "
                + ", ".join(
                    f"{late} {rise / early_rise:.1f} times as fast as {early}"
                    if early_rise > 0
                    else f"{early} does not rise"
                    for late, rise, early, early_rise in of_measure
                )
                for measure, of_measure in slopes.items()
                if measure != "kernel"
            ),
            _verdict(
                slopes, lambda lines: all(rise > early_rise for _, rise, _, early_rise in lines)
            ),
            "A row of the first input then finds rows of the others instead of groups.",
        ),
    ]


def selectivity_claims(data: Data) -> list[Claim]:
    """Figures 4d and 5d."""
    falls = {
        measure: [
            f"{plan} at {value:g}"
            for plan in plans_of(data)
            for value, (before, after) in zip(
                values(data)[1:], pairwise(costs(data, plan, measure)), strict=True
            )
            if after < before
        ]
        for measure in MEASURES
    }
    return [
        Claim(
            f"costs of all plans rise with σ ({_name(data)})",
            "all",
            _each(falls, lambda plans: "falls: " + ", ".join(plans) if plans else "at every step"),
            _verdict(falls, lambda plans: not plans),
            "More matches update the result more often. In a plan with early inputs they are groups, of which there are g "
            "at most: its cost stays, and with few join values its sets are smaller.",
        )
    ]


TRENDS: dict[str, Callable[[Data], list[Claim]]] = {
    "fig4a": window_claims,
    "fig4b": group_claims,
    "fig4c": rate_claims,
    "fig4d": selectivity_claims,
    "fig5a": window_claims,
    "fig5b": group_claims,
    "fig5c": rate_claims,
    "fig5d": selectivity_claims,
}


def _name(data: Data) -> str:
    return f"figure {data['figure'][3:]}"


def _listed(plans: Sequence[str]) -> str:
    return ", ".join(plans)


def _each(by_measure: dict[str, Value], text: Callable[[Value], str]) -> str:
    return "; ".join(f"{MEASURES[measure]}: {text(value)}" for measure, value in by_measure.items())


def _verdict(by_measure: dict[str, Value], holds: Callable[[Value], bool]) -> str:
    """By what was counted and timed in the prototype; the kernel works in another way."""
    found = {measure: holds(by_measure[measure]) for measure in ("model", "counted", "seconds")}
    if all(found.values()):
        return "holds"
    if not any(found.values()):
        return "does not hold"
    return "holds by " + " and ".join(MEASURES[measure] for measure in found if found[measure])


def _with_first_late(plan: str) -> str:
    rest = plan[len("EAP1") :]
    return f"EAP0{rest}" if "1" in rest else "LAP"


def _bend(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The largest distance from the line of least squares, as a share of the cost there."""
    line = np.polyval(np.polyfit(xs, ys, 1), xs)
    return float(np.abs(np.array(ys) / line - 1).max())


def _slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    return (ys[-1] - ys[0]) / (xs[-1] - xs[0])
