"""Flink is optional, and its counts are believed only after a check."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.bench.peers import flink
from weft.bench.peers.flink import FlinkUnavailableError, check_counts, flink_folder, install
from weft.workloads.windows import MillisecondWindow

WINDOWS = [MillisecondWindow(2000, 1000), MillisecondWindow(3000, 3000)]


def write(folder: Path, *lines: str) -> None:
    (folder / "part-0-0").write_text("".join(f"{line}\n" for line in lines))
    (folder / ".part-0-1.inprogress").write_text("0,x,1,99,1\n")


def test_every_row_is_in_every_window(tmp_path: Path) -> None:
    write(tmp_path, "0,t0,1,4,9", "0,t1,1,6,9", "1,t0,1,5,9")
    assert check_counts(tmp_path, WINDOWS, rows=5) == 3


def test_lost_rows_are_found(tmp_path: Path) -> None:
    write(tmp_path, "0,t0,1,4,9", "0,t1,1,6,9", "1,t0,1,4,9")
    with pytest.raises(FlinkUnavailableError, match="counts 4 of 5"):
        check_counts(tmp_path, WINDOWS, rows=5)


def test_a_failed_installation_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flink.sys, "executable", "/bin/false")
    with pytest.raises(FlinkUnavailableError, match="apache-flink"):
        install(tmp_path / "environment")
    assert not (tmp_path / "environment").exists()


def test_the_environment_can_be_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_FLINK", "/somewhere")
    assert flink_folder() == Path("/somewhere")
