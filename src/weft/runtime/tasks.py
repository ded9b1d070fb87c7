"""Python functions in Spark tasks: each gets a payload and its number, and gives a few JSON values.

What tasks read and write are files. Only what the driver must know of them passes through Spark.
`missing_in_workers` says whether the workers could run such a function at all.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft import errors
from weft.errors import RunError

Output = tuple[str, Any]
"""A kind, and a JSON value."""

NEEDED = ("weft", "numpy", "pyarrow", "pandas", "datasketches")
"""The packages that tasks import, apart from pyspark, which comes with Spark."""

PASSED_ON = (
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "WEFT_STORAGE_PATIENCE",
)
"""Variables of the driver's environment that say where storage is (`checkpoint/objects`). Tasks whose own
environment lacks them get them from here. Credentials are not among them."""

_WORKER_LOST = "Python worker exited unexpectedly"
"""Spark's message for a task whose process has ended."""


def run_tasks(
    spark: SparkSession,
    function: Callable[[str, int], Iterable[Output]],
    payload: str,
    tasks: int,
    lost: Callable[[], RunError],
) -> list[Output]:
    """What a function gives in all tasks. `lost` makes the error for a process that has ended, which
    mostly means that it had too little memory."""
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for name, value in environment.items():
            os.environ.setdefault(name, value)
        for batch in batches:
            for row in batch.to_pylist():
                outputs = list(function(row["payload"], row["id"]))
                kinds = pa.array([kind for kind, _ in outputs], pa.string())
                bodies = pa.array([json.dumps(body) for _, body in outputs], pa.string())
                yield pa.RecordBatch.from_arrays([kinds, bodies], ["kind", "body"])

    frame = spark.range(0, tasks, 1, tasks).withColumn("payload", F.lit(payload))
    try:
        rows = frame.mapInArrow(run, "kind string, body string").collect()
    except Exception as error:
        if _WORKER_LOST not in str(error):
            raise
        raise lost() from error
    return [(row["kind"], json.loads(row["body"])) for row in rows]


def task_attempt() -> str:
    """What tells this attempt at a task from all others of the Spark application. It belongs into the names of files
    that a task writes: one that runs twice, because it was lost or slow, then never writes what another
    attempt has written. The files of the attempt whose outputs Spark returns count."""
    context = TaskContext.get()
    return "here" if context is None else f"t{context.taskAttemptId()}"


def lane_totals(
    before: Mapping[str, Any], weights: Sequence[float], seconds: Mapping[int, float]
) -> dict[str, list[float]]:
    """What the metrics of a log say of its lanes: the weight of each, and how long each has taken in all steps.
    `before`: the metrics of the step before. It begins anew if there are other lanes.

    >>> lane_totals({"lane_weights": [1, 1], "lane_seconds": [2.0, 3.0]}, [1, 1], {1: 0.5})
    {'lane_weights': [1, 1], 'lane_seconds': [2.0, 3.5]}
    """
    known = before.get("lane_weights") == list(weights)
    total = before["lane_seconds"] if known else [0.0] * len(weights)
    took = [total[lane] + seconds.get(lane, 0.0) for lane in range(len(weights))]
    return {"lane_weights": list(weights), "lane_seconds": took}


def is_local(spark: SparkSession) -> bool:
    """Whether tasks run in the driver's own process, and their Python beside it."""
    master = str(spark.sparkContext.master)
    return master == "local" or master.startswith("local[")


def missing_in_workers(spark: SparkSession) -> str | None:
    """What the workers' Python lacks to run weft; None if nothing.

    A worker on this machine with this very Python needs no look, another Python on this machine is started
    once and asked, and what it does not have itself may still come by --py-files: only a task can tell. On a
    cluster a task looks.
    """
    if is_local(spark) and _found_here(spark.sparkContext.pythonExec):
        return None
    return _missing_in_tasks(spark)


def _found_here(command: str) -> bool:
    """Whether a Python on this machine finds all that is needed."""
    found = shutil.which(command)
    return found is not None and _finds(os.path.abspath(found))


@lru_cache
def _finds(python: str) -> bool:
    if python == os.path.abspath(sys.executable) and _installed():
        return True
    script = (
        f"import importlib.util as u; assert all(map(u.find_spec, {NEEDED!r})); "
        f"import weft; assert weft.__version__ == {_version()!r}"
    )
    try:
        asked = subprocess.run([python, "-c", script], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def _version() -> str:
    """The driver's own."""
    return str(sys.modules["weft"].__version__)


def _installed() -> bool:
    """Whether every process of this Python finds weft where this one did: not only one whose script lies
    beside it, or that has changed its search path."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(errors.__file__)))
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return folder in map(os.path.abspath, filter(None, given)) or "site-packages" in folder


def _missing_in_tasks(spark: SparkSession) -> str | None:
    """What a Python worker of the cluster says. Its function is sent whole, so that it needs nothing."""
    needed, version = NEEDED, _version()

    def look(batches: Iterable[Any]) -> Iterator[Any]:
        import importlib
        import importlib.util
        import sys

        import pyarrow

        for _ in batches:
            missing = [name for name in needed if importlib.util.find_spec(name) is None]
            text = f"{sys.executable} has no package {', '.join(missing)}" if missing else ""
            if not missing:
                found = str(getattr(importlib.import_module("weft"), "__version__", "unknown"))
                if found != version:
                    text = f"{sys.executable} has weft {found}, and the driver has {version}"
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array([text])], ["missing"])

    try:
        rows = spark.range(0, 1, 1, 1).mapInArrow(look, "missing string").collect()
    except Exception as error:
        return _told(str(error))
    return next((row["missing"] for row in rows if row["missing"]), None)


def _told(text: str) -> str:
    """The line of an error's text that says what Python lacks, else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    signs = ("ModuleNotFoundError", "PYTHON_VERSION_MISMATCH", "Cannot run program", "ImportError")
    telling = (line for line in lines if any(sign in line for sign in signs))
    return next(telling, lines[0] if lines else "unknown")
