"""The same command on a terminal of 80 columns, without colours, and in a pipe."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.table import Table
from tests.cli.support import PER_MINUTE, command, on_terminal, project, weft

from weft.catalog.store import Catalog
from weft.cli.commands import COMMANDS
from weft.cli.output import console
from weft.cli.project.folder import load
from weft.cli.stages import Stages
from weft.runtime.checkpoint.identity import open_checkpoint
from weft.runtime.checkpoint.storage import Storage

REASON = (
    "collect_set has no partial form, so the query cannot share fragments with others: it runs as "
    "a plain streaming query of its own, with a scan and a state of its own"
)
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def registered(folder: Path) -> Path:
    """A project with a shared query, a fallback and one that `weft run` has not seen."""
    found = load(project(folder, hot=PER_MINUTE, alone=PER_MINUTE, fresh=PER_MINUTE))
    storage = Storage(found.checkpoint)
    open_checkpoint(storage, found.name, lanes=2)
    catalog = Catalog(f"sqlite:///{storage.path('catalog.db')}")
    hot = catalog.add_query("hot", PER_MINUTE)
    catalog.set_late({hot.change: 1234})
    catalog.set_complete_from({hot.change: 1_704_067_200_000_000})
    catalog.add_query("alone", PER_MINUTE, "fallback", REASON)
    catalog.close()
    return folder


def test_a_list_in_a_pipe_is_cells_between_tabs(tmp_path: Path) -> None:
    lines = weft("list", registered(tmp_path)).stdout.splitlines()
    assert [line.split("\t") for line in lines] == [
        ["query", "status", "late pairs", "complete from", "file", "detail"],
        ["hot", "active", "1,234", "2024-01-01 00:00:00 UTC", "queries/hot.sql", ""],
        ["alone", "fallback", "0", "–", "queries/alone.sql", REASON],
        ["fresh", "new", "0", "–", "queries/fresh.sql", "`weft run` will register it"],
    ]


def test_who_has_read_enough_ends_the_command_without_an_error(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    arguments = command("list", registered(tmp_path), "--json")
    ended = subprocess.run(arguments, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert ended.stderr.strip() == b"" and ended.returncode == 1, ended.stderr


def test_a_list_fits_80_columns_with_every_detail(tmp_path: Path) -> None:
    shown = ESCAPE.sub("", on_terminal("list", registered(tmp_path))).splitlines()
    assert max(map(len, shown)) <= 80
    assert shown[0].split("  ")[0] == "query"
    assert "late pairs" in shown[0]
    (hot,) = [line for line in shown if line.startswith("hot")]
    assert hot.split()[1:3] == ["active", "1,234"]
    place = next(number for number, line in enumerate(shown) if line.startswith("alone"))
    below = [line.strip() for line in shown[place + 1 :] if line.startswith("    ")]
    assert " ".join(below).startswith(REASON)


def test_the_help_says_in_80_columns_what_every_command_does() -> None:
    shown = on_terminal("--help")
    assert max(map(len, shown.splitlines())) <= 80
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert "..." not in shown.split("Commands:")[1]


def test_without_colours_there_are_none(tmp_path: Path) -> None:
    shown = on_terminal("list", registered(tmp_path), NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", shown)
    assert "hot" in shown


def test_commands_that_start_spark_say_so(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[str] = []
    monkeypatch.setattr(Stages, "at", lambda _, stage: stages.append(stage))
    folder = project(tmp_path, hot=PER_MINUTE)
    (tmp_path / "new.sql").write_text(PER_MINUTE)
    for arguments in (("check",), ("explain",), ("register", "new", tmp_path / "new.sql")):
        command, *others = arguments
        result = weft(command, folder, *others)
        assert result.exit_code == 0, result.output
        assert result.stderr == "", "only a terminal is told"
    starting = "starting Spark"
    assert stages[:2] == [starting, "checking 1 query"]
    assert stages[2:] == [starting, "planning 1 query", starting, "registering new"]


def test_results_in_a_pipe_are_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(box=None)
    table.add_column("long", no_wrap=True)
    table.add_row("x" * 1000)
    console().print(table)
    assert "x" * 1000 in capsys.readouterr().out


def test_findings_of_the_doctor_in_a_pipe_are_cells_between_tabs(tmp_path: Path) -> None:
    *findings, verdict = weft("doctor", project(tmp_path), "--no-spark").stdout.splitlines()
    assert all(len(line.split("\t")) == 4 for line in findings)
    assert verdict == "weft can run here"
