"""`weft tree`: the JSON of the contract, and an answer in words for every bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.support import weft

from weft.optimizer.groupby.planner import ALLOCATORS

EXAMPLE: dict[str, Any] = {
    "tuples": 100_000,
    "queries": [["a", "b"], ["b", "c"], ["c", "d"]],
    "groups": {
        "a": 50,
        "b": 40,
        "c": 30,
        "d": 20,
        "a,b": 1500,
        "b,c": 900,
        "c,d": 500,
        "b,c,d": 6000,
    },
    "alpha": {"b,c,d": 0.6},
    "entry_size": {"b,c,d": 2},
}


def written(tmp_path: Path, content: Any) -> Path:
    file = tmp_path / "groups.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def tree(tmp_path: Path, content: Any, *options: object) -> dict[str, Any]:
    result = weft("tree", written(tmp_path, content), "--json", *options)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def names(node: dict[str, Any]) -> list[str]:
    return [node["node"], *(name for child in node["children"] for name in names(child))]


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("memory", [0, 1, 5000, 1e9])
def test_the_json_has_the_shape_of_the_contract(
    tmp_path: Path, allocator: str, memory: float
) -> None:
    found = tree(tmp_path, EXAMPLE, "--memory", memory, "--allocator", allocator)
    assert {"cost", "tree", "allocation", "seconds"} <= set(found)
    assert found["tree"]["node"] == ""
    nodes = names(found["tree"])
    assert {"a,b", "b,c", "c,d"} <= set(nodes)
    assert set(found["allocation"]) == set(nodes) - {"", "a,b", "b,c", "c,d"}
    sizes = {"b,c,d": 2}
    used = sum(held * sizes.get(node, 1) for node, held in found["allocation"].items())
    assert used <= memory * (1 + 1e-9)
    assert found["cost"] == pytest.approx(found["during"] + found["at_end"])
    if memory == 0:
        assert found["cost"] == 300_000 and not found["allocation"]


def test_the_cost_is_that_of_equations_1_and_2(tmp_path: Path) -> None:
    found = tree(tmp_path, EXAMPLE, "--memory", 5000)
    assert found["allocation"] == {"b,c,d": 2500}
    out = 2500 + (1 - (2500 / 6000) ** 0.4) * 100_000
    assert found["cost"] == pytest.approx(2 * 100_000 + 2 * out)


def test_queries_inside_queries_equal_ones_and_the_global_one(tmp_path: Path) -> None:
    content = {
        "tuples": 1000,
        "queries": [["b", "a"], ["a", "b"], ["a"], []],
        "groups": {"b,a": 100, "a": 10, "": 1},
    }
    found = tree(tmp_path, content, "--memory", 10)
    assert sorted(names(found["tree"])) == ["", "()", "a", "a,b"]
    assert found["cost"] == 1000 + 100 + 10
    assert found["allocation"] == {}


def test_ten_million_values_and_nothing_known(tmp_path: Path) -> None:
    content = {
        "tuples": 50_000_000,
        "queries": [["a", "b"], ["b", "c"]],
        "groups": {"a": 10_000_000},
    }
    assert tree(tmp_path, content, "--memory", 1e6)["cost"] <= 1e8


def test_the_tree_is_drawn_for_people(tmp_path: Path) -> None:
    result = weft("tree", written(tmp_path, EXAMPLE), "--memory", 5000)
    assert result.exit_code == 0
    assert "b,c,d (intermediate)" in result.stdout
    assert "2,500" in result.stdout and "6,000" in result.stdout
    assert "300,000 without intermediates" in result.stdout


BAD = {
    "": "groups.json:1:1: [BAD_TREE] this is not JSON",
    '{"tuples": 1,\n "queries": [[]}': "groups.json:2:16: [BAD_TREE] this is not JSON",
    "[1]": "an object with tuples, queries",
    "{}": "there is no 'tuples'",
    '{"tuples": 5, "queries": [["a"]], "group": {}}': "unknown key 'group'",
    '{"tuples": 5, "tuples": 6, "queries": [["a"]]}': "'tuples' is given twice",
    '{"tuples": 0, "queries": [["a"]]}': "tuples: 0 must be positive",
    '{"tuples": NaN, "queries": [["a"]]}': "tuples: nan is not a finite number",
    '{"tuples": true, "queries": [["a"]]}': "tuples: a number is needed, not true or false",
    '{"tuples": 1e300, "queries": [["a"]]}': "is too large",
    '{"tuples": 5, "queries": []}': "queries: there is no query",
    '{"tuples": 5, "queries": "a"}': "queries: a list of lists",
    '{"tuples": 5, "queries": ["a"]}': "queries[0]: a list of attributes is needed, not a string",
    '{"tuples": 5, "queries": [["a"], [1]]}': "queries[1]: an attribute is a string, not 1",
    '{"tuples": 5, "queries": [["a,b"]]}': "queries[0]: 'a,b' is not an attribute",
    '{"tuples": 5, "queries": [[" "]]}': "queries[0]: ' ' is not an attribute",
    '{"tuples": 5, "queries": [["a", "a"]]}': "queries[0]: attribute 'a' is given twice",
    '{"tuples": 5, "queries": [["a"]], "groups": []}': "groups: an object",
    '{"tuples": 5, "queries": [["a"]], "groups": {"z": 1}}': "no query has the attribute 'z'",
    '{"tuples": 5, "queries": [["a"]], "groups": {"a": 9}}': "9 groups cannot be in 5 tuples",
    '{"tuples": 5, "queries": [["a"]], "groups": {"a": "x"}}': "a number is needed, not a string",
    '{"tuples": 5, "queries": [["a"]], "groups": {"": 2}}': "without attributes there is one group",
    '{"tuples": 5, "queries": [["a"]], "groups": {"a": 1, "a": 2}}': "this set is given twice",
    '{"tuples": 5, "queries": [["a","b"]], "groups": {"a,b": 2, "b,a": 2}}': "this set is given twice",
    '{"tuples": 5, "queries": [["a","b"]], "groups": {"a,a": 2}}': "an attribute is given twice",
    '{"tuples": 9, "queries": [["a","b"]], "groups": {"a": 4, "a,b": 3}}': "fewer than the 4 of a",
    '{"tuples": 5, "queries": [["a"]], "alpha": {"a": -1}}': "-1 must not be negative",
    '{"tuples": 5, "queries": [["a"]], "entry_size": {"a": 0}}': "0 must be positive",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_input_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    result = weft("tree", written(tmp_path, text), "--memory", 5)
    assert result.exit_code == 1
    assert BAD[text] in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--memory", -1),
        ("--memory", "much"),
        ("--memory", "nan"),
        ("--memory", 5, "--allocator", "magic"),
        ("--memory", 5, "--epsilon", 0),
        (),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, options: tuple[object, ...]) -> None:
    assert weft("tree", written(tmp_path, EXAMPLE), *options).exit_code == 2


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    assert "no such file" in weft("tree", tmp_path / "none.json", "--memory", 5).stderr
    assert "folder" in weft("tree", tmp_path, "--memory", 5).stderr
    (tmp_path / "latin.json").write_bytes(b"\xff\xfe")
    assert "UTF-8" in weft("tree", tmp_path / "latin.json", "--memory", 5).stderr
