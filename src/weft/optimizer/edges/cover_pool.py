"""Sample times for many edge sets at once: quick guesses of what any group covers.

A search compares thousands of groups that differ in one edge set. For this the pool holds random
edges of every set, and for each point the sets that have an edge there. A point t that could come
from the sets a ∋ t, with K points from each, weighs 1 / Σ K / Eₐ; the weights of the points that
a group covers then add up to its edge rate on average (multiple importance sampling with the
balance heuristic; with one class per set it is Karp and Luby's coverage estimator).

Guesses lead a search; what it accepts is checked with `SearchRates`. Times are drawn from 62 bits
and the seed is fixed, so that the same sets give the same pool.
Time: O(points · sets). Space: O(points · sets per point).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from weft.algebra.window import EdgeClass
from weft.optimizer.edges.common_edges import Floats

_POINTS = 1 << 16
_FEWEST, _MOST = 8, 256
_HORIZON = 1 << 62
_CHUNK = 1 << 14
_SAMPLE = 128
_SEED = 2012


class CoverPool:
    """Points, and for each edge set those that are its edges.

    `samples` are at most `_SAMPLE` of a set's points; the weights of a sample add up to its rate.
    """

    def __init__(self, edge_sets: list[tuple[EdgeClass, ...]], rates: Floats) -> None:
        count = len(edge_sets)
        draws = min(max(_POINTS // count, _FEWEST), _MOST)
        random = np.random.default_rng(_SEED)
        times = _draw(edge_sets, draws, random)
        self.size = len(times)
        density = np.zeros(self.size)
        self.points: list[NDArray[np.int64]] = []
        for number, classes in enumerate(edge_sets):
            held = np.flatnonzero(_holds(classes, times))
            self.points.append(held)
            density[held] += draws / rates[number]
        self.weights = 1 / density
        self.samples: list[NDArray[np.int64]] = []
        self.sample_weights: list[Floats] = []
        for number, held in enumerate(self.points):
            sample = held if len(held) <= _SAMPLE else np.sort(random.permutation(held)[:_SAMPLE])
            weights = self.weights[sample]
            self.samples.append(sample)
            # A set's weights add up to its rate, which is known.
            self.sample_weights.append(weights * (rates[number] / weights.sum()))

    def union(self, edge_sets: Iterable[int]) -> float:
        """A guess of the rate of all edges of the sets."""
        covered = np.zeros(self.size, dtype=np.bool_)
        for edge_set in edge_sets:
            covered[self.points[edge_set]] = True
        return float(self.weights @ covered)


def _draw(
    edge_sets: list[tuple[EdgeClass, ...]], draws: int, random: np.random.Generator
) -> NDArray[np.int64]:
    parts = []
    for classes in edge_sets:
        for number, edge_class in enumerate(classes):
            share = draws // len(classes) + (number < draws % len(classes))
            turns = random.integers(0, _HORIZON // edge_class.slide, size=share)
            parts.append(turns * edge_class.slide + edge_class.residue)
    return np.concatenate(parts)


def _holds(classes: tuple[EdgeClass, ...], times: NDArray[np.int64]) -> NDArray[np.bool_]:
    held = np.empty(len(times), dtype=np.bool_)
    for low in range(0, len(times), _CHUNK):
        remainder = times[low : low + _CHUNK] % classes[0].slide
        held[low : low + _CHUNK] = remainder == classes[0].residue
        if len(classes) == 2:
            held[low : low + _CHUNK] |= remainder == classes[1].residue
    return held
