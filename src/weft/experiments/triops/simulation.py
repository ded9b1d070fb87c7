"""The one utility of the experiment: queries of a guess, and what each optimizer's plan costs.

From: the TriOps paper, section VII. Costs are operations per second by equations 3 and 4
(`optimizer.windows.cost`), which is the paper's metric.

WeaveShare and TriWeave make the same merges and only stop at different prices
(`optimizer.windows.merge_sequence`), so one sequence serves all rates and both optimizers: a rate
is a new cut. Groups are costed with the edge rates that the merges have counted already. These are
exact up to rounding; where one was guessed because it took too long, it is replaced by the bounded
estimate of `optimizer.edges.edges`. The costs are those of the optimizers' own plans, as a test
shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from weft.experiments.triops.parameters import MOST_QUERIES
from weft.experiments.triops.templates import Guess
from weft.optimizer.edges.edges import EdgeRate
from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows.best import best
from weft.optimizer.windows.cost import CostModel, TriOps, TwoOps, plan_cost
from weft.optimizer.windows.search.merge_sequence import MergeSequence, merge_sequence
from weft.optimizer.windows.search.search_rates import search_rates
from weft.workloads.sharing import WindowTable, zipf_windows

TWO_OPS, TRI_OPS = TwoOps(), TriOps()
BASELINE = "shared"
"""Figures 11 to 13 are normalized to its plan under TwoOps; figure 10 to WeaveShare's."""


@dataclass(frozen=True)
class Plan:
    """A plan as far as its cost goes."""

    optimizer: str
    edge_rate: float
    """Of all queries together."""
    groups: tuple[tuple[float, float], ...]
    """Edge rate and overlap factor of each group."""

    def cost(self, model: CostModel, rate: float) -> float:
        return float(plan_cost(model, rate, self.edge_rate, 0.0, self.groups))

    def gain(self, rate: float) -> float:
        """What TriOps saves of the cost under TwoOps: ((m-1)λ - mE) / (mλ + Σ EᵢΩᵢ)."""
        return 1 - self.cost(TRI_OPS, rate) / self.cost(TWO_OPS, rate)


def queries_of(guess: Guess, seed: int, count: int) -> Workload:
    """The first `count` queries of a guess: more queries are the same ones and others.

    >>> queries_of(Guess("powers of 2", "small first"), 1, 100).queries
    100
    """
    if not 1 <= count <= MOST_QUERIES:
        raise ValueError(f"there are {MOST_QUERIES} queries, not {count}")
    drawn = _drawn(guess, seed)
    return Workload.of_columns(drawn.names[:count], drawn.ranges[:count], drawn.slides[:count])


@lru_cache(maxsize=4)
def _drawn(guess: Guess, seed: int) -> WindowTable:
    return zipf_windows(MOST_QUERIES, seed, guess.slides(seed))


class Simulation:
    """The plans of all optimizers for one set of queries, at any rate."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.edge_rate = float(workload.edge_rate)
        self.edge_rate_error = 0.0
        """The largest relative error of an edge rate so far; 0 while all are counted exactly."""
        self._note(workload.edge_rate)
        self._rates = search_rates(workload)
        self._plans: dict[tuple[tuple[int, ...], ...], tuple[tuple[float, float], ...]] = {}

    @property
    def _merges(self) -> MergeSequence:
        # Both models weigh fragments alike, so they have one sequence.
        return merge_sequence(self.workload, TWO_OPS)

    def shared(self) -> Plan:
        return self._plan("shared", [tuple(range(len(self.workload.edge_sets)))])

    def weaveshare(self, rate: float) -> Plan:
        return self._plan("weaveshare", self._merges.cut(rate))

    def triweave(self) -> Plan:
        """The same at every rate: its price of a group is the edge rate of all queries."""
        return self._plan("triweave", self._merges.cut(self.edge_rate))

    def best(self, rate: float, model: CostModel) -> Plan:
        """The cheapest plan that weft finds under a model; slow beside the others.

        Under TriOps it is the same at every rate that is given to it, as TriWeave's.
        """
        plan = best(self.workload, Fraction(rate), model)
        groups = tuple((float(group.edge_rate), float(group.overlap)) for group in plan.groups)
        return Plan("best", self.edge_rate, groups)

    def _plan(self, optimizer: str, partition: Sequence[tuple[int, ...]]) -> Plan:
        key = tuple(partition)
        if key not in self._plans:
            self._plans[key] = tuple((self._rate(group), self._overlap(group)) for group in key)
        return Plan(optimizer, self.edge_rate, self._plans[key])

    def _rate(self, edge_sets: tuple[int, ...]) -> float:
        if len(edge_sets) == len(self.workload.edge_sets):
            return self.edge_rate
        rate = self._rates.union(edge_sets)
        return self._note(self.workload.edge_rate_of(edge_sets)) if self._rates.guessed else rate

    def _note(self, rate: EdgeRate) -> float:
        self.edge_rate_error = max(self.edge_rate_error, rate.error)
        return float(rate)

    def _overlap(self, edge_sets: tuple[int, ...]) -> float:
        return float(self._rates.overlaps[list(edge_sets)].sum())
