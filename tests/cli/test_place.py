"""`weft place`: the JSON of the contract, and an answer in words for every bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.support import weft

from weft.optimizer.placement.optimizers import OPTIMIZERS

EXAMPLE = "name,range,slide\nqa,8,5\nqb,5,4\nqc,10,1\nqd,5,4\n"


def place(tmp_path: Path, *options: object, text: str = EXAMPLE) -> dict[str, Any]:
    file = tmp_path / "windows.csv"
    file.write_text(text)
    result = weft("place", file, "--json", *options)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_json_has_the_shape_of_the_contract(tmp_path: Path, name: str) -> None:
    found = place(tmp_path, "--rate", 10, "--nodes", 2, "--optimizer", name)
    assert list(found) == ["optimizer", "rate", "total_cost", "max_cost", "nodes", "seconds"]
    assert (found["optimizer"], found["rate"]) == (name, 10) and 0 <= found["seconds"] < 5
    assert all(list(node) == ["cost", "trees"] for node in found["nodes"])
    assert len(found["nodes"]) == 2
    placed = [query for node in found["nodes"] for tree in node["trees"] for query in tree]
    assert sorted(placed) == ["qa", "qb", "qc", "qd"]
    costs = [node["cost"] for node in found["nodes"]]
    assert found["total_cost"] == pytest.approx(sum(costs))
    assert found["max_cost"] == pytest.approx(max(costs))


def test_costs_are_those_of_equation_1(tmp_path: Path) -> None:
    found = place(tmp_path, "--rate", 10, "--nodes", 1, "--optimizer", "w-rr")
    assert found["nodes"][0]["trees"] == [["qa", "qb", "qc", "qd"]]
    assert found["total_cost"] == pytest.approx(10 + 8 / 5 + 5 / 4 + 10 + 5 / 4)
    alone = place(tmp_path, "--rate", 10, "--nodes", 1, "--optimizer", "g-rr")
    edges = 2 / 5 * 8 / 5 + 2 * (2 / 4 * 5 / 4) + 10
    assert alone["total_cost"] == pytest.approx(40 + edges)


def test_balanced_is_the_default_and_decimals_are_read(tmp_path: Path) -> None:
    seconds = place(
        tmp_path, "--rate", 100, "--nodes", 2, text="name,range,slide\na,1.5,0.5\nb,2,0.4\n"
    )
    assert seconds["optimizer"] == "balanced"
    text = "name,range,slide\na,1500,500\nb,2000,400\n"
    millis = place(tmp_path, "--rate", "0.1", "--nodes", 2, text=text)
    assert seconds["total_cost"] == pytest.approx(1000 * millis["total_cost"])


def test_one_node_has_all_and_the_plan_is_called_by_the_optimizer_that_was_asked(
    tmp_path: Path,
) -> None:
    for name in OPTIMIZERS:
        found = place(tmp_path, "--rate", 10, "--nodes", 1, "--optimizer", name)
        assert found["optimizer"] == name
        assert found["total_cost"] == found["max_cost"] == found["nodes"][0]["cost"]


def test_preprocessing_keeps_equal_edges_together(tmp_path: Path) -> None:
    options = ("--rate", 10, "--nodes", 4, "--optimizer", "g-rr")
    apart = place(tmp_path, *options)
    assert all(len(tree) == 1 for node in apart["nodes"] for tree in node["trees"])
    together = place(tmp_path, *options, "--preprocess")
    assert ["qb", "qd"] in [tree for node in together["nodes"] for tree in node["trees"]]


def test_a_seed_and_a_balance_change_the_plan(tmp_path: Path) -> None:
    text = "name,range,slide\n" + "".join(
        f"q{i},{(i % 7 + 1) * 6},{i % 6 + 1}\n" for i in range(40)
    )
    options = ("--rate", 20, "--nodes", 4, "--optimizer")
    plans = [
        place(tmp_path, *options, "g-rand", "--seed", seed, text=text)["nodes"]
        for seed in (1, 1, 2)
    ]
    assert plans[0] == plans[1] != plans[2]
    total = place(tmp_path, *options, "balanced", "--balance", 0, text=text)
    largest = place(tmp_path, *options, "balanced", "--balance", 1, text=text)
    assert total["total_cost"] < largest["total_cost"]
    assert largest["max_cost"] < total["max_cost"]


def test_weights_are_shown_and_loads_are_relative(tmp_path: Path) -> None:
    text = "name,range,slide\n" + "".join(f"q{i},{i + 1},1\n" for i in range(30))
    options = ("--rate", 1, "--nodes", 2, "--weights", "3,1", "--optimizer", "g-tl")
    found = place(tmp_path, *options, text=text)
    assert [node["weight"] for node in found["nodes"]] == [3, 1]
    costs = [node["cost"] for node in found["nodes"]]
    assert found["max_cost"] == pytest.approx(max(costs[0] / 3, costs[1]))
    assert costs[0] > 2 * costs[1]
    shown = weft("place", tmp_path / "windows.csv", *options)
    assert "weight" in shown.stdout and "load" in shown.stdout


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_more_nodes_than_queries_leave_nodes_empty(tmp_path: Path, name: str) -> None:
    found = place(tmp_path, "--rate", 10, "--nodes", 9, "--optimizer", name)
    placed = [query for node in found["nodes"] for tree in node["trees"] for query in tree]
    assert len(found["nodes"]) == 9 and sorted(placed) == ["qa", "qb", "qc", "qd"]
    empty = [node for node in found["nodes"] if not node["trees"]]
    assert len(empty) >= 5 and all(node["cost"] == 0 for node in empty)


def test_the_table_names_nodes_costs_and_what_is_idle(tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text(EXAMPLE)
    result = weft("place", file, "--rate", 10, "--nodes", 50, "--optimizer", "g-rr")
    assert result.exit_code == 0
    assert "4 queries in 4 trees on 50 nodes" in " ".join(result.stdout.split())
    assert "and 10 more nodes; --json has them all" in result.stdout
    assert "46 of 50 nodes have nothing to do" in result.stdout


BAD_OPTIONS = {
    ("--nodes", "0"): "the number of nodes 0 must be positive",
    ("--nodes", "-3"): "the number of nodes -3 must be positive",
    ("--nodes", "2000000"): "must be at most 1,000,000",
    ("--nodes", "two"): "valid integer",
    ("--nodes", "2", "--weights", "1,0"): "the weight 0 of node 2 must be positive",
    ("--nodes", "2", "--weights=-1,1"): "the weight -1 of node 1 must be positive",
    ("--nodes", "2", "--weights", "1,nan"): "the weight nan of node 2 must be positive",
    ("--nodes", "2", "--weights", "1e-320,1"): "the weight 1e-320 of node 1 is not between 1e-18",
    ("--nodes", "2", "--weights", "1,inf"): "the weight inf of node 2 is not between 1e-18",
    ("--nodes", "2", "--weights", "1,"): "the weight '' of node 2 is not a number",
    ("--nodes", "2", "--weights", "1,2,3"): "there are 3 weights for 2 nodes",
    ("--nodes", "2", "--optimizer", "magic"): "the optimizers are g-rand",
    ("--nodes", "2", "--balance", "1.5"): "the balance 1.5 must be between 0",
    ("--nodes", "2", "--balance", "nan"): "the balance nan must be between 0",
    ("--nodes", "2", "--optimizer", "wg-i", "--balance", "0.5"): "only balanced has a balance",
    ("--nodes", "2", "--seed", "-1"): "the seed -1 must not be negative",
    ("--nodes", "2", "--rate", "0"): "the rate 0 must be positive",
}


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=" ".join)
def test_bad_options_are_wrong_usage(tmp_path: Path, options: tuple[str, ...]) -> None:
    file = tmp_path / "windows.csv"
    file.write_text(EXAMPLE)
    result = weft("place", file, "--rate", 10, *options, "--json")
    assert result.exit_code == 2 and result.stdout == ""
    said = " ".join(result.stderr.replace("│", " ").split())
    assert BAD_OPTIONS[options] in said


def test_bad_files_are_told_with_line_and_place(tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text("name,range,slide\nok,1,1\nlong_name,10,zero\n")
    result = weft("place", file, "--rate", 1, "--nodes", 2)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{file}:3:14: [BAD_WINDOW] query 'long_name': slide 'zero'")
    missing = weft("place", tmp_path / "none.csv", "--rate", 1, "--nodes", 2)
    assert missing.exit_code == 1 and "there is no such file" in missing.stderr


def test_too_many_different_windows_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text("name,range,slide\n" + "".join(f"q{s},{s},{s}\n" for s in range(1, 11_500)))
    result = weft("place", file, "--rate", 1, "--nodes", 2)
    assert result.exit_code == 1
    assert "11,499 windows with different edges are too many" in result.stderr
