"""A project that another process runs: queries come and go, and it is not disturbed."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.cli.support import PER_MINUTE, project, quick_yaml, weft
from tests.support.input_files import put_file

from weft.cli.project import registration

PATIENCE = 150
START = 1_704_067_200_000_000
MINUTE = 60_000_000


class Elsewhere:
    """A `weft run` in a process of its own, and the steps it reports."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "weft.cli.main", "run", str(folder), "--json"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)

    def step(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next step that is wanted."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                step = json.loads(self._lines.get(timeout=1))
            except queue.Empty:
                assert self._process.poll() is None, self.errors()
                continue
            if wanted(step):
                return step
        raise AssertionError("the step did not come")

    def interrupt(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(PATIENCE)

    def errors(self) -> str:
        assert self._process.stderr is not None
        return self._process.stderr.read()

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None and self._process.stderr is not None
        self._process.stdout.close()
        self._process.stderr.close()


def put_minutes(folder: Path, first: int, minutes: int) -> None:
    """A file with two bids on each of two auctions in every minute."""
    times = [START + (first + m) * MINUTE + s for m in range(minutes) for s in range(4)]
    rows = pa.table(
        {
            "auction": pa.array([1 + n % 2 for n in range(len(times))], pa.int64()),
            "price": pa.array(range(len(times)), pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
        }
    )
    put_file(rows, folder / "data", first)


def put_until(
    folder: Path, elsewhere: Elsewhere, first: int, wanted: Callable[[dict[str, Any]], bool]
) -> int:
    """Put minute after minute until a step is wanted; the minute that comes next. A change takes effect
    when the run has looked at the catalog, which it does about twice a second."""
    for minute in range(first, first + PATIENCE):
        put_minutes(folder, minute, 1)
        if wanted(elsewhere.step(lambda step: step["rows"] == 4)):
            return minute + 1
    raise AssertionError("the step did not come")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Path, Elsewhere]]:
    folder = project(tmp_path, quick_yaml() + "trigger: 200 milliseconds\n", first=PER_MINUTE)
    put_minutes(folder, 0, 5)
    elsewhere = Elsewhere(folder)
    try:
        yield folder, elsewhere
    finally:
        elsewhere.end()


@pytest.mark.slow
def test_queries_come_and_go_while_another_process_runs(
    running: tuple[Path, Elsewhere],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, elsewhere = running
    elsewhere.step(lambda step: step["rows"] == 20)

    (folder / "queries" / "never.sql").write_text(PER_MINUTE)
    refused = weft("run", folder, "--available-now")
    assert refused.exit_code == 1
    assert "[ALREADY_RUNNING] this checkpoint is in use by process" in refused.stderr
    listed = json.loads(weft("list", folder, "--json").stdout)
    assert {row["name"]: row["status"] for row in listed} == {"first": "active", "never": "new"}
    assert weft("drop", folder, "never").exit_code == 0

    with monkeypatch.context() as without_spark:
        without_spark.setattr(registration, "watched_session", None)
        extra = tmp_path / "extra.sql"
        extra.write_text("SELECT MAX(price) AS p FROM bids GROUP BY window(ts, '2 minutes')")
        assert weft("register", folder, "extra", extra).exit_code == 0
    minute = put_until(folder, elsewhere, 5, lambda step: step["queries"] == 2)
    put_minutes(folder, minute, 20)
    elsewhere.step(lambda step: step["rows"] == 80)
    put_minutes(folder, minute + 20, 1)
    elsewhere.step(lambda step: step["rows"] == 4)

    first = json.loads(weft("results", folder, "first", "--json").stdout)
    assert len(first) >= 2 * 20
    assert {row["n"] for row in first} == {2}
    found = json.loads(weft("results", folder, "extra", "--json").stdout)
    assert len(found) >= 5
    statuses = json.loads(weft("list", folder, "--json").stdout)
    assert {row["name"]: row["status"] for row in statuses} == {
        "first": "active",
        "extra": "active",
    }

    assert weft("drop", folder, "first").exit_code == 0
    put_until(folder, elsewhere, minute + 21, lambda step: step["queries"] == 1)
    assert not (folder / "queries" / "first.sql").exists()
    assert weft("results", folder, "first").exit_code == 1
    assert elsewhere.interrupt() == 0, elsewhere.errors()
    assert elsewhere.errors() == ""
