"""Re-placement: what may stay stays, few queries move, and the plan stays near one from scratch."""

from __future__ import annotations

import numpy as np
import pytest

from weft.errors import PlacementError
from weft.optimizer.edges.workload import Workload
from weft.optimizer.placement.balanced import balanced, weighed
from weft.optimizer.placement.demand import Demand
from weft.optimizer.placement.placement import Placement, placement
from weft.optimizer.placement.replacing import replaced
from weft.workloads.sharing import WindowTable, any_slides, zipf_windows

TABLE = zipf_windows(250, 3, any_slides(25), skew=1, largest_overlap=50, popular_first=False)
RATE, NODES = 60, 6


@pytest.fixture(scope="module")
def before() -> Placement:
    return balanced(Demand.of(TABLE.workload(), RATE, NODES))


def without(gone: int, added: int) -> Workload:
    """The queries without the first ones, and as new ones some of the first with longer ranges."""
    names = (*TABLE.names[gone:], *(f"new{number}" for number in range(added)))
    ranges = np.append(TABLE.ranges[gone:], 3 * TABLE.ranges[:added])
    slides = np.append(TABLE.slides[gone:], TABLE.slides[:added])
    return WindowTable(names, ranges, slides).workload()


def nodes_by_name(plan: Placement) -> dict[str, int]:
    return dict(zip(plan.workload.names, plan.node_of_queries().tolist()))


def test_nothing_changes_where_nothing_has_changed(before: Placement) -> None:
    after = replaced(before, before.workload)
    assert after.placement.total_cost == pytest.approx(before.total_cost)
    assert not after.homeless and not after.new and len(after.moved) <= 1


def test_queries_come_and_go_with_few_moves(before: Placement) -> None:
    workload = without(25, 25)
    after = replaced(before, workload)
    assert set(after.new) == {f"new{number}" for number in range(25)}
    assert len(after.moved) <= 13 and not after.homeless
    then, now = nodes_by_name(before), nodes_by_name(after.placement)
    stayed = [name for name in now if name in then and name not in after.moved]
    assert all(now[name] == then[name] for name in stayed) and len(stayed) >= 210
    scratch = balanced(Demand.of(workload, RATE, NODES))
    assert weighed(after.placement, 0.5) <= 1.10 * weighed(scratch, 0.5)


def test_a_lost_node_moves_its_own_queries_and_few_others(before: Placement) -> None:
    after = replaced(before, before.workload, NODES - 1, kept=[0, 1, 3, 4, 5])
    then = nodes_by_name(before)
    assert set(after.homeless) == {name for name, node in then.items() if node == 2}
    now = nodes_by_name(after.placement)
    renumbered = {0: 0, 1: 1, 3: 2, 4: 3, 5: 4}
    for name, node in then.items():
        if node != 2 and name not in after.moved:
            assert now[name] == renumbered[node]
    assert len(after.moved) <= 13
    scratch = balanced(Demand.of(before.workload, RATE, NODES - 1))
    assert weighed(after.placement, 0.5) <= 1.15 * weighed(scratch, 0.5)


def test_a_new_node_gets_work(before: Placement) -> None:
    after = replaced(
        before, before.workload, NODES + 1, kept=[*range(NODES), -1], most_moves=60, balance=0.9
    )
    assert 0 < len(after.moved) <= 60
    assert after.placement.max_cost <= before.max_cost
    assert after.placement.node_costs[-1] > 0


def test_an_overloaded_node_is_relieved_within_the_moves_allowed() -> None:
    demand = Demand.of(TABLE.workload(), RATE, 3)
    lopsided = placement(
        "by hand", demand, np.zeros(250, dtype=np.int64), np.zeros(1, dtype=np.int64)
    )
    after = replaced(lopsided, TABLE.workload(), most_moves=40, balance=1.0)
    assert len(after.moved) <= 40
    assert after.placement.max_cost < lopsided.max_cost
    assert replaced(lopsided, TABLE.workload(), most_moves=0).moved == ()


def test_a_changed_window_is_a_new_query(before: Placement) -> None:
    ranges = TABLE.ranges.copy()
    ranges[7] *= 2
    after = replaced(before, WindowTable(TABLE.names, ranges, TABLE.slides).workload())
    assert after.new == ("q7",)


@pytest.mark.parametrize("kept", [[0, 1], [0, 0, 1, 2, 3, 4]])
def test_numbers_that_do_not_fit_are_refused(before: Placement, kept: list[int]) -> None:
    with pytest.raises(PlacementError, match="different number"):
        replaced(before, before.workload, kept=kept)


@pytest.mark.parametrize("weights", [[1e-18, 1, 1e18], [1, 1e-18], [1e18, 1e-18, 1e-18]])
def test_queries_come_and_go_on_nodes_of_extreme_weights(weights: list[float]) -> None:
    """Where all nodes are lost as well, the first query comes to nodes without any load."""
    workload = WindowTable(("a", "b", "c"), np.array([4, 6, 9]), np.array([2, 3, 3])).workload()
    before = balanced(Demand.of(workload, 1e9, weights))
    for kept in (range(len(weights)), [-1] * len(weights)):
        after = replaced(before, workload, kept=kept)
        heaviest = weights.index(max(weights))
        assert set(nodes_by_name(after.placement).values()) == {heaviest}


def test_a_search_takes_any_seed() -> None:
    workload = WindowTable(("a", "b", "c"), np.array([4, 6, 9]), np.array([2, 3, 3])).workload()
    demand = Demand.of(workload, RATE, 2)
    plans = [balanced(demand, seed).trees() for seed in (2**70 + 3, 2**70 + 3)]
    assert plans[0] == plans[1]
