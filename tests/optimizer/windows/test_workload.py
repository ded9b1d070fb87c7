"""Queries with equal edges are one edge set; overlap factors add up exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.optimizer.windows import brute_force
from tests.optimizer.windows.support import distinct, workload_of

from weft.algebra.window import EdgeClass, Window
from weft.optimizer.edges.workload import LARGEST, Windowed, Workload

SETS = st.lists(brute_force.windows(), min_size=1, max_size=12)


@given(SETS)
def test_edge_sets_are_the_distinct_sets_of_edges(windows: list[Window]) -> None:
    workload = workload_of(windows)
    expected = distinct(windows)
    assert len(workload.edge_sets) == len(expected)
    sets = {frozenset(workload.names[i] for i in members.tolist()) for members in workload.members}
    remaining = list(enumerate(windows))
    named = [
        frozenset(f"q{i}" for i, window in remaining if any(window is other for other in group))
        for group in expected
    ]
    assert sets == set(named)


@given(SETS)
def test_overlap_factors_are_the_sums_of_range_by_slide(windows: list[Window]) -> None:
    workload = workload_of(windows)
    for members, total in zip(workload.members, workload.overlaps):
        assert total == brute_force.overlap([windows[i] for i in members.tolist()])
    assert workload.edge_rate.value == brute_force.edge_rate(windows)


def test_two_residues_half_a_slide_apart_are_one_class() -> None:
    """range 5, slide 10: |-----     |-----     edges at all multiples of 5."""
    workload = workload_of([Window(5, 10), Window(15, 5)])
    assert workload.edge_sets == ((EdgeClass(5, 0),),)
    assert workload.overlaps == (Fraction(7, 2),)


def test_the_order_of_queries_does_not_change_the_edge_sets() -> None:
    windows = [Window(8, 5), Window(5, 4), Window(10, 1), Window(9, 3, 1)]
    forwards, backwards = workload_of(windows), workload_of(windows[::-1])
    assert forwards.edge_sets == backwards.edge_sets
    assert forwards.overlaps == backwards.overlaps


def test_a_unit_of_many_ticks_multiplies_rates() -> None:
    seconds = workload_of([Window(8, 5), Window(5, 4)])
    micros = workload_of([Window(8_000_000, 5_000_000), Window(5_000_000, 4_000_000)], 10**6)
    assert micros.edge_rate == seconds.edge_rate
    assert micros.result_rate == seconds.result_rate == 1 / 5 + 1 / 4


def test_a_hundred_thousand_queries_over_few_slides_are_few_edge_sets() -> None:
    slides = np.tile(np.arange(1, 51), 2000)
    names = [f"q{i}" for i in range(len(slides))]
    workload = Workload.of_columns(names, slides * 3, slides)
    assert len(workload.edge_sets) == 50
    assert set(workload.overlaps) == {Fraction(6000)}


def test_ranges_whose_sum_is_beyond_64_bits_add_up() -> None:
    largest = LARGEST - 1
    workload = Workload.of([Windowed(str(i), Window(largest, largest)) for i in range(8)])
    assert workload.overlaps == (Fraction(8),)


@pytest.mark.parametrize(
    ("ranges", "slides", "starts"),
    [
        ([0], [1], None),
        ([1], [0], None),
        ([1], [-1], None),
        ([LARGEST], [1], None),
        ([3], [3], [3]),
    ],
)
def test_bad_windows_are_refused(
    ranges: list[int], slides: list[int], starts: list[int] | None
) -> None:
    with pytest.raises(ValueError):
        Workload.of_columns(["q"], ranges, slides, starts)


def test_an_empty_workload_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Workload.of([])
