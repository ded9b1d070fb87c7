"""All guesses, seeds, numbers of queries and rates: the simulation's points.

Time: three to five minutes for the full settings, most of it the guesses of a thousand slides and
more, and `best` on the drawn one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from weft.experiments.reproduction import Progress
from weft.experiments.triops.parameters import MODEL_RATES, Points, TriopsSettings
from weft.experiments.triops.simulation import TRI_OPS, TWO_OPS, Plan, Simulation, queries_of
from weft.experiments.triops.templates import Guess


@dataclass(frozen=True)
class SimulatedPoint:
    """The plans for the first queries of a guess at a rate."""

    guess: Guess
    seed: int
    queries: int
    rate: float
    """Rows per unit of time."""
    shared: Plan
    weaveshare: Plan
    triweave: Plan
    best: Mapping[str, Plan]
    """By model, each the best for its own; empty where `best` was not run."""
    edge_rate_error: float
    """The largest relative error of an edge rate; 0 if all were counted exactly."""

    @property
    def normalized(self) -> float:
        """TriWeave under TriOps beside WeaveShare under TwoOps (figure 10)."""
        tri = self.triweave.cost(TRI_OPS, self.rate)
        return tri / self.weaveshare.cost(TWO_OPS, self.rate)

    @property
    def reduction(self) -> float:
        return 1 - self.normalized

    def costs(self) -> dict[tuple[str, str], float]:
        """Each plan under each model, normalized to Shared under TwoOps (figures 11 to 13)."""
        base = self.shared.cost(TWO_OPS, self.rate)
        costs = {
            (plan.optimizer, model.name): plan.cost(model, self.rate) / base
            for plan in (self.shared, self.weaveshare, self.triweave)
            for model in (TWO_OPS, TRI_OPS)
        }
        for model in (TWO_OPS, TRI_OPS):
            if model.name in self.best:
                plan = self.best[model.name]
                costs[plan.optimizer, model.name] = plan.cost(model, self.rate) / base
        return costs


def measure(
    settings: TriopsSettings, figures: Iterable[str], progress: Progress
) -> list[SimulatedPoint]:
    """What the figures need, for each guess and seed; queries are planned once for all rates."""
    wanted = {figure: settings.points(figure) for figure in figures}
    points: Points = frozenset().union(*wanted.values())
    compared: Points = frozenset().union(
        *(wanted[figure] for figure in MODEL_RATES if figure in wanted)
    )
    workloads = [(guess, seed) for guess in settings.guesses for seed in settings.seeds]
    measured: list[SimulatedPoint] = []
    for done, (guess, seed) in enumerate(workloads):
        progress(done, len(workloads), f"{guess}, seed {seed}")
        for queries in sorted({count for count, _ in points}):
            rates = sorted(rate for count, rate in points if count == queries)
            drawn = guess == settings.drawn and seed == settings.seeds[0]
            with_best = [rate for rate in rates if drawn and (queries, rate) in compared]
            measured += _points(guess, seed, queries, rates, with_best)
    progress(len(workloads), len(workloads), "done")
    return measured


def _points(
    guess: Guess, seed: int, queries: int, rates: Iterable[float], with_best: Sequence[float]
) -> Iterator[SimulatedPoint]:
    simulation = Simulation(queries_of(guess, seed, queries))
    shared, triweave = simulation.shared(), simulation.triweave()
    best_triops: Plan | None = None
    for rate in rates:
        best: dict[str, Plan] = {}
        if rate in with_best:
            # E is the price of a group under TriOps, so one plan is the best at every rate.
            best_triops = best_triops or simulation.best(rate, TRI_OPS)
            best = {"twoops": simulation.best(rate, TWO_OPS), "triops": best_triops}
        woven = simulation.weaveshare(rate)
        error = simulation.edge_rate_error
        yield SimulatedPoint(guess, seed, queries, rate, shared, woven, triweave, best, error)
