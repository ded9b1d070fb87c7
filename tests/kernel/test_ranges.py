"""Range combinations equal a fold over the range, for every operation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.kernel.columns.operations import HIGHEST, LOWEST, OPERATIONS, Arrays
from weft.kernel.columns.ranges import PrefixSums, combine_ranges

LENGTHS = st.integers(1, 70)


@st.composite
def ranges(draw: st.DrawFn, length: int) -> tuple[np.ndarray, np.ndarray]:
    pairs = draw(
        st.lists(
            st.tuples(st.integers(0, length - 1), st.integers(1, length)), min_size=1, max_size=12
        )
    )
    low = [min(a, b - 1) for a, b in pairs]
    high = [max(a + 1, b) for a, b in pairs]
    return np.array(low), np.array(high)


@given(st.data(), st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=70))
def test_prefix_sums_are_exact_even_if_the_prefixes_wrap(
    data: st.DataObject, values: list[int]
) -> None:
    low, high = data.draw(ranges(len(values)))
    sums = PrefixSums(np.array(values)).over(low, high)
    for position, (a, b) in enumerate(zip(low, high, strict=True)):
        total = sum(values[a:b])
        assert int(sums[position]) == (total + 2**63) % 2**64 - 2**63


@given(st.data(), st.sampled_from(["min", "max"]))
def test_extremes(data: st.DataObject, name: str) -> None:
    edge = [int(LOWEST), int(HIGHEST)]
    values = data.draw(
        st.lists(st.integers(-5, 5) | st.sampled_from(edge), min_size=1, max_size=70)
    )
    low, high = data.draw(ranges(len(values)))
    (extremes,) = combine_ranges(OPERATIONS[name], (np.array(values),), low, high)
    best = min if name == "min" else max
    assert extremes.tolist() == [best(values[a:b]) for a, b in zip(low, high, strict=True)]


@given(st.data())
def test_float_sums_keep_nan_and_infinity_where_they_are(data: st.DataObject) -> None:
    numbers = st.sampled_from([0.5, 1.0, -2.25, math.nan, math.inf, -math.inf, 1e300])
    values = data.draw(st.lists(numbers, min_size=1, max_size=70))
    low, high = data.draw(ranges(len(values)))
    (sums,) = combine_ranges(OPERATIONS["add_float"], (np.array(values),), low, high)
    for value, a, b in zip(sums, low, high, strict=True):
        part = values[a:b]
        signs = {v for v in part if math.isinf(v)}
        if any(map(math.isnan, part)) or len(signs) == 2:
            assert math.isnan(value)
        elif signs:
            assert value == signs.pop()
        else:
            assert value == pytest.approx(sum(part), rel=1e-9, abs=1e-9)


@given(st.data())
def test_moments_are_those_of_all_values_together(data: st.DataObject) -> None:
    samples = data.draw(
        st.lists(st.lists(st.floats(-1e3, 1e3), max_size=4), min_size=1, max_size=40)
    )
    column: Arrays = tuple(np.array([part[i] for part in map(_moments, samples)]) for i in range(3))
    low, high = data.draw(ranges(len(samples)))
    n, mean, m2 = combine_ranges(OPERATIONS["moments"], column, low, high)
    for position, (a, b) in enumerate(zip(low, high, strict=True)):
        pooled = [value for part in samples[a:b] for value in part]
        expected = _moments(pooled)
        assert n[position] == expected[0]
        if pooled:
            assert mean[position] == pytest.approx(expected[1], rel=1e-9, abs=1e-9)
            assert m2[position] == pytest.approx(expected[2], rel=1e-7, abs=1e-6)


def _moments(values: list[float]) -> tuple[float, float, float]:
    if not values:
        return (0.0, 0.0, 0.0)
    mean = math.fsum(values) / len(values)
    return (float(len(values)), mean, math.fsum((v - mean) ** 2 for v in values))
