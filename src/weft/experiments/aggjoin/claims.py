"""The sentences of the AggJoin paper's section 7 beside our figures: orders of plans, choices, and cases.

How costs move along a sweep is `trends`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from weft.experiments.aggjoin.ranking import CLEAR, Agreement, agreement, together
from weft.experiments.aggjoin.trends import MEASURES, TRENDS, costs, plans_of
from weft.experiments.reproduction import Claim, Data, markdown_table

BEST = ("EAP11", "EAP10", "EAP01", "LAP")
"""Of the cases of figure 6."""
_COMPARED = (
    ("model", "counted"),
    ("expected", "counted"),
    ("tuned", "seconds"),
    ("expected", "seconds"),
    ("model", "kernel"),
)
"""Which model is compared with what. The prototype's time has tuned constants, as in the paper."""
_MODELS = {
    "model": "the cost functions",
    "tuned": "the cost functions",
    "expected": "the cost functions with expected sizes (not in the paper)",
}
_NAMES = {
    "counted": "by counted operations",
    "seconds": "in the prototype's time",
    "kernel": "in weft's kernel",
}
_ORDER_REASONS = {
    "counted": "α and αᵢ are upper bounds, and a search that succeeds looks at half of a bucket: the model takes sets for "
    "larger than they are.",
    "seconds": "Of the same kind; besides, a joined tuple takes its time whatever the length of its bucket is.",
    "kernel": "Not the paper's algorithm: weft joins the contents of windows anew at every instant. The work is the "
    "product of all contents, so one early input saves for all others, too; what is left are a few milliseconds.",
}
_EXPECTED = "With the number of groups that so many rows are expected to fall into. Added after the paper's had failed."


def claims_of(figures: Mapping[str, Data]) -> list[Claim]:
    """The claims that these figures are about."""
    claims: list[Claim] = []
    for name, arity in (("fig4", "two-way"), ("fig5", "three-way")):
        sweeps = [data for figure, data in figures.items() if figure.startswith(name)]
        if sweeps:
            claims += [_order(sweeps, arity, *compared) for compared in _COMPARED]
            claims += [_choice(sweeps, arity, *compared) for compared in _COMPARED]
    for figure, data in figures.items():
        if figure in TRENDS and len(data["points"]) > 1:
            claims += TRENDS[figure](data)
    if "fig4a" in figures and "fig5a" in figures:
        claims.append(_at_defaults(figures["fig4a"], figures["fig5a"]))
    if "arity" in figures:
        claims.append(_arity(figures["arity"]))
    if "fig6" in figures:
        claims += [_showcase(figures["fig6"], measure) for measure in MEASURES]
    return claims


def details_of(figures: Mapping[str, Data]) -> str:
    """Every plan at every point, and the tuned constants."""
    sections = []
    for data in figures.values():
        rows = [
            (
                point["label"],
                plan["plan"],
                f"{plan['model']:,.0f}",
                f"{plan['expected']:,.0f}",
                f"{plan['counted']:,.0f}",
                f"{plan['joined']:,.0f}",
                f"{plan['tuned']:.4f}",
                f"{plan['seconds']:.4f}",
                f"{plan['kernel'] * 1000:.1f}",
            )
            for point in data["points"]
            for plan in point["plans"]
        ]
        heading = (
            "point", "plan", "model", "expected", "counted", "joined", "model, s", "prototype, s", "kernel, ms",
        )  # fmt: skip
        constants = ", ".join(
            f"{name} {value * 1e9:.0f}" for name, value in data["constants"].items() if value < 1
        )
        sections.append(
            f"## {data['title']}\n\nConstants in ns: {constants}.\n\n"
            + markdown_table(heading, rows)
        )
    return "\n" + "\n".join(sections)


def _agreements(sweeps: Sequence[Data], model: str, measure: str) -> list[Agreement]:
    return [
        agreement(
            [plan[model] for plan in point["plans"]], [plan[measure] for plan in point["plans"]]
        )
        for data in sweeps
        for point in data["points"]
    ]


def _order(sweeps: Sequence[Data], arity: str, model: str, measure: str) -> Claim:
    agreements = _agreements(sweeps, model, measure)
    same = sum(one.same for one in agreements)
    paper = "most of the time" if arity == "two-way" else "the same"
    found = "the same" if same == len(agreements) else "most of the time"
    in_paper = measure != "kernel" and model != "expected"
    return Claim(
        f"plans have the order of {_MODELS[model]} {_NAMES[measure]} ({arity})",
        paper if in_paper else "–",
        together(agreements),
        ("holds" if found in (paper, "the same") else found)
        if same > len(agreements) / 2
        else "does not hold",
        f"Pairs are clear if the model's costs differ by {CLEAR - 1:.0%}. "
        + (_EXPECTED if model == "expected" else _ORDER_REASONS[measure]),
    )


def _choice(sweeps: Sequence[Data], arity: str, model: str, measure: str) -> Claim:
    losses = [one.loss for one in _agreements(sweeps, model, measure)]
    best = sum(loss <= CLEAR - 1 for loss in losses)
    chosen = sum(losses) / len(losses)
    all_early = plans_of(sweeps[0])[-1]
    fixed = {plan: _loss_of(plan, sweeps, measure) for plan in ("LAP", all_early)}
    if chosen <= min(fixed.values()):
        verdict = "holds"
    elif chosen <= fixed["LAP"]:
        verdict = f"better than always LAP, not than always {all_early}"
    else:
        verdict = "does not hold"
    in_paper = measure != "kernel" and model != "expected"
    return Claim(
        f"a query optimizer chooses the right plan by {_MODELS[model]} ({arity}, {MEASURES[measure]})",
        "usable by a query optimizer" if in_paper else "–",
        f"best, or within {CLEAR - 1:.0%} of it, at {best} of {len(losses)} points; {chosen:.1%} more than the best on "
        f"average, {max(losses):.0%} at most; on average "
        + ", ".join(f"always {plan}: {loss:.1%} more" for plan, loss in fixed.items()),
        verdict,
        "More than the cheapest plan at each point, by this measure. "
        + (
            _EXPECTED
            if model == "expected"
            else "The second input has one group, so nearly always all inputs should be early; where sets are taken for "
            "larger than they are, early aggregation is given up too soon."
        ),
    )


def _loss_of(plan: str, sweeps: Sequence[Data], measure: str) -> float:
    """What one plan at all points costs more than the cheapest at each, on average."""
    ratios = [
        cost / min(float(other[measure]) for other in point["plans"])
        for data in sweeps
        for cost, point in zip(costs(data, plan, measure), data["points"], strict=True)
    ]
    return sum(ratios) / len(ratios) - 1


def _advantage(point: Data) -> dict[str, float]:
    """LAP beside the cheapest plan."""
    return {
        measure: point["plans"][0][measure] / min(plan[measure] for plan in point["plans"])
        for measure in MEASURES
    }


def _at_defaults(two_way: Data, three_way: Data) -> Claim:
    two, three = _advantage(two_way["points"][-1]), _advantage(three_way["points"][-1])
    larger = [three[measure] > two[measure] for measure in ("model", "counted", "seconds")]
    return Claim(
        "early aggregation's advantage is larger for three-way joins (default settings)",
        "larger",
        "LAP beside the best plan: "
        + "; ".join(
            f"{MEASURES[measure]} {two[measure]:.1f} (two-way), {three[measure]:.1f} (three-way)"
            for measure in MEASURES
        ),
        _of_all(larger),
        "The settings differ: windows of 5000 and 300 rows, 150 and 20 groups. In the kernel two-way has larger "
        "contents.",
    )


def _arity(data: Data) -> Claim:
    advantages = [_advantage(point) for point in data["points"]]
    larger = [all(b[measure] > a[measure] for a, b in pairwise(advantages)) for measure in MEASURES]
    return Claim(
        "early aggregation's advantage grows with the number of inputs (same settings)",
        "“magnified as the arity of a join increases”",
        "LAP beside the best plan: "
        + "; ".join(
            f"{point['label']}: " + ", ".join(f"{MEASURES[m]} {advantage[m]:.1f}" for m in MEASURES)
            for point, advantage in zip(data["points"], advantages, strict=True)
        ),
        _of_all(larger),
        "An early input divides what a row is joined with by σ·w/min(σ·w, g); for several inputs the factors multiply.",
    )


def _showcase(data: Data, measure: str) -> Claim:
    cases = []
    for point, wanted in zip(data["points"], BEST, strict=True):
        ordered = sorted(point["plans"], key=lambda plan: plan[measure])
        margin = ordered[1][measure] / ordered[0][measure] - 1
        cases.append((point["label"], wanted, ordered[0]["plan"], ordered[1]["plan"], margin))
    return Claim(
        f"each plan is best in one case of figure 6 ({MEASURES[measure]})",
        "; ".join(f"{label}: {wanted}" for label, wanted, *_ in cases),
        "; ".join(
            f"{label}: {best}, {margin:.0%} before {second}"
            for label, _, best, second, margin in cases
        ),
        _of_all([wanted == best for _, wanted, best, *_ in cases]),
        "Settings are ours, the paper's are not in its text. "
        + (
            "Windows of 8000 rows, 1000 join values."
            if measure == "kernel"
            else "Updating a set is a small part of the work, so that a needless one shows only in small windows: 10 rows, "
            "5 join values."
        ),
    )


def _of_all(found: Sequence[bool]) -> str:
    if all(found):
        return "holds"
    return f"holds for {sum(found)} of {len(found)}" if any(found) else "does not hold"
