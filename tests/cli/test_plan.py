"""`weft plan`: the JSON of the contract, and an answer in words for every bad input."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.cli.support import weft

from weft.optimizer.windows.optimizers import OPTIMIZERS

EXAMPLE = "name,range,slide\nqa,8,5\nqb,5,4\nqc,10,1\nqd,5,4\n"


def plan(tmp_path: Path, text: str, *options: object) -> dict[str, Any]:
    file = tmp_path / "windows.csv"
    file.write_text(text)
    result = weft("plan", file, "--json", *options)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("model", ["twoops", "triops"])
def test_the_json_has_the_shape_of_the_contract(tmp_path: Path, name: str, model: str) -> None:
    found = plan(tmp_path, EXAMPLE, "--rate", 10, "--optimizer", name, "--model", model)
    assert (found["optimizer"], found["model"], found["rate"]) == (name, model, 10)
    assert found["edge_rate"] == 1 and found["exact"] is True and found["seconds"] >= 0
    queries = [query for group in found["groups"] for query in group["queries"]]
    assert sorted(queries) == ["qa", "qb", "qc", "qd"]
    final = sum(group["edge_rate"] * group["overlap"] for group in found["groups"])
    count = len(found["groups"])
    levels = 10 + count * found["edge_rate"] if model == "triops" else count * 10
    assert found["cost"] == pytest.approx(levels + final)
    assert ("gap" in found) == ("lower_bound" in found) == (name == "best")


def test_shared_and_noshare_are_the_two_ends(tmp_path: Path) -> None:
    shared = plan(tmp_path, EXAMPLE, "--rate", 10, "--optimizer", "shared")
    assert [group["queries"] for group in shared["groups"]] == [["qa", "qb", "qc", "qd"]]
    assert shared["cost"] == pytest.approx(10 + 8 / 5 + 5 / 4 + 10 + 5 / 4)
    noshare = plan(tmp_path, EXAMPLE, "--rate", 10, "--optimizer", "noshare")
    assert sorted(len(group["queries"]) for group in noshare["groups"]) == [1, 1, 2]


def test_without_a_model_each_optimizer_takes_its_own(tmp_path: Path) -> None:
    models = {
        name: plan(tmp_path, EXAMPLE, "--rate", 10, "--optimizer", name)["model"]
        for name in OPTIMIZERS
    }
    assert models["weaveshare"] == models["shared"] == "twoops"
    assert models["triweave"] == "triops"


def test_decimals_starts_and_extra_columns_are_read(tmp_path: Path) -> None:
    text = "team, slide ,name,range,start\nx,0.5,a,1.5,0.25\ny,2,b,4,0\nz,1e1,c,2e1,-1\n"
    found = plan(tmp_path, text, "--rate", "0.5", "--optimizer", "noshare")
    rates = {group["queries"][0]: group["edge_rate"] for group in found["groups"]}
    assert rates == {"a": 2, "b": 0.5, "c": 0.1}
    # No two of them ever meet: quarters, even numbers, 9 modulo 10.
    assert found["edge_rate"] == pytest.approx(2 + 0.5 + 0.1)


def test_decimals_give_the_plan_of_the_same_windows_in_whole_numbers(tmp_path: Path) -> None:
    seconds = plan(tmp_path, "name,range,slide\na,1.5,0.5\nb,2,0.4\n", "--rate", 100)
    millis = plan(tmp_path, "name,range,slide\na,1500,500\nb,2000,400\n", "--rate", "0.1")
    assert seconds["cost"] == pytest.approx(millis["cost"] * 1000)
    assert [g["queries"] for g in seconds["groups"]] == [g["queries"] for g in millis["groups"]]


def test_a_byte_order_mark_quotes_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    text = '\ufeffname,range,slide\r\n"a, b",10,5\r\n\r\nc,3,3\r\n'
    found = plan(tmp_path, text, "--rate", 1, "--optimizer", "noshare")
    assert sorted(group["queries"][0] for group in found["groups"]) == ["a, b", "c"]


def test_the_table_names_groups_cost_and_bound(tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text(EXAMPLE)
    result = weft("plan", file, "--rate", 10)
    assert result.exit_code == 0
    assert "best" in result.stdout and "qa" in result.stdout
    assert "No grouping costs less." in result.stdout
    assert "4 queries in" in result.stdout


def test_estimated_rates_are_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.optimizer.edges.edges._counted", _out_of_steps)
    monkeypatch.setattr("weft.optimizer.edges.edges.LARGEST_PERIOD", 1)
    rows = "".join(f"q{s},{3 * s + 1},{s}\n" for s in range(101, 131))
    text = "name,range,slide\n" + rows
    found = plan(tmp_path, text, "--rate", 10, "--optimizer", "shared")
    assert found["exact"] is False
    assert 0 < found["edge_rate_error"] <= 0.0051 and 0 < found["error"] <= 0.0051
    assert found["confidence"] == pytest.approx(0.99)
    result = weft("plan", tmp_path / "windows.csv", "--rate", 10, "--optimizer", "shared")
    assert "estimated" in result.stdout


def _out_of_steps(*_: object) -> None:
    from weft.optimizer.edges.edge_counting import OutOfSteps

    raise OutOfSteps


BAD = {
    "": (1, "[BAD_TABLE] the file is empty"),
    "\n\n  \n": (1, "the file is empty"),
    "name,range,slide\n": (1, "there is no query below the header"),
    "name,range\na,1\n": (1, "no column slide"),
    "a,10,5\nb,3,1\n": (1, "no column name, range, slide"),
    "name,range,slide,slide\na,1,1,1\n": (1, "two columns slide"),
    "name,range,slide\na,10,0\n": (2, "slide 0 must be positive"),
    "name,range,slide\na,-10,5\n": (2, "range -10 must be positive"),
    "name,range,slide\nok,1,1\na,nan,5\n": (3, "range 'nan' is not a number"),
    "name,range,slide\na,inf,5\n": (2, "range 'inf' is not a number"),
    "name,range,slide\na,,5\n": (2, "range '' is not a number"),
    "name,range,slide\na,ten,5\n": (2, "range 'ten' is not a number"),
    "name,range,slide\na,1_0,5\n": (2, "range '1_0' is not a number"),
    "name,range,slide\na,٣,5\n": (2, "range '٣' is not a number"),
    "name,range,slide\na,10,5\na,20,5\n": (3, "a query named 'a' exists already"),
    "name,range,slide\n,10,5\n": (2, "the name is empty"),
    "name,range,slide\na,10\n": (2, "2 values under 3 columns"),
    "name,range,slide\na,10,5,7\n": (2, "4 values under 3 columns"),
    "name,range,slide\na,1e30,5\n": (2, "range 1e30 is too large"),
    "name,range,slide\na,9223372036854775807,5\n": (2, "is too large"),
    "name,range,slide\na,99999999999999999999999999999999,5\n": (2, "is too large"),
    "name,range,slide\na,1e18,0.001\n": (2, "is too large, counted in steps of 1e-3"),
    "name,range,slide\na,1,1e-300\n": (2, "more than 12 decimal places"),
    "name,range,slide\na,1,0.0000000000001\n": (2, "more than 12 decimal places"),
    "name,range,slide,start\na,10,5,5\n": (2, "must be shorter than the slide"),
    'name,range,slide\n"a,10,5\n': (2, "unexpected end of data"),
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_are_told_with_line_and_place(tmp_path: Path, text: str) -> None:
    line, message = BAD[text]
    file = tmp_path / "windows.csv"
    file.write_text(text)
    result = weft("plan", file, "--rate", 1, "--json")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"{file}:{line}:"), result.stderr
    assert message in result.stderr


def test_the_place_is_that_of_the_value(tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text("name,range,slide\nlong_name,10,zero\n")
    result = weft("plan", file, "--rate", 1)
    assert result.stderr.startswith(f"{file}:2:14: [BAD_WINDOW] query 'long_name': slide 'zero'")


def test_every_bad_value_is_told_up_to_twenty(tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text("name,range,slide\n" + "".join(f"q{i},0,-1\n" for i in range(50)))
    lines = weft("plan", file, "--rate", 1).stderr.splitlines()
    assert len(lines) == 21
    assert "and 80 more problems" in lines[-1]


def test_what_is_no_file_of_text_is_told(tmp_path: Path) -> None:
    missing = weft("plan", tmp_path / "none.csv", "--rate", 1)
    assert missing.exit_code == 1 and "there is no such file" in missing.stderr
    folder = weft("plan", tmp_path, "--rate", 1)
    assert folder.exit_code == 1 and "this is a folder" in folder.stderr
    (tmp_path / "binary.csv").write_bytes(b"\x89PNG\r\n\xff\xfe\x00")
    binary = weft("plan", tmp_path / "binary.csv", "--rate", 1)
    assert binary.exit_code == 1 and "not UTF-8 text" in binary.stderr
    (tmp_path / "nul.csv").write_bytes(b"name,range,slide\na\x00,10,5\n")
    assert weft("plan", tmp_path / "nul.csv", "--rate", 1).exit_code in (0, 1)


@pytest.mark.parametrize("rate", ["0", "-1", "nan", "inf", "-inf", "ten", "", "1e400", "1e19"])
def test_bad_rates_are_refused(tmp_path: Path, rate: str) -> None:
    file = tmp_path / "windows.csv"
    file.write_text(EXAMPLE)
    result = weft("plan", file, f"--rate={rate}")
    assert result.exit_code == 2
    assert "rate" in result.stderr


@pytest.mark.parametrize("option", ["--optimizer=magic", "--model=fourops"])
def test_unknown_names_are_refused_with_the_known_ones(tmp_path: Path, option: str) -> None:
    file = tmp_path / "windows.csv"
    file.write_text(EXAMPLE)
    result = weft("plan", file, "--rate", 1, option)
    assert result.exit_code == 2
    said = " ".join(result.stderr.replace("│", " ").split())
    assert "the optimizers are noshare" in said or "the models are twoops" in said


def test_very_large_and_very_small_numbers_give_finite_costs(tmp_path: Path) -> None:
    text = "name,range,slide\na,1000000000000000000,1000000000000000000\nb,1,1\nc,0.001,0.001\n"
    found = plan(tmp_path, text.replace("1000000000000000000", "100000000000000"), "--rate", "1e18")
    assert math.isfinite(found["cost"])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_too_many_different_windows_are_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / "windows.csv"
    rows = "".join(f"q{s},{s},{s}\n" for s in range(1, 11_500))
    file.write_text("name,range,slide\n" + rows)
    result = weft("plan", file, "--rate", 1, "--optimizer", name)
    assert result.exit_code == 1
    assert "11,499 windows with different edges are too many" in result.stderr


def test_two_thousand_coprime_slides_are_planned(tmp_path: Path) -> None:
    from weft.workloads.sharing import coprime_slides

    rows = "".join(f"q{p},{3 * p},{p}\n" for p in coprime_slides(2000))
    text = "name,range,slide\n" + rows
    found = plan(tmp_path, text, "--rate", 100, "--optimizer", "triweave")
    assert found["exact"] is True and len(found["groups"]) > 1


@pytest.mark.parametrize("rate", ["1e19", "1e999999999", "1e-999999999", "nan", "inf", "0", "-1"])
def test_a_rate_out_of_bounds_is_refused_at_once(tmp_path: Path, rate: str) -> None:
    file = tmp_path / "windows.csv"
    file.write_text(EXAMPLE)
    result = weft("plan", file, "--rate", rate)
    assert result.exit_code == 2
    assert "rate" in result.stderr


def test_digits_beyond_what_is_kept_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text("name,range,slide\na,1.0000000000000000000000000000001,1\n")
    result = weft("plan", file, "--rate", 10)
    assert result.exit_code == 1
    assert "decimal places" in result.stderr
