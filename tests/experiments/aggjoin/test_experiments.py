"""The experiments of the AggJoin paper, small: facts that hold whatever the machine is."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from weft.experiments.aggjoin.claims import claims_of, details_of
from weft.experiments.aggjoin.expected_costs import expected_costs
from weft.experiments.aggjoin.kernel_run import KernelJoin
from weft.experiments.aggjoin.on_spark import runtime as on_spark
from weft.experiments.aggjoin.paper import AGGJOIN, FIGURES, RUNTIME
from weft.experiments.aggjoin.parameters import (
    FULL,
    THREE_WAY,
    TWO_WAY,
    Budget,
    Point,
)
from weft.experiments.aggjoin.prototype.algorithm import Operations, Prototype
from weft.experiments.aggjoin.prototype.measuring import (
    PlanRun,
    PointPrototype,
    PointStreams,
    model_costs,
)
from weft.experiments.aggjoin.tuning import tuned
from weft.experiments.papers import PAPERS
from weft.experiments.reproduction import Data, Reproduction
from weft.optimizer.joinagg.generic_cost import plan_cost
from weft.optimizer.joinagg.plans import all_plans
from weft.optimizer.joinagg.statistics import InputStatistics


def plan_runs(point: Point, budget: Budget, seed: int) -> tuple[PlanRun, ...]:
    prototype = PointPrototype(point, budget, seed)
    for _ in range(budget.rounds):
        prototype.round()
    return prototype.runs


Reproduced = tuple[Reproduction, list[tuple[int, int]]]


@pytest.fixture(scope="module")
def reproduced() -> Reproduced:
    told: list[tuple[int, int]] = []
    figures = [figure for figure in AGGJOIN.default if figure != RUNTIME]
    run = AGGJOIN.run(figures, True, lambda done, total, what: told.append((done, total)))
    return run, told


def test_the_settings_are_those_of_the_paper() -> None:
    sweeps = {sweep.figure: sweep for sweep in FULL.sweeps}
    assert [(s.rate, s.window, s.groups, s.selectivity) for s in TWO_WAY] == [
        (300, 5000, 150, 0.1),
        (300, 5000, 1, 0.1),
    ]
    assert {(s.rate, s.window, s.selectivity) for s in THREE_WAY} == {(200, 300, 0.1)}
    assert [s.groups for s in THREE_WAY] == [20, 1, 1]
    assert FULL.to_json()["buckets"] == 1021
    values = {figure: list(sweep.values) for figure, sweep in sweeps.items()}
    assert values["fig4a"] == [1000, 2000, 3000, 4000, 5000]
    assert values["fig4b"] == values["fig5b"] == [3**power for power in range(1, 10)]
    assert values["fig4c"] == [100, 300, 500, 700, 900]
    assert values["fig4d"] == values["fig5d"] == [0.0005, 0.005, 0.05, 0.5]
    assert (min(values["fig5a"]), max(values["fig5a"])) == (100, 300)
    assert (min(values["fig5c"]), max(values["fig5c"])) == (100, 600)
    assert {point.inputs[1].rate for point in sweeps["fig4c"].points} == {500}
    for point in sweeps["fig4d"].points:
        assert {s.selectivity for s in point.inputs} == {point.value}
    # The defaults are points of the sweeps by window.
    assert sweeps["fig4a"].points[-1].inputs == TWO_WAY
    assert sweeps["fig5a"].points[-1].inputs == THREE_WAY == FULL.arities[1].inputs


def test_the_command_knows_the_paper() -> None:
    assert PAPERS["aggjoin"] is AGGJOIN
    assert AGGJOIN.default == tuple(FIGURES)


def test_every_figure_is_data_a_chart_and_claims(reproduced: Reproduced) -> None:
    reproduction, told = reproduced
    assert list(reproduction.figures) == [
        *(f"fig{number}{letter}" for number in (4, 5) for letter in "abcd"),
        "fig6",
        "arity",
    ]
    assert told[-1][0] == told[-1][1] == len(told) - 1
    for figure, data in reproduction.figures.items():
        assert json.loads(json.dumps(data)) == data
        FIGURES[figure].chart(data).to_dict()
        plans = {2: 4, 3: 8, 4: 16}
        for point in data["points"]:
            assert len(point["plans"]) in plans.values()
            for plan in point["plans"]:
                assert min(plan[name] for name in ("model", "counted", "tuned", "seconds")) > 0
    assert len(reproduction.claims) >= 25
    assert "| point | plan |" in reproduction.report()


def test_counts_are_the_same_in_every_run() -> None:
    point = Point("", 0, (InputStatistics(50, 40, 5, 0.25), InputStatistics(30, 60, 1, 0.25)))
    budget = Budget(rounds=2, operations=1e4, least_rows=10, most_units=2, seconds=9)
    first, second = plan_runs(point, budget, 1), plan_runs(point, budget, 1)
    assert [run.operations for run in first] == [run.operations for run in second]
    assert [run.operations for run in first] != [
        run.operations for run in plan_runs(point, budget, 2)
    ]


def test_counted_operations_are_those_of_the_model_where_its_assumptions_hold() -> None:
    """Full windows, every join value and group in all of them, and as many result groups as buckets: what is left is
    that a search which succeeds looks at half of a bucket."""
    point = Point("", 0, (InputStatistics(100, 400, 1, 0.1), InputStatistics(100, 400, 1, 0.1)))
    budget = Budget(rounds=1, operations=1e9, least_rows=10, most_units=5, seconds=9)
    costs = model_costs(point)
    for run in plan_runs(point, budget, 1):
        assert run.operations.total == pytest.approx(plan_cost(costs, run.plan), rel=0.05)
        assert run.units == 5


@pytest.mark.parametrize("join", ["hash", "nested"])
def test_with_expected_sizes_the_model_is_near_what_is_counted(join: str) -> None:
    """Where groups are about as many as rows of a join value the paper's upper bounds are far off."""
    point = Point(
        "", 0, (InputStatistics(100, 400, 40, 0.1), InputStatistics(100, 400, 1, 0.1)), join
    )
    budget = Budget(rounds=1, operations=1e9, least_rows=10, most_units=5, seconds=9)
    model, expected = model_costs(point), expected_costs(point.statistics, join)
    late, *_, early = plan_runs(point, budget, 1)
    assert plan_cost(expected, late.plan) == pytest.approx(late.operations.total, rel=0.2)
    assert plan_cost(expected, early.plan) == pytest.approx(early.operations.total, rel=0.2)
    assert plan_cost(model, early.plan) > 1.3 * early.operations.total


@pytest.mark.parametrize("join", ["hash", "nested"])
def test_the_kernel_and_the_prototype_have_the_same_result(join: str) -> None:
    point = Point(
        "",
        0,
        (
            InputStatistics(20, 70, 4, 0.2),
            InputStatistics(30, 40, 3, 0.2),
            InputStatistics(10, 15, 1, 0.2),
        ),
        join,
    )
    streams = PointStreams(point, 2, seed=5)
    prototype = Prototype(point.statistics, (True, False, True), join)
    prototype.add_all(streams.filling())
    kernel = KernelJoin(point, 2, seed=5)
    arrivals = streams.arrivals()
    for instant in (1, 2):
        prototype.add_all(arrivals[(instant - 1) * 60 : instant * 60])
        wanted = {key: sums for key, (_, *sums) in prototype.result.items()}
        assert len(wanted) == 12
        for plan in all_plans(3):
            rows = kernel.at(instant, plan).to_pylist()
            assert {
                (row["k0"], row["k1"], row["k2"]): [row["a0"], row["a1"], row["a2"]] for row in rows
            } == wanted
            assert len(rows) == len(wanted)


def test_tuned_constants_are_those_that_times_were_made_with() -> None:
    random = np.random.default_rng(1)
    runs = []
    for probes, updates, groups in random.integers(1, 1000, (20, 3)):
        operations = Operations(probes, updates, groups)
        runs.append(PlanRun((False, False), operations, 1e-6 * probes + 3e-6 * groups, 1))
    constants = tuned(runs, "hash")
    assert constants.P_h == pytest.approx(1e-6)
    assert constants.U_g == pytest.approx(3e-6)
    assert 0 < constants.U_h < 1e-9
    assert tuned(runs, "nested").P_n == pytest.approx(1e-6)


def data_of(figure: str, costs: list[dict[str, list[float]]]) -> dict[str, Any]:
    """A figure whose plans cost this by every measure, point by point."""
    plans = ("LAP", "EAP01", "EAP10", "EAP11")
    return {
        "figure": figure,
        "title": figure,
        "constants": {"P_h": 1e-9},
        "points": [
            {
                "label": f"{place}",
                "value": place + 1,
                "plans": [
                    {"plan": plan, "joined": 1, "kernel": 1}
                    | dict.fromkeys(("tuned", "expected"), point["model"][number])
                    | {measure: values[number] for measure, values in point.items()}
                    for number, plan in enumerate(plans)
                ],
            }
            for place, point in enumerate(costs)
        ],
    }


def test_claims_can_fail() -> None:
    opposite = {"model": [4.0, 3, 2, 1], "counted": [1.0, 2, 3, 4], "seconds": [1.0, 2, 3, 4]}
    same = {measure: [4.0, 3, 2, 1] for measure in opposite}
    for cost, verdict in ((opposite, "does not hold"), (same, "holds")):
        claims = claims_of({"fig4d": data_of("fig4d", [cost])})
        of_counts = [claim for claim in claims if "kernel" not in claim.claim]
        assert len(of_counts) == 8 and {claim.verdict for claim in of_counts} == {verdict}
    falling = [same, {measure: [1.0, 1, 1, 1] for measure in same}]
    claim = claims_of({"fig4d": data_of("fig4d", falling)})[-1]
    assert claim.verdict == "does not hold" and "LAP at 2" in claim.ours
    showcase = [opposite] * 4
    verdicts = [claim.verdict for claim in claims_of({"fig6": data_of("fig6", showcase)})]
    assert verdicts[:3] == ["holds for 1 of 4"] * 3
    growing = data_of("arity", [same, opposite])
    assert claims_of({"arity": growing})[0].verdict == "does not hold"
    assert "| EAP10 |" in details_of({"arity": growing})


def test_three_way_joins_gain_more_by_model_and_count(reproduced: Reproduced) -> None:
    """By the same settings: every early input divides what a row is joined with."""
    for measure in ("model", "counted"):
        gains = [
            point["plans"][0][measure] / min(plan[measure] for plan in point["plans"])
            for point in reproduced[0].figures["arity"]["points"]
        ]
        assert gains == sorted(gains)
        assert gains[1] > 1.2 * gains[0]


def test_the_runtime_runs_every_plan(spark: Any) -> None:
    """Few rows on Spark; `spark` is there so that it uses the session of the tests."""
    reproduction = AGGJOIN.run([RUNTIME], True, lambda done, total, what: None)
    (point,) = reproduction.figures[RUNTIME]["points"]
    assert [plan["plan"] for plan in point["plans"]] == ["LAP", "EAP01", "EAP10", "EAP11"]
    assert min(plan[name] for plan in point["plans"] for name in ("model", "kernel", "runtime")) > 0
    FIGURES[RUNTIME].chart(reproduction.figures[RUNTIME]).to_dict()
    assert len(reproduction.claims) == 3 and "| EAP11 |" in reproduction.report()


def test_the_runtimes_points_are_settings_of_the_paper_multiplied() -> None:
    by_label = {scaled.label: scaled for scaled in on_spark.FULL}
    assert (by_label["two-way"].inputs, by_label["three-way"].inputs) == (TWO_WAY, THREE_WAY)
    for scaled in on_spark.FULL:
        for shape, given, seen in zip(
            scaled.setting.shapes, scaled.inputs, scaled.point.inputs, strict=True
        ):
            assert shape.rate == scaled.rates * given.rate
            assert seen.window == scaled.windows * given.window == shape.rate * scaled.seconds
            assert (seen.groups, seen.selectivity) == (given.groups, given.selectivity)


def test_claims_about_the_runtime_can_fail() -> None:
    def point(label: str, seconds: list[float]) -> Data:
        plans = [
            {"plan": f"p{i}", "model": 4.0 - i, "kernel": 4.0 - i, "runtime": s}
            for i, s in enumerate(seconds)
        ]
        return {"label": label, "plans": plans}

    def verdicts(two: list[float], three: list[float]) -> list[str]:
        data = {"points": [point("two-way", two), point("three-way", three)]}
        return [claim.verdict for claim in on_spark.runtime_claims(data)]

    assert verdicts([4, 3, 2, 1], [9, 3, 2, 1]) == ["holds", "holds", "holds"]
    assert verdicts([1, 2, 3, 4], [1, 2, 3, 4]) == ["does not hold"] * 3
