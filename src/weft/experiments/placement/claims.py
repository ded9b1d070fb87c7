"""The sentences of section 7 of the Placement paper, with our figures beside them, and what `balanced` adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.experiments.placement.on_lanes.outcome import lane_claims, lane_tables
from weft.experiments.placement.parameters import PAPER_SECONDS
from weft.experiments.placement.simulation import READINGS, Experiment
from weft.experiments.placement.summaries import METRICS, Costs, seconds
from weft.experiments.reproduction import Claim, Data, markdown_table
from weft.optimizer.placement.optimizers import OPTIMIZERS, PAPERS

_PAPER_WINS = {
    ("wg-i", "max"): ("80 %", "3 %"),
    ("wg-tn", "max"): ("17 %", "48 %"),
    ("wg-i", "total"): ("5 %", "9 %"),
    ("wg-tn", "total"): ("90 %", "0.2 %"),
}
_NEAR = 0.10
_WIN_REASONS = {
    (
        "wg-i",
        "max",
    ): "It is a matter of nodes and of skew: in one run of each configuration WG-I is best in 9 % of those "
    "with 4 nodes, 36 % with 8, 73 % with 16 and 75 % with 32; in 65 % without skew and in 32 % with long"
    " slides popular. Where it is not, WG-TN or W-TN is, in 126 of 132 cases: on few nodes WG-I weaves "
    "what does not fit, and all its nodes together cost so much more that balance does not make up for "
    "it. With short slides popular its share is near the paper's (`placement/readings`).",
    (
        "wg-tn",
        "max",
    ): "WeaveShare's trees are of very different cost, and one that is too large for a node is never split. "
    "On 4 nodes that is rare, and WG-TN is best in 91 % of the configurations; on 8, 16 and 32 nodes in 64 %, 27 % and "
    "16 %, and it loses by a wide margin.",
    (
        "wg-i",
        "total",
    ): "WG-I takes the node with the smallest new cost first and looks at the total only then.",
    (
        "wg-tn",
        "total",
    ): "WG-TN is WeaveShare, which minimizes the total cost greedily; with preprocessing and more "
    "nodes than slides there is nothing to merge, and several optimizers have the same plan.",
}


def claims_and_details(
    experiments: Sequence[Experiment], figures: dict[str, Data]
) -> tuple[list[Claim], str]:
    """The claims about the figures that were run, and the tables in Markdown."""
    claims: list[Claim] = []
    details = ""
    if experiments:
        costs = Costs(experiments)
        claims += _win_claims(costs)
        claims += _time_claims(experiments)
        claims += _balanced_claims(costs)
        details += _tables(costs, experiments)
    if "fig3" in figures:
        claims += _node_claims(figures["fig3"])
    if "lanes" in figures:
        claims += lane_claims(figures["lanes"])
        details += lane_tables(figures["lanes"])
    return claims, details


def _win_claims(costs: Costs) -> Iterator[Claim]:
    for (name, metric), (best, losses) in _PAPER_WINS.items():
        found = {reading: costs.wins(reading, name, metric) for reading in READINGS}
        ours = "; ".join(
            f"{_reading(reading)}: {_percent(won.best)}, otherwise {_percent(won.losses, 1)} above"
            for reading, won in found.items()
        )
        wanted = float(best.removesuffix(" %")) / 100
        holds = [reading for reading, won in found.items() if abs(won.best - wanted) <= _NEAR]
        verdict = (
            f"within 10 points {' and '.join(map(_reading, holds))}" if holds else "other figures"
        )
        yield Claim(
            f"{name} has the best {metric} cost of the 13 in {best} of cases, otherwise within {losses} on average",
            f"{best}, {losses}",
            ours,
            verdict,
            _WIN_REASONS[name, metric],
        )


def _time_claims(experiments: Sequence[Experiment]) -> Iterator[Claim]:
    for reading in READINGS:
        taken = seconds(experiments, reading)
        slowest = max(PAPERS, key=lambda name: taken[name])
        ratios = {name: PAPER_SECONDS[name] / taken[name] for name in PAPERS}
        least = min(ratios, key=lambda name: ratios[name])
        yield Claim(
            f"a plan takes less than 13 s on average ({_reading(reading)})",
            "< 13 s",
            f"at most {1000 * taken[slowest]:.1f} ms ({slowest}); balanced {1000 * taken['balanced']:.0f} ms. "
            f"Least ratio of the paper's time to ours: {ratios[least]:.0f} ({least})",
            "holds" if taken[slowest] < 13 else "does not hold",
            "Edge rates of trees are sums over atoms of time that are made once for a workload; a tree is counted anew "
            "only when it gets a new edge set.",
        )


def _balanced_claims(costs: Costs) -> Iterator[Claim]:
    for reading in READINGS:
        total = costs.beside(reading, 0.5, "total", "wg-tn")
        largest = costs.beside(reading, 0.5, "max", "wg-i")
        both = (total <= 1.01) & (largest <= 1.01)
        yield Claim(
            f"weft's own balanced beside wg-tn's total and wg-i's max cost ({_reading(reading)})",
            "–",
            f"total cost {float(total.mean()):.3f} of wg-tn's, max cost {float(largest.mean()):.3f} of wg-i's on "
            f"average; lower total in {_percent(float((total < 1).mean()))}, lower max in "
            f"{_percent(float((largest < 1).mean()))} of configurations",
            "both within 1 % on average"
            if total.mean() <= 1.01 and largest.mean() <= 1.01
            else "not within 1 % on average",
            f"Both within 1 % in {_percent(float(both.mean()))} of configurations. Trees are split and merged, and items "
            "move, until neither cost can be lowered without the other.",
        )


def _node_claims(data: Data) -> Iterator[Claim]:
    costs: dict[str, list[float]] = {}
    for row in data["rows"]:
        costs.setdefault(row["optimizer"], []).append(row["cost"])
    spread = {name: max(nodes) / (sum(nodes) / len(nodes)) for name, nodes in costs.items()}
    names = ("w-tn", "wg-tn", "w-i", "wg-i", "balanced")
    balanced_ones = max(spread["w-i"], spread["wg-i"])
    yield Claim(
        "w-tn and wg-tn have very imbalanced nodes, w-i and wg-i well balanced ones (figure 3)",
        "figure 3",
        "largest node over average node: "
        + ", ".join(f"{name} {spread[name]:.2f}" for name in names),
        "holds"
        if min(spread["w-tn"], spread["wg-tn"]) > balanced_ones
        else "does not hold for this workload",
        "Trees of WeaveShare are not made to be of equal cost.",
    )
    ratio = sum(costs["wg-i"]) / sum(costs["wg-tn"])
    yield Claim(
        "wg-i's total cost is practically as low as wg-tn's (figure 3)",
        "about equal",
        f"{ratio:.2f} times wg-tn's; balanced {sum(costs['balanced']) / sum(costs['wg-tn']):.2f} times",
        "holds" if ratio < 1.1 else "does not hold for this workload",
        "WG-I chooses the node first; see table 3.",
    )


def _tables(costs: Costs, experiments: Sequence[Experiment]) -> str:
    text = ""
    for reading in READINGS:
        taken = seconds(experiments, reading)
        rows = []
        for name in OPTIMIZERS:
            cells = [name]
            for metric in METRICS:
                won = costs.wins(reading, name, metric)
                ratio = costs.of(reading, name, metric) / costs.least(reading, metric)
                cells += [_percent(won.best), f"{float(ratio.mean()):.3f}"]
            paper = PAPER_SECONDS.get(name)
            times = f"{paper / taken[name]:.0f}×" if paper else "–"
            cells += ["–" if paper is None else f"{paper:g}", f"{1000 * taken[name]:.2f}", times]
            rows.append(tuple(cells))
        heading = (
            "optimizer",
            "best max cost in",
            "max cost / best of the 13",
            "best total cost in",
            "total cost / best of the 13",
            "paper, s",
            "ours, ms",
            "faster",
        )
        text += f"\n## {_reading(reading).capitalize()}\n\n{markdown_table(heading, rows)}"
    return text


def _reading(reading: str) -> str:
    return {"queries": "without preprocessing", "preprocessed": "with preprocessing"}[reading]


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %"
