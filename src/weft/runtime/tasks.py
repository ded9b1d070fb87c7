"""Python functions in Spark tasks: each gets a payload and its number, and gives a few JSON values.

What tasks read and write are files. Only what the driver must know of them passes through Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.errors import RunError

Output = tuple[str, Any]
"""A kind, and a JSON value."""

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

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
