"""A process killed at any moment loses nothing and repeats nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import open_weft, register
from tests.oracle import compare, model, rows
from tests.oracle.plain_spark import python_rows, write_batches
from tests.support.harness import session

pytestmark = pytest.mark.crash

#: In this order, each process is killed at the next place. A batch is run by the stream's own
#: loom, then by that of its row windows; after a kill between them, by the second alone.
PLACES = [
    "after_plan:1",  # the stream's, on the first batch
    "after_intent:1",
    "after_read:1",
    "after_commit:1",
    "after_published:1",  # that of the row windows, on the first batch
    "after_cleanup:2",  # the stream's, on the second batch
    "after_results:1",  # that of the row windows, on the second batch
    "before_commit:3",  # the same, on the third
]
#: Without row windows a batch is finished beside the next one. The process that ends leaves a batch
#: staged, or staged and the next one begun, or the next one's fragments written.
OVERLAPPING = [
    "after_staged:1",  # of the first batch
    "after_read:1",  # of the second; the first is finished before, from what was staged
    "before_commit:2",  # of the third, beside the fourth
    "after_staged:2",
    "after_commit:1",  # of the one that was staged
    "after_cleanup:2",
]
ALL = [*workload.QUERIES, *workload.ROW_QUERIES]


def run_child(folder: Path, *names: str, kill_at: str = "") -> int:
    """Run the workload in a process; its exit code (-9 if it was killed)."""
    with start_child(folder, *names, kill_at=kill_at) as child:
        output, _ = child.communicate(timeout=200)
    assert "ready" in output
    return child.returncode


def start_child(folder: Path, *names: str, kill_at: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.crash.child", str(folder), *names],
        env={**os.environ, "WEFT_KILL_AT": kill_at},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def write_input(folder: Path, first: int = 0, last: int = workload.BATCHES) -> None:
    """Batches as files, in the order of their names and times."""
    batches = workload.batches()
    whole = folder / f"made-{first}"
    write_batches(whole, workload.SCHEMA, batches)
    (folder / "input").mkdir(exist_ok=True)
    for path in sorted(whole.iterdir())[first:last]:
        path.rename(folder / "input" / path.name)


def expected(name: str) -> list[tuple[int, tuple[object, ...]]]:
    if name in workload.ROW_SPECS:
        spec = workload.ROW_SPECS[name]
        return rows.run(spec, workload.SCHEMA, workload.batches(), workload.DELAY)
    spec = workload.SPECS[name]
    return model.run(spec, workload.SCHEMA, workload.batches(), workload.DELAY)


def assert_complete(spark: SparkSession, folder: Path, names: list[str] = ALL) -> None:
    """Run on to the end in this process; all results are there, each once."""
    w = open_weft(session(spark), folder)
    register(w, names)
    w.start(availableNow=True).awaitTermination()
    for name in names:
        found = [(0, row) for row in python_rows(w.results(name).toArrow())]
        compare.assert_same(found, expected(name), batch_ids=False)
        assert found


def test_kills_at_each_step_of_the_protocol(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path)
    for place in PLACES:
        assert run_child(tmp_path, kill_at=place) == -signal.SIGKILL, place
    assert_complete(spark, tmp_path)


def test_kills_of_steps_that_overlap(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path)
    names = list(workload.QUERIES)
    left = False
    for place in OVERLAPPING:
        assert run_child(tmp_path, *names, kill_at=place) == -signal.SIGKILL, place
        left |= any((tmp_path / "checkpoint" / "streams" / "s" / "staged").glob("*.json"))
    assert left
    assert_complete(spark, tmp_path, names)
    assert not any((tmp_path / "checkpoint" / "streams" / "s" / "staged").iterdir())


def test_a_staged_batch_is_finished_without_new_data(spark: SparkSession, tmp_path: Path) -> None:
    """Also by a run that would go on for ever."""
    write_input(tmp_path, last=1)
    names = list(workload.QUERIES)
    assert run_child(tmp_path, *names, kill_at="after_staged:1") == -signal.SIGKILL
    w = open_weft(session(spark), tmp_path)
    register(w, names)
    run = w.start()
    try:
        run.processAllAvailable()
        assert w.counted("s")["rows"] == len(workload.batches()[0])
    finally:
        run.stop()


def test_kills_at_random_moments(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path)
    chance = random.Random(11)
    killed = 0
    for _ in range(3):
        child = start_child(tmp_path)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.5, 4))
        killed += child.poll() is None
        child.kill()
        child.wait()
        child.stdout.close()
    assert killed
    assert_complete(spark, tmp_path)


def test_queries_registered_and_dropped_around_a_kill(spark: SparkSession, tmp_path: Path) -> None:
    """`spread` is dropped and `extremes` registered after two batches, then comes a kill."""
    write_input(tmp_path, last=2)
    first = ["counts", "sums", "spread"]
    assert run_child(tmp_path, *first) == 0
    write_input(tmp_path, first=2)
    then = ["counts", "sums", "extremes"]
    assert run_child(tmp_path, *then, kill_at="after_results:3") == -signal.SIGKILL
    w = open_weft(session(spark), tmp_path)
    register(w, then)
    w.start(availableNow=True).awaitTermination()
    # The run that ended after two batches flushed: later rows may be late for it.
    marks = model.watermarks(workload.batches(), workload.DELAY)
    extremes = w.query("extremes")
    assert extremes.complete_from is not None
    found = python_rows(w.results("extremes").toArrow())
    whole = [row for _, row in expected("extremes")]
    assert found
    for row in found:
        assert row[1] >= extremes.complete_from
        assert row[1] + workload.SPECS["extremes"].window.range <= marks[-1]
    wanted = [(0, row) for row in whole if row[1] >= extremes.complete_from]
    compare.assert_same([(0, row) for row in found], wanted, batch_ids=False)
    with pytest.raises(Exception, match="UNKNOWN_QUERY"):
        w.results("spread")
