"""The kernel's constants in weft's costs of plans (`optimizer/joinagg/weft_cost`), fitted to times at points drawn at random.

None of these points is one that `choice` judges. The least squares solution over all plans and points, with relative errors and no constant below 0, of

    µs ≈ Σ constant · work (`kernel_work`) + JOINS·inputs + calls

What the kernel's calls cost in every plan, for each input and at all, is fitted, too, but does not matter for the choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.bench.aggjoin.points import JudgedPoint, load_of_point
from weft.experiments.aggjoin.parameters import Point
from weft.experiments.aggjoin.tuning import not_negative
from weft.optimizer.joinagg.plans import Plan
from weft.optimizer.joinagg.statistics import InputStatistics
from weft.optimizer.joinagg.weft_cost import KERNEL, JoinLoad, kernel_work

NAMES: Final = (*KERNEL, "inputs", "calls")
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


def features(load: JoinLoad, plan: Plan) -> tuple[float, ...]:
    """What a plan does for an instant, in the order of `NAMES`."""
    work = kernel_work(load, plan)
    return (*(work[name] for name in KERNEL), len(plan), 1.0)


def fitted(points: Sequence[JudgedPoint], seed: int = 1) -> dict[str, float]:
    """The constants in microseconds."""
    rows = [
        [feature / (seconds * 1e6) for feature in features(load_of_point(judged.point, seed), plan)]
        for judged in points
        for plan, seconds in judged.seconds.items()
    ]
    return dict(zip(NAMES, not_negative(np.array(rows)), strict=True))
