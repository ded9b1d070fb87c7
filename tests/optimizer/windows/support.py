"""Workloads and plans in terms of windows, for comparison with brute force."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

from tests.optimizer.windows.brute_force import edges_of

from weft.algebra.window import Window
from weft.optimizer.edges.workload import Windowed, Workload
from weft.optimizer.windows.grouping import Grouping


def workload_of(windows: Sequence[Window], unit: int = 1) -> Workload:
    """Queries q0, q1, … in order."""
    return Workload.of([Windowed(f"q{i}", window) for i, window in enumerate(windows)], unit)


def windows_of(plan: Grouping, windows: Sequence[Window]) -> list[list[Window]]:
    """The windows of each group."""
    return [[windows[int(name[1:])] for name in group.queries] for group in plan.groups]


def distinct(windows: Sequence[Window]) -> list[list[Window]]:
    """The windows by equal edges, found by listing these."""
    period = lcm(*(window.slide for window in windows))
    by_edges: dict[frozenset[int], list[Window]] = {}
    for window in windows:
        by_edges.setdefault(frozenset(edges_of(window, 0, period)), []).append(window)
    return list(by_edges.values())


RATES = (Fraction(1, 2), Fraction(3), Fraction(50), Fraction(1000))
