"""The simulation of the TriOps paper: facts that hold by the structure of its cost models."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from weft.experiments.reproduction import Data
from weft.experiments.triops.charts import model_chart, rate_chart, spark_chart
from weft.experiments.triops.claims import claims_and_details
from weft.experiments.triops.figures import TITLES, query_sweep, rate_sweep
from weft.experiments.triops.grid import SimulatedPoint, measure
from weft.experiments.triops.on_spark import PLANS, spark_claims, spark_data
from weft.experiments.triops.parameters import FULL, MODEL_RATES, QUICK
from weft.experiments.triops.simulation import TRI_OPS, TWO_OPS, Simulation, queries_of
from weft.experiments.triops.templates import GUESSES, LITERAL, ORDERS, TEMPLATES, Guess
from weft.optimizer.windows.optimizers import OPTIMIZERS


@pytest.fixture(scope="module")
def points() -> list[SimulatedPoint]:
    return measure(QUICK, TITLES, lambda done, total, what: None)


@pytest.fixture(scope="module")
def rates(points: list[SimulatedPoint]) -> Data:
    return rate_sweep(QUICK, points)


@pytest.fixture(scope="module", params=MODEL_RATES)
def models(request: pytest.FixtureRequest, points: list[SimulatedPoint]) -> Data:
    return query_sweep(request.param, QUICK, points)


def chosen(data: Data, optimizer: str, model: str) -> dict[tuple[str, int], Data]:
    return {
        (line["guess"], line["seed"]): line
        for line in data["series"]
        if (line["optimizer"], line["model"]) == (optimizer, model)
    }


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_has_distinct_slides_within_table_ii(template: str) -> None:
    slides = TEMPLATES[template](1)
    assert len(set(slides)) == len(slides) >= 10
    assert min(slides) >= 1
    assert max(slides) <= 10_000


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_of_popularity_keeps_the_slides(order: str) -> None:
    guess = Guess("clock", order)
    assert sorted(guess.slides(1)) == TEMPLATES["clock"](1)
    assert guess.slides(1) == guess.slides(1)


def test_the_full_settings_are_those_of_the_paper() -> None:
    assert FULL.guesses == GUESSES
    assert FULL.rate_sweep_queries == (256, 500, 1000)
    assert (min(FULL.rates), max(FULL.rates)) == (0.5, 10_000)
    assert (min(FULL.query_sweep), max(FULL.query_sweep)) == (50, 1000)
    assert list(MODEL_RATES.values()) == [50, 300, 10_000]
    assert len(FULL.seeds) == 3
    assert FULL.drawn == LITERAL


def test_more_queries_are_the_same_ones_and_others() -> None:
    few, many = queries_of(LITERAL, 1, 20), queries_of(LITERAL, 1, 50)
    assert set(few.edge_sets) <= set(many.edge_sets)
    assert few.names == many.names[:20]
    assert queries_of(LITERAL, 2, 20).edge_sets != few.edge_sets


def test_too_many_queries_are_refused() -> None:
    with pytest.raises(ValueError, match="1000"):
        queries_of(LITERAL, 1, 1001)


@pytest.mark.parametrize("guess", QUICK.guesses, ids=str)
@pytest.mark.parametrize("rate", [0.5, 20, 3000])
def test_costs_are_those_of_the_optimizers_plans(guess: Guess, rate: float) -> None:
    workload = queries_of(guess, 1, 60)
    simulation = Simulation(workload)
    plans = (simulation.shared(), simulation.weaveshare(rate), simulation.triweave())
    for plan in plans:
        whole = OPTIMIZERS[plan.optimizer](workload, rate, None)
        assert len(plan.groups) == len(whole.groups)
        for model in (TWO_OPS, TRI_OPS):
            assert plan.cost(model, rate) == pytest.approx(float(whole.under(model).cost), rel=1e-9)


def test_what_triops_saves_is_the_closed_form(points: list[SimulatedPoint]) -> None:
    for point in points:
        plan, rate = point.weaveshare, point.rate
        count, final = len(plan.groups), sum(edges * overlap for edges, overlap in plan.groups)
        saved = (count - 1) * rate - count * plan.edge_rate
        assert plan.gain(rate) == pytest.approx(saved / (count * rate + final), abs=1e-12)


def test_each_guess_and_number_of_queries_is_a_series_over_the_rates(rates: Data) -> None:
    assert len(rates["series"]) == len(QUICK.guesses) * len(QUICK.rate_sweep_queries)
    for series in rates["series"]:
        assert series["rate"] == [float(rate) for rate in QUICK.rates]
        for column in ("normalized", "weaveshare_groups", "weaveshare_cost", "triweave_cost"):
            assert len(series[column]) == len(QUICK.rates)


def test_figure_10_is_normalized_to_weaveshare(rates: Data) -> None:
    for series in rates["series"]:
        for ratio, tri, woven in zip(
            series["normalized"], series["triweave_cost"], series["weaveshare_cost"]
        ):
            assert ratio == pytest.approx(tri / woven)


def test_triweave_groups_do_not_depend_on_the_rate(points: list[SimulatedPoint]) -> None:
    by_workload: dict[Any, set[Any]] = {}
    for point in points:
        groups = by_workload.setdefault((point.guess, point.seed, point.queries), set())
        groups.add(point.triweave.groups)
    assert all(len(groups) == 1 for groups in by_workload.values())


def test_weaveshare_has_fewer_groups_at_higher_rates(rates: Data) -> None:
    for series in rates["series"]:
        assert all(low >= high for low, high in pairwise(series["weaveshare_groups"]))


def test_triweave_has_no_fewer_groups_above_the_edge_rate_and_no_more_below(rates: Data) -> None:
    for series in rates["series"]:
        for rate, woven in zip(series["rate"], series["weaveshare_groups"]):
            if rate >= series["edge_rate"]:
                assert series["triweave_groups"] >= woven
            if rate <= series["edge_rate"]:
                assert series["triweave_groups"] <= woven


def test_the_baseline_is_one_of_the_configurations_and_costs_one(models: Data) -> None:
    baseline = chosen(models, "shared", "twoops")
    assert len(baseline) == len(QUICK.guesses)
    for series in baseline.values():
        assert series["queries"] == list(QUICK.query_sweep)
        assert series["normalized"] == [1.0] * len(QUICK.query_sweep)


def test_shared_alone_costs_more_under_triops(models: Data) -> None:
    for series in chosen(models, "shared", "triops").values():
        assert all(cost > 1 for cost in series["normalized"])


def test_each_optimizer_beats_the_other_under_its_own_model_at_these_rates(models: Data) -> None:
    for key, series in chosen(models, "triweave", "triops").items():
        others = chosen(models, "weaveshare", "triops")[key]["normalized"]
        assert all(ours <= other for ours, other in zip(series["normalized"], others))


def test_best_is_run_on_the_drawn_guess_and_never_worse(models: Data) -> None:
    for model in ("twoops", "triops"):
        best_lines = chosen(models, "best", model)
        assert list(best_lines) == [(str(LITERAL), 1)]
        for key, series in best_lines.items():
            for optimizer in ("shared", "weaveshare", "triweave"):
                others = chosen(models, optimizer, model)[key]["normalized"]
                for ours, other in zip(series["normalized"], others):
                    assert ours <= other * (1 + 1e-9)


def test_charts_are_drawn_from_data_that_was_read_back(rates: Data, models: Data) -> None:
    for data, draw in ((rates, rate_chart), (models, model_chart)):
        again = draw(json.loads(json.dumps(data))).to_dict()
        assert again == draw(data).to_dict()
        assert data["title"] in json.dumps(again)


def test_every_guess_is_in_the_report_and_every_claim_judged(points: list[SimulatedPoint]) -> None:
    claims, details = claims_and_details(QUICK, points, list(TITLES))
    assert len(claims) == 12
    for guess in QUICK.guesses:
        assert details.count(f"| {guess} |") == 2
    assert all(claim.ours and claim.verdict and claim.reason for claim in claims)


def test_a_figure_alone_has_only_its_claims(points: list[SimulatedPoint]) -> None:
    texts = [claim.claim for claim in claims_and_details(QUICK, points, ["fig12"])[0]]
    assert any("40 to 60 %" in text for text in texts)
    assert not any("figure 10" in text or "higher rates" in text for text in texts)


def test_what_the_loom_counts_is_what_the_models_predict(spark: Any) -> None:
    """A small run of the plans on Spark; `spark` is there so that it uses the session of the tests."""
    data = spark_data(quick=True, progress=lambda done, total, what: None)
    assert [(plan["optimizer"], plan["model"]) for plan in data["plans"]] == list(PLANS)
    results = {plan["results"] for plan in data["plans"]}
    assert len(results) == 1, "every plan gives as many results"
    for plan in data["plans"]:
        predicted, counted = plan["predicted"], plan["counted"]
        assert counted["level1"] == pytest.approx(predicted["level1"])
        if plan["model"] == "triops" and plan["groups"] > 1:
            assert counted["level2"] == pytest.approx(predicted["level2"], rel=0.1)
        assert 0.7 * predicted["level3"] <= counted["level3"] <= 1.05 * predicted["level3"]
    assert "counted" in spark_chart(data).to_json()
    assert len(spark_claims(data)) == len(PLANS)
