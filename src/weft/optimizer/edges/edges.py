"""The edge rate of any set of windows: how many distinct edges there are per unit of time.

From: the TriOps paper, sections II-C and III-C (E of equations 1 to 4). The edges of a set of
classes repeat with the composite slide, so the rate is a fraction, whatever the ranges, slides
and starts; it is the share of times that some class holds.

Four ways, by size; the first three are exact:
1. Classes that another contains are dropped, and the common pane is divided out; two classes have
   the closed form 1/a + 1/b - 1/lcm (or without the last term if they never meet).
2. A small composite slide is counted edge by edge (`edge_bitset`).
3. A large one by conditioning on factors (`edge_counting`), within a budget of steps.
4. Else the rate is estimated (`edge_sampling`), within 0.5 % at 99 % confidence, and says so.
Rates are fractions; where these would have hundreds of digits, they are counted in floats, whose
rounding is far below a plan's interest (about 1e-13).
The budget counts steps, not seconds: the same windows give the same answer on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np

from weft.algebra.window import EdgeClass, Window
from weft.optimizer.edges.edge_bitset import composite_slide, count_edges
from weft.optimizer.edges.edge_counting import EdgeCounter, OutOfSteps
from weft.optimizer.edges.edge_sampling import estimate_covered
from weft.optimizer.edges.slices import base_pane

MOST_STEPS = 60_000
"""How many classes exact counting may look at, about a quarter of a second."""

SMALL_PERIOD = 1 << 16
LARGEST_PERIOD = 1 << 27
"""Composite slides up to the first are counted edge by edge at once; up to the second if
conditioning ran out of steps."""

_FRACTION_BITS = 512


@dataclass(frozen=True, slots=True)
class EdgeRate:
    """Edges per unit of time; with `error` 0 it is exact, but for rounding if it is a float.

    Otherwise the true rate is within the relative `error` with probability `confidence`.
    """

    value: Fraction | float
    error: float = 0.0
    confidence: float = 1.0

    @property
    def exact(self) -> bool:
        return self.error == 0

    def __float__(self) -> float:
        return float(self.value)

    def per(self, unit: int) -> EdgeRate:
        """The rate for a unit of time that is `unit` times as long."""
        return EdgeRate(self.value * unit, self.error, self.confidence)


def edge_rate(classes: Iterable[EdgeClass], steps: int = MOST_STEPS) -> EdgeRate:
    """The rate at which at least one of the classes has an edge.

    >>> edge_rate([EdgeClass(5, 0), EdgeClass(5, 3), EdgeClass(4, 0), EdgeClass(4, 1)])
    EdgeRate(value=Fraction(7, 10), error=0.0, confidence=1.0)
    """
    kept = without_contained(classes)
    if not kept:
        return EdgeRate(Fraction(0))
    if len(kept) <= 2:
        return EdgeRate(_of_two(kept))
    pane, offset = base_pane(kept)
    if pane > 1:
        kept = [
            EdgeClass(edge_class.slide // pane, (edge_class.residue - offset) // pane)
            for edge_class in kept
        ]
    period = composite_slide(kept, LARGEST_PERIOD)
    if period is not None and period <= SMALL_PERIOD:
        return EdgeRate(Fraction(count_edges(kept, period), period * pane))
    try:
        return EdgeRate(_counted(kept, steps) / pane)
    except OutOfSteps:
        if period is not None:
            return EdgeRate(Fraction(count_edges(kept, period), period * pane))
    estimate = estimate_covered(kept)
    return EdgeRate(estimate.share / pane, estimate.error, estimate.confidence)


def edge_rate_of_windows(windows: Iterable[Window], steps: int = MOST_STEPS) -> EdgeRate:
    """The rate at which at least one of the windows has an edge.

    >>> float(edge_rate_of_windows([Window(8, 5), Window(5, 4)]))
    0.7
    """
    return edge_rate({edge for window in windows for edge in window.edge_classes}, steps)


def without_contained(classes: Iterable[EdgeClass]) -> list[EdgeClass]:
    """The classes without those that another one contains, in order.

    As `slices.irreducible`, which compares all pairs; this looks up each slide that divides.

    >>> without_contained([EdgeClass(10, 0), EdgeClass(5, 0), EdgeClass(10, 3)])
    [EdgeClass(slide=5, residue=0), EdgeClass(slide=10, residue=3)]
    """
    by_slide: dict[int, set[int]] = {}
    for edge_class in classes:
        by_slide.setdefault(edge_class.slide, set()).add(edge_class.residue)
    slides = sorted(by_slide)
    ordered = np.array(slides)
    kept: list[EdgeClass] = []
    for smaller_count, slide in enumerate(slides):
        residues = by_slide[slide]
        for smaller in ordered[:smaller_count][slide % ordered[:smaller_count] == 0].tolist():
            present = by_slide[smaller]
            residues = {r for r in residues if r % smaller not in present}
        kept += [EdgeClass(slide, residue) for residue in sorted(residues)]
    return kept


def common_edge_rate(first: EdgeClass, second: EdgeClass) -> Fraction:
    """The rate of the times that both classes hold: 1 / lcm, or 0 if they never meet.

    By the Chinese remainder theorem they meet if the residues agree modulo the gcd of the slides.

    >>> common_edge_rate(EdgeClass(6, 1), EdgeClass(4, 3)), common_edge_rate(
    ...     EdgeClass(6, 1), EdgeClass(4, 2))
    (Fraction(1, 12), Fraction(0, 1))
    """
    divisor = gcd(first.slide, second.slide)
    if (first.residue - second.residue) % divisor:
        return Fraction(0)
    return Fraction(divisor, first.slide * second.slide)


def _counted(classes: Sequence[EdgeClass], steps: int) -> Fraction | float:
    slides = {edge_class.slide for edge_class in classes}
    if composite_slide(classes, 1 << _FRACTION_BITS) is None:
        return EdgeCounter(1.0, slides).covered(classes, steps)
    return EdgeCounter(Fraction(1), slides).covered(classes, steps)


def _of_two(classes: Sequence[EdgeClass]) -> Fraction:
    rate = sum((Fraction(1, edge_class.slide) for edge_class in classes), Fraction(0))
    return rate - common_edge_rate(*classes) if len(classes) == 2 else rate
