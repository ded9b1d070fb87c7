"""Executors that are killed in the middle of a batch: what they did is done again, and is there once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.child import BATCHES
from tests.support import steady

pytestmark = [pytest.mark.slow, pytest.mark.crash]


def test_killed_executors_change_no_result(tmp_path: Path) -> None:
    """Windows and joins run in tasks on two executor processes. One is killed after a task of windows has
    written its results, and one after a task of joins, both before the driver hears of it."""
    steady.write_input(tmp_path / "input", BATCHES)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.cluster.child", str(tmp_path)],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    outcome = json.loads(ended.stdout.splitlines()[-1])
    assert outcome["equal"], outcome
    assert len(set(outcome["killed"])) == 2 and outcome["where"] == ["lanes"]
    assert all(outcome["rows"].values()), "a query without results shows nothing"
