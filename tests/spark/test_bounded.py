"""State stays bounded on an endless stream."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.oracle.plain_spark import python_rows
from tests.support.harness import session

import weft
from weft.runtime.level1 import statefiles
from weft.runtime.protocol import log as log_module
from weft.runtime.protocol import stepper
from weft.runtime.sinks import resultfiles

SECOND = 1_000_000
BATCHES = 26
START = 1_700_000_000 * SECOND


def write_stream(folder: Path) -> None:
    """Every batch covers two seconds and brings keys that never come again."""
    folder.mkdir()
    for batch in range(BATCHES):
        times = [START + batch * 2 * SECOND + i * 20_000 for i in range(100)]
        keys = [f"{batch}-{i % 5}" if i % 2 else "always" for i in range(100)]
        table = pa.table(
            {"ts": pa.array(times, pa.timestamp("us", tz="UTC")), "k": keys, "v": range(100)}
        )
        path = folder / f"{batch:05d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (START // SECOND + batch, START // SECOND + batch))


@pytest.mark.parametrize("kernel", ["driver", "lanes"])
def test_many_windows_worth_of_data(
    spark: SparkSession, tmp_path: Path, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows of ten seconds over most of a minute: what is kept does not grow with the stream."""
    monkeypatch.setattr(statefiles, "MOST_FILES", 4)
    monkeypatch.setattr(stepper, "BASE_EVERY", 10)
    monkeypatch.setattr(stepper, "CLEAN_EVERY", 5)
    monkeypatch.setattr(log_module, "KEPT_COMMITS", 5)
    write_stream(tmp_path / "input")
    own = session(spark)
    source = (
        own.readStream.schema("ts timestamp, k string, v bigint")
        .option("maxFilesPerTrigger", 1 if kernel == "driver" else 4)
        .option("latestFirst", "false")
        .parquet(str(tmp_path / "input"))
    )
    w = weft.Weft(own, tmp_path / "checkpoint", kernel=kernel)
    w.add_stream("s", source, time="ts", watermark="1 second")
    sql = "SELECT k, window.end AS e, count(*) AS n, var_pop(v) AS p, count(DISTINCT v) AS d, "
    sql += "approx_count_distinct(v) AS ad, max_by(v, ts) AS m FROM s "
    w.register("sliding", sql + "GROUP BY window(ts, '10 seconds', '1 second'), k")
    run = w.start(availableNow=True)
    run.awaitTermination()
    steps = [p for p in run.recentProgress if p["kind"] == "data"]
    middle, last = steps[len(steps) // 2], steps[-1]
    assert last["state_rows"] <= 1.5 * middle["state_rows"]
    assert last["state_rows"] < 3000
    stream = tmp_path / "checkpoint/streams/s"
    assert len(list((stream / "state").rglob("*.parquet"))) <= 40
    assert len(list((stream / "commits").glob("*.json"))) <= 30
    assert len(list((stream / "intents").glob("*.json"))) <= 12
    committed = {entry["name"] for entry in w._log("s").result_files()}
    assert len(committed) <= 30
    if kernel == "driver":
        opened = run._streams[0].leader.stepper.engine._open
        assert opened is not None
        assert sum(len(state) for state in opened.states.values()) < 3000
        assert all(len(encoders.keys) < 10_000 for encoders in opened.encoders.values())
    rows = python_rows(w.results("sliding").toArrow())
    ends = sorted({row[1] for row in rows if row[0] == "always"})
    latest = START + (BATCHES - 1) * 2 * SECOND + 99 * 20_000 - SECOND
    assert ends == list(range(START + SECOND, latest + 1, SECOND))
    full = [row for row in rows if row[0] == "always" and row[1] >= START + 10 * SECOND]
    assert {row[2] for row in full} == {250}
    assert {row[4] for row in full} == {50}
    assert resultfiles.MERGE_AT_LEAST > 1
