"""Oracles for window sharing: slow, independent of the code under test, and exact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm

from hypothesis import strategies as st

from weft.algebra.window import Window


def edges_of(window: Window, low: int, high: int) -> set[int]:
    """All t of [low, high) where an instance [start + k·slide, start + k·slide + range) begins
    or ends."""
    first = (low - window.start - window.range) // window.slide - 1
    last = (high - window.start) // window.slide + 1
    begins = [window.start + k * window.slide for k in range(first, last + 1)]
    ends = [begin + window.range for begin in begins]
    return {t for t in (*begins, *ends) if low <= t < high}


def edge_rate(windows: Sequence[Window]) -> Fraction:
    """Distinct edges in one composite slide, far from time 0, per unit of time."""
    period = lcm(*(window.slide for window in windows))
    low = 7 * period
    edges: set[int] = set()
    for window in windows:
        edges |= edges_of(window, low, low + period)
    return Fraction(len(edges), period)


def overlap(windows: Sequence[Window]) -> Fraction:
    return sum((Fraction(window.range, window.slide) for window in windows), Fraction(0))


def twoops(groups: Sequence[Sequence[Window]], rate: Fraction) -> Fraction:
    """Equation 3."""
    return len(groups) * rate + sum((edge_rate(g) * overlap(g) for g in groups), Fraction(0))


def triops(groups: Sequence[Sequence[Window]], rate: Fraction) -> Fraction:
    """Equation 4."""
    everything = [window for group in groups for window in group]
    final = sum((edge_rate(group) * overlap(group) for group in groups), Fraction(0))
    return rate + len(groups) * edge_rate(everything) + final


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    """All partitions of the items."""
    if not items:
        yield []
        return
    first, *rest = items
    for partition in partitions(rest):
        yield [[first], *partition]
        for number in range(len(partition)):
            yield [*partition[:number], [first, *partition[number]], *partition[number + 1 :]]


@st.composite
def windows(draw: st.DrawFn, slides: Sequence[int] = tuple(range(1, 13))) -> Window:
    """Any ranges and starts; the slides keep the composite slide small."""
    slide = draw(st.sampled_from(slides))
    length = draw(st.one_of(st.integers(1, 6).map(lambda k: k * slide), st.integers(1, 40)))
    return Window(length, slide, draw(st.integers(1 - slide, slide - 1)))


@st.composite
def plain_windows(draw: st.DrawFn, slides: Sequence[int] = tuple(range(1, 25))) -> Window:
    """As in the paper: the range is a multiple of the slide."""
    slide = draw(st.sampled_from(slides))
    return Window(draw(st.integers(1, 50)) * slide, slide)
