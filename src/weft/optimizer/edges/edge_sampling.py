"""The share of times that many edge classes cover, estimated with a proven bound.

From: Karp and Luby, Monte-Carlo algorithms for enumeration and reliability problems (1983), for
sets of general classes whose exact count is out of reach.

Two experiments have a success chance that gives the share; a pilot picks the one that needs
fewer points:
- direct: a time drawn uniformly from one composite slide succeeds if a class holds it;
  share = chance;
- Karp–Luby: a class is drawn with weight 1 / slide, then one of its times; it succeeds if no
  earlier class holds that time. Each covered time has one first class, so
  share = chance · sum of 1 / slide. Good where the share is small.

A time is drawn as its remainders modulo the elements of a coprime base of the slides, which are
independent and uniform: no horizon is cut off, and no time is favoured. A factor that only one
class has is a coin of that class.

Bound: of n points with k successes the chance p satisfies n · KL(k/n, p) ≤ ln(2 / δ) with
probability at least 1 - δ (Chernoff). Round i of the estimate uses fresh points, more than before,
and spends δ / 2ⁱ, so the interval that is returned holds with probability 1 - δ whatever round it
comes from. The seed is a digest of the classes: equal sets give equal estimates.
Time: O(points · classes), points ≈ 2 ln(2/δ) (1-p) / (p ε²), at most `MOST_POINTS` for each class.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from weft.algebra.window import EdgeClass
from weft.optimizer.edges.coprime_base import coprime_base

RELATIVE_ERROR = 0.005
CONFIDENCE = 0.99
MOST_POINTS = 1 << 21
"""Where this many points are not enough, the larger error that was reached is stated."""

_PILOT_POINTS = 4096
_CHUNK = 1 << 13
_ROUNDING = 1e-9

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """A share, and the relative error that it has at most with the given confidence."""

    share: float
    error: float
    confidence: float


def estimate_covered(
    classes: Sequence[EdgeClass],
    error: float = RELATIVE_ERROR,
    confidence: float = CONFIDENCE,
) -> ShareEstimate:
    """The share of times that some class holds, within `error` if points allow."""
    points = _Points(sorted(classes))
    direct = _chance(points.direct(_PILOT_POINTS), _PILOT_POINTS)
    first = _chance(points.first(_PILOT_POINTS), _PILOT_POINTS)
    experiment: Callable[[int], int]
    if direct >= first:
        experiment, chance, factor = points.direct, direct, 1.0
    else:
        experiment, chance, factor = points.first, first, points.weight
    risk = (1 - confidence) / 2
    wanted = 2 * log(2 / risk) * (1 - chance) / (chance * error**2)
    count = int(min(max(1.2 * wanted, _PILOT_POINTS), MOST_POINTS))
    while True:
        low, high = chernoff_interval(experiment(count), count, risk)
        reached = (high - low) / (high + low)
        if reached <= error or count >= MOST_POINTS:
            # The harmonic mean is the value whose relative error is least over the interval.
            share = 2 * low * high / (low + high) if low else high / 2
            return ShareEstimate(share * factor, reached * (1 + _ROUNDING), confidence)
        count, risk = min(2 * count, MOST_POINTS), risk / 2


def chernoff_interval(successes: int, count: int, risk: float) -> tuple[float, float]:
    """All chances p with count · KL(successes / count, p) ≤ ln(2 / risk).

    >>> low, high = chernoff_interval(500, 1000, 0.01)
    >>> round(low, 3), round(high, 3)
    (0.449, 0.551)
    """
    seen = successes / count
    limit = log(2 / risk) / count

    def divergence(p: float) -> float:
        left = seen * log(seen / p) if seen else 0.0
        right = (1 - seen) * log((1 - seen) / (1 - p)) if seen < 1 else 0.0
        return left + right

    def boundary(inside: float, outside: float) -> float:
        for _ in range(60):
            middle = (inside + outside) / 2
            if divergence(middle) <= limit:
                inside = middle
            else:
                outside = middle
        return outside

    low = boundary(seen, 0.0) if 0 < seen < 1 else (0.0 if not seen else exp(-limit))
    high = boundary(seen, 1.0) if 0 < seen < 1 else (1.0 if seen else 1 - exp(-limit))
    return low, high


def _chance(successes: int, count: int) -> float:
    return min(max(successes, 1) / count, 1 - 1 / (2 * count))


@dataclass(frozen=True, slots=True)
class _Test:
    """A class as conditions on coordinates, the rarest first, and the chance of its own coin."""

    parts: tuple[tuple[int, int, int], ...]
    coin: float


class _Points:
    """Random times by their remainders, and tests whether classes hold them."""

    def __init__(self, classes: Sequence[EdgeClass]) -> None:
        self._classes = classes
        text = ",".join(f"{edge_class.slide}:{edge_class.residue}" for edge_class in classes)
        self._random = np.random.default_rng(
            int.from_bytes(hashlib.sha256(text.encode()).digest()[:16])
        )
        factors = coprime_base(edge_class.slide for edge_class in classes)
        sharing: dict[int, int] = {}
        largest: dict[int, int] = {}
        for edge_class in classes:
            for element, power in factors[edge_class.slide]:
                sharing[element] = sharing.get(element, 0) + 1
                largest[element] = max(largest.get(element, 1), power)
        self._elements = [element for element in sorted(sharing) if sharing[element] > 1]
        self._sizes = [largest[element] for element in self._elements]
        position_of = {element: i for i, element in enumerate(self._elements)}
        self._tests = []
        for edge_class in classes:
            shared = [(p, e) for e, p in factors[edge_class.slide] if sharing[e] > 1]
            alone = 1
            for element, power in factors[edge_class.slide]:
                alone *= power if sharing[element] == 1 else 1
            parts = tuple(
                (position_of[e], p, edge_class.residue % p) for p, e in sorted(shared, reverse=True)
            )
            self._tests.append(_Test(parts, 1 / alone))
        self._weights = np.array([1 / edge_class.slide for edge_class in classes])
        self.weight = float(self._weights.sum())

    def direct(self, count: int) -> int:
        """How many of `count` uniform times some class holds."""
        covered = 0
        for low in range(0, count, _CHUNK):
            length = min(_CHUNK, count - low)
            times = self._draw(length)
            open_points = np.ones(length, dtype=np.bool_)
            for test in self._tests:
                held = self._held(test, times, 0, length)
                open_points[held] = False
            covered += length - int(np.count_nonzero(open_points))
        return covered

    def first(self, count: int) -> int:
        """How many of `count` times, each drawn from a class, no earlier class holds."""
        chosen = self._random.choice(
            len(self._tests), size=count, p=self._weights / self._weights.sum()
        )
        first = 0
        for low in range(0, count, _CHUNK):
            owners = np.sort(chosen[low : low + _CHUNK])
            times = self._draw(len(owners))
            self._move_into(owners, times)
            open_points = np.ones(len(owners), dtype=np.bool_)
            for i, test in enumerate(self._tests):
                after = int(np.searchsorted(owners, i, side="right"))
                if after == len(owners):
                    break
                held = self._held(test, times, after, len(owners))
                open_points[held] = False
            first += int(np.count_nonzero(open_points))
        return first

    def _draw(self, count: int) -> list[Integers]:
        return [self._random.integers(0, size, size=count) for size in self._sizes]

    def _move_into(self, owners: Integers, times: list[Integers]) -> None:
        """Change the coordinates that the owner's slide fixes; the rest stay uniform."""
        present, begins = np.unique(owners, return_index=True)
        ends = np.append(begins[1:], len(owners))
        for owner, begin, end in zip(present, begins, ends):
            for element, power, residue in self._tests[owner].parts:
                coordinate = times[element][begin:end]
                coordinate += residue - coordinate % power

    def _held(self, test: _Test, times: list[Integers], low: int, high: int) -> Integers:
        """The points of [low, high) that the class holds."""
        held: Integers | None = None
        for element, power, residue in test.parts:
            coordinate = times[element][low:high]
            if held is not None:
                coordinate = coordinate[held]
            if power < self._sizes[element]:
                coordinate = coordinate % power
            matching = np.flatnonzero(coordinate == residue)
            held = matching if held is None else held[matching]
            if not len(held):
                return held
        if held is None:
            held = np.arange(high - low)
        if test.coin < 1:
            held = held[self._random.random(len(held)) < test.coin]
        return held + low
