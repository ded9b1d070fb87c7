"""Groups in n rows: estimates from samples against what is counted in generated streams."""

from __future__ import annotations

from itertools import combinations
from math import e, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stats.laws import LAWS, Law

from weft.stats.bounds import between, gee
from weft.stats.extrapolation import grown
from weft.stats.frequencies import Frequencies
from weft.stats.rarefaction import rarefied

SAMPLE = 10_000
STREAM = 50 * SAMPLE


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.data())
@settings(max_examples=60)
def test_fewer_rows_than_sampled_are_counted_exactly(
    values: list[int], data: st.DataObject
) -> None:
    """The mean over all ways to choose the rows."""
    rows = data.draw(st.integers(1, len(values)))
    chosen = [len(set(picked)) for picked in combinations(values, rows)]
    seen = Frequencies.of_values(np.array(values))
    assert rarefied(seen, rows) == pytest.approx(sum(chosen) / len(chosen), rel=1e-9)


@pytest.fixture(scope="module", params=LAWS, ids=str)
def drawn(request: pytest.FixtureRequest) -> tuple[Frequencies, dict[int, int]]:
    """A sample of a stream, and the groups that its first n rows really have."""
    law: Law = request.param
    stream = law.draw(STREAM, seed=5)
    picked = np.random.default_rng(6).choice(STREAM, SAMPLE, replace=False)
    lengths = [10, 300, 7000, SAMPLE, 2 * SAMPLE, 5 * SAMPLE, 20 * SAMPLE, STREAM]
    groups = {rows: len(np.unique(stream[:rows])) for rows in lengths}
    return Frequencies.of_values(stream[picked]), groups


def test_within_the_sample_the_error_is_that_of_chance(
    drawn: tuple[Frequencies, dict[int, int]],
) -> None:
    seen, groups = drawn
    for rows in (10, 300, 7000, SAMPLE):
        # The number of groups in some rows has a variance below its mean; both sides vary.
        slack = 4 * sqrt(groups[rows])
        assert rarefied(seen, rows) == pytest.approx(groups[rows], abs=slack, rel=0.01), rows


@pytest.mark.parametrize(("times", "factor"), [(2, 1.05), (5, 1.15), (20, 1.7), (50, 2.4)])
def test_beyond_the_sample_the_factor_of_the_error_is_bounded(
    drawn: tuple[Frequencies, dict[int, int]], times: int, factor: float
) -> None:
    seen, groups = drawn
    found = grown(seen).groups(times * SAMPLE)
    assert groups[times * SAMPLE] / factor <= found <= factor * groups[times * SAMPLE]


def test_a_sketch_of_many_rows_holds_the_curve(drawn: tuple[Frequencies, dict[int, int]]) -> None:
    """The sketch is off by 2 %, as it may be; the curve is then close all the way to it."""
    seen, groups = drawn
    for error in (0.98, 1.02):
        curve = grown(seen, (STREAM, error * groups[STREAM]))
        assert curve.groups(STREAM) == pytest.approx(groups[STREAM], rel=0.03)
        for times in (2, 5, 20):
            rows = times * SAMPLE
            assert curve.groups(rows) == pytest.approx(groups[rows], rel=0.12), rows


def test_bounds_hold_and_gee_keeps_its_guarantee(
    drawn: tuple[Frequencies, dict[int, int]],
) -> None:
    seen, groups = drawn
    for rows in (SAMPLE, 2 * SAMPLE, 5 * SAMPLE, 20 * SAMPLE, STREAM):
        low, high = between(seen, rows)
        slack = 1 + 4 / sqrt(low)
        assert low / slack <= groups[rows] <= high * slack
        assert low * (1 - 1e-9) <= grown(seen).groups(rows) <= high * (1 + 1e-9)
        ratio = gee(seen, rows) / groups[rows]
        assert 1 / (e * sqrt(rows / SAMPLE)) <= ratio <= e * sqrt(rows / SAMPLE)


def test_all_rows_distinct_and_all_the_same() -> None:
    distinct = Frequencies.of_values(np.arange(1000))
    assert grown(distinct).groups(50_000) == pytest.approx(50_000, rel=1e-3)
    assert rarefied(distinct, 10) == pytest.approx(10)
    same = Frequencies.of_values(np.zeros(1000))
    assert (rarefied(same, 500), grown(same).groups(1e9)) == (1.0, 1.0)


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=40),
    st.floats(1, 1e6),
    st.floats(1, 1e6),
    st.none() | st.tuples(st.floats(1, 1e7), st.floats(1, 1e7)),
)
def test_more_rows_never_have_fewer_groups_whatever_the_sample_and_the_sketch(
    counts: list[int], one: float, other: float, anchor: tuple[float, float] | None
) -> None:
    seen = Frequencies.of_counts(counts)
    curve = grown(seen, anchor)
    few, many = sorted((seen.rows * one, seen.rows * other))
    assert seen.distinct * (1 - 1e-9) <= curve.groups(few)
    assert curve.groups(few) <= curve.groups(many) * (1 + 1e-9) <= many * (1 + 1e-6)
