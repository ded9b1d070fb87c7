"""The benchmark of aggregation joins, small: points, the fit of constants, and the queries, without Spark."""

from __future__ import annotations

import numpy as np
import pytest

from weft.bench.aggjoin import uniting
from weft.bench.aggjoin.benchmark import PARTS, THREE_WAY, TWO_WAY, AggJoinOptions
from weft.bench.aggjoin.fitting import NAMES, drawn, features, fitted
from weft.bench.aggjoin.points import (
    JudgedPoint,
    PointTimes,
    judged,
    load_of_point,
    papers_points,
    scaled,
)
from weft.experiments.aggjoin.parameters import FULL, Point
from weft.optimizer.joinagg.plans import all_plans
from weft.optimizer.joinagg.statistics import InputStatistics
from weft.optimizer.joinagg.weft_cost import choose_plan
from weft.workloads.aggjoin.queries import DIMENSIONS, GROUPINGS, SELECTIONS, drilled, varied


def test_all_points_of_figures_4_and_5_are_judged() -> None:
    points = papers_points((2, 3))
    assert len(points) == sum(len(sweep.values) for sweep in FULL.sweeps) == 47
    assert {len(point.inputs) for point in points} == {2, 3}
    first = FULL.sweeps[0].points[0].inputs[0]
    assert points[0].inputs[0].window == 2 * first.window
    assert points[0].inputs[0].groups == first.groups


def test_a_point_is_judged_by_the_least_times_of_its_plans() -> None:
    small = [scaled(point, 0.05) for point in papers_points((1, 1))[:2]]
    for found in judged(small, rounds=2, most_seconds=1.0):
        assert set(found.seconds) == set(all_plans(2))
        assert found.loss == found.seconds[found.chosen] / min(found.seconds.values()) - 1 >= 0
        assert found.good == (found.loss <= 0.1 + 1e-12)


def test_what_is_known_of_a_point_comes_from_a_sample() -> None:
    """The defaults of figure 4: 1,500 keys of which 5,000 rows hit nearly all, 10 join values."""
    load = load_of_point(FULL.sweeps[0].points[-1], seed=1)
    assert load.inputs[0].rows == 5000
    assert load.inputs[0].keys == pytest.approx(1447, rel=0.02)
    assert load.inputs[1].keys == load.values[0, 1] == 10


def test_constants_are_found_again_from_times_that_follow_them() -> None:
    constants = (0.05, 0.02, 0.1, 0.08, 0.03, 0.04, 0.2, 300.0, 500.0)
    points = []
    for point in drawn(12):
        load = load_of_point(point, 1)
        seconds = {
            plan: float(np.dot(constants, features(point, load, plan))) / 1e6
            for plan in all_plans(len(point.inputs))
        }
        chosen = choose_plan(load, (None,) * len(point.inputs)).best.plan
        points.append(JudgedPoint(point, seconds, chosen))
    assert fitted(points) == pytest.approx(dict(zip(NAMES, constants, strict=True)), rel=1e-3)


def test_a_hundred_queries_differ_in_grouping_and_selection() -> None:
    queries = varied(100)
    assert len({(query.grouping, query.selection) for query in queries}) == 100
    assert {query.grouping for query in queries} == set(GROUPINGS)
    assert {query.selection for query in queries[:10]} == set(SELECTIONS)
    with pytest.raises(ValueError, match="100 queries"):
        varied(101)


def test_queries_that_drill_down_have_a_finest_grouping_for_each_selection() -> None:
    queries = drilled(3)
    assert len({(query.grouping, query.selection) for query in queries}) == len(queries) == 24
    for selection in {query.selection for query in queries}:
        groupings = [set(q.grouping) for q in queries if q.selection == selection]
        assert set(DIMENSIONS) in groupings
        assert all(grouping <= set(DIMENSIONS) for grouping in groupings)


def test_a_plan_is_not_always_the_first_of_a_point_and_has_some_turns_if_it_has_used_up_its_seconds() -> (
    None
):
    times = PointTimes(scaled(papers_points((1, 1))[0], 0.02), most_seconds=0.0, seed=1)
    orders = []
    for _ in range(4):
        asked: list[tuple[bool, ...]] = []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(times._join, "at", lambda at, plan, asked=asked: asked.append(plan))
            times.round()
        orders.append(asked)
    assert [sorted(order) for order in orders] == [all_plans(2)] * 3 + [[]]
    assert len({order[0] for order in orders[:3]}) > 1


def test_queries_as_one_join_and_one_by_one_are_both_timed() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(uniting, "QUERIES", (2,))
        patched.setattr(uniting, "FRACTIONS", (1.0,))
        small = InputStatistics(20, 100, 5, 0.1)
        patched.setattr(uniting, "POINT", Point("small", 0, (small, small)))
        (case,) = uniting.measured(rounds=1)
    assert (case.queries, case.fraction) == (2, 1.0) and min(case.together, case.alone) > 0


def test_windows_that_hardly_match_have_many_rows_and_few_matches() -> None:
    rarely = AggJoinOptions().rarely
    assert rarely.rows_of_window >= 1_000_000
    assert rarely.matches < rarely.rows_of_window / 2
    alone, beside = (rarely.queries(beside=beside) for beside in (False, True))
    assert beside[:1] == alone and "s0.j = s1.j" in beside[1].sql


def test_settings_are_the_papers_defaults_scaled() -> None:
    options = AggJoinOptions()
    for setting, sweep, rate, window in (
        (TWO_WAY, FULL.sweeps[0], 4, 7.2),
        (THREE_WAY, FULL.sweeps[4], 5, 10),
    ):
        for shape, given in zip(setting.shapes, sweep.points[-1].inputs, strict=True):
            assert shape.rate == rate * given.rate
            assert shape.rate * setting.seconds == window * given.window
            assert (shape.groups, 1 / shape.join_values) == (given.groups, given.selectivity)
    for shape in options.shapes:
        assert shape.rate * 10 / shape.join_values == 500, (
            "matches of a row, as the paper's defaults"
        )


@pytest.mark.parametrize("part", PARTS)
def test_every_part_says_what_it_measures(part: str) -> None:
    assert PARTS[part].__doc__
