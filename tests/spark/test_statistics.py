"""Statistics are collected on the running stream, and never touch a result."""

from __future__ import annotations

from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support.harness import session
from tests.support.input_files import put_file

import weft
from weft.runtime.planning import sampling
from weft.stats import StreamStatistics

ROWS = 40_000
SECOND = 1_000_000
START = 1_704_067_200 * SECOND
QUERIES = {
    "by_buyer": "SELECT buyer, COUNT(*) AS n FROM s WHERE v < 25 GROUP BY window(ts, '10 seconds'), buyer",
    "pairs": "SELECT buyer, item, SUM(v) AS t FROM s GROUP BY window(ts, '10 seconds'), buyer, item",
    "risky": "SELECT 100 div v AS k, COUNT(*) AS n FROM s WHERE v > 0 AND 100 div v < 50 "
    "GROUP BY window(ts, '10 seconds'), 100 div v",
    "missing": "SELECT buyer, COUNT(*) AS n FROM s WHERE item IS NULL GROUP BY window(ts, '5 seconds'), buyer",
}


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[pa.Table]]:
    """Two micro-batches: 3000 buyers by a Zipf law, 50 items of which some are NULL, v uniform."""
    folder = tmp_path_factory.mktemp("statistics")
    chance = np.random.default_rng(11)
    law = np.arange(1.0, 3001) ** -0.85
    batches = []
    for batch in range(2):
        items = chance.integers(0, 50, ROWS)
        table = pa.table(
            {
                "ts": pa.array(
                    START + (batch * 20 * SECOND) + chance.integers(0, 20 * SECOND, ROWS),
                    pa.timestamp("us", "UTC"),
                ),
                "buyer": chance.choice(3000, ROWS, p=law / law.sum()),
                "item": pa.array(items, mask=items == 0),
                "v": chance.integers(0, 100, ROWS),
            }
        )
        put_file(table, folder, batch)
        batches.append(table)
    return folder, batches


def opened(spark: SparkSession, folder: Path, checkpoint: Path) -> weft.Weft:
    source = (
        session(spark)
        .readStream.schema("ts timestamp, buyer bigint, item bigint, v bigint")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder))
    )
    w = weft.Weft(source.sparkSession, checkpoint)
    w.add_stream("s", source, time="ts", watermark="1 second")
    with w.changes():
        for name, sql in QUERIES.items():
            w.register(name, sql)
    return w


def test_a_running_stream_is_sampled_and_results_stay_the_same(
    spark: SparkSession,
    tmp_path: Path,
    truth: tuple[Path, list[pa.Table]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The first micro-batch cannot be sampled, which fails no step; the second can."""
    folder, batches = truth
    w = opened(spark, folder, tmp_path / "checkpoint")
    assert not w.statistics("s").known

    take, calls = sampling.sampled, count()

    def unlucky(*arguments: Any) -> StreamStatistics:
        if next(calls) == 0:
            raise RuntimeError("no sample today")
        return take(*arguments)

    monkeypatch.setattr(sampling, "sampled", unlucky)
    run = w.start(availableNow=True)
    run.awaitTermination()
    sampled = ["statistics" in step["durations"] for step in run.recentProgress]
    assert sampled == [True, True, False], "two data steps and a flush"
    assert "stream s: no statistics of this micro-batch: no sample today" in caplog.text

    found = w.statistics("s")
    assert found.rows == 2 * ROWS
    assert found.rate.source == "measured"
    assert found.rate.value == pytest.approx(ROWS / 20, rel=0.01)
    check_groups(found, batches[-1])
    assert len(found.selectivities) == 2, "the predicate that can raise is left out"
    shares = sorted(each.share for each in found.selectivities.values())
    assert shares == pytest.approx([0.02, 0.25], abs=0.02)

    reopened = opened(spark, folder, tmp_path / "checkpoint")
    assert reopened.statistics("s").to_json() == found.to_json(), "kept in the catalog"

    everything = pa.concat_tables(batches)  # read by name in the query
    expected = duckdb.sql(
        f"""SELECT buyer, item, sum(v) FROM everything
        WHERE epoch_us(ts) < (SELECT max(epoch_us(ts)) - {SECOND} FROM everything)
            // {10 * SECOND} * {10 * SECOND}
        GROUP BY epoch_us(ts) // {10 * SECOND}, buyer, item"""
    ).fetchall()
    assert everything.num_rows == 2 * ROWS
    assert Counter(map(tuple, w.results("pairs").collect())) == Counter(expected)


def check_groups(found: StreamStatistics, last: pa.Table) -> None:
    buyers, items = "`buyer`", "`item`"
    assert found.sample.columns.keys() == {buyers, items}, "keys that can raise are left out"
    for rows in (100, 1000, 10_000, ROWS):
        picked = last.slice(0, rows)
        for keys, columns in ((buyers,), ["buyer"]), ((buyers, items), ["buyer", "item"]):
            exact = picked.group_by(columns).aggregate([]).num_rows
            assert found.groups(keys, rows) == pytest.approx(exact, rel=0.06), (keys, rows)
    assert found.groups({items}, ROWS) == pytest.approx(50), "NULL is a group"
    assert found.alpha({buyers}) == pytest.approx(0.85, abs=0.05)
    assert found.estimate({buyers, items}, ROWS).source == "sketched"


def test_nonsense_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    w = weft.Weft(spark, tmp_path / "checkpoint")
    with pytest.raises(weft.CatalogError, match=r"UNKNOWN_STREAM.*'clicks'"):
        w.statistics("clicks")
    for value in (-1, 1.5, True):
        with pytest.raises(weft.RunError, match=r"BAD_SETTING.*statistics_every"):
            weft.Weft(spark, tmp_path / "other", statistics_every=value)
