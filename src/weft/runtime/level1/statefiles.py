"""State files: an append-only log of fragments.

Every step adds files, each written by Spark tasks for one node of one plan version. No file is changed
later. A file is deleted when no open window can need it. Many files of a node and version that are of
about the same size are compacted into one, so that a fragment is written again only when its file has
grown by a factor; the change of the manifest is part of a commit. Few rows are compacted by the kernel,
sooner than a Spark job could begin. `tiles` says how a file is ordered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.algebra.nodes.implied import carried
from weft.algebra.plan import Node, SharedPlan
from weft.kernel.fragments.derive import Parent
from weft.kernel.fragments.state import (
    BUCKET,
    FRAGMENT_END,
    ROW_COUNT,
    columns_of,
    key_column,
    signature_column,
)
from weft.kernel.windows.program import Program
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.level1.combining import combine_sql
from weft.runtime.level1.fragments import BUCKETS
from weft.runtime.level1.tiles import ALL_TIMES, GROUP_ROWS, Extract, StateFile, write_tiles

MOST_FILES = 32
"""How many files of about the same size a node and version may have before they are compacted."""
_MERGED_HERE = 500_000
"""Up to this many fragments are compacted by the kernel."""
_FILE_ROWS = 1_000_000
"""How many fragments Spark writes into one file when it compacts, so that files expire one by one."""
_BLOCKS = 8
"""How many blocks of time the shortest window has in a file that Spark writes."""


def write(frame: DataFrame, log: StreamLog, folder: str, node: Node, version: int) -> list[Entry]:
    """Write fragments from Spark tasks, in tiles, and describe the files."""
    target = f"{log.folder('state')}/{folder}"
    block = F.expr(f"{FRAGMENT_END} div {block_length(log.plan(version))}L")
    writer = frame.sortWithinPartitions(block, BUCKET, FRAGMENT_END).write.mode("errorifexists")
    writer = writer.option("parquet.block.row.count.limit", GROUP_ROWS)
    writer.parquet(log.storage.spark_path(target))
    return [
        entry
        for name in _data_files(log, target)
        if (entry := describe(log, name, node.id, version))["rows"]
    ]


def block_length(plan: SharedPlan) -> int:
    """The span of time whose fragments Spark writes in the order of buckets. Reading the span of a due window reads at most so much
    time too much at either end."""
    return max(min((query.window.range for query in plan.queries), default=1) // _BLOCKS, 1)


def describe(log: StreamLog, name: str, node: str, version: int) -> Entry:
    """The manifest entry of a state file."""
    storage = log.storage
    metadata = pq.ParquetFile(storage.path(name), filesystem=storage.filesystem).metadata
    lows, highs = [], []
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            if chunk.path_in_schema == FRAGMENT_END and chunk.statistics is not None:
                lows.append(chunk.statistics.min)
                highs.append(chunk.statistics.max)
    return {
        **storage.settled(name),
        "node": node,
        "version": version,
        "rows": metadata.num_rows,
        "min_end": min(lows, default=None),
        "max_end": max(highs, default=None),
    }


def horizons(program: Program, watermark: int, previous: dict[str, int]) -> dict[str, int]:
    """By node, the time up to which no open window needs its fragments. This time never falls."""
    return {
        name: max(windows.horizon(watermark), previous.get(name, -(1 << 62)))
        for name, windows in program.windows.items()
    }


def live(entries: Iterable[Entry], needed: dict[str, int]) -> tuple[list[Entry], list[Entry]]:
    """The entries that an open window may need, and the others, which have expired."""
    kept: list[Entry] = []
    expired: list[Entry] = []
    for entry in entries:
        horizon = needed.get(entry["node"])
        dead = horizon is None or entry["max_end"] is None or entry["max_end"] <= horizon
        (expired if dead else kept).append(entry)
    return kept, expired


def due_for_compaction(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Lists of files that should become one file; each list is of one node and version, and of files
    of about the same size."""
    by_origin: dict[tuple[Any, ...], list[Entry]] = defaultdict(list)
    for entry in entries:
        by_origin[entry["node"], entry["version"], _tier(entry["rows"])].append(entry)
    return [files for files in by_origin.values() if len(files) > MOST_FILES]


def _tier(rows: int) -> int:
    """The class of sizes that a file belongs to; sizes of a class are within a factor of eight.

    >>> [_tier(rows) for rows in (1, 20_000, 40_000, 1_000_000)]
    [0, 0, 1, 2]
    """
    return max(rows.bit_length() - 13, 0) // 3


def compacted(
    spark: SparkSession,
    log: StreamLog,
    folder: str,
    kept: list[Entry],
    horizons: dict[str, int],
) -> tuple[list[Entry], list[Entry]]:
    """The live files after compaction, and those that it replaced. New folders begin with `folder`."""
    replaced: list[Entry] = []
    for number, files in enumerate(due_for_compaction(kept)):
        horizon = horizons[files[0]["node"]]
        merged = compact(spark, log, f"{folder}-{number}", files, horizon)
        names = {entry["name"] for entry in files}
        kept = [entry for entry in kept if entry["name"] not in names] + merged
        replaced += files
    return kept, replaced


def compact(
    spark: SparkSession, log: StreamLog, folder: str, files: Sequence[Entry], horizon: int
) -> list[Entry]:
    """One file in place of many, or a few for many rows. Equal fragments are combined, and expired
    ones left out."""
    version, name = files[0]["version"], files[0]["node"]
    node = log.plan(version).node_by_id[name]
    target = f"{log.folder('state')}/{folder}"
    rows = sum(entry["rows"] for entry in files)
    fragments = _here(log, files, node, horizon) if rows <= _MERGED_HERE else None
    if fragments is not None:
        if fragments.num_rows:
            write_tiles(log.storage, f"{target}/part.parquet", fragments)
    else:
        frame = _by_spark(spark, log, files, node, horizon)
        parts = -(-rows // _FILE_ROWS)
        frame = frame.coalesce(1) if parts == 1 else frame.repartitionByRange(parts, FRAGMENT_END)
        return write(frame, log, folder, node, version)
    return [
        entry
        for path in _data_files(log, target)
        if (entry := describe(log, path, name, version))["rows"]
    ]


def _here(log: StreamLog, files: Sequence[Entry], node: Node, horizon: int) -> pa.Table | None:
    """The combined fragments, computed by the kernel; None if it cannot."""
    columns = columns_of(node)
    alive = Extract((horizon, ALL_TIMES[1]))
    tables = [
        table for entry in files for table in StateFile(log.storage, entry).read(alive, columns)
    ]
    if not tables:
        return pa.table({})
    parent = Parent(node, tables)
    return parent.derived(node, BUCKETS) if parent.can_derive(node) else None


def _by_spark(
    spark: SparkSession, log: StreamLog, files: Sequence[Entry], node: Node, horizon: int
) -> DataFrame:
    paths = [log.storage.spark_path(entry["name"]) for entry in files]
    frame = spark.read.parquet(*paths).where(F.col(FRAGMENT_END) > F.lit(horizon))
    keys = [FRAGMENT_END, *(signature_column(i) for i in range(node.signature.columns))]
    keys += [key_column(i) for i in range(len(node.keys))] + [BUCKET]
    combined = [F.sum(ROW_COUNT).alias(ROW_COUNT)]
    combined += [F.expr(combine_sql(p)).alias(p.name) for p in carried(node)]
    return frame.groupBy(*keys).agg(*combined)


def _data_files(log: StreamLog, target: str) -> list[str]:
    """The files that were written into a folder."""
    log.storage.settle_folder(target)
    return [f"{target}/{name}" for name in log.storage.names(target) if name.endswith(".parquet")]
