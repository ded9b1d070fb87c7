"""Due windows and late rows, against enumeration."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weft.algebra.window import Window
from weft.kernel.windows.due import due_ends, due_windows, late_pairs


@st.composite
def windows(draw: st.DrawFn) -> Window:
    slide = draw(st.integers(1, 12))
    start = draw(st.integers(-slide + 1, slide - 1))
    return Window(draw(st.integers(1, 30)), slide, start)


TIMES = st.lists(st.integers(-60, 60), max_size=12)


@given(windows(), st.integers(-50, 50), st.integers(0, 60), st.integers(-70, 40), TIMES)
def test_due_windows_are_those_that_end_in_the_step_and_hold_a_fragment(
    window: Window, before: int, length: int, complete_from: int, times: list[int]
) -> None:
    now = before + length
    due = due_ends(window, before, now, complete_from, np.unique(times))
    must = [
        end
        for end in range(before + 1, now + 1)
        if (end - window.end_residue) % window.slide == 0
        and end - window.range >= complete_from
        and any(end - window.range < time <= end for time in times)
    ]
    ends = due.tolist()
    assert ends == sorted(set(ends))
    assert set(must) <= set(ends)
    for end in ends:
        assert before < end <= now
        assert end - window.range >= complete_from
        assert (end - window.end_residue) % window.slide == 0


QUERIES = st.lists(st.tuples(windows(), st.integers(-70, 40)), min_size=1, max_size=4)


@given(QUERIES, st.integers(-50, 50), st.integers(0, 60), TIMES)
def test_windows_of_many_queries_are_those_of_each(
    queries: list[tuple[Window, int]], before: int, length: int, times: list[int]
) -> None:
    now, ends = before + length, np.unique(times).astype(np.int64)
    due = due_windows([w for w, _ in queries], [c for _, c in queries], before, now, ends)
    expected = [
        (index, end - window.range, end)
        for index, (window, complete) in enumerate(queries)
        for end in due_ends(window, before, now, complete, ends).tolist()
    ]
    listed = zip(due.queries.tolist(), due.starts.tolist(), due.ends.tolist(), strict=True)
    assert list(listed) == expected


@given(windows(), st.integers(-50, 50), st.lists(st.integers(-60, 60), min_size=1, max_size=8))
def test_late_pairs_count_every_closed_window_of_every_row(
    window: Window, before: int, times: list[int]
) -> None:
    """A fragment ending at f is in the windows that end in [f, f + range)."""
    counts = list(range(1, len(times) + 1))
    pairs = late_pairs(window, before, np.array(times), np.array(counts))
    expected = sum(
        count
        for time, count in zip(times, counts, strict=True)
        for end in range(time, time + window.range)
        if end <= before and (end - window.end_residue) % window.slide == 0
    )
    assert pairs == expected


def test_a_jump_over_an_empty_century_lists_only_windows_with_fragments() -> None:
    century = 100 * 365 * 86_400 * 1_000_000
    ends = due_ends(Window(2000, 1000), 0, century, -(1 << 62), np.array([1000, century - 5000]))
    assert ends.tolist() == [1000, 2000, century - 5000, century - 4000]
