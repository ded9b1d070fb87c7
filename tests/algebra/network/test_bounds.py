"""Whose rows a join query keeps for ever: found from bounds on event times, checked by brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from tests.explain.networks import FED, difference, every

from weft.algebra.network.bounds import unbounded_inputs, warning
from weft.algebra.network.query import JoinInput, JoinQuery
from weft.algebra.query import StreamSchema


def joined(count: int, *bounds: tuple[int, int, int]) -> JoinQuery:
    """Several times the stream, with t_i - t_j <= most for some (i, j, most)."""
    literals = []
    for i, j, most in bounds:
        low, high = min(i, j), max(i, j)
        limits = (None, most) if i < j else (-most, None)
        literals.append(difference(f"{low}.ts", f"{high}.ts", *limits))
    inputs = tuple(JoinInput("fed", f"r{slot}") for slot in range(count))
    return JoinQuery("q@1", "q", "", inputs, every(*literals), ())


def test_bounds_add_up_along_chains() -> None:
    chain = joined(3, (1, 0, 5), (0, 1, 0), (2, 1, 7), (1, 2, 0))
    assert unbounded_inputs(chain, {"fed": FED}) == ()
    half = joined(3, (1, 0, 5), (2, 1, 7))
    assert unbounded_inputs(half, {"fed": FED}) == ("r1", "r2")


def test_tables_and_filters_keep_no_history_without_end() -> None:
    assert unbounded_inputs(joined(1), {"fed": FED}) == ()
    assert unbounded_inputs(joined(2), {}) == ()


pairs = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-3, 3))


@given(st.lists(pairs.filter(lambda pair: pair[0] != pair[1]), max_size=5))
def test_a_history_ends_exactly_if_no_later_time_can_match(
    bounds: list[tuple[int, int, int]],
) -> None:
    matching = [
        times
        for times in product(range(-15, 16), repeat=2)
        if all((0, *times)[i] - (0, *times)[j] <= most for i, j, most in bounds)
    ]
    endless = unbounded_inputs(joined(3, *bounds), {"fed": FED})
    if matching:  # a time 15 away is possible only if every later one is
        assert ("r0" in endless) == any(15 in times for times in matching)


def test_a_warning_names_a_bound_that_ends_the_history() -> None:
    calls = StreamSchema("calls", FED.fields, "at", 0)
    query = replace(joined(2), inputs=(JoinInput("fed", "f"), JoinInput("calls", "c")))
    assert warning(query, {"fed": FED, "calls": calls}) == (
        "the rows of f, c are kept for ever; a bound on event times ends that, such as "
        "c.at <= f.ts + INTERVAL 1 HOUR"
    )
