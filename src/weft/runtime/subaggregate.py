"""Level 1 of a step: every node's fragments written by Spark, the batch's rows counted.

The counts (rows, latest event time, NULL times, late rows) are taken on the way, before any
predicate, so the batch is not read once more for them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from weft.algebra.plan import SharedPlan
from weft.algebra.query import StreamSchema, quote
from weft.runtime import statefiles
from weft.runtime.level1 import fragments
from weft.runtime.log import Entry, StreamLog
from weft.runtime.quarantine import culprits
from weft.runtime.step import StepFailed, StepWork

_PARALLEL_JOBS = 2


def subaggregate(
    work: StepWork, log: StreamLog, plan: SharedPlan, before: int, cores: int, lanes: int | None
) -> None:
    """Fill `work.new_files` and `work.counted`; raises `StepFailed` for queries that fail."""
    rows = work.rows
    assert rows is not None
    _fit_shuffle(work.spark, cores)
    measures = _measures(plan.stream, before)
    try:
        observation = Observation(f"weft_{work.attempt}")
        work.new_files = _write(rows.observe(observation, *measures), work, log, plan, lanes)
        work.counted = _observed(observation) if plan.nodes else {}
        if not work.counted:
            work.counted = rows.agg(*measures).collect()[0].asDict()
    except PySparkException:
        found = culprits(rows, plan.queries, plan.stream)
        if not found:
            raise
        raise StepFailed(found) from None


def _write(
    observed: DataFrame, work: StepWork, log: StreamLog, plan: SharedPlan, lanes: int | None
) -> list[Entry]:
    """The first node's job counts the batch; the others read it again, two at a time."""

    def write(index: int) -> list[Entry]:
        node = plan.nodes[index]
        source = observed if index == 0 else work.rows
        assert source is not None
        frame = fragments(source, node, plan.stream)
        folder = f"{work.name}-{work.attempt}-{node.id}"
        return statefiles.write(frame, log, folder, node, plan.version, lanes)

    with ThreadPoolExecutor(_PARALLEL_JOBS) as pool:
        written = list(pool.map(write, range(len(plan.nodes))))
    return [entry for entries in written for entry in entries]


def _measures(stream: StreamSchema, before: int) -> list[Column]:
    return [
        F.count(F.lit(1)).alias("rows"),
        F.max(F.expr(stream.time_micros)).alias("max_event"),
        F.min(F.expr(stream.time_micros)).alias("min_event"),
        F.count_if(F.col(quote(stream.time)).isNull()).alias("null_times"),
        F.count_if(F.expr(f"{stream.time_micros} < {before}L")).alias("late_rows"),
    ]


def _observed(observation: Observation) -> dict[str, Any]:
    """What was counted on the way; nothing if Spark found that no row can pass a node's
    filters, and dropped the counting with the rest of the plan."""
    try:
        return dict(observation.get)
    except Exception as error:
        if "AssertionError" in str(error):
            return {}
        raise


def _fit_shuffle(spark: SparkSession, cores: int) -> None:
    """Fragments are few: as many shuffle partitions as cores, in the stream's own session."""
    key = "spark.sql.shuffle.partitions"
    if int(spark.conf.get(key) or 200) > cores:
        spark.conf.set(key, str(cores))
