"""Units of work on lanes: each on one, the largest load near the least, few moves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import PlacementError
from weft.optimizer.placement.units import Unit, place_units

COSTS = st.lists(st.integers(0, 50), min_size=1, max_size=7)


def units_of(costs: list[int], groups: int = 2) -> list[Unit]:
    return [Unit(f"g{number % groups}", number, cost) for number, cost in enumerate(costs)]


def loads(
    units: list[Unit], lane_of: tuple[int, ...], weights: list[float], fixed: float
) -> list[float]:
    found = []
    for lane, weight in enumerate(weights):
        mine = [unit for unit, number in zip(units, lane_of) if number == lane]
        groups = {unit.group for unit in mine}
        found.append((sum(unit.cost for unit in mine) + fixed * len(groups)) / weight)
    return found


@given(
    costs=COSTS,
    weights=st.lists(st.sampled_from((1.0, 2.0, 0.5)), min_size=1, max_size=3),
    fixed=st.sampled_from((0.0, 4.0)),
)
def test_loads_are_those_of_counting_and_near_the_least(
    costs: list[int], weights: list[float], fixed: float
) -> None:
    units = units_of(costs)
    placed = place_units(units, weights, group_cost=fixed)
    assert list(placed.loads) == pytest.approx(loads(units, placed.lane_of, weights, fixed))
    assert sorted(p for lane in range(len(weights)) for p in placed.units_of(lane)) == [
        *range(len(units))
    ]
    least = min(
        max(loads(units, lane_of, weights, fixed))
        for lane_of in product(range(len(weights)), repeat=len(units))
    )
    # LPT on lanes of different speed is at most twice the best; a group's cost adds at most itself.
    assert placed.max_load <= 2 * least + 2 * fixed / min(weights) + 1e-9
    if len(set(weights)) == 1 and not fixed:
        assert placed.max_load <= 4 / 3 * least + 1e-9


def test_ten_thousand_units_are_balanced_to_the_tolerance() -> None:
    costs = np.random.default_rng(1).lognormal(0, 1, size=10_000)
    units = [
        Unit(f"g{number % 40}", number // 40, float(cost)) for number, cost in enumerate(costs)
    ]
    placed = place_units(units, 32, group_cost=0.5)
    assert placed.max_load <= 1.02 * float(np.mean(placed.loads))


def test_a_lost_lane_moves_only_its_own_units_and_few_others() -> None:
    costs = np.random.default_rng(2).lognormal(0, 1, size=800)
    units = [Unit(f"g{number % 8}", number // 8, float(cost)) for number, cost in enumerate(costs)]
    first = place_units(units, 8)
    before = {
        (unit.group, unit.bucket): lane - (lane > 3)
        for unit, lane in zip(units, first.lane_of)
        if lane != 3
    }
    after = place_units(units, 7, before=before)
    assert after.moved <= 40
    assert after.max_load <= 1.05 * float(np.mean(after.loads))
    stayed = sum(
        lane == before.get((unit.group, unit.bucket)) for unit, lane in zip(units, after.lane_of)
    )
    assert stayed == len(before) - after.moved


def test_without_moves_allowed_everything_stays() -> None:
    units = units_of([9, 9, 9, 1])
    before = {(unit.group, unit.bucket): 0 for unit in units}
    assert place_units(units, 2, before=before, most_moves=0).lane_of == (0, 0, 0, 0)
    relieved = place_units(units, 2, before=before, most_moves=2)
    assert relieved.max_load == 18 or relieved.max_load < 19
    assert relieved.moved <= 2


def test_units_of_a_group_stay_together_where_a_group_costs_much() -> None:
    units = [Unit(group, bucket, 1) for group in ("a", "b") for bucket in range(4)]
    placed = place_units(units, 2, group_cost=100)
    assert {unit.group: lane for unit, lane in zip(units, placed.lane_of)} in (
        {"a": 0, "b": 1},
        {"a": 1, "b": 0},
    )
    assert placed.max_load == 104


def test_no_units_are_no_work() -> None:
    assert place_units([], 3).loads == (0.0, 0.0, 0.0)


def test_loads_are_those_of_the_units_whatever_the_weights_are() -> None:
    """A lane of a tiny weight has huge loads, and nothing may be left of them when its units have gone."""
    costs, weights = (3.5, 2, 10, 1, 3.5, 10), (1, 1e-18, 1e18)
    units = [Unit(f"{number % 2}", number, cost) for number, cost in enumerate(costs)]
    before = {(unit.group, unit.bucket): 1 for unit in units}
    for group_cost in (0, 5):
        placed = place_units(units, weights, before=before, group_cost=group_cost, most_moves=20)
        for lane, weight in enumerate(weights):
            own = [units[position] for position in placed.units_of(lane)]
            cost = sum(unit.cost for unit in own) + group_cost * len({unit.group for unit in own})
            assert placed.loads[lane] == pytest.approx(cost / weight)


@pytest.mark.parametrize(
    ("units", "lanes", "message"),
    [
        ([Unit("a", 0, -1)], 2, "must not be negative"),
        ([Unit("a", 0, float("nan"))], 2, "must not be negative"),
        ([Unit("a", 0, 1), Unit("a", 0, 2)], 2, "given twice"),
        ([Unit("a", 0, 1)], 0, "number of nodes 0"),
        ([Unit("a", 0, 1)], [1.0, 0.0], "weight 0 of node 2"),
    ],
)
def test_what_cannot_be_placed_is_refused(units: list[Unit], lanes: object, message: str) -> None:
    with pytest.raises(PlacementError, match=message):
        place_units(units, lanes)  # type: ignore[arg-type]
