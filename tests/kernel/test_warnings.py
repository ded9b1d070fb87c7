"""NaN, infinities, sums beyond every double and empty input are values: NumPy warns of none of them.

The tests run with warnings as errors (`pyproject.toml`), and NumPy's own settings are its defaults.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.algebra.aggregate import MOMENTS, Aggregate, lift
from weft.algebra.scalar import Expression
from weft.kernel.columns.combine import Combiner, over_runs
from weft.kernel.columns.partial_columns import load
from weft.kernel.columns.side_by_side import side_by_side
from weft.kernel.windows.lower import lower
from weft.stats import JointSample
from weft.stats.extrapolation import grown
from weft.stats.frequencies import Frequencies
from weft.stats.working_set import WorkingSet
from weft.stats.zipf import fitted

NUMBERS = [0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324]
DOUBLE = Expression("`v`", "double", ("v",))
LONG = Expression("`n`", "bigint", ("n",))
FUNCTIONS = ["sum", "avg", "min", "max", *sorted(MOMENTS)]


def column_of(lifted: str, type_: str, numbers: list[float | None]) -> pa.Array:
    """A column of fragments with one row each, as level 1 would have written it."""
    if lifted.startswith("count"):
        return pa.array([int(number is not None) for number in numbers], pa.int64())
    if "'m2'" in lifted:
        rows = [moments(number) for number in numbers]
        fields = [("n", pa.int64()), ("mean", pa.float64()), ("m2", pa.float64())]
        return pa.array(rows, pa.struct(fields))
    if type_.startswith("struct"):
        halves = [
            None if n is None else {"high": int(n) >> 32, "low": int(n) & 0xFFFFFFFF}
            for n in numbers
        ]
        return pa.array(halves, pa.struct([("high", pa.int64()), ("low", pa.int64())]))
    return pa.array(numbers, pa.float64())


def moments(number: float | None) -> dict[str, Any]:
    if number is None:
        return {"n": 0, "mean": None, "m2": None}
    return {"n": 1, "mean": number, "m2": number - number}


def results(
    aggregate: Aggregate, numbers: list[float | None], low: list[int], high: list[int]
) -> list[Any]:
    partials = lift(aggregate, "0", None)
    columns = {p.name: load(p, column_of(p.lift, p.type, numbers)) for p in partials}
    combiner = Combiner(columns)
    ranges = np.array(low, np.int64), np.array(high, np.int64)
    lowered = lower(aggregate, [combiner.over(p, *ranges) for p in partials], ansi=False)
    return list(lowered.to_pylist())


@pytest.mark.parametrize("function", FUNCTIONS)
@given(
    numbers=st.lists(st.none() | st.sampled_from(NUMBERS), min_size=1, max_size=40), data=st.data()
)
def test_no_aggregate_of_doubles_warns(
    function: str, numbers: list[float | None], data: st.DataObject
) -> None:
    aggregate = Aggregate(function, (DOUBLE,), "double")
    low = data.draw(st.lists(st.integers(0, len(numbers) - 1), max_size=8))
    high = [data.draw(st.integers(start + 1, len(numbers))) for start in low]
    assert len(results(aggregate, numbers, low, high)) == len(low)
    partials = lift(aggregate, "0", None)
    columns = {p.name: load(p, column_of(p.lift, p.type, numbers)) for p in partials}
    starts = np.array([0]), np.array([len(numbers)])
    lower(aggregate, [over_runs(p, columns, *starts) for p in partials], ansi=False)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_nothing_comes_of_no_ranges_at_all(function: str) -> None:
    assert results(Aggregate(function, (DOUBLE,), "double"), [1.0], [], []) == []


def test_what_the_values_are() -> None:
    """Those of Spark: inf - inf is NaN, what is too large is infinite."""
    total = Aggregate("sum", (DOUBLE,), "double")
    numbers: list[float | None] = [math.inf, -math.inf, 1.7e308, 1.7e308, 1.7e308, None]
    assert math.isnan(results(total, numbers, [0], [2])[0])
    assert results(total, numbers, [2, 2, 5], [5, 4, 6]) == [math.inf, math.inf, None]
    mean = Aggregate("avg", (LONG,), "double")
    assert results(mean, [2.0**62, 2.0**62, 2.0**62, None], [0, 3], [3, 4]) == [2.0**62, None]


def test_other_threads_do_not_warn_either() -> None:
    """NumPy's settings are those of a thread: a thread of ours begins with the defaults."""
    total = Aggregate("sum", (DOUBLE,), "double")

    def sums(_: int) -> float:
        return float(results(total, [math.inf, -math.inf, 1.0, 2.0], [0], [4])[0])

    assert all(map(math.isnan, side_by_side(sums, range(4))))
    with ThreadPoolExecutor(1) as threads:
        assert math.isnan(threads.submit(sums, 0).result())


@given(st.lists(st.integers(0, 5), max_size=60), st.sampled_from([1.0, 2.5, 1e6, 1e15]))
def test_statistics_of_any_sample_do_not_warn(values: list[int], rows: float) -> None:
    sample = JointSample().then({"a": np.array(values, np.uint32)})
    groups = sample.groups({"a"})
    if len(groups):
        seen = WorkingSet.of_values(groups)
        assert grown(seen).groups(max(rows, seen.rows)) >= 1
        assert fitted(Frequencies.of_values(groups)).distinct(rows) >= 0
