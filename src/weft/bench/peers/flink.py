"""Flink, optional: ``apache-flink`` in an environment of its own, started as a process.

How its rate is taken. The job runs twice on beginnings of the same events, each time in a new
JVM, and the rate is the difference in rows over the difference in run time, so planning, start-up
and warm-up, which both runs have, fall out. Run time begins when the job is submitted. Flink reads
one file per task, both in time order, since it takes more files in no order and then drops rows as
late without a word; the counts of all its windows are checked.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.bench.measuring.measure import Measurement
from weft.bench.measuring.scratch import fresh
from weft.bench.peers import flink_job
from weft.workloads.stored import StoredStream
from weft.workloads.windows import MillisecondWindow, WindowQuery

PACKAGE = "apache-flink==2.3.0"
ENVIRONMENT_VARIABLE = "WEFT_FLINK"
DEFAULT_FOLDER = ".flink"
PARALLELISM = 2
WATERMARK_SECONDS = 10
SETTINGS = {
    "parallelism.default": str(PARALLELISM),
    "pipeline.object-reuse": "true",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
    "taskmanager.memory.managed.size": "4g",
    "taskmanager.memory.network.min": "1g",
    "taskmanager.memory.network.max": "1g",
}
_TIMEOUT_SECONDS = 1800


class FlinkUnavailableError(Exception):
    """Flink cannot be had or does not run here; the message says why."""


def flink_folder() -> Path:
    """Where Flink's environment is, or will be made."""
    return Path(os.environ.get(ENVIRONMENT_VARIABLE, DEFAULT_FOLDER))


def install(folder: Path) -> Path:
    """The interpreter of Flink's environment, made on demand."""
    interpreter = folder / "bin" / "python"
    if _has_flink(interpreter):
        return interpreter
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(interpreter), "-m", "pip", "install", "--quiet", PACKAGE],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise FlinkUnavailableError(f"installing {PACKAGE} failed: {last}")
    return interpreter


def flink(
    interpreter: Path,
    short: StoredStream,
    long: StoredStream,
    queries: Sequence[WindowQuery],
    work: Path,
) -> Measurement:
    """Run all queries as one statement set on both streams; the rate of the difference."""
    windows = [query.window for query in queries]
    before, _ = _run(interpreter, short, windows, work)
    after, results = _run(interpreter, long, windows, work)
    if after <= before:
        raise FlinkUnavailableError(
            f"{long.rows} rows took {after:.0f} s and {short.rows} rows {before:.0f} s: "
            "start-up outweighs the rows, give more"
        )
    return Measurement(
        name=f"Flink, {len(queries)} sliding windows, CSV",
        rows=long.rows - short.rows,
        seconds=(after - before,),
        note=f"{long.rows:,} rows in {after:.0f} s less {short.rows:,} in {before:.0f} s",
        details={"short": before, "long": after, "results of the long run": results},
    )


def _run(
    interpreter: Path, stream: StoredStream, windows: Sequence[MillisecondWindow], work: Path
) -> tuple[float, int]:
    sink = fresh(work / "flink")
    job: dict[str, Any] = {
        "source": str(stream.folder.absolute()),
        "sink": str(sink.absolute()),
        "watermark": WATERMARK_SECONDS,
        "windows": [(window.range // 1000, window.slide // 1000) for window in windows],
        "settings": SETTINGS,
    }
    try:
        done = subprocess.run(
            [str(interpreter), flink_job.__file__],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise FlinkUnavailableError(f"no end after {_TIMEOUT_SECONDS} s") from None
    if done.returncode:
        raise FlinkUnavailableError(_cause(done.stderr))
    results = check_counts(sink, windows, stream.rows)
    return float(json.loads(done.stdout.splitlines()[-1])["run_seconds"]), results


def check_counts(sink: Path, windows: Sequence[MillisecondWindow], rows: int) -> int:
    """The number of results; refuses them if a row is missing in any window."""
    counted: Counter[int] = Counter()
    results = 0
    for path in sink.iterdir():
        if path.name.startswith("."):
            continue
        with path.open(newline="") as lines:
            for query, _, _, n, _ in csv.reader(lines):
                counted[int(query)] += int(n)
                results += 1
    for number, window in enumerate(windows):
        expected = rows * window.range // window.slide
        if counted[number] != expected:
            raise FlinkUnavailableError(
                f"it lost rows: window {window} counts {counted[number]} of {expected}"
            )
    return results


def _has_flink(interpreter: Path) -> bool:
    if not interpreter.exists():
        return False
    done = subprocess.run([str(interpreter), "-c", "import pyflink"], capture_output=True)
    return done.returncode == 0


def _cause(errors: str) -> str:
    causes = [line for line in errors.splitlines() if line.startswith("Caused by:")]
    lines = causes or errors.strip().splitlines() or ["no message"]
    return lines[-1][:300]
