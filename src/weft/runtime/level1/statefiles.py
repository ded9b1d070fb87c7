"""State files: an append-only log of fragments.

Every step adds files, each written by Spark tasks for one node of one plan version. No file is changed
later. A file is deleted when no open window can need it. Many small files of a node and version are
compacted into one; the change of the manifest is part of a commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.algebra.nodes.implied import carried
from weft.algebra.plan import Node
from weft.kernel.fragments.state import (
    BUCKET,
    FRAGMENT_END,
    ROW_COUNT,
    key_column,
    signature_column,
)
from weft.kernel.windows.program import Program
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.level1.combining import combine_sql

MOST_FILES = 64
"""How many files a node and version may have before they are compacted."""


def write(
    frame: DataFrame, log: StreamLog, folder: str, node: Node, version: int, lanes: int | None
) -> list[Entry]:
    """Write fragments from Spark tasks and describe the files. With `lanes`, each lane has its own."""
    target = f"{log.folder('state')}/{folder}"
    writer = frame.write.mode("errorifexists")
    if lanes:
        frame = frame.withColumn("lane", F.col(BUCKET) % lanes).repartition(lanes, "lane")
        writer = frame.write.mode("errorifexists").partitionBy("lane")
    writer.parquet(log.storage.spark_path(target))
    return [
        entry
        for name, lane in _data_files(log, target)
        if (entry := describe(log, name, node.id, version, lane))["rows"]
    ]


def describe(log: StreamLog, name: str, node: str, version: int, lane: int | None = None) -> Entry:
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
        "lane": lane,
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
    """Lists of files that should become one file; each list is of one node, version and lane."""
    by_origin: dict[tuple[Any, ...], list[Entry]] = defaultdict(list)
    for entry in entries:
        by_origin[entry["node"], entry["version"], entry["lane"]].append(entry)
    return [files for files in by_origin.values() if len(files) > MOST_FILES]


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
    """One file in place of many. Spark combines equal fragments and leaves out expired ones."""
    version, name = files[0]["version"], files[0]["node"]
    node = log.plan(version).node_by_id[name]
    paths = [log.storage.spark_path(entry["name"]) for entry in files]
    frame = spark.read.parquet(*paths).where(F.col(FRAGMENT_END) > F.lit(horizon))
    keys = [FRAGMENT_END, *(signature_column(i) for i in range(node.signature.columns))]
    keys += [key_column(i) for i in range(len(node.keys))] + [BUCKET]
    combined = [F.sum(ROW_COUNT).alias(ROW_COUNT)]
    combined += [F.expr(combine_sql(p)).alias(p.name) for p in carried(node)]
    merged = frame.groupBy(*keys).agg(*combined).coalesce(1)
    target = f"{log.folder('state')}/{folder}"
    merged.write.mode("errorifexists").parquet(log.storage.spark_path(target))
    lane = files[0]["lane"]
    return [
        entry
        for path, _ in _data_files(log, target)
        if (entry := describe(log, path, name, version, lane))["rows"]
    ]


def _data_files(log: StreamLog, target: str) -> list[tuple[str, int | None]]:
    """The files that Spark wrote into a folder, each with its lane, if it belongs to one."""
    log.storage.settle_folder(target)
    files: list[tuple[str, int | None]] = []
    for name in log.storage.names(target):
        if name.endswith(".parquet"):
            files.append((f"{target}/{name}", None))
        elif name.startswith("lane="):
            lane = int(name[5:])
            log.storage.settle_folder(f"{target}/{name}")
            inner = log.storage.names(f"{target}/{name}")
            files += [
                (f"{target}/{name}/{file}", lane) for file in inner if file.endswith(".parquet")
            ]
    return files
