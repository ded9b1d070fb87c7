"""A driver with real executors, some of which are killed in the middle of a batch.

Called as `python -m tests.cluster.child FOLDER`. The first task of windows, and the first of joins, does its
work, and kills its executor before it can say so. Prints what happened as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.support import steady
from tests.support.quick import cluster_settings

import weft.runtime.network.lanes.computing
import weft.runtime.windows.lanes
from weft.runtime.tasks import Output, run_tasks

BATCHES = 2
Function = Callable[[str, int], Iterable[Output]]


def deadly(function: Function, marker: str) -> Function:
    """A function that kills its executor the first time, after its work is done."""

    def run(payload: str, number: int) -> Iterable[Output]:
        outputs = list(function(payload, number))
        if number == 0 and not os.path.exists(marker):
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
            executor = int(daemon.rpartition(")")[2].split()[1])
            command = Path(f"/proc/{executor}/cmdline").read_text()
            assert "CoarseGrainedExecutorBackend" in command, command[:300]
            Path(marker).write_text(str(executor))
            os.kill(executor, signal.SIGKILL)
            time.sleep(60)
        return outputs

    return run


def with_kills(module: Any, marker: Path) -> None:
    """Let the tasks of a module kill an executor."""

    def run(spark: Any, function: Function, *arguments: Any) -> list[Output]:
        return run_tasks(spark, deadly(function, str(marker)), *arguments)

    module.run_tasks = run


def main() -> None:
    folder = Path(sys.argv[1])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = cluster_settings() | {"spark.master": "local-cluster[2,1,1024]"}
    spark = SparkSession.builder.config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with_kills(weft.runtime.windows.lanes, folder / "killed-windows")
    with_kills(weft.runtime.network.lanes.computing, folder / "killed-joins")
    began = time.monotonic()
    w = steady.opened(spark, folder / "input", str(folder / "checkpoint"), kernel="lanes")
    run = w.start(availableNow=True)
    started = time.monotonic()
    run.awaitTermination()
    ended = time.monotonic()
    print(
        json.dumps(
            {
                "equal": steady.results(w) == steady.expected(BATCHES),
                "rows": {name: sum(rows.values()) for name, rows in steady.results(w).items()},
                "killed": sorted(path.read_text() for path in folder.glob("killed-*")),
                "where": sorted({progress["where"] for progress in run.recentProgress}),
                "start_seconds": started - began,
                "run_seconds": ended - started,
            }
        )
    )
    spark.stop()


if __name__ == "__main__":
    main()
