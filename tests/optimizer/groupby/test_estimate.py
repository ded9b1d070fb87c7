"""Estimated groups and skews keep the bounds that always hold, on data and on paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.optimizer.groupby.trees.estimate import cardenas, estimated_groups, groups_bounds
from weft.optimizer.groupby.trees.statistics import GroupStatistics

NAMES = "abcd"
subsets = st.frozensets(st.sampled_from(NAMES), min_size=1)


@given(st.integers(1, 2**31), st.lists(subsets, max_size=6, unique=True), subsets)
def test_bounds_hold_for_data(
    seed: int, measured: list[frozenset[str]], wanted: frozenset[str]
) -> None:
    random = np.random.default_rng(seed)
    rows = int(random.integers(1, 200))
    values = {name: random.integers(0, random.integers(1, 40), rows) for name in NAMES}
    values["b"] = values["a"] // 2

    def count(node: frozenset[str]) -> float:
        return float(len({*zip(*(values[name].tolist() for name in sorted(node)))}))

    counts = {node: count(node) for node in measured}
    least, most = groups_bounds(wanted, counts, rows)
    assert least <= count(wanted) <= most
    assert least <= estimated_groups(wanted, counts, rows) <= most


def test_attributes_that_depend_on_each_other_do_not_multiply() -> None:
    address, system, port = frozenset("a"), frozenset("s"), frozenset("p")
    counts = {
        address: 1000.0,
        system: 50.0,
        port: 20.0,
        address | system: 1000.0,
        address | port: 3000.0,
    }
    whole = address | system | port
    assert estimated_groups(whole, counts, 1e6) == pytest.approx(3000, rel=0.01)
    independent = {address: 1000.0, system: 50.0, port: 20.0}
    assert estimated_groups(whole, independent, 1e6) == pytest.approx(cardenas(1e6, 1e6))


def test_an_attribute_of_ten_million_values_and_an_unknown_one() -> None:
    given_ = GroupStatistics(
        20_000_000, {frozenset("a"): 1e7, frozenset("b"): 3.0}, {frozenset("a"): 0.9}
    )
    both = given_.groups(frozenset("ab"))
    assert 1e7 <= both <= 2e7
    assert 0 < given_.alpha(frozenset("ab")) < 0.9
    assert given_.groups(frozenset("z")) == pytest.approx(2e7 * (1 - np.exp(-1)), rel=1e-3)
    assert given_.alpha(frozenset("z")) == 0
    assert given_.groups(frozenset()) == 1
