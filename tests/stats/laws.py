"""Streams of values under laws whose groups can be counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Law:
    """`values` values, the r-th with a chance proportional to r^-alpha."""

    alpha: float
    values: int

    def draw(self, rows: int, seed: int) -> NDArray[Any]:
        """Values of `rows` rows, as numbers that are spread over 64 bits."""
        chance = np.random.default_rng(seed)
        if self.alpha == 0:
            drawn = chance.integers(0, self.values, rows)
        else:
            drawn = np.searchsorted(_distribution(self), chance.random(rows))
        return drawn.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Drift:
    """Values that are replaced as time goes on: `alive` at a time, a new one every few rows."""

    alive: int
    every: int

    def draw(self, rows: int, seed: int) -> NDArray[Any]:
        behind = np.random.default_rng(seed).integers(0, self.alive, rows)
        return np.arange(rows) // self.every + self.alive - behind


@cache
def _distribution(law: Law) -> NDArray[np.float64]:
    summed = np.cumsum(np.arange(1.0, law.values + 1) ** -law.alpha)
    return summed / summed[-1]


SLOW = Drift(3000, 40)
"""A value lives for 120,000 rows, so a shorter stretch does not show that values are replaced."""

LAWS: list[Law | Drift] = [
    Law(0, 1),
    Law(0, 100),
    Law(0, 20_000),
    Law(0, 10_000_000),
    Law(0.5, 10_000),
    Law(0.5, 1_000_000),
    Law(0.85, 10_000),
    Law(0.85, 1_000_000),
    Law(1.1, 10_000),
    Law(1.1, 10_000_000),
    Drift(100, 15),
    SLOW,
]
