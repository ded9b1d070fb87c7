"""The lists of window queries are seeded and have the shapes that the benchmark states."""

from __future__ import annotations

import pytest

from weft.workloads.events import KEYS, RATE
from weft.workloads.windows import (
    SLIDE_SWEEP_SECONDS,
    MillisecondWindow,
    WindowQuery,
    hundred_hopping,
    random_tumbling,
    slide_sweep,
    ten_sliding,
    thousand_sliding,
)


def test_lists_repeat_and_depend_on_the_seed() -> None:
    assert thousand_sliding() == thousand_sliding()
    assert thousand_sliding(seed=1) != thousand_sliding(seed=2)
    assert hundred_hopping() == hundred_hopping()
    assert random_tumbling(50) == random_tumbling(50)
    assert random_tumbling(50, seed=3) != random_tumbling(50, seed=4)


def test_thousand_sliding_windows_are_distinct_with_whole_second_slides() -> None:
    windows = [query.window for query in thousand_sliding()]
    assert len(set(windows)) == 1000
    assert all(window.slide % 1000 == 0 and window.range > window.slide for window in windows)
    assert any(window.range % window.slide for window in windows)


def test_results_of_a_thousand_queries_are_a_few_per_cent_of_the_rows() -> None:
    results = sum(KEYS * 1000 / query.window.slide for query in thousand_sliding())
    assert 0.01 < results / RATE < 0.05


def test_flinks_windows_have_slides_that_divide_the_range() -> None:
    windows = [query.window for query in hundred_hopping()]
    assert len(set(windows)) == 100
    assert all(window.range % window.slide == 0 and window.overlap >= 2 for window in windows)


def test_ten_queries_copy_a_row_at_least_250_times() -> None:
    queries = ten_sliding()
    assert len({query.window for query in queries}) == 10
    assert sum(query.window.overlap for query in queries) >= 250


@pytest.mark.parametrize(("step", "distinct"), [(1000, 20), (1, 900)])
def test_random_tumbling_windows_last_1_to_20_seconds(step: int, distinct: int) -> None:
    windows = [query.window for query in random_tumbling(1000, step=step)]
    assert all(window.range == window.slide for window in windows)
    assert all(1000 <= window.range <= 20_000 and window.range % step == 0 for window in windows)
    assert len(set(windows)) >= distinct


def test_slide_sweep_goes_down_to_a_quarter_of_a_second() -> None:
    windows = [query.window for query in slide_sweep()]
    assert [window.slide / 1000 for window in windows] == list(SLIDE_SWEEP_SECONDS)
    assert {window.range for window in windows} == {60_000}


def test_a_query_prints_as_spark_sql() -> None:
    sql = WindowQuery("q", MillisecondWindow(60_000, 250)).sql
    assert "window(ts, '60000 milliseconds', '250 milliseconds')" in sql
