"""State files that Spark writes are in tiles: who needs some time and some buckets reads few of the other rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.kernel.test_weave import STREAM, query

from weft.algebra.window import Window
from weft.optimizer.gtweave import share
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.level1 import statefiles
from weft.runtime.level1.fragments import BUCKETS
from weft.runtime.level1.tiles import Extract, StateFile

RANGE = 1_000_000
ROWS = 200_000


@pytest.fixture(scope="module")
def file(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> StateFile:
    """Fragments of two ranges of the shortest window: 16 blocks, each of some six row groups."""
    folder: Path = tmp_path_factory.mktemp("tiles")
    log = StreamLog(Storage(str(folder)), STREAM.name)
    queries = [query(0, Window(RANGE, 10), None), query(1, Window(8 * RANGE, 10), None)]
    plan = share(1, STREAM, queries, {})
    log.put_plan(plan)
    rows = spark.range(0, ROWS, 1, 1).selectExpr(
        f"pmod(hash(id, 1), {2 * RANGE}) AS fragment_end",
        f"cast(pmod(hash(id, 2), {BUCKETS}) AS int) AS bucket",
        "id AS key",
        "hash(id, 3) AS value",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statefiles, "GROUP_ROWS", 2048)
        (entry,) = statefiles.write(rows, log, "0", plan.nodes[0], plan.version)
    assert entry["rows"] == ROWS
    return StateFile(log.storage, entry)


def part_read(file: StateFile, extract: Extract) -> float:
    """The part of all rows that is read, whether it is wanted or not."""
    return file.rows(extract) / ROWS


def test_a_lane_with_half_of_the_buckets_reads_about_half_of_the_rows(file: StateFile) -> None:
    half = np.arange(BUCKETS) < BUCKETS // 2
    assert 0.5 <= part_read(file, Extract(buckets=half)) < 0.75
    odd = np.arange(BUCKETS) % 2 == 1
    assert part_read(file, Extract(buckets=odd)) == 1, "neighbours lie in the same row groups"


def test_a_window_reads_about_its_own_time(file: StateFile) -> None:
    span = (RANGE // 3, RANGE // 3 + RANGE)
    assert 0.5 <= part_read(file, Extract(span)) < 0.65


def test_what_is_read_is_what_is_wanted(file: StateFile) -> None:
    buckets = np.arange(BUCKETS) < 3
    extract = Extract((RANGE, 2 * RANGE), buckets)
    found = [
        (end, bucket)
        for table in file.read(extract, ["fragment_end", "bucket"])
        for end, bucket in zip(*(column.to_pylist() for column in table.columns), strict=True)
    ]
    everything = next(file.read(Extract(), ["fragment_end", "bucket"]))
    ends, of_rows = (everything.column(n).to_numpy() for n in ("fragment_end", "bucket"))
    wanted = (ends > RANGE) & (ends <= 2 * RANGE) & (of_rows < 3)
    expected = zip(ends[wanted].tolist(), of_rows[wanted].tolist(), strict=True)
    assert sorted(found) == sorted(expected)
    assert len(found) > 1000
