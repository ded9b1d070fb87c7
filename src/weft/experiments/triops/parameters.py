"""What the experiment varies: table II of the TriOps paper, and the sweeps of figures 10 to 13."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from weft.experiments.triops.templates import GUESSES, LITERAL, Guess
from weft.workloads.sharing import LARGEST_OVERLAP, SKEW

MOST_QUERIES = 1000
LOW_RATE = 50
"""Section VII-B calls 50 tuples per second low; so is everything below it here."""
MODEL_RATES = {"fig11": 50, "fig12": 300, "fig13": 10_000}
"""Tuples per second in the figures that compare the models."""
SHORT_UNIT = 1000
"""Table II gives slides in "time units". They are read as seconds; if they were milliseconds, a
rate would be this many times smaller per unit, and all else the same (costs are homogeneous)."""

Points = frozenset[tuple[int, float]]
"""Numbers of queries with rates per unit of time."""


@dataclass(frozen=True)
class TriopsSettings:
    """One run of the experiment.

    The first seed of the drawn guess is drawn, and there `best` is run as well; the spread is that
    of all guesses and seeds. Rates are tuples per second.
    """

    guesses: tuple[Guess, ...]
    seeds: tuple[int, ...]
    rates: tuple[float, ...]
    rate_sweep_queries: tuple[int, ...]
    query_sweep: tuple[int, ...]
    drawn: Guess = LITERAL

    def __post_init__(self) -> None:
        if self.drawn not in self.guesses:
            raise ValueError(f"the drawn guess {self.drawn} is not among the guesses")

    def points(self, figure: str) -> Points:
        """What a figure needs of each guess and seed."""
        if figure in MODEL_RATES:
            return frozenset((count, float(MODEL_RATES[figure])) for count in self.query_sweep)
        rates = {scaled for rate in self.rates for scaled in (float(rate), rate / SHORT_UNIT)}
        return frozenset((count, rate) for count in self.rate_sweep_queries for rate in rates)

    def to_json(self) -> dict[str, Any]:
        named = asdict(self) | {"drawn": str(self.drawn), "guesses": [str(g) for g in self.guesses]}
        return named | {"skew": SKEW, "largest_overlap": LARGEST_OVERLAP}


FULL = TriopsSettings(
    guesses=GUESSES,
    seeds=(1, 2, 3),
    rates=(0.5, 1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 1000, 2000, 5000, 10_000),
    rate_sweep_queries=(256, 500, 1000),
    query_sweep=(50, 100, 250, 500, 750, 1000),
)

QUICK = TriopsSettings(
    guesses=(
        LITERAL,
        Guess("25 random", "large first"),
        Guess("1-2-5", "small first"),
        Guess("clock", "shuffled"),
    ),
    seeds=(1,),
    rates=(0.5, 5, 50, 300, 10_000),
    rate_sweep_queries=(20, 40),
    query_sweep=(10, 20, 30),
)
"""Small enough for a test; it says nothing about the paper."""
