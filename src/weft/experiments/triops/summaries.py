"""What each guess of the template gives: the numbers that the paper's claims are about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from weft.experiments.triops.grid import SimulatedPoint
from weft.experiments.triops.parameters import LOW_RATE, MODEL_RATES, SHORT_UNIT, TriopsSettings
from weft.experiments.triops.simulation import TRI_OPS
from weft.experiments.triops.templates import Guess

Span = tuple[float, float]


@dataclass(frozen=True)
class RateSummary:
    """Figure 10 for one guess; reductions are of TriWeave's cost beside WeaveShare's."""

    guess: Guess
    slides: int
    """In the template."""
    edge_rate: Span
    """Over seeds, with all queries."""
    largest: tuple[float, ...]
    """The largest reduction of each seed."""
    largest_at: tuple[float, int]
    """The rate and the number of queries of the largest of all."""
    at_lowest_rate: Span
    at_low_rates: tuple[float, ...]
    """By number of queries: the largest reduction at rates up to `LOW_RATE`, a mean over seeds."""
    low_with_most: float
    """The largest at such rates with the most queries, of any seed."""
    largest_if_short: float
    """The largest reduction if slides were in milliseconds."""
    more_groups: float
    """In which share of the points TriWeave has more groups than WeaveShare."""
    fewer_groups_above_edge_rate: int
    """In how many points above the edge rate it has fewer; by its structure in none."""
    losses: int
    """In how many points TriOps loses on WeaveShare's groups though there are two or more."""
    highest_loss: float
    """The highest rate among these; 0 if there are none."""

    @property
    def falls(self) -> bool:
        """Whether the reduction at low rates falls as queries are added."""
        return self.at_low_rates[-1] < self.at_low_rates[0]


@dataclass(frozen=True)
class ModelSummary:
    """Figures 11 to 13 for one guess."""

    guess: Guess
    weaveshare_gains: tuple[float, ...]
    """What TriOps saves of WeaveShare's plans of two groups or more."""
    triweave_gains: tuple[float, ...]
    shared: Span
    """Shared under TriOps, normalized."""
    more_groups: float
    rises_at_each_step: bool
    """Whether at every rate TriWeave saves more of Shared's cost with each larger number of
    queries, on average over seeds."""
    growth: tuple[float, ...]
    """By rate: how much its normalized cost falls from the fewest to the most queries."""

    @property
    def rises(self) -> bool:
        """The same from the fewest to the most queries."""
        return all(growth > 0 for growth in self.growth)

    @property
    def faster_at_high_rates(self) -> bool:
        return all(low < high for low, high in pairwise(self.growth))


def rate_summaries(settings: TriopsSettings, points: Iterable[SimulatedPoint]) -> list[RateSummary]:
    """For each guess, in the order of the settings."""
    counted = settings.rate_sweep_queries
    chosen = [point for point in points if point.queries in counted]
    return [
        _rate_summary(settings, g, [p for p in chosen if p.guess == g]) for g in settings.guesses
    ]


def model_summaries(
    settings: TriopsSettings, points: Iterable[SimulatedPoint], figures: Sequence[str]
) -> list[ModelSummary]:
    """For each guess, over the rates of these figures."""
    rates = [float(MODEL_RATES[figure]) for figure in figures]
    chosen = [p for p in points if p.queries in settings.query_sweep and p.rate in rates]
    return [
        _model_summary(settings, rates, g, [p for p in chosen if p.guess == g])
        for g in settings.guesses
    ]


def _rate_summary(
    settings: TriopsSettings, guess: Guess, points: Sequence[SimulatedPoint]
) -> RateSummary:
    rates = {float(rate) for rate in settings.rates}
    short = {rate / SHORT_UNIT for rate in settings.rates}
    swept = [point for point in points if point.rate in rates]
    most = max(settings.rate_sweep_queries)
    largest = max(swept, key=lambda point: point.reduction)
    low = [point for point in swept if point.rate <= LOW_RATE]
    lost = [
        p.rate for p in swept if len(p.weaveshare.groups) > 1 and p.weaveshare.gain(p.rate) <= 0
    ]
    return RateSummary(
        guess=guess,
        slides=len(guess.slides(settings.seeds[0])),
        edge_rate=span(p.shared.edge_rate for p in swept if p.queries == most),
        largest=tuple(max(p.reduction for p in swept if p.seed == seed) for seed in settings.seeds),
        largest_at=(largest.rate, largest.queries),
        at_lowest_rate=span(p.reduction for p in swept if p.rate == min(rates)),
        at_low_rates=tuple(
            mean(
                max(p.reduction for p in low if (p.seed, p.queries) == (seed, queries))
                for seed in settings.seeds
            )
            for queries in settings.rate_sweep_queries
        ),
        low_with_most=max(p.reduction for p in low if p.queries == most),
        largest_if_short=max(p.reduction for p in points if p.rate in short),
        more_groups=_more_groups(swept),
        fewer_groups_above_edge_rate=sum(
            len(p.triweave.groups) < len(p.weaveshare.groups)
            for p in swept
            if p.rate >= p.shared.edge_rate
        ),
        losses=len(lost),
        highest_loss=max(lost, default=0.0),
    )


def _model_summary(
    settings: TriopsSettings, rates: Sequence[float], guess: Guess, points: Sequence[SimulatedPoint]
) -> ModelSummary:
    def trend(rate: float) -> list[float]:
        """TriWeave under TriOps by number of queries."""
        return [
            mean(
                p.costs()["triweave", TRI_OPS.name]
                for p in points
                if (p.queries, p.rate) == (queries, rate)
            )
            for queries in settings.query_sweep
        ]

    trends = [trend(rate) for rate in rates]
    return ModelSummary(
        guess=guess,
        weaveshare_gains=tuple(
            p.weaveshare.gain(p.rate) for p in points if len(p.weaveshare.groups) > 1
        ),
        triweave_gains=tuple(p.triweave.gain(p.rate) for p in points if len(p.triweave.groups) > 1),
        shared=span(p.costs()["shared", TRI_OPS.name] for p in points),
        more_groups=_more_groups(points),
        rises_at_each_step=all(few > many for trend in trends for few, many in pairwise(trend)),
        growth=tuple(trend[0] - trend[-1] for trend in trends),
    )


def _more_groups(points: Sequence[SimulatedPoint]) -> float:
    return mean(len(p.triweave.groups) > len(p.weaveshare.groups) for p in points)


def span(values: Iterable[float]) -> Span:
    """The least and the largest."""
    listed = list(values)
    return min(listed), max(listed)


def mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
