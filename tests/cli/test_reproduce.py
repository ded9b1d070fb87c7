"""`weft reproduce` writes plots, data and claims, and says what there is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.support import weft


def test_a_figure_is_written_as_plots_data_and_claims(tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    result = weft("reproduce", "triops/fig10", "--quick", "--out", out)
    assert result.exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "claims.md",
        "fig10.json",
        "fig10.png",
        "fig10.svg",
    ]
    assert (out / "fig10.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "fig10.svg").read_text().startswith("<svg")
    assert json.loads((out / "fig10.json").read_text())["figure"] == "fig10"
    assert "65 %" in (out / "claims.md").read_text()
    assert "65 %" in result.stdout
    assert "4 of 4: done" in result.stderr


def test_json_is_all_that_standard_output_has(tmp_path: Path) -> None:
    result = weft("reproduce", "triops", "--quick", "--json", "--out", tmp_path)
    printed = json.loads(result.stdout)
    assert list(printed["figures"]) == ["fig10", "fig11", "fig12", "fig13"]
    for figure, data in printed["figures"].items():
        assert json.loads((tmp_path / f"{figure}.json").read_text()) == data
    assert {"claim", "paper", "ours", "verdict", "reason"} == set(printed["claims"][0])


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("nosuch", ["nosuch", "triops"]),
        ("triops/fig9", ["fig9", "triops/fig10", "triops/fig13"]),
        ("triops/", ["triops/fig10"]),
    ],
)
def test_what_is_not_there_is_an_error_that_names_what_is(
    what: str, names: list[str], tmp_path: Path
) -> None:
    result = weft("reproduce", what, "--out", tmp_path / "out")
    assert result.exit_code == 2
    said = " ".join(result.stderr.replace("│", " ").split())
    assert all(name in said for name in names)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = weft("reproduce", "triops", "--quick", "--out", tmp_path / "file" / "out")
    assert result.exit_code == 1
    assert "cannot write" in result.stderr
