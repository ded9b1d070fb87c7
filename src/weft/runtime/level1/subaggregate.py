"""Level 1 of a step: writes the fragments of all nodes, and counts the batch's rows.

The counts (rows, latest event time, NULL times, late rows) are of the whole stream, before any
predicate and any lookup. A node that sees every row keeps them in its fragments, at almost no cost. If
there is no such node, Spark observes the rows on their way into the first node; without any node, on their
way into what is published, so that they are read once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from weft.algebra.network.lookup import Lookup
from weft.algebra.partial import QUANTILES
from weft.algebra.plan import Node, SharedPlan
from weft.algebra.query import StreamSchema, quote
from weft.kernel.fragments.state import FRAGMENT_END, ROW_COUNT
from weft.kernel.windows.program import Program
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.level1.fragments import LATE_ROWS, MAX_EVENT, fragments, is_late
from weft.runtime.level1.lookups import Tables, looked_up
from weft.runtime.level1.quarantine import can_raise, culprits
from weft.runtime.level1.tree import write_below, write_first
from weft.runtime.protocol.step import StepFailed, StepWork
from weft.runtime.quiet import quiet_sql_errors
from weft.runtime.sessions import keep_microseconds

_SORTS_ABOVE = "spark.sql.objectHashAggregate.sortBased.fallbackThreshold"
_OBJECT_GROUPS = 100_000
"""How many groups of a task may keep their sketches in a hash table. By default Spark sorts all rows
from 128 groups on, which is right for sketches of quantiles: a hundred of them are 50 megabytes."""
_SPARKS_GROUPS = 128
_FAST_MAP = "spark.sql.codegen.aggregate.fastHashMap.capacityBit"
_FAST_GROUPS = 18
"""The size, as a power of two, of the small hash table in the generated code. Spark's default, 16, is
often too small for the fragments of a task."""


def subaggregate(
    work: StepWork,
    log: StreamLog,
    program: Program,
    before: int,
    cores: int,
    tables: Tables,
    *,
    published: bool = False,
) -> None:
    """Write the first-level nodes into `work.files`, and count the rows in `work.counted`. Raises
    `StepFailed` for queries that fail. `published`: the rows are read again, to be published."""
    rows = work.rows
    assert rows is not None
    plan = program.plan
    if work.own_session:
        _fit_shuffle(work.spark, cores, large_sketches=_has_quantiles(plan))
    measures = _measures(plan.stream, before)
    if published and not plan.nodes:
        _count_later(work, rows, measures)
        return
    counting = counting_node(program)
    observation = Observation(f"weft_{work.attempt}") if counting is None else None
    observed = rows if observation is None else rows.observe(observation, *measures)

    first = _observing(plan)

    def source(node: Node) -> tuple[tuple[Lookup, ...], bool]:
        """What a node is computed from: rows after these lookups, observed or not."""
        return node.lookups, node.id == first

    def after(lookups: tuple[Lookup, ...], is_observed: bool) -> DataFrame:
        return looked_up(observed if is_observed else rows, lookups, tables)

    def from_rows(node: Node) -> DataFrame:
        counts = before if node.id == counting else None
        return fragments(after_lookups[source(node)], node, plan.stream, counts)

    try:
        with quiet_sql_errors():
            sources = {source(node) for node in plan.nodes if node.parent is None}
            after_lookups = {of_nodes: after(*of_nodes) for of_nodes in sources}
            files = write_first(work, log, plan, from_rows)
        if counting is not None:
            work.counted = _counts_in_fragments(log, files, counting)
        elif observation is not None and plan.nodes:
            work.counted = _observed(observation)
        if not work.counted:
            work.counted = _counted(rows, measures)
        work.files = files
    except PySparkException:
        failures = culprits(rows, plan.queries, plan.stream, tables)
        if not failures:
            raise
        raise StepFailed(failures) from None


def _count_later(work: StepWork, rows: DataFrame, measures: list[Column]) -> None:
    """Let the rows be counted when they are published."""
    observation = Observation(f"weft_{work.attempt}")
    work.rows = rows.observe(observation, *measures)

    def counts(seen: bool) -> dict[str, Any]:
        return (_observed(observation) if seen else {}) or _counted(rows, measures)

    work.count_later = counts


def _counted(rows: DataFrame, measures: list[Column]) -> dict[str, Any]:
    return dict(rows.agg(*measures).collect()[0].asDict())


@dataclass(frozen=True)
class Derived:
    """The files of a step: those with fragments that queries read, and those of intermediates, which
    no later step needs."""

    new_files: tuple[Entry, ...] = ()
    passing_files: tuple[Entry, ...] = ()


def derive(work: StepWork, log: StreamLog, plan: SharedPlan) -> Derived:
    """Write the nodes below the first level."""
    files = [*work.files, *write_below(work, log, plan, work.files)]
    passing = {node.id for node in plan.nodes if node.intermediate}
    return Derived(
        tuple(entry for entry in files if entry["node"] not in passing),
        tuple(entry for entry in files if entry["node"] in passing),
    )


def _observing(plan: SharedPlan) -> str | None:
    """The node on whose way the rows are observed, if need be: one whose rows Spark surely reads, and not
    one behind a table that may be empty."""
    first = [node for node in plan.nodes if node.parent is None]
    return min(first, key=lambda node: len(node.lookups)).id if first else None


def counting_node(program: Program) -> str | None:
    """A node that sees every row and in which nothing can fail on rows without event time."""
    parents = {node.parent for node in program.plan.nodes}
    for node in program.plan.nodes:
        if node.parent is None and node.keeps_all_rows and not node.lookups:
            served = program.plan.queries if node.id in parents else program.readers[node.id]
            if not any(can_raise(query) for query in served):
                return node.id
    return None


def _counts_in_fragments(log: StreamLog, files: list[Entry], node: str) -> dict[str, Any]:
    counted: dict[str, Any] = {"rows": 0, "max_event": None, "null_times": 0, "late_rows": 0}
    columns = [FRAGMENT_END, ROW_COUNT, MAX_EVENT, LATE_ROWS]
    for entry in files:
        if entry["node"] != node:
            continue
        table = log.storage.read_table(entry["name"], columns)
        without_time = table.filter(table.column(FRAGMENT_END).is_null())
        latest = pc.max(table.column(MAX_EVENT)).as_py()
        counted["rows"] += pc.sum(table.column(ROW_COUNT)).as_py() or 0
        counted["null_times"] += pc.sum(without_time.column(ROW_COUNT)).as_py() or 0
        counted["late_rows"] += pc.sum(table.column(LATE_ROWS)).as_py() or 0
        if latest is not None and (counted["max_event"] is None or latest > counted["max_event"]):
            counted["max_event"] = latest
    return counted


def _measures(stream: StreamSchema, before: int) -> list[Column]:
    return [
        F.count(F.lit(1)).alias("rows"),
        F.max(F.expr(stream.time_micros)).alias("max_event"),
        F.count_if(F.col(quote(stream.time)).isNull()).alias("null_times"),
        F.count_if(F.expr(is_late(stream, before))).alias("late_rows"),
    ]


def _observed(observation: Observation) -> dict[str, Any]:
    """The observed counts. Empty if Spark found that no row can pass the node's filters: then it drops
    the observation with the rest of the plan."""
    try:
        return dict(observation.get)
    except Exception as error:
        if "AssertionError" in str(error):
            return {}
        raise


def _has_quantiles(plan: SharedPlan) -> bool:
    return any(
        partial.combine.name in QUANTILES
        for node in plan.nodes
        if node.parent is None
        for partial in node.partials
    )


def _fit_shuffle(spark: SparkSession, cores: int, *, large_sketches: bool) -> None:
    """Set as many shuffle partitions as cores, because fragments are few, and larger hash tables, unless their sketches
    are large. Only for a session of weft's own."""
    keep_microseconds(spark)
    key = "spark.sql.shuffle.partitions"
    if int(spark.conf.get(key) or 200) > cores:
        spark.conf.set(key, str(cores))
    groups = int(spark.conf.get(_SORTS_ABOVE) or _SPARKS_GROUPS)
    if large_sketches and groups == _OBJECT_GROUPS:
        spark.conf.set(_SORTS_ABOVE, str(_SPARKS_GROUPS))
    elif not large_sketches and groups < _OBJECT_GROUPS:
        spark.conf.set(_SORTS_ABOVE, str(_OBJECT_GROUPS))
    if int(spark.conf.get(_FAST_MAP) or 16) < _FAST_GROUPS:
        spark.conf.set(_FAST_MAP, str(_FAST_GROUPS))
