"""The sentences of section VII of the TriOps paper, with our figures over all guesses beside them.

A verdict says for how many guesses a claim holds. The reasons are derived from equations 3 and 4
and hold whatever was measured. λ is the rate, E the edge rate of all queries, m the number of
groups, F = Σ EᵢΩᵢ the final aggregation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from weft.experiments.reproduction import Claim, markdown_table
from weft.experiments.triops.grid import SimulatedPoint
from weft.experiments.triops.parameters import LOW_RATE, MODEL_RATES, TriopsSettings
from weft.experiments.triops.simulation import TRI_OPS, TWO_OPS
from weft.experiments.triops.summaries import (
    ModelSummary,
    RateSummary,
    Span,
    mean,
    model_summaries,
    rate_summaries,
    span,
)

UP_TO = 0.65
NEAR = 0.05
"""A guess whose largest reduction is within this of the paper's counts as the same."""
LOW = 0.40
GAINS = (0.40, 0.60)
_MOST_NAMED = 15

_SAME_MERGES = (
    "Both make the same merges, WeaveShare until one adds λ to F, TriWeave until one adds E. So "
    "TriWeave never has fewer groups at λ above E, the same at E, and never more below."
)

Summary = TypeVar("Summary", RateSummary, ModelSummary)


def claims_and_details(
    settings: TriopsSettings, points: Sequence[SimulatedPoint], figures: Sequence[str]
) -> tuple[list[Claim], str]:
    """The claims that the figures are about, and a table of all guesses in Markdown."""
    compared = [figure for figure in figures if figure in MODEL_RATES]
    by_rate = rate_summaries(settings, points) if "fig10" in figures else []
    by_model = model_summaries(settings, points, compared) if compared else []
    claims = [*_rate_claims(by_rate)] if by_rate else []
    if by_model:
        claims += _model_claims(by_model, compared)
    if by_rate and len(compared) == len(MODEL_RATES):
        claims.append(_all_at_once(by_rate, by_model))
    return claims, _details(settings, points, by_rate, by_model)


def _rate_claims(guesses: Sequence[RateSummary]) -> Iterable[Claim]:
    largest = [mean(guess.largest) for guess in guesses]
    yield Claim(
        "TriWeave costs up to 65 % less than WeaveShare (figure 10)",
        "65 %",
        f"the largest reduction is {_span(span(largest))} by guess; "
        f"{sum(gain >= UP_TO for gain in largest)} of {len(largest)} guesses reach 65 %; "
        f"{guesses[0].guess}: {_percent(largest[0])}",
        _verdict(guesses, _near, f"within {100 * NEAR:.0f} points of it"),
        "At λ ≤ E there is nothing to gain: TriWeave's own groups cost less under TwoOps. Once λ is "
        "so high that WeaveShare has one group, the reduction is (EΩ - mE - F) / (λ + EΩ), which "
        "goes to 0. Its peak lies between, where WeaveShare must choose between many scans and "
        "fine fragments: low if slides nest (powers of 2), high if many slides have few edges in "
        "common.",
    )
    yield Claim(
        "at low rates and with more queries it is less than 40 %",
        "< 40 %",
        f"most queries, rates up to {LOW_RATE}: at most "
        f"{_span(span(guess.low_with_most for guess in guesses))} by guess; at the lowest rate "
        f"{_span(_joined(guess.at_lowest_rate for guess in guesses))}",
        _verdict(guesses, lambda guess: guess.low_with_most < LOW),
        "A rate is low only beside E. A template with slide 1 has E = 1, and reductions are small "
        "for rates near 1; without small slides E is far below, and 0.5 tuples per unit is high already.",
    )
    yield Claim(
        "at low rates the reduction falls as queries are added",
        "falls",
        f"largest at rates up to {LOW_RATE}, most queries less fewest: "
        f"{_points(guess.at_low_rates[-1] - guess.at_low_rates[0] for guess in guesses)}",
        _verdict(guesses, lambda guess: guess.falls),
        "k times as many queries on the same slides multiply every Ω by k, which is k times the cost "
        "at the prices λ/k and E/k: the curve moves toward higher rates. So the reduction falls "
        "left of the peak and rises right of it; where E is small the peak itself lies at low "
        "rates. With thousands of slides new queries bring new slides, and the peak grows.",
    )
    fewer = sum(guess.fewer_groups_above_edge_rate for guess in guesses)
    yield Claim(
        "TriWeave's plans have more groups than WeaveShare's (rates of figure 10)",
        "consistently, much larger",
        f"in {_span(span(guess.more_groups for guess in guesses))} of the points by guess; "
        f"fewer at λ ≥ E in {fewer} of all points",
        _verdict(guesses, lambda guess: guess.more_groups == 1),
        _SAME_MERGES,
    )
    yield Claim(
        "TriOps costs less than TwoOps unless E = λ = 1 (section III-C)",
        "one exception",
        f"{sum(guess.losses for guess in guesses)} of WeaveShare's plans of two groups or more cost "
        f"no less under TriOps, at rates up to {max(guess.highest_loss for guess in guesses):g}",
        f"does not hold for {_named([str(g.guess) for g in guesses if g.losses], len(guesses))}",
        "TriOps saves (m-1)λ - mE. That is negative for every λ ≤ E, for every plan of one group, "
        "and for λ < mE / (m-1): not only at E = λ = 1.",
    )


def _model_claims(guesses: Sequence[ModelSummary], figures: Sequence[str]) -> Iterable[Claim]:
    woven = [gain for guess in guesses for gain in guess.weaveshare_gains]
    tri = [gain for guess in guesses for gain in guess.triweave_gains]
    reason = (
        "TriOps saves ((m-1)λ - mE) / (mλ + F), always less than 1 - 1/m: below 50 % for two "
        "groups. "
    )
    yield Claim(
        "TriOps saves 40 to 60 % of WeaveShare's plans wherever they have two groups or more",
        "40 to 60 %",
        _gains(woven),
        _verdict(
            guesses, lambda guess: bool(guess.weaveshare_gains) and _within(guess.weaveshare_gains)
        ),
        reason
        + "40 % or more needs F ≤ ((m-1) / 0.4 - m)λ - 2.5mE: at most λ/2 for two groups, at "
        "most 1.5mλ for many. WeaveShare does not keep to that: it merges while that adds less "
        "than λ to F, whatever F is.",
    )
    yield Claim(
        "TriOps saves 40 to 60 % of TriWeave's plans",
        "40 to 60 %",
        _gains(tri),
        _verdict(
            guesses, lambda guess: bool(guess.triweave_gains) and _within(guess.triweave_gains)
        ),
        reason + "TriWeave's groups are many and do not depend on λ, so under TwoOps they cost mλ: "
        "for λ well above F / m the share saved goes to 1 - 1/m - E/λ, which is near 90 % for "
        "ten groups.",
    )
    shared = _joined(guess.shared for guess in guesses)
    yield Claim(
        "Shared alone costs more under TriOps",
        "> 1.0",
        f"1 + {shared[0] - 1:.1e} to 1 + {shared[1] - 1:.1e}",
        _verdict(guesses, lambda guess: guess.shared[0] > 1),
        "With one group TriOps adds E: the ratio is 1 + E / (λ + EΩ), always above 1 and never "
        "above 1 + 1/Ω. With Ω about 25 per query it cannot be seen in a plot.",
    )
    yield Claim(
        "TriWeave's plans have more groups than WeaveShare's (rates of figures 11 to 13)",
        "consistently, much larger",
        f"in {_span(span(guess.more_groups for guess in guesses))} of the points by guess",
        _verdict(guesses, lambda guess: guess.more_groups == 1),
        _SAME_MERGES,
    )
    yield Claim(
        "the gain under TriOps grows with the number of queries",
        "in all three figures",
        "its normalized cost falls from the fewest to the most queries at every rate; at each step "
        f"for {sum(guess.rises_at_each_step for guess in guesses)} of {len(guesses)} guesses",
        _verdict(guesses, lambda guess: guess.rises),
        "F of Shared is EΩ and grows with every query, while TriWeave's grows by the query's own "
        "share. Once all slides of a short template are in use, both grow alike and the ratio "
        "stays.",
    )
    if len(figures) == len(MODEL_RATES):
        growth = list(zip(*(guess.growth for guess in guesses)))
        yield Claim(
            "that gain grows faster at higher rates",
            "50 < 300 < 10,000",
            "fall of the normalized cost from fewest to most queries: "
            + "; ".join(
                f"{_points(steps)} at {MODEL_RATES[figure]:,}"
                for figure, steps in zip(figures, growth)
            ),
            _verdict(guesses, lambda guess: guess.faster_at_high_rates),
            "The normalized cost is (λ + mE + F) / (λ + EΩ): at 1 while EΩ ≪ λ, flat again once "
            "EΩ ≫ λ. It falls fastest where λ is about EΩ, so a higher rate is faster only while "
            "EΩ of all queries is above it: if E is about 1, not if all slides are long.",
        )


def _all_at_once(by_rate: Sequence[RateSummary], by_model: Sequence[ModelSummary]) -> Claim:
    both = list(zip(by_rate, by_model))
    without = [
        str(rates.guess)
        for rates, models in both
        if _near(rates)
        and rates.low_with_most < LOW
        and rates.falls
        and models.rises
        and models.faster_at_high_rates
    ]
    whole = [
        str(models.guess)
        for _, models in both
        if str(models.guess) in without
        and _within(models.weaveshare_gains)
        and _within(models.triweave_gains)
    ]
    return Claim(
        "all of these for one list of slides",
        "yes",
        f"all but the 40 to 60 %: {_named(without, len(both))}",
        f"all: {_named(whole, len(both))}",
        "Small reductions up to 50 tuples/s ask for an E that is not far below, so for slides of a "
        "few units in the template. 60 % or less of TriWeave's plans at 10,000 tuples/s asks for "
        "F ≥ ((m-1) / 0.6 - m)λ: two groups, or an F of two thirds of mλ.",
    )


def _details(
    settings: TriopsSettings,
    points: Sequence[SimulatedPoint],
    by_rate: Sequence[RateSummary],
    by_model: Sequence[ModelSummary],
) -> str:
    text = [
        f"\nDrawn: {settings.drawn}, seed {settings.seeds[0]}: table II to the letter, not chosen "
        f"by its result. Seeds {', '.join(map(str, settings.seeds))}.\n"
    ]
    if by_rate:
        short = span(guess.largest_if_short for guess in by_rate)
        text.append(
            "If a unit of time were a millisecond, every rate would count a thousandth: the "
            f"largest reduction would be {_span(short)} by guess.\n"
        )
    text += _best(points)
    text.append(_exactness(points))
    if by_rate:
        text.append("\n## Figure 10 by guess\n\n" + _rate_table(settings, by_rate))
    if by_model:
        text.append("\n## Figures 11 to 13 by guess\n\n" + _model_table(by_model))
    return "".join(text)


def _exactness(points: Iterable[SimulatedPoint]) -> str:
    errors: dict[tuple[str, int, int], float] = {}
    for point in points:
        workload = str(point.guess), point.seed, point.queries
        errors[workload] = max(errors.get(workload, 0.0), point.edge_rate_error)
    estimated = {key: error for key, error in errors.items() if error}
    if not estimated:
        return f"Edge rates are exact in all {len(errors):,} sets of queries.\n"
    guesses = sorted({guess for guess, _, _ in estimated})
    return (
        f"Edge rates are exact in all but {len(estimated)} of {len(errors):,} sets of queries "
        f"({'; '.join(guesses)}), and there within {100 * max(estimated.values()):.2f} % (each at 99 % confidence).\n"
    )


def _best(points: Iterable[SimulatedPoint]) -> list[str]:
    saved = [
        (1 - plan.cost(model, point.rate) / other.cost(model, point.rate))
        for point in points
        if point.best
        for model, other in ((TWO_OPS, point.weaveshare), (TRI_OPS, point.triweave))
        for plan in (point.best[model.name],)
    ]
    if not saved:
        return []
    return [
        f"weft's own `best` costs {_percent(min(saved), 1)} to {_percent(max(saved), 1)} less than "
        "WeaveShare under TwoOps and TriWeave under TriOps on the drawn guess, "
        f"{_percent(mean(saved), 1)} on average.\n"
    ]


def _rate_table(settings: TriopsSettings, guesses: Sequence[RateSummary]) -> str:
    heading = (
        "guess",
        "slides",
        "E",
        "largest reduction, by seed",
        "at rate, queries",
        f"at {min(settings.rates):g} tuples/s",
        f"largest up to {LOW_RATE}/s, by queries "
        + "/".join(f"{count}" for count in settings.rate_sweep_queries),
        "more groups in",
    )
    rows = [
        (
            str(guess.guess),
            str(guess.slides),
            f"{guess.edge_rate[0]:.3g} to {guess.edge_rate[1]:.3g}",
            ", ".join(_percent(value) for value in guess.largest),
            f"{guess.largest_at[0]:g}, {guess.largest_at[1]}",
            _span(guess.at_lowest_rate),
            " / ".join(_percent(value) for value in guess.at_low_rates),
            _percent(guess.more_groups),
        )
        for guess in guesses
    ]
    return markdown_table(heading, rows)


def _model_table(guesses: Sequence[ModelSummary]) -> str:
    heading = (
        "guess",
        "TriOps saves of WeaveShare's plans, two groups or more",
        "of TriWeave's plans",
        "Shared under TriOps, largest",
        "more groups in",
        "gain grows with queries",
        "faster at higher rates",
    )
    rows = [
        (
            str(guess.guess),
            _span(span(guess.weaveshare_gains)) if guess.weaveshare_gains else "one group",
            _span(span(guess.triweave_gains)) if guess.triweave_gains else "one group",
            f"1 + {guess.shared[1] - 1:.1e}",
            _percent(guess.more_groups),
            "yes" if guess.rises else "no",
            "yes" if guess.faster_at_high_rates else "no",
        )
        for guess in guesses
    ]
    return markdown_table(heading, rows)


def _near(guess: RateSummary) -> bool:
    return abs(mean(guess.largest) - UP_TO) <= NEAR


def _within(gains: Iterable[float]) -> bool:
    return all(GAINS[0] <= gain <= GAINS[1] for gain in gains)


def _gains(gains: Sequence[float]) -> str:
    if not gains:
        return "no plan has two groups"
    inside = mean(GAINS[0] <= gain <= GAINS[1] for gain in gains)
    return f"{_span(span(gains))}; {_percent(inside)} of {len(gains):,} plans are in the range"


def _verdict(
    guesses: Sequence[Summary], holds: Callable[[Summary], bool], what: str = "holds"
) -> str:
    """For how many guesses, by name if they are few."""
    kept = [str(guess.guess) for guess in guesses if holds(guess)]
    if len(kept) == len(guesses):
        return f"{what} for all {len(guesses)} guesses"
    if not kept:
        return f"{what} for none of {len(guesses)} guesses"
    return f"{what} for {_named(kept, len(guesses))}"


def _named(kept: Sequence[str], total: int) -> str:
    names = f" ({'; '.join(kept)})" if 0 < len(kept) <= _MOST_NAMED else ""
    return f"{len(kept)} of {total} guesses{names}"


def _joined(spans: Iterable[Span]) -> Span:
    return span(end for ends in spans for end in ends)


def _percent(share: float, digits: int = 0) -> str:
    return f"{100 * share + 0:.{digits}f} %".replace("-0 %", "0 %")


def _span(ends: Span) -> str:
    low, high = _percent(ends[0]), _percent(ends[1])
    return low if low == high else f"{low} to {high}"


def _points(values: Iterable[float]) -> str:
    low, high = span(values)
    return f"{100 * low:+.0f} to {100 * high:+.0f} points"
