"""`weft run` for people: what it says when, what Ctrl-C does, which code it ends with."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console
from tests.cli.support import (
    PER_MINUTE,
    YAML,
    command,
    on_terminal,
    project,
    put_bids,
    quick_yaml,
    weft,
)

from weft.cli.run.progress import Lines, LiveTable
from weft.cli.run.running import end_at_once, follow
from weft.cli.stopping import ENDED_AT_ONCE, ENDING, stop_signal

DIVIDES = "SELECT SUM(price DIV (auction - 1)) AS n FROM bids GROUP BY window(ts, '1 minute')"


class StubRun:
    """A run whose step under way ends only when `stop` is asked for."""

    def __init__(self, interrupted: bool = False) -> None:
        self.stops = 0
        self.recentProgress: list[dict[str, Any]] = []
        self._interrupted = interrupted

    def awaitTermination(self, timeout: float) -> bool:
        time.sleep(0.01)
        return False

    def stop(self) -> None:
        self.stops += 1
        if self._interrupted:
            raise KeyboardInterrupt


def asked_to_stop() -> threading.Event:
    stopping = threading.Event()
    stopping.set()
    return stopping


def test_after_ctrl_c_a_pipe_is_told_how_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    running = StubRun()
    follow(running, Lines(), asked_to_stop())
    assert running.stops == 1
    assert capsys.readouterr().err.splitlines() == [ENDING]
    assert "Ctrl-C once more ends at once" in ENDING


def test_after_ctrl_c_a_terminal_is_told_how_it_ends() -> None:
    screen = io.StringIO()
    shown = LiveTable("weft tests", Console(file=screen, width=80, force_terminal=True))
    follow(StubRun(), shown, asked_to_stop())
    assert ENDING in screen.getvalue()


def test_a_second_ctrl_c_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    running = StubRun(interrupted=True)
    with pytest.raises(KeyboardInterrupt):
        follow(running, Lines(), asked_to_stop())
    assert running.stops == 1
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    end_at_once()
    assert codes == [130]
    assert capsys.readouterr().err.splitlines() == [ENDING, ENDED_AT_ONCE]


def test_the_first_signal_asks_and_the_second_interrupts() -> None:
    with stop_signal() as asked:
        signal.raise_signal(signal.SIGINT)
        assert asked.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("stage", ["loading …", "starting Spark …"])
def test_ctrl_c_in_the_first_seconds_leaves_no_traceback(tmp_path: Path, stage: str) -> None:
    process = subprocess.Popen(
        command("run", project(tmp_path, quick_yaml(), hot=PER_MINUTE)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        assert process.stderr is not None and process.stdout is not None
        while process.stderr.readline().strip() != stage:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        printed, told = process.communicate(timeout=120)
    assert process.returncode == 130
    assert printed == ""
    assert told.splitlines()[-1] == "interrupted"
    assert "Traceback" not in told


def test_importing_the_command_takes_nothing_of_spark() -> None:
    script = "import sys, weft.cli.commands; print([m for m in sys.modules if 'pyspark' in m])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout == "[]\n", found.stderr


def test_a_quarantined_query_is_named_and_makes_the_code_3(
    tmp_path: Path, spark: SparkSession
) -> None:
    folder = project(tmp_path, hot=PER_MINUTE, divides=DIVIDES)
    put_bids(folder)
    result = weft("run", folder, "--available-now")
    assert result.exit_code == 3, result.output
    # PySpark's log is there, too: only a session of the command's own switches it off.
    told = [line for line in result.stderr.splitlines() if "quarantined: " in line]
    assert len(told) == 2
    assert told[0].startswith("divides is quarantined: ")
    assert "DIVIDE_BY_ZERO" in told[0]
    assert told[1].startswith("1 query is quarantined: ")
    assert "9 results" in result.stdout, "the other query went on"
    again = weft("run", folder, "--available-now", "--keep-going")
    assert again.exit_code == 0
    assert "divides is quarantined: " in again.stderr
    (folder / "queries" / "divides.sql").unlink()
    assert weft("run", folder, "--available-now").exit_code == 0


def test_a_format_that_spark_does_not_know_is_told_at_its_place(
    tmp_path: Path, spark: SparkSession
) -> None:
    yaml = YAML.replace("format: parquet", "format: parqet")
    yaml += "tables:\n  people:\n    path: people\n    format: jsn\n"
    result = weft("check", project(tmp_path, yaml, hot=PER_MINUTE))
    assert result.exit_code == 1
    stream, table = result.stdout.splitlines()
    assert stream.startswith(
        "weft.yaml:4:5: [PROJECT] Spark cannot open 'bids': there is no format 'parqet' "
        "(did you mean 'parquet'?). Spark comes with csv, json, orc, parquet"
    )
    assert table.startswith(
        "weft.yaml:12:5: [PROJECT] Spark cannot open 'people': there is no format 'jsn'"
    )


@pytest.mark.slow
def test_spark_logs_nothing_beside_a_message_unless_it_is_asked_to(tmp_path: Path) -> None:
    refused = "SELECT SUM(ARRAY(price)) AS n FROM bids GROUP BY window(ts, '1 minute')"
    folder = project(tmp_path, quick_yaml(), refused=refused, hot=PER_MINUTE)
    quiet = subprocess.run(command("check", folder), capture_output=True, text=True)
    assert quiet.returncode == 1
    assert quiet.stderr == ""
    (line,) = quiet.stdout.splitlines()
    assert line.startswith("queries/refused.sql:1:8: [TYPE_MISMATCH]")
    verbose = subprocess.run(command("check", folder, "--verbose"), capture_output=True, text=True)
    assert verbose.stdout == quiet.stdout
    assert "log4j" in verbose.stderr


@pytest.mark.slow
def test_a_terminal_of_80_columns_sees_every_stage(tmp_path: Path) -> None:
    folder = project(tmp_path, quick_yaml(), hot=PER_MINUTE)
    put_bids(folder)
    shown = on_terminal("run", folder, "--available-now")
    stages = (
        "loading",
        "starting Spark",
        "opening the checkpoint",
        "registering and planning 1 query",
    )
    places = [shown.index(f"{stage} …") for stage in stages]
    assert places == sorted(places)
    assert "bids: batch 0 took" in shown
    assert "so far 15 rows" in shown
