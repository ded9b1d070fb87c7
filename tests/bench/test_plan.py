"""The benchmark of the optimizers: points, targets and the plot."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from weft.bench import plan
from weft.bench.plan_chart import save


def test_a_point_plans_its_workload_in_a_new_process() -> None:
    point = plan.measure_apart("any", "triweave", 50)
    here = plan.measure("any", "triweave", 50)
    assert (point.cost, point.groups, point.edge_sets) == (here.cost, here.groups, here.edge_sets)
    assert point.seconds > 0 and point.megabytes > 10 and point.exact and point.gap is None


def test_targets_are_compared_with_what_was_measured() -> None:
    point = replace(plan.measure("any", "triweave", 50), queries=1000, seconds=1.5, megabytes=2000)
    found = plan.report([point]).comparisons
    assert [(c.value, c.met) for c in found] == [(1.5, True), (2000, False)]
    shown = json.loads(plan.to_json([point]))
    assert shown["points"][0]["seconds"] == 1.5 and len(shown["comparisons"]) == 2


def test_every_target_is_a_point_of_its_setting() -> None:
    for target in plan.TARGETS:
        setting = plan.SETTINGS[target.setting]
        assert target.queries in setting.counts and target.optimizer in setting.optimizers


def test_the_plot_is_saved_as_svg_and_png(tmp_path: Path) -> None:
    points = [replace(plan.measure("any", "triweave", 50), queries=n) for n in (50, 100)]
    svg, png = save(points, tmp_path)
    assert svg.read_text().startswith("<svg") and "any slides" in svg.read_text()
    assert png.read_bytes()[:4] == b"\x89PNG"
    assert save([], tmp_path) == []


def test_coprime_workloads_have_as_many_edge_sets_as_queries() -> None:
    assert plan.measure("coprime", "noshare", 200).edge_sets == 200


@pytest.mark.parametrize("name", plan.SETTINGS)
def test_settings_make_workloads_of_any_size(name: str) -> None:
    assert plan.SETTINGS[name].windows(20).workload().queries == 20
