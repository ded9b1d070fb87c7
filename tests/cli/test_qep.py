"""`weft qep`: the JSON of the contract, and an answer in words for every bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.support import weft

TWO: list[dict[str, float]] = [
    {"rate": 300, "window": 5000, "groups": 150, "selectivity": 0.1},
    {"rate": 300, "window": 5000, "groups": 1, "selectivity": 0.1},
]
EXAMPLE: dict[str, Any] = {"streams": TWO, "join": "hash", "buckets": 1021}


def written(tmp_path: Path, content: Any) -> Path:
    file = tmp_path / "join.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def qep(tmp_path: Path, content: Any) -> dict[str, Any]:
    result = weft("qep", written(tmp_path, content), "--json")
    assert result.exit_code == 0, result.output
    printed: dict[str, Any] = json.loads(result.stdout)
    return printed


def test_the_json_is_that_of_the_contract(tmp_path: Path) -> None:
    assert qep(tmp_path, EXAMPLE) == {
        "plans": [
            {"early": [False, False], "cost": pytest.approx(1_201_200)},
            {"early": [False, True], "cost": pytest.approx(603_000)},
            {"early": [True, False], "cost": pytest.approx(871_200)},
            {"early": [True, True], "cost": pytest.approx(273_000)},
        ],
        "best": [True, True],
    }


def test_nested_loops_and_constants(tmp_path: Path) -> None:
    constants = {"P_n": 2, "U_n": 3, "P_h": 50, "U_g": 0.5}
    content = EXAMPLE | {"join": "nested", "constants": constants}
    # Every row looks at 5000 others and updates 500 groups of the result, twice.
    late = 2 * 300 * 2 * (5000 * 2 + 3 + 500 * 0.5)
    assert qep(tmp_path, content)["plans"][0] == {
        "early": [False, False],
        "cost": pytest.approx(late),
    }


def test_constants_are_one_by_default(tmp_path: Path) -> None:
    ones = dict.fromkeys(("P_n", "U_n", "P_h", "U_h", "U_g"), 1)
    assert qep(tmp_path, EXAMPLE | {"constants": ones}) == qep(tmp_path, EXAMPLE)


@pytest.mark.parametrize("streams", [3, 5])
def test_joins_of_more_streams_have_all_their_plans(tmp_path: Path, streams: int) -> None:
    content = EXAMPLE | {"streams": [TWO[0] | {"window": 300}] * streams}
    printed = qep(tmp_path, content)
    costs = {tuple(plan["early"]): plan["cost"] for plan in printed["plans"]}
    assert len(printed["plans"]) == len(costs) == 2**streams
    assert costs[tuple(printed["best"])] == min(costs.values())
    assert set(printed) == {"plans", "best"}


def test_many_streams_are_planned_greedily_with_a_note(tmp_path: Path) -> None:
    content = EXAMPLE | {"streams": [TWO[1] | {"window": 20}] * 13}
    printed = qep(tmp_path, content)
    assert "13 streams have 8,192 plans" in printed["note"] and "greedy" in printed["note"]
    assert printed["best"] in [plan["early"] for plan in printed["plans"]]
    assert len(printed["plans"]) < 100
    assert "greedy" in weft("qep", written(tmp_path, content)).stdout


def test_the_table_names_plans_as_the_paper_does(tmp_path: Path) -> None:
    result = weft("qep", written(tmp_path, EXAMPLE))
    assert result.exit_code == 0
    cells = [line.split("│")[1:-1] for line in result.stdout.splitlines() if "│" in line]
    assert [[cell.strip() for cell in row] for row in cells] == [
        ["EAP11", "S1, S2", "273,000", "1×"],
        ["EAP01", "S2", "603,000", "2.21×"],
        ["EAP10", "S1", "871,200", "3.19×"],
        ["LAP", "none", "1,201,200", "4.4×"],
    ]
    assert "EAP11 costs least: 273,000 per unit of time" in result.stdout


def test_of_many_plans_the_cheapest_are_shown(tmp_path: Path) -> None:
    content = EXAMPLE | {"streams": [TWO[0] | {"window": 30}] * 6}
    assert "and 24 more plans" in weft("qep", written(tmp_path, content)).stdout


ONE = '{"rate": 1, "window": 9, "groups": 3, "selectivity": 0.5}'


def text(stream: str = ONE, rest: str = '"join": "hash", "buckets": 10') -> str:
    return f'{{"streams": [{ONE}, {stream}], {rest}}}'


def changed(key: str, value: str) -> str:
    """A join with another value in its second stream."""
    members = [f'"{name}": {number}' for name, number in json.loads(ONE).items() if name != key]
    return text("{" + ", ".join([*members, f'"{key}": {value}']) + "}")


BAD = {
    "": "join.json:1:1: [BAD_QEP] this is not JSON",
    '{"streams": [],\n "join" "hash"}': "join.json:2:9: [BAD_QEP] this is not JSON",
    "[]": "an object with streams, join, buckets, constants is needed, not a list",
    "{}": "there is no 'streams'",
    text(rest='"buckets": 10'): "there is no 'join'",
    text(rest='"join": "hash"'): "there is no 'buckets'",
    text(rest='"join": "hash", "buckets": 10, "bucket": 1'): "unknown key 'bucket'",
    text(rest='"join": "hash", "join": "nested", "buckets": 10'): "'join' is given twice",
    text(rest='"join": "merge", "buckets": 10'): 'join: "hash" or "nested" is needed, not "merge"',
    text(rest='"join": ["hash"], "buckets": 10'): "is needed, not a list",
    text(rest='"join": "hash", "buckets": 0'): "buckets: 0 must be positive",
    text(rest='"join": "hash", "buckets": 0.5'): "buckets: 0.5 must be 1 or more",
    text(rest='"join": "hash", "buckets": "many"'): "buckets: a number is needed, not a string",
    text(rest='"join": "hash", "buckets": 9, "constants": [1]'): "constants: an object is needed",
    text(rest='"join": "hash", "buckets": 9, "constants": {"P": 1}'): "constants: unknown key 'P'",
    text(rest='"join": "hash", "buckets": 9, "constants": {"P_h": -1}'): (
        "constants.P_h: -1 must be positive"
    ),
    '{"streams": 3, "join": "hash", "buckets": 10}': "streams: a list of streams is needed, not 3",
    '{"streams": [], "join": "hash", "buckets": 10}': "two streams or more, not 0",
    f'{{"streams": [{ONE}], "join": "hash", "buckets": 10}}': "two streams or more, not 1",
    f'{{"streams": [{", ".join([ONE] * 33)}], "join": "hash", "buckets": 10}}': (
        "a join has 32 streams at most, not 33"
    ),
    text("7"): "streams[1]: an object is needed, not 7",
    text('{"rate": 1, "window": 9, "groups": 3}'): "streams[1]: there is no 'selectivity'",
    changed("rates", "1"): "streams[1]: unknown key 'rates'",
    changed("rate", "0"): "streams[1].rate: 0 must be positive",
    changed("rate", "-5"): "streams[1].rate: -5 must be positive",
    changed("rate", "Infinity"): "streams[1].rate: inf is not a finite number",
    changed("rate", "1" + "0" * 400): "streams[1].rate: the number is too large",
    changed("rate", "1" + "0" * 5000): "a whole number has too many digits",
    changed("rate", "true"): "streams[1].rate: a number is needed, not true or false",
    changed("window", "0"): "streams[1].window: 0 must be positive",
    changed("window", "null"): "streams[1].window: a number is needed, not null",
    changed("groups", "0.5"): "streams[1].groups: 0.5 must be 1 or more",
    changed("selectivity", "0"): "streams[1].selectivity: 0 must be positive",
    changed("selectivity", "2"): "streams[1].selectivity: 2 must be 1 or less",
}  # fmt: skip


@pytest.mark.parametrize("content", BAD)
def test_bad_input_is_told_with_its_place(tmp_path: Path, content: str) -> None:
    result = weft("qep", written(tmp_path, content))
    assert result.exit_code == 1
    assert BAD[content] in result.stderr
    assert "Traceback" not in result.stderr


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    stream = '{"rate": 0, "window": -1, "groups": 0, "selectivity": 7}'
    result = weft("qep", written(tmp_path, text(stream, '"join": "x", "buckets": -1')))
    assert len(result.stderr.splitlines()) == 6


def test_costs_beyond_all_numbers_are_told(tmp_path: Path) -> None:
    large = {"rate": 1e15, "window": 1e15, "groups": 1e15, "selectivity": 1}
    result = weft("qep", written(tmp_path, EXAMPLE | {"streams": [large] * 30}))
    assert result.exit_code == 1
    assert "the cost of a plan is not a finite number" in result.stderr


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    assert "no such file" in weft("qep", tmp_path / "none.json").stderr
    assert "folder" in weft("qep", tmp_path).stderr
