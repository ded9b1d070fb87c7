"""The kernel's constants in weft's costs of plans (`optimizer/joinagg/weft_cost`), fitted to times at points drawn at random.

None of these points is one that `choice` judges. The least squares solution over all plans and points, with relative errors and no constant below 0, of

    µs ≈ Σ constant · work (`kernel_work`) + groups · groups of the result + inputs · inputs + calls

What all plans of a query do alike is fitted, too, but does not matter for the choice: making the groups of the result, and the kernel's calls, for each input and
at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.bench.aggjoin.points import JudgedPoint, load_of_point
from weft.experiments.aggjoin.parameters import Point
from weft.experiments.aggjoin.tuning import not_negative
from weft.optimizer.joinagg.plans import Plan, late_plan
from weft.optimizer.joinagg.statistics import InputStatistics
from weft.optimizer.joinagg.weft_cost import KERNEL, JoinLoad, kernel_work

NAMES: Final = (*KERNEL, "groups", "inputs", "calls")
_MOST_JOINED = 2e6


def drawn(count: int, seed: int = 7) -> list[Point]:
    """Joins of two or three inputs, whose late plans join no more than a bound."""
    random = np.random.default_rng(seed)
    points: list[Point] = []
    while len(points) < count:
        selectivity = 1 / round(float(np.exp(random.uniform(np.log(2), np.log(2000)))))
        inputs = []
        for _ in range(int(random.integers(2, 4))):
            window = round(float(np.exp(random.uniform(np.log(400), np.log(20_000)))))
            rate = max(window // int(random.integers(2, 20)), 1)
            groups = round(float(np.exp(random.uniform(0, np.log(20_000)))))
            inputs.append(InputStatistics(rate, window, groups, selectivity))
        joined = float(np.prod([given.window for given in inputs]))
        joined *= selectivity ** (len(inputs) - 1)
        if joined <= _MOST_JOINED:
            points.append(Point(f"point {len(points)}", len(points), tuple(inputs)))
    return points


def features(point: Point, load: JoinLoad, plan: Plan) -> tuple[float, ...]:
    """What a plan does for an instant, in the order of `NAMES`."""
    work = kernel_work(load, plan)
    return (*(work[name] for name in KERNEL), groups_of(point, load), len(plan), 1.0)


def groups_of(point: Point, load: JoinLoad) -> float:
    """Into how many groups so many joined rows are expected to fall."""
    groups = math.prod(given.groups for given in point.inputs)
    return groups * -math.expm1(-load.joined(late_plan(len(point.inputs)))[-1] / groups)


def fitted(points: Sequence[JudgedPoint], seed: int = 1) -> dict[str, float]:
    """The constants in microseconds."""
    rows = [
        [feature / (seconds * 1e6) for feature in features(judged.point, load, plan)]
        for judged in points
        for load in (load_of_point(judged.point, seed),)
        for plan, seconds in judged.seconds.items()
    ]
    return dict(zip(NAMES, not_negative(np.array(rows)), strict=True))
