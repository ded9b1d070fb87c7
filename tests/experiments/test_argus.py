"""The experiments of ARGUS, small: every configuration gives the rows that DuckDB gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weft.algebra.network.plan import NetworkNode
from weft.bench.peers.in_full import InFull
from weft.experiments.argus.claims import claims_of
from weft.experiments.argus.configurations import (
    ALL_SHARING,
    CONFIGURATIONS,
    NO_JOIN_SHARING,
    NOT_CANONICAL,
)
from weft.experiments.argus.execution import Executed
from weft.experiments.argus.inputs import inputs
from weft.experiments.argus.kept import Kept
from weft.experiments.argus.paper import ARGUS, FIGURES
from weft.experiments.argus.parameters import FULL, QUICK, ArgusSettings, Scale
from weft.experiments.argus.run import BY_NODE, EXECUTIONS, MERGED, ArgusRun
from weft.experiments.argus.sizes import node_weight
from weft.experiments.reproduction import Reproduction


@pytest.fixture(scope="module")
def reproduced() -> tuple[Reproduction, list[tuple[int, int]]]:
    told: list[tuple[int, int]] = []
    run = ARGUS.run(ARGUS.default, True, lambda done, total, what: told.append((done, total)))
    return run, told


def test_the_settings_are_those_of_the_paper() -> None:
    fed, med = FULL.scales
    assert (fed.history, fed.increment, fed.increments) == (300_000, 4_000, 10)
    assert (fed.counts[0], fed.counts[-1]) == (100, 768)
    assert (med.history, med.counts[-1]) == (600_000 // 6, 565)  # the guide says why
    assert (med.direct.history, med.direct.counts) == (600_000, (565,))
    assert fed.direct is fed
    shown = [(o.share_joins, o.canonicalize, o.strategy) for o in CONFIGURATIONS.values()]
    assert shown == [
        (True, True, "sharing-selection"),
        (False, True, "sharing-selection"),
        (True, False, "sharing-selection"),
        (True, True, "match-plan"),
        (True, False, "match-plan"),
    ]


def test_every_figure_is_data_a_chart_and_claims(
    reproduced: tuple[Reproduction, list[tuple[int, int]]],
) -> None:
    reproduction, told = reproduced
    assert list(reproduction.figures) == ["fig14", "fig15", "baseline"]
    assert told[-1][0] == told[-1][1] == len(told) - 1
    for figure, data in reproduction.figures.items():
        settings = json.loads(json.dumps(data["settings"]))
        assert json.loads(json.dumps(data)) == data | {"settings": settings}
        FIGURES[figure].chart(data).to_dict()
    assert len(reproduction.claims) == 4 + 2 + 2 + 2
    assert "## Figure 15" in reproduction.report()


def test_sharing_changes_no_result_and_makes_networks_smaller(
    reproduced: tuple[Reproduction, list[tuple[int, int]]],
) -> None:
    figures = reproduced[0].figures
    for workload in ("fed", "med"):
        results = {
            (series["configuration"], series["execution"], point["queries"]): point["results"]
            for series in figures["fig14"]["series"]
            if series["workload"] == workload
            for point in series["points"]
        }
        for count in {count for _, _, count in results}:
            same = {results[name, how, count] for name in CONFIGURATIONS for how in EXECUTIONS}
            assert len(same) == 1
            assert same.pop() > 0
        sizes = {
            series["configuration"]: series["points"][-1]
            for series in figures["fig15"]["series"]
            if series["workload"] == workload
        }
        assert sizes[ALL_SHARING]["weighted"] < sizes[NO_JOIN_SHARING]["weighted"]
        assert sizes[ALL_SHARING]["joins"] <= sizes[NOT_CANONICAL]["joins"]


@pytest.mark.parametrize("workload", ["fed", "med"])
def test_increments_give_the_new_matches_that_duckdb_gives(workload: str) -> None:
    scale = Scale(workload, 16_000, 2_000, 2, (40,))
    run = ArgusRun(("fig14",), ArgusSettings((scale,), 1), lambda *_: None)
    given = run.inputs(scale)
    database = InFull(given.stream, given.rows)
    key = given.rows.column_names[0]
    expected = sum(database.new_matches(query, key, scale.history)[0] for query in given.queries)
    (made,) = run.networks(scale, ALL_SHARING)
    assert run.executed(scale, ALL_SHARING, made, MERGED).results == expected > 100
    assert run.executed(scale, ALL_SHARING, made, BY_NODE).results == expected


def test_joins_weigh_more_than_selections_and_low_levels_more_than_high_ones() -> None:
    def weight(kind: Any, level: int) -> float:
        return node_weight(NetworkNode("n", kind, (), (), level=level))

    assert weight("join", 1) > weight("join", 2) > weight("selection", 2) > 0
    assert weight("selection", 0) > weight("selection", 1)
    assert weight("source", 0) == 0


def test_claims_can_fail() -> None:
    def series(configuration: str, execution: str, seconds: float) -> dict[str, Any]:
        points = [{"queries": 1, "seconds": seconds, "weighted": 1.0}]
        return {
            "workload": "fed",
            "configuration": configuration,
            "execution": execution,
            "points": points,
        }

    same = {"series": [series(name, how, 1.0) for name in CONFIGURATIONS for how in EXECUTIONS]}
    slower = {
        "series": [
            series(name, how, 1.0 if name == ALL_SHARING else 2.0)
            for name in CONFIGURATIONS
            for how in EXECUTIONS
        ]
    }
    assert {claim.verdict for claim in claims_of({"fig14": same})} == {"does not hold"}
    assert [claim.verdict for claim in claims_of({"fig14": slower})][:4] == ["holds"] * 4
    direct = {
        "workload": "fed", "queries": 2, "history": 10, "measured": 1, "seconds_of_one": 1.0, "direct": 2.0,
        "shared": 1.0, "ratio": 2.0,
    }  # fmt: skip
    (claim,) = claims_of({"baseline": {"series": [direct]}})
    assert claim.verdict == "does not hold"


def test_the_quick_settings_are_quick() -> None:
    assert all(scale.records <= 40_000 and max(scale.counts) <= 32 for scale in QUICK.scales)


def test_a_run_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    """What it has measured at a scale is not measured again; another scale is."""
    scale, key = Scale("fed", 16_000, 2_000, 2, (40,), 8_000, 1), ("fed", "AllSharing", "40")
    executed = Executed((0.5, 0.25), 10, 20, 3, 100, 1000)
    Kept(tmp_path / "kept").add(scale, key, executed)
    again = Kept(tmp_path / "kept")
    assert again.find(scale, key) == executed
    assert again.find(scale.by_node, key) is None
    again.forget()
    assert Kept(tmp_path / "kept").find(scale, key) is None


def test_joins_by_themselves_read_the_newest_rows_of_the_history() -> None:
    given = inputs(Scale("fed", 3_000, 500, 3, (4,), 1_000, 2), 1)
    small = given.by_node
    assert small.history.equals(given.rows.slice(2_000, 1_000))
    assert [rows.equals(other) for rows, other in zip(small.increments, given.increments)] == [
        True,
        True,
    ]
