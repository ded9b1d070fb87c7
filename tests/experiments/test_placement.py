"""The simulation of the Placement paper: its parameters, and what its figures and claims are made of."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

import pytest
from pyspark.sql import SparkSession

from weft.experiments.placement.claims import claims_and_details
from weft.experiments.placement.figures import front, node_costs, quality, times, wins
from weft.experiments.placement.grid import measure
from weft.experiments.placement.on_lanes import outcome, running
from weft.experiments.placement.paper import FIGURES
from weft.experiments.placement.parameters import (
    FIGURE_3,
    FULL,
    PAPER_SECONDS,
    QUICK,
    Configuration,
    configurations,
)
from weft.experiments.placement.readings import (
    OTHERS,
    by_slide,
    readings_chart,
    readings_data,
    readings_table,
)
from weft.experiments.placement.scale import HOW, scale_chart, scale_data, streams
from weft.experiments.placement.simulation import READINGS, Experiment
from weft.experiments.placement.summaries import Costs
from weft.optimizer.edges.workload import Workload
from weft.optimizer.placement.optimizers import OPTIMIZERS, PAPERS


@pytest.fixture(scope="module")
def experiments() -> list[Experiment]:
    return measure(QUICK, lambda done, total, what: None)


def test_table_2_has_256_combinations_of_three_runs() -> None:
    every = list(configurations())
    assert len(every) == len(set(every)) == 256 == len(FULL.configurations)
    assert FULL.seeds == (1, 2, 3)
    assert FIGURE_3 in every
    assert set(PAPER_SECONDS) == set(PAPERS) and len(PAPERS) == 13


def test_primes_are_primes_and_skew_prefers_long_slides() -> None:
    slides = {
        edge_set[0].slide
        for edge_set in Configuration(500, 4, 10, 50, 0, 10, True).workload(1).edge_sets
    }
    assert slides == {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47}
    skewed = Configuration(500, 4, 10, 50, 1, 10, False).workload(1)
    sizes = {
        edge_set[0].slide: len(skewed.members[n]) for n, edge_set in enumerate(skewed.edge_sets)
    }
    assert sum(size for slide, size in sizes.items() if slide > 40) > 300
    assert skewed.overlap_of.min() >= 1 and skewed.overlap_of.max() <= 10


def test_every_optimizer_has_an_outcome_under_both_readings(experiments: list[Experiment]) -> None:
    assert len(experiments) == len(QUICK.configurations) * len(QUICK.seeds)
    for experiment in experiments:
        found = {(o.reading, o.optimizer, o.balance) for o in experiment.outcomes}
        assert {(reading, name) for reading, name, _ in found} >= {
            (reading, name) for reading in READINGS for name in OPTIMIZERS
        }
        balances = {o.balance for o in experiment.outcomes if o.optimizer == "balanced"}
        assert balances == ({0.0, 0.5, 1.0} if experiment.seed == 1 else {0.5})
        assert all(o.largest <= o.total and o.seconds > 0 for o in experiment.outcomes)


def test_wins_and_quality_are_relative_to_the_thirteen(experiments: list[Experiment]) -> None:
    costs = Costs(experiments)
    for reading in READINGS:
        for metric in ("max", "total"):
            assert sum(costs.wins(reading, name, metric).best for name in PAPERS) >= 1 - 1e-9
            for name in PAPERS:
                mean, deviation = costs.quality(reading, name, metric)
                assert -1e-9 <= mean <= 1 + 1e-9 and deviation >= 0
    own = costs.beside("queries", 0.5, "total", "wg-tn")
    assert len(own) == len(QUICK.configurations)


def test_figures_are_json_and_can_be_drawn(experiments: list[Experiment]) -> None:
    data = {
        "fig2": quality(QUICK, experiments),
        "fig3": node_costs(QUICK),
        "tab3": wins(QUICK, experiments),
        "tab4": times(QUICK, experiments),
        "front": front(QUICK, experiments),
    }
    assert {*data, "lanes", "readings", "scale"} == set(FIGURES)
    for figure, found in data.items():
        drawn = FIGURES[figure].chart(json.loads(json.dumps(found)))
        assert drawn.to_dict()["title"]["text"] == found["title"]
    assert len(data["fig3"]["rows"]) == 4 * len(OPTIMIZERS)
    claims, details = claims_and_details(experiments, data)
    assert any("80 %" in claim.claim for claim in claims)
    assert all(claim.verdict for claim in claims)
    assert details.count("| wg-tn |") == len(READINGS)


def test_other_readings_change_what_they_say_and_nothing_else() -> None:
    data = readings_data(QUICK, lambda done, total, what: None)
    found = {
        (row["how"], row["reading"], row["optimizer"], row["metric"]): row["best"]
        for row in data["rows"]
    }
    assert len(found) == len(OTHERS) * len(READINGS) * 4
    table = readings_table(data)
    assert "| the paper | not said | 80 %, 3 % | 17 %, 48 % | 5 %, 9 % | 90 %, 0.2 % |" in table
    drawn = readings_chart(json.loads(json.dumps(data))).to_dict()
    assert drawn["title"]["text"] == data["title"]


def test_readings_reorder_and_redistribute_the_same_kind_of_workload() -> None:
    configuration = Configuration(250, 4, 10, 25, 1, 10, False)
    long, short = configuration.workload(1), configuration.workload(1, short_popular=True)
    assert _mean_slide(short) < 8 < 16 < _mean_slide(long)
    ordered = by_slide(long)
    assert sorted(ordered.names) == sorted(long.names)
    assert _windows(ordered) == _windows(long)
    slides = [ordered.edge_sets[place][0].slide for place in ordered.edge_set_of]
    assert slides == sorted(slides)


def _mean_slide(workload: Workload) -> float:
    return fmean(workload.edge_sets[place][0].slide for place in workload.edge_set_of)


def _windows(workload: Workload) -> dict[str, tuple[int, float]]:
    return {
        name: (workload.edge_sets[place][0].slide, float(overlap))
        for name, place, overlap in zip(
            workload.names, workload.edge_set_of, workload.overlap_of, strict=True
        )
    }


def test_many_streams_are_planned_in_every_way_with_each_query_once() -> None:
    data = scale_data(True, lambda done, total, what: None)
    assert [row["how"] for row in data["rows"]] == list(HOW)
    assert all(row["placed_once"] and row["seconds"] > 0 for row in data["rows"])
    if Path("/proc/self/clear_refs").exists():
        assert all(0 <= row["megabytes"] < row["process_megabytes"] for row in data["rows"])
    assert sum(len(stream.names) for stream in streams(300)) == 300
    assert scale_chart(json.loads(json.dumps(data))).to_dict()["title"] == data["title"]


def test_placements_run_on_lanes_and_give_equal_rows(spark: SparkSession) -> None:
    ran = running.run(running.QUICK, lambda done, total, what: None, spark)
    assert [one.optimizer for one in ran] == list(running.QUICK.optimizers)
    assert all(one.equal and one.rows == ran[0].rows > 100 for one in ran)
    for one in ran:
        busy = [cost > 0 for cost in one.paper]
        assert [cost > 0 for cost in one.ours] == busy
        assert [seconds > 0 for seconds in one.measured] == busy, "a lane without trees is idle"
    lopsided = ran[-1]
    assert lopsided.optimizer == running.ONE_LANE and lopsided.trees == 1
    assert [cost > 0 for cost in lopsided.paper] == [True, False, False]
    rows = [asdict(one) for one in ran]
    data = {"title": "t", "placements": rows, "correlations": outcome.correlations(rows)}
    assert {row["model"] for row in data["correlations"]} == set(outcome.MODELS)
    *_, slowest, equal = outcome.lane_claims(data)
    assert "one lane" in slowest.ours and equal.verdict == "holds"
    assert outcome.lane_tables(data).count("any slides") == 2 + len(ran)
    assert outcome.lane_chart(data).to_dict()


def test_costs_that_order_lanes_as_their_times_correlate() -> None:
    one = {
        "master": "m",
        "workload": "w",
        "paper": (1, 2, 3),
        "ours": (3, 2, 1),
        "measured": (0.1, 0.2, 0.4),
    }
    (paper, ours) = outcome.correlations(
        [one, one | {"paper": (4, 5, 6), "measured": (0.5, 0.6, 0.7)}]
    )
    assert (paper["lanes"], paper["slowest"], paper["found"]) == (1, 1, 1)
    assert ours["lanes"] < 0 and ours["found"] == 0
