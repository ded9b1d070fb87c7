"""The prototype at a point: windows filled, then every plan on the same stream, counted and timed.

Filling needs no plan: all inputs are early while windows fill (the cheapest way), then the windows and the
result are handed to each plan. A plan first takes a few rows that are not timed; after these all plans must
have the same result (Theorems 1 and 2).

Then there are rounds: in each every plan runs some rows. Operations are averages over all rounds; of the times the least
counts, that of the quietest moment. Both are given per unit of time. How many rows a round has follows from the budget:
they can be a part of a unit of time or several of them, with rows of the inputs in proportion to their rates. A plan
that costs more than the budget for the fewest rows has fewer rounds. So counts are the same on every machine.

Seconds are those of the processor, without garbage collection, so that other programs disturb less.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil

from weft.experiments.aggjoin.parameters import Budget, Point
from weft.experiments.aggjoin.prototype.algorithm import Operations, Prototype
from weft.experiments.aggjoin.prototype.tables import Entry
from weft.optimizer.joinagg.generic_cost import JoinCosts, plan_cost
from weft.optimizer.joinagg.papers_costs import JOINS, Constants
from weft.optimizer.joinagg.plans import Plan, all_plans
from weft.workloads.aggjoin.streams import GROUP, JOIN, VALUE, StreamShape, stream

Arrival = tuple[int, Entry]


@dataclass(frozen=True)
class PlanRun:
    """A plan at a point: operations and seconds per unit of time, and the units of time in one round."""

    plan: Plan
    operations: Operations
    seconds: float
    units: float


class PointStreams:
    """The rows of a point: those that fill the windows, and those that come after that."""

    def __init__(self, point: Point, units: int, seed: int) -> None:
        self._inputs = point.inputs
        self._rows: list[list[Entry]] = []
        for number, given in enumerate(point.inputs):
            shape = StreamShape(given.rate, int(given.groups), round(1 / given.selectivity))
            count = int(given.window) + round(given.rate) * units
            table = stream(shape, count, number, seed)
            columns = (table[name].to_pylist() for name in (JOIN, GROUP, VALUE))
            self._rows.append(
                [Entry(join, group, 1, value) for join, group, value in zip(*columns, strict=True)]
            )

    def filling(self) -> Iterator[Arrival]:
        """The inputs with many groups last: the last one looks for matches in all others."""
        groups = [given.groups for given in self._inputs]
        for number in sorted(range(len(groups)), key=groups.__getitem__):
            for row in self._rows[number][: int(self._inputs[number].window)]:
                yield number, row

    def arrivals(self) -> list[Arrival]:
        """The rows after that, in the order in which they come."""
        timed = [
            ((place + 0.5) / given.rate, number, row)
            for number, given in enumerate(self._inputs)
            for place, row in enumerate(self._rows[number][int(given.window) :])
        ]
        timed.sort(key=lambda arrival: arrival[:2])
        return [(number, row) for _, number, row in timed]


def model_costs(point: Point, constants: Constants | None = None) -> JoinCosts:
    """The paper's costs; without constants, in operations."""
    return JOINS[point.join](point.statistics, constants or Constants())


class PointPrototype:
    """All plans at a point, in the order of their case numbers."""

    def __init__(self, point: Point, budget: Budget, seed: int) -> None:
        self._budget = budget
        plans, costs = all_plans(len(point.inputs)), model_costs(point)
        self._unit = sum(round(given.rate) for given in point.inputs)
        per_row = {plan: plan_cost(costs, plan) / self._unit for plan in plans}
        self._rows = {plan: _rows_of_a_round(per_row[plan], self._unit, budget) for plan in plans}
        self._rounds = {plan: _rounds(per_row[plan] * self._rows[plan], budget) for plan in plans}
        needed = budget.least_rows + budget.rounds * max(self._rows.values())
        streams = PointStreams(point, ceil(needed / self._unit) + 1, seed)
        self._arrivals = streams.arrivals()
        self._running = _started(point, streams, self._arrivals[: budget.least_rows])
        self._before = {plan: self._running[plan].operations for plan in plans}
        self._seconds: dict[Plan, list[float]] = {plan: [] for plan in plans}

    def round(self) -> None:
        for plan, times in self._seconds.items():
            if len(times) < self._rounds[plan]:
                start = self._budget.least_rows + len(times) * self._rows[plan]
                with _uncollected():
                    started = time.process_time()
                    self._running[plan].add_all(self._arrivals[start : start + self._rows[plan]])
                    times.append(time.process_time() - started)

    @property
    def runs(self) -> tuple[PlanRun, ...]:
        return tuple(
            PlanRun(
                plan,
                self._running[plan].operations.since(
                    self._before[plan], self._unit / self._rows[plan] / len(times)
                ),
                min(times) * self._unit / self._rows[plan],
                self._rows[plan] / self._unit,
            )
            for plan, times in self._seconds.items()
        )


def _rows_of_a_round(cost: float, unit: int, budget: Budget) -> int:
    """How many rows a round has, if a row costs so much."""
    affordable = round(budget.operations / cost)
    return max(budget.least_rows, min(affordable, unit * budget.most_units))


def _rounds(cost: float, budget: Budget) -> int:
    """How many rounds there are, if one costs so much: two at least."""
    affordable = round(budget.rounds * budget.operations / cost)
    return min(budget.rounds, max(2, affordable))


def _started(point: Point, streams: PointStreams, warm: list[Arrival]) -> dict[Plan, Prototype]:
    """Every plan with full windows, after a few rows."""
    plans = all_plans(len(point.inputs))
    full = Prototype(point.statistics, plans[-1], point.join)
    full.add_all(streams.filling())
    running = {plan: full.replanned(plan) for plan in plans}
    for prototype in running.values():
        prototype.add_all(warm)
    result = running[plans[0]].result
    if any(prototype.result != result for prototype in running.values()):
        raise AssertionError(f"plans have different results at {point}")
    return running


@contextmanager
def _uncollected() -> Iterator[None]:
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
