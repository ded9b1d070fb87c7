"""What the shell is offered after TAB."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.support import PER_MINUTE, project
from typer.testing import CliRunner

from weft.cli.commands import COMMANDS, app


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a project in it, one deeper, and one that is none."""
    project(tmp_path / "auctions", hot=PER_MINUTE, many=f"-- name: cold\n{PER_MINUTE};")
    project(tmp_path / "deep" / "inner")
    (tmp_path / ".hidden").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complete(*words: str) -> list[str]:
    """What bash gets for the last word."""
    line = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    environment = {"_WEFT_COMPLETE": "complete_bash", **line}
    return CliRunner().invoke(app, [], env=environment, prog_name="weft").stdout.split()


def test_commands(offered: Path) -> None:
    assert complete("weft", "re") == [name for name in COMMANDS if name.startswith("re")]
    assert complete("weft", "ru") == ["run"]


def test_options(offered: Path) -> None:
    assert complete("weft", "run", "auctions", "--ke") == ["--keep-going"]


def test_project_folders_and_those_on_the_way(offered: Path) -> None:
    assert complete("weft", "run", "a") == ["auctions"]
    assert complete("weft", "check", "d") == ["deep/"]
    assert complete("weft", "explain", "deep/") == ["deep/inner"]
    assert complete("weft", "list", "nothing/") == []


def test_names_of_queries_in_files(offered: Path) -> None:
    assert complete("weft", "results", "auctions", "h") == ["hot"]
    assert complete("weft", "drop", "auctions", "c") == ["cold"]
    assert complete("weft", "explain", "auctions", "--query", "") == ["cold", "hot"]
    assert complete("weft", "results", "nowhere", "h") == []


def test_help_tells_how_to_install_it() -> None:
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).stdout
