"""Lanes: their number may change with a restart, and every attempt at a task has files of its own."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.oracle.plain_spark import python_rows
from tests.spark.test_bounded import BATCHES, DELAY, SECOND, SQL, expected, write_stream
from tests.support.harness import session

import weft


def run_with(spark: SparkSession, folder: Path, **settings: int) -> weft.Weft:
    own = session(spark)
    source = own.readStream.schema("ts timestamp, k string, v bigint")
    source = source.option("maxFilesPerTrigger", BATCHES // 2).option("latestFirst", "false")
    w = weft.Weft(own, folder / "checkpoint", kernel="lanes", **settings)
    frame = source.parquet(str(folder / "input"))
    w.add_stream("s", frame, time="ts", watermark=f"{DELAY // SECOND} second")
    if not w.queries:
        w.register("sliding", SQL)
    w.start(availableNow=True).awaitTermination()
    return w


def test_the_number_of_lanes_may_change_with_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    write_stream(tmp_path / "all")
    (tmp_path / "input").mkdir()
    files = sorted((tmp_path / "all").iterdir())
    for file in files[: BATCHES // 2]:
        file.rename(tmp_path / "input" / file.name)
    first = run_with(spark, tmp_path, lanes=2)
    assert len(first.counted("s")["lane_seconds"]) == 2
    assert "2 lanes, ms of work" in str(first.explain())
    first.close()
    for file in files[BATCHES // 2 :]:
        file.rename(tmp_path / "input" / file.name)
    second = run_with(spark, tmp_path, lanes=3, lane_cap_bytes=1 << 20)
    assert len(second.counted("s")["lane_seconds"]) == 3
    rows = python_rows(second.results("sliding").toArrow())
    assert sorted((*row[:5], round(float(row[5]), 6)) for row in rows) == expected()
    written = second._log("s").result_files()
    assert written and all("-t" in entry["name"] for entry in written)
    second.close()
