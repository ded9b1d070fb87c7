"""Many streams on many lanes: by stream, then by slide class, then by lane.

weft's own, for numbers where one search over everything takes too long: 100,000 queries on 1000 lanes, a million on
10,000. Each step is small:
1. Queries of different streams share nothing, so streams are planned apart.
2. Within a stream, queries are split by *slide class*, the power of two of their slides. A tree costs
   E·Ω, and E follows its shortest slide, so queries of like slides share best. What two classes could share is at
   most λ for each tree that they would save.
3. Lanes are given to (stream, slide class) in proportion to its cost: the classes lie one after the other on the
   line of all lanes, and a lane in which one ends and another begins is shared by weight. Classes that fill
   less than half a lane are put together on the rest (`units`).
4. Within its lanes each class is placed by `balanced`.
The costs of step 3 are those of a quick plan first, and of the plans of step 4 in a second round.
Time: the sum over classes; each is independent of the others, so they could be planned side by side. Space: that of
the largest class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.errors import PlacementError
from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.edge_atoms import Integers
from weft.optimizer.edges.workload import Workload
from weft.optimizer.placement.balanced import BALANCE, TRIALS_PER_ITEM, balanced
from weft.optimizer.placement.demand import Demand, node_weights
from weft.optimizer.placement.papers.to_nodes import wg_tn
from weft.optimizer.placement.placement import Placement
from weft.optimizer.placement.units import Unit, place_units

QUICK_TRIALS = 10
_MOST_MERGED = 256
_SLIVER = 0.1
"""A smaller part of a lane is left to the class that has the rest of it."""


@dataclass(frozen=True, eq=False)
class StreamWindows:
    """The windows of one stream's queries as columns, and its rows per unit of time."""

    name: str
    rate: float
    names: tuple[str, ...]
    ranges: Integers
    slides: Integers


@dataclass(frozen=True, eq=False)
class Part:
    """The queries of one stream and slide class, and their lanes; node k of the placement is lanes[k]."""

    stream: str
    slide_class: int
    placement: Placement
    lanes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LanePlan:
    """All parts on all lanes."""

    parts: tuple[Part, ...]
    weights: Floats

    @cached_property
    def loads(self) -> Floats:
        costs = np.zeros(len(self.weights))
        for part in self.parts:
            np.add.at(costs, list(part.lanes), part.placement.node_costs)
        return np.asarray(costs / self.weights)

    @property
    def total_cost(self) -> float:
        return float(self.loads @ self.weights)

    @property
    def max_cost(self) -> float:
        return float(self.loads.max())


def planned(
    streams: Sequence[StreamWindows],
    lanes: int | Sequence[float],
    balance: float = BALANCE,
    seed: int = 1,
    trials_per_item: int = TRIALS_PER_ITEM,
) -> LanePlan:
    """Every query of every stream on one lane."""
    weights = node_weights(lanes)
    classes = [part for stream in streams for part in slide_classes(stream)]
    if not classes:
        raise PlacementError("BAD_PLACEMENT", detail="there are no queries to place")
    costs = np.array([_quick_cost(workload, rate) for _, _, workload, rate in classes])
    parts: list[Part] = []
    for trials in (QUICK_TRIALS, trials_per_item):
        parts = []
        for (stream, number, workload, rate), given in zip(classes, lanes_of(costs, weights)):
            demand = Demand.of(workload, rate, list(given.values()))
            if len(given) == 1:
                plan = _on_one(demand)
            else:
                plan = balanced(demand, seed, balance, trials)
            parts.append(Part(stream, number, plan, tuple(given)))
        costs = np.array([part.placement.total_cost for part in parts])
    return LanePlan(tuple(parts), weights)


def slide_classes(stream: StreamWindows) -> Iterator[tuple[str, int, Workload, float]]:
    """The queries of a stream by the power of two of their slides: stream, class, queries, rate."""
    magnitude = np.frexp(stream.slides.astype(np.float64))[1]
    order = np.argsort(magnitude, kind="stable")
    bounds = np.flatnonzero(np.diff(magnitude[order])) + 1
    for queries in np.split(order, bounds):
        names = tuple(stream.names[query] for query in queries.tolist())
        workload = Workload.of_columns(names, stream.ranges[queries], stream.slides[queries])
        yield stream.name, int(magnitude[queries[0]]), workload, stream.rate


def lanes_of(costs: Floats, weights: Floats) -> list[dict[int, float]]:
    """For each class its lanes, and how much of each lane's weight it has.

    Classes lie one after the other on the line of all lanes; where one ends inside a lane, the next one
    begins there. Those that fill less than half a lane are put on what is left, each on one lane.

    >>> lanes_of(np.array([5.0, 0.5, 4.0, 0.5]), np.ones(5))
    [{0: 1.0, 1: 1.0, 2: 0.5}, {4: 0.25}, {2: 0.5, 3: 1.0, 4: 0.5}, {4: 0.25}]
    """
    share = costs / costs.sum() * weights.sum()
    small = share < weights.mean() / 2
    bounds = np.append(0.0, np.cumsum(weights))
    given: list[dict[int, float]] = [{} for _ in costs]
    reached = 0.0
    for number in np.flatnonzero(~small).tolist():
        given[number] = _overlaps(bounds, reached, reached + float(share[number]))
        reached += float(share[number])
    if small.any():
        left = _overlaps(bounds, min(reached, bounds[-1] * (1 - 1e-9)), float(bounds[-1]))
        numbers = np.flatnonzero(small).tolist()
        units = [Unit("", number, float(share[number])) for number in numbers]
        placed = place_units(units, list(left.values()))
        for number, place in zip(numbers, placed.lane_of):
            given[number] = {list(left)[place]: float(share[number])}
    return given


def _overlaps(bounds: Floats, low: float, high: float) -> dict[int, float]:
    """The lanes that [low, high) meets on the line, without slivers, and how much of each."""
    first = max(int(np.searchsorted(bounds, low, side="right")) - 1, 0)
    last = min(int(np.searchsorted(bounds, high, side="left")), len(bounds) - 1)
    met = {
        lane: float(min(high, bounds[lane + 1]) - max(low, bounds[lane]))
        for lane in range(first, last)
    }
    kept = {
        lane: part
        for lane, part in met.items()
        if part >= _SLIVER * float(bounds[lane + 1] - bounds[lane])
    }
    return kept or dict([max(met.items(), key=lambda item: item[1])])


def _quick_cost(workload: Workload, rate: float) -> float:
    """About what a class costs: as few trees as pay, or one tree, or one for each edge set."""
    demand = Demand.of(workload, rate, 1, preprocess=True)
    if len(workload.edge_sets) <= _MOST_MERGED:
        return wg_tn(demand).total_cost
    fragments = min(float(workload.set_rates.max()) * 2, float(demand.workload.set_rates.sum()))
    return min(rate + fragments * float(demand.overlap.sum()), float(demand.lone_costs().sum()))


def _on_one(demand: Demand) -> Placement:
    """All on one lane: only the total cost counts."""
    if len(demand.workload.edge_sets) > _MOST_MERGED:
        return balanced(demand, balance=0.0, trials_per_item=QUICK_TRIALS)
    preprocessed = Demand.of(demand.workload, demand.rate, demand.weights.tolist(), preprocess=True)
    return wg_tn(preprocessed)
