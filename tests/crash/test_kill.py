"""A process that is really killed loses nothing and repeats nothing; `test_crash` goes through all
failpoints."""

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
from tests.crash.child import open_weft, plan_of, register
from tests.oracle import compare, model, rows
from tests.oracle.plain_spark import write_batches
from tests.support.harness import session
from tests.support.stored import stored_rows

from weft.optimizer.joinagg.plans import plan_name

pytestmark = pytest.mark.crash

ALL = [*workload.QUERIES, *workload.ROW_QUERIES, *workload.AGGREGATION_JOINS]
#: Where a process is killed, before another one is killed at any moment.
KILLS = ("after_staged:1", "before_commit:2")


def run_child(folder: Path, early: str, kill_at: str) -> int:
    """Run the workload in a process; its exit code (-9 if it was killed)."""
    with start_child(folder, early, kill_at) as child:
        output, _ = child.communicate(timeout=200)
    assert "ready" in output
    return child.returncode


def start_child(folder: Path, early: str, kill_at: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.crash.child", str(folder)],
        env={**os.environ, "WEFT_KILL_AT": kill_at, "CHILD_EARLY": early},
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def write_input(folder: Path) -> None:
    """Batches as files, in the order of their names and times."""
    write_batches(folder / "input", workload.SCHEMA, workload.batches())


def expected(name: str) -> list[tuple[int, tuple[object, ...]]]:
    if name in workload.AGGREGATION_JOINS:
        return workload.met()
    if name in workload.ROW_SPECS:
        spec = workload.ROW_SPECS[name]
        return rows.run(spec, workload.SCHEMA, workload.batches(), workload.DELAY)
    spec = workload.SPECS[name]
    return model.run(spec, workload.SCHEMA, workload.batches(), workload.DELAY)


def assert_complete(spark: SparkSession, folder: Path, early: str) -> None:
    """Run on to the end in this process; all results are there, each once."""
    w = open_weft(session(spark), folder, early=plan_of(early))
    register(w, ALL)
    assert f"aggregation join met: plan {plan_name(plan_of(early))}" in str(w.explain())
    w.start(availableNow=True).awaitTermination()
    for name in ALL:
        found = [(0, row) for row in stored_rows(w, name)]
        compare.assert_same(found, expected(name), batch_ids=False)
        assert found


def test_kills(spark: SparkSession, tmp_path: Path, chance: random.Random) -> None:
    """At a failpoint, and at a random moment of a process that goes on from there. The aggregation join has any of its plans."""
    write_input(tmp_path)
    failpoint, early = chance.choice(KILLS), chance.choice(["00", "01", "10", "11"])
    assert run_child(tmp_path, early, kill_at=failpoint) == -signal.SIGKILL, failpoint
    with start_child(tmp_path, early) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 2))
        child.kill()
    assert child.returncode == -signal.SIGKILL, "it had ended before"
    assert_complete(spark, tmp_path, early)
