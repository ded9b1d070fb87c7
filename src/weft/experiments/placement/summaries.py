"""Numbers over all configurations: wins and losses, quality, times, the front of `balanced`.

Costs of a configuration are averages over its runs, as in the paper; all else is over configurations. A plan is the
best of a configuration if none of the 13 optimizers' costs less; several can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import numpy as np

from weft.experiments.placement.simulation import Experiment
from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.placement.optimizers import PAPERS

METRICS = ("max", "total")
_SAME = 1 + 1e-9


@dataclass(frozen=True)
class Wins:
    """How often an optimizer is the best of the 13, and how far above the best it is where it is not."""

    best: float
    losses: float


class Costs:
    """Costs by reading, optimizer and metric, one for each configuration."""

    def __init__(self, experiments: Sequence[Experiment]) -> None:
        self._experiments = experiments
        self.configurations = sorted({experiment.configuration for experiment in experiments})
        place = {configuration: number for number, configuration in enumerate(self.configurations)}
        sums: dict[tuple[str, str, float | None, str], list[list[float]]] = {}
        for experiment in experiments:
            for outcome in experiment.outcomes:
                for metric, cost in (("max", outcome.largest), ("total", outcome.total)):
                    key = outcome.reading, outcome.optimizer, outcome.balance, metric
                    costs = sums.setdefault(key, [[] for _ in self.configurations])
                    costs[place[experiment.configuration]].append(cost)
        self._costs = {
            key: np.array([fmean(runs) for runs in costs]) for key, costs in sums.items()
        }

    def of(self, reading: str, optimizer: str, metric: str, balance: float | None = None) -> Floats:
        """One cost for each configuration."""
        if optimizer == "balanced" and balance is None:
            balance = 0.5
        return self._costs[reading, optimizer, balance, metric]

    def least(self, reading: str, metric: str) -> Floats:
        """The cost of the best of the 13 in each configuration."""
        return np.asarray(np.min([self.of(reading, name, metric) for name in PAPERS], axis=0))

    def wins(self, reading: str, optimizer: str, metric: str) -> Wins:
        """Table 3."""
        ratio = self.of(reading, optimizer, metric) / self.least(reading, metric)
        lost = ratio > _SAME
        return Wins(float(1 - lost.mean()), float((ratio[lost] - 1).mean()) if lost.any() else 0.0)

    def quality(self, reading: str, optimizer: str, metric: str) -> tuple[float, float]:
        """Figure 2: 0 is the best plan of the 13, 1 the worst; mean and standard deviation."""
        costs = [self.of(reading, name, metric) for name in PAPERS]
        least, most = np.min(costs, axis=0), np.max(costs, axis=0)
        spread = np.where(most > least, most - least, 1.0)
        scaled = ((self.of(reading, optimizer, metric) - least) / spread).tolist()
        return fmean(scaled), pstdev(scaled)

    def beside(self, reading: str, balance: float, metric: str, other: str) -> Floats:
        """Costs of `balanced` divided by those of another optimizer, for each configuration.

        Only runs in which this balance was tried are compared.
        """
        ratios: dict[object, list[float]] = {}
        for experiment in self._experiments:
            costs = {
                (outcome.optimizer, outcome.balance): outcome
                for outcome in experiment.outcomes
                if outcome.reading == reading
            }
            ours = costs.get(("balanced", balance))
            if ours is None:
                continue
            theirs = costs[other, None]
            pair = (ours.largest, theirs.largest) if metric == "max" else (ours.total, theirs.total)
            ratios.setdefault(experiment.configuration, []).append(pair[0] / pair[1])
        return np.array([fmean(runs) for runs in ratios.values()])


def seconds(experiments: Sequence[Experiment], reading: str) -> dict[str, float]:
    """Table 4: the average time of each optimizer's plans; of `balanced` at its default."""
    times: dict[str, list[float]] = {}
    for experiment in experiments:
        for outcome in experiment.outcomes:
            if outcome.reading == reading and outcome.balance in (None, 0.5):
                times.setdefault(outcome.optimizer, []).append(outcome.seconds)
    return {name: fmean(taken) for name, taken in times.items()}
