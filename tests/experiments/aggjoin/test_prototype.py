"""Algorithm 1, mended: every plan gives at every moment what the join of the windows' contents gives."""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.experiments.aggjoin.prototype.algorithm import Operations, Prototype
from weft.experiments.aggjoin.prototype.tables import Entry, Key, hash_of
from weft.optimizer.joinagg.plans import all_plans
from weft.optimizer.joinagg.statistics import JoinStatistics, join_statistics

Rows = list[tuple[int, tuple[str, str, int]]]
"""Which input a row is of; its join, grouping and aggregation attribute."""


def brute_force(windows: list[deque[tuple[str, str, int]]]) -> dict[Key, tuple[int, ...]]:
    """The join of the windows' contents, row by row, grouped."""
    groups: dict[Key, list[int]] = defaultdict(lambda: [0] * (len(windows) + 1))
    for joined in product(*windows):
        if len({join for join, _, _ in joined}) == 1:
            group = groups[tuple(group for _, group, _ in joined)]
            group[0] += 1
            for number, (_, _, value) in enumerate(joined, 1):
                group[number] += value
    return {key: tuple(values) for key, values in groups.items()}


@st.composite
def cases(draw: st.DrawFn) -> tuple[JoinStatistics, Rows]:
    inputs = draw(st.sampled_from([2, 2, 3, 4]))
    rows = [(1, draw(st.integers(1, 6)), draw(st.integers(1, 4)), 1 / 3) for _ in range(inputs)]
    row = st.tuples(
        st.integers(0, inputs - 1),
        st.tuples(st.sampled_from(["j0", "j1", "j2"]), st.sampled_from("xyz"), st.integers(-2, 2)),
    )
    buckets = draw(st.sampled_from([1, 2, 1021]))
    return join_statistics(rows, buckets), draw(st.lists(row, max_size=40))


@given(case=cases(), join=st.sampled_from(["hash", "nested"]))
@settings(max_examples=80)
def test_every_plan_has_the_join_of_the_windows_at_every_moment(
    case: tuple[JoinStatistics, Rows], join: str
) -> None:
    statistics, rows = case
    plans = all_plans(len(statistics.inputs))
    running = [Prototype(statistics, plan, join) for plan in plans]
    windows: list[deque[tuple[str, str, int]]] = [
        deque(maxlen=int(given_input.window)) for given_input in statistics.inputs
    ]
    for moment, (number, (key, group, value)) in enumerate(rows):
        windows[number].append((key, group, value))
        for prototype in running:
            prototype.add(number, Entry(key, group, 1, value))
        if moment % 7 == 6 or moment == len(rows) - 1:
            wanted = brute_force(windows)
            for prototype in running:
                assert prototype.result == wanted, prototype.plan


@given(case=cases(), join=st.sampled_from(["hash", "nested"]), data=st.data())
@settings(max_examples=40)
def test_a_plan_can_be_changed_in_the_middle(
    case: tuple[JoinStatistics, Rows], join: str, data: st.DataObject
) -> None:
    statistics, rows = case
    plans = st.sampled_from(all_plans(len(statistics.inputs)))
    half = len(rows) // 2
    before, after = (
        [(number, Entry(key, group, 1, value)) for number, (key, group, value) in part]
        for part in (rows[:half], rows[half:])
    )
    unchanged = Prototype(statistics, data.draw(plans), join)
    unchanged.add_all(before)
    changed = unchanged.replanned(data.draw(plans))
    assert changed.operations == Operations()
    unchanged.add_all(after)
    changed.add_all(after)
    assert changed.result == unchanged.result


def rows_of(*joins: str) -> list[tuple[int, Entry]]:
    return [(int(text[0]), Entry(text[1:], "g", 1, 5)) for text in joins]


def test_operations_are_those_of_the_cost_functions() -> None:
    """Two windows of three rows in ten buckets each, all with one join value."""
    statistics = join_statistics([(1, 3, 1, 0.1), (1, 3, 1, 0.1)], buckets=1021)
    full = Prototype(statistics, (False, False), "hash")
    full.add_all(rows_of("0a", "0a", "0a", "1a", "1a", "1a"))
    late, early = full.replanned((False, False)), full.replanned((True, True))
    for prototype in (late, early):
        prototype.add_all(rows_of("0a"))
    # A row comes and one goes: each looks at three rows, and for each of them at the one group.
    assert late.operations == Operations(6, 2, 6, 6)
    # Or at the one group of the set, after the update of its own; each updates the result once.
    assert early.operations == Operations(2, 2, 4, 2)
    assert late.operations.total == 14
    assert late.operations.since(Operations(1, 1, 1, 1), 2).total == 22


@pytest.mark.parametrize(("plan", "probes"), [((False, False), 4), ((False, True), 2)])
def test_nested_loops_look_at_everything(plan: tuple[bool, bool], probes: int) -> None:
    statistics = join_statistics([(1, 9, 1, 0.1), (1, 9, 1, 0.1)], buckets=1021)
    prototype = Prototype(statistics, plan, "nested")
    prototype.add_all(rows_of("1a", "1a", "1b", "1b"))
    before = prototype.operations
    prototype.add_all(rows_of("0c"))
    assert prototype.operations.since(before).probes == probes


def test_values_that_share_a_bucket_do_not_match() -> None:
    assert hash_of("Aa") == hash_of("BB")
    statistics = join_statistics([(1, 9, 1, 0.1), (1, 9, 1, 0.1)], buckets=1021)
    for plan in all_plans(2):
        prototype = Prototype(statistics, plan, "hash")
        prototype.add_all(rows_of("1Aa", "0BB"))
        assert (prototype.operations.probes, prototype.result) == (1, {}), plan


def test_a_plan_has_a_bit_for_every_input() -> None:
    statistics = join_statistics([(1, 9, 1, 0.1), (1, 9, 1, 0.1)], buckets=1021)
    with pytest.raises(ValueError, match="3 inputs"):
        Prototype(statistics, (True, True, True), "hash")
