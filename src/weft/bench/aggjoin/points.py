"""The paper's sweeps in weft's kernel: what each plan takes, and which one weft's own costs choose.

Rates and windows of a point are multiplied by a factor, so that work is more than the fixed cost of the kernel's calls. What the
choice knows of a stream comes from a sample of its rows, as in a running weft, and not from the settings that made it.

In each round all plans of a point take their turn, as do all points; the least of a plan's times, in processor time, counts. The order of plans is another one in every round:
whoever comes first after another point finds caches without anything of its own. Every plan has a few turns at least, unless one of them takes seconds.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from weft.algebra.frozen import FrozenMapping
from weft.experiments.aggjoin.kernel_run import KernelJoin
from weft.experiments.aggjoin.parameters import FULL, Point
from weft.optimizer.joinagg.plans import Plan, all_plans
from weft.optimizer.joinagg.statistics import InputStatistics
from weft.optimizer.joinagg.weft_cost import InputLoad, JoinLoad, choose_plan
from weft.stats import StreamStatistics
from weft.stats.sample import MOST_ROWS, Hashes, JointSample
from weft.workloads.aggjoin.streams import GROUP, JOIN, StreamShape, stream

NEAR = 1.1
"""A plan is as good as the best up to this factor."""
_KEYS = frozenset({GROUP, JOIN})


def scaled(point: Point, factor: float) -> Point:
    """The point with rates and windows multiplied."""
    inputs = tuple(
        replace(given, rate=given.rate * factor, window=given.window * factor)
        for given in point.inputs
    )
    return replace(point, inputs=inputs)


def papers_points(factors: tuple[float, float]) -> list[Point]:
    """All points of figures 4 and 5, two-way and three-way ones with their factors."""
    return [
        replace(
            scaled(point, factors[len(point.inputs) - 2]), label=f"{sweep.figure} {point.label}"
        )
        for sweep in FULL.sweeps
        for point in sweep.points
    ]


def load_of_point(point: Point, seed: int) -> JoinLoad:
    """What is known of the point's streams by a sample: the costs' view of an instant. What streams do before, publishing panes or
    rows, is no part of the kernel's time, so nothing is new here."""
    inputs, values = [], []
    for number, given in enumerate(point.inputs):
        known = _sampled(given, number, seed)
        rows = given.window
        entries = known.groups(_KEYS, min(given.rate, rows)) * max(rows / given.rate, 1)
        inputs.append(InputLoad(rows, 0.0, known.groups(_KEYS, rows), entries, 0.0))
        values.append(known.groups({JOIN}, rows))
    pairs = {(slot, slot + 1): max(values[slot : slot + 2]) for slot in range(len(values) - 1)}
    return JoinLoad(tuple(inputs), pairs)


def _sampled(given: InputStatistics, number: int, seed: int) -> StreamStatistics:
    rows = min(MOST_ROWS, int(given.window))
    shape = StreamShape(given.rate, int(given.groups), round(1 / given.selectivity))
    table = stream(shape, rows, number, seed + 1)
    columns = {name: _hashes(table[name].combine_chunks()) for name in _KEYS}
    return StreamStatistics(rows=rows, sample=JointSample().then(columns))


def _hashes(values: pa.Array) -> Hashes:
    codes = values.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.uint64)
    hashes: Hashes = ((codes + 1) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)).astype(
        np.uint32
    )
    return hashes


@dataclass(frozen=True)
class JudgedPoint:
    """The seconds of each plan for an instant, and which one was chosen."""

    point: Point
    seconds: Mapping[Plan, float]
    chosen: Plan

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", FrozenMapping(self.seconds))

    @property
    def loss(self) -> float:
        """How much more the chosen plan takes than the best one."""
        return self.seconds[self.chosen] / min(self.seconds.values()) - 1

    @property
    def good(self) -> bool:
        return self.loss <= NEAR - 1


class PointTimes:
    """The times of all plans of one point."""

    def __init__(self, point: Point, most_seconds: float, seed: int) -> None:
        self.point, self._most = point, most_seconds
        self._random = random.Random(seed)
        self._join = KernelJoin(point, _INSTANTS, seed)
        self._chosen = choose_plan(load_of_point(point, seed), (None,) * len(point.inputs)).best
        self._seconds: dict[Plan, list[float]] = {plan: [] for plan in all_plans(len(point.inputs))}

    def round(self) -> None:
        """Every plan evaluates an instant, unless it has used up its seconds."""
        for plan in self._random.sample(list(self._seconds), len(self._seconds)):
            times = self._seconds[plan]
            few = len(times) < _LEAST_TURNS and sum(times) < _LEAST_TURNS * _LONG
            if few or sum(times) < self._most:
                started = time.process_time()
                self._join.at(len(times) % _INSTANTS + 1, plan)
                times.append(time.process_time() - started)

    @property
    def judged(self) -> JudgedPoint:
        least = {plan: min(times) for plan, times in self._seconds.items()}
        return JudgedPoint(self.point, least, self._chosen.plan)


def judged(
    points: Sequence[Point], rounds: int, most_seconds: float, seed: int = 1
) -> Iterator[JudgedPoint]:
    """All points, measured in turns. Few of them are held at once, since their windows take memory."""
    for start in range(0, len(points), _AT_ONCE):
        running = [
            PointTimes(point, most_seconds, seed) for point in points[start : start + _AT_ONCE]
        ]
        for _ in range(rounds):
            for times in running:
                times.round()
        yield from (times.judged for times in running)


_AT_ONCE = 6
_INSTANTS = 20
"""Different instants that are evaluated, again and again. The constants were fitted with as many."""
_LEAST_TURNS = 3
_LONG = 1.0
"""Seconds of a turn."""
