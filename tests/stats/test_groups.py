"""Groups in n rows: estimates from a stretch of a stream against what is counted in all of it."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stats.laws import LAWS, SLOW, Drift, Law

from weft.stats.bounds import between
from weft.stats.extrapolation import grown
from weft.stats.working_set import WorkingSet

SAMPLE = 10_000
STREAM = 50 * SAMPLE
Drawn = tuple[Law | Drift, WorkingSet, dict[int, float]]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.data())
@settings(max_examples=80)
def test_fewer_rows_than_sampled_are_counted_exactly(
    values: list[int], data: st.DataObject
) -> None:
    """The mean over all runs of consecutive rows."""
    rows = data.draw(st.integers(1, len(values)))
    runs = [len(set(values[i : i + rows])) for i in range(len(values) - rows + 1)]
    average = WorkingSet.of_values(np.array(values)).groups(rows)
    assert average == pytest.approx(sum(runs) / len(runs), rel=1e-12)


def mean_groups(stream: np.ndarray, rows: int) -> float:
    """The groups in stretches of `rows` rows, over some that do not overlap."""
    stretches = min(len(stream) // rows, max(30_000 // rows, 10))
    parts = stream[: stretches * rows].reshape(stretches, rows)
    return float(np.mean([len(np.unique(part)) for part in parts]))


@pytest.fixture(scope="module", params=LAWS, ids=str)
def drawn(request: pytest.FixtureRequest) -> Drawn:
    """A stretch from the middle of a stream, and the groups that n rows of it really have."""
    law: Law | Drift = request.param
    stream = law.draw(STREAM, seed=5)
    middle = STREAM // 2
    lengths = [10, 300, 3500, SAMPLE, 2 * SAMPLE, 5 * SAMPLE, 20 * SAMPLE, STREAM]
    groups = {rows: mean_groups(stream, rows) for rows in lengths}
    return law, WorkingSet.of_values(stream[middle : middle + SAMPLE]), groups


def test_within_the_sample_the_error_is_that_of_chance(drawn: Drawn) -> None:
    _, sampled, groups = drawn
    for rows in (10, 300, 3500, SAMPLE):
        # The groups in some rows vary less than a Poisson number of that mean.
        slack = 4 * sqrt(groups[rows] * rows / SAMPLE)
        assert sampled.groups(rows) == pytest.approx(groups[rows], abs=slack, rel=0.01), rows


@pytest.mark.parametrize(("times", "factor"), [(2, 1.08), (5, 1.3), (20, 2.0), (50, 3.2)])
def test_beyond_the_sample_the_factor_of_the_error_is_bounded(
    drawn: Drawn, times: int, factor: float
) -> None:
    law, sampled, groups = drawn
    estimated = grown(sampled).groups(times * SAMPLE)
    if law == SLOW and times > 5:
        assert estimated < groups[times * SAMPLE] / factor, "no sample can tell: hence the sketches"
        return
    assert groups[times * SAMPLE] / factor <= estimated <= factor * groups[times * SAMPLE]


def test_a_sketch_of_many_rows_holds_the_curve(drawn: Drawn) -> None:
    """The sketch is off by 2 %, as it may be; the curve is then close all the way to it."""
    law, sampled, groups = drawn
    for error in (0.98, 1.02):
        curve = grown(sampled, (STREAM, error * groups[STREAM]))
        assert curve.groups(STREAM) == pytest.approx(groups[STREAM], rel=0.03)
        for times in (2, 5, 20):
            rows = times * SAMPLE
            allowed = 0.5 if law == SLOW else 0.16
            assert curve.groups(rows) == pytest.approx(groups[rows], rel=allowed), rows


def test_the_bounds_hold_for_streams_and_estimates(drawn: Drawn) -> None:
    _, sampled, groups = drawn
    for rows in (SAMPLE, 2 * SAMPLE, 5 * SAMPLE, 20 * SAMPLE, STREAM):
        low, high = between(sampled.groups(SAMPLE), SAMPLE, rows)
        slack = 1 + 4 / sqrt(low)
        assert low / slack <= groups[rows] <= high * slack
        assert low * (1 - 1e-9) <= grown(sampled).groups(rows) <= high * (1 + 1e-9)


def test_all_rows_distinct_and_all_the_same() -> None:
    distinct = WorkingSet.of_values(np.arange(1000))
    assert grown(distinct).groups(50_000) == pytest.approx(50_000, rel=1e-6)
    assert distinct.groups(10.5) == pytest.approx(10.5)
    same = WorkingSet.of_values(np.zeros(1000))
    assert same.groups(500) == 1.0
    assert grown(same).groups(1e9) == pytest.approx(1.0, rel=1e-6)
    single = WorkingSet.of_values(np.array([7]))
    assert 1.0 <= grown(single).groups(100) <= 100.0


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=60),
    st.lists(st.floats(1, 60), min_size=2, max_size=2),
    st.lists(st.floats(1, 1e6), min_size=2, max_size=2),
    st.none() | st.tuples(st.floats(1, 1e7), st.floats(1, 1e7)),
)
def test_more_rows_never_have_fewer_groups_whatever_the_sample_and_the_sketch(
    values: list[int],
    within: list[float],
    beyond: list[float],
    sketch: tuple[float, float] | None,
) -> None:
    sampled = WorkingSet.of_values(np.array(values))
    few, many = sorted(min(rows, sampled.rows) for rows in within)
    assert 1 <= sampled.groups(few) <= sampled.groups(many) * (1 + 1e-9) <= many * (1 + 1e-6)
    curve = grown(sampled, sketch)
    few, many = sorted(rows * sampled.rows for rows in beyond)
    assert len(set(values)) * (1 - 1e-9) <= curve.groups(few)
    assert curve.groups(few) <= curve.groups(many) * (1 + 1e-9) <= many * (1 + 1e-6)
