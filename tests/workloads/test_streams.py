"""The generators give the same rows on every run, with the rates and shares they state."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.workloads import bids as bid_stream
from weft.workloads import events as event_stream
from weft.workloads.bids import bids, store_bids
from weft.workloads.events import events, store_events, store_events_csv


def fingerprint(rows: DataFrame) -> int:
    hashed = rows.select(F.xxhash64(*rows.columns).alias("h"))
    return int(hashed.agg(F.bit_xor("h")).collect()[0][0])


@pytest.mark.parametrize("make", [bids, events])
def test_rows_depend_on_the_seed_and_not_on_the_partitions(spark: SparkSession, make) -> None:
    one = fingerprint(make(spark.range(0, 2000, 1, 1)))
    assert one == fingerprint(make(spark.range(0, 2000, 1, 7)))
    assert one != fingerprint(make(spark.range(0, 2000, 1, 1), seed=2))


def test_bids_have_nexmarks_columns_and_shares(spark: SparkSession) -> None:
    generated = bids(spark.range(0, 92_000), rate=10_000).cache()
    assert generated.columns == [
        "auction",
        "bidder",
        "price",
        "channel",
        "url",
        "dateTime",
        "extra",
    ]
    row = generated.agg(
        F.avg((F.col("auction") % 100 == 0).cast("int")).alias("hot_auctions"),
        F.avg((F.col("bidder") % 100 == 0).cast("int")).alias("hot_bidders"),
        F.avg(F.col("channel").isin(*bid_stream.HOT_CHANNELS).cast("int")).alias("channels"),
        F.min("price").alias("lowest"),
        F.max("price").alias("highest"),
        F.min("auction").alias("first_auction"),
        (F.unix_micros(F.max("dateTime")) - F.unix_micros(F.min("dateTime"))).alias("span"),
    ).collect()[0]
    generated.unpersist()
    assert row["hot_auctions"] == pytest.approx(0.505, abs=0.02)
    assert row["hot_bidders"] == pytest.approx(0.75, abs=0.02)
    assert row["channels"] == pytest.approx(0.5, abs=0.02)
    assert 100 <= row["lowest"] < 110
    assert 9e7 < row["highest"] <= 1e8
    assert row["first_auction"] == bid_stream.FIRST_ID
    assert row["span"] / 1e6 == pytest.approx(10, abs=0.01)


def test_events_have_the_rate_the_keys_and_a_bounded_disorder(spark: SparkSession) -> None:
    generated = events(spark.range(0, 300_000)).cache()
    row = generated.agg(
        F.count_distinct("key").alias("keys"),
        F.min(F.unix_micros("ts")).alias("first"),
        F.max(F.unix_micros("ts")).alias("last"),
    ).collect()[0]
    generated.unpersist()
    base = round(event_stream.BASE.timestamp() * 1e6)
    assert row["keys"] == event_stream.KEYS
    assert base - 1_000_000 <= row["first"] < base
    assert base + 2_900_000 < row["last"] < base + 3_000_000


def test_files_are_micro_batches_in_stream_order(spark: SparkSession, tmp_path: Path) -> None:
    stored = store_events(spark, tmp_path / "events", rows=4000, files=4, rate=100)
    sizes: list[tuple[int, int]] = []

    def look(rows: DataFrame, _: int) -> None:
        counted = rows.agg(F.count("*"), F.unix_micros(F.max("ts"))).collect()[0]
        sizes.append((counted[0], counted[1]))

    source = stored.open(spark, files_per_batch=2)
    query = (
        source.writeStream.foreachBatch(look)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [size for size, _ in sizes] == [2000, 2000]
    assert sizes[0][1] < sizes[1][1]


def test_a_beginning_holds_the_first_files(spark: SparkSession, tmp_path: Path) -> None:
    stored = store_events(spark, tmp_path / "events", rows=400, files=4)
    beginning = stored.first(1)
    assert beginning.rows == 100
    assert [path.name for path in beginning.paths()] == ["000000.parquet"]
    assert stored.first(4) is stored


def test_stored_files_are_used_again_only_for_the_same_recipe(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "bids"
    first = store_bids(spark, folder, rows=100, files=2).paths()[0]
    inode = first.stat().st_ino
    assert store_bids(spark, folder, rows=100, files=2).paths()[0].stat().st_ino == inode
    other = store_bids(spark, folder, rows=100, files=2, seed=2).paths()[0]
    assert other.read_bytes() and other.stat().st_mtime == first.stat().st_mtime
    with pytest.raises(ValueError, match="evenly"):
        store_bids(spark, folder, rows=100, files=3)


def test_interleaved_files_hold_the_same_events(spark: SparkSession, tmp_path: Path) -> None:
    ordered = store_events_csv(spark, tmp_path / "ordered", rows=1000, files=2)
    mixed = store_events_csv(spark, tmp_path / "mixed", rows=1000, files=2, interleaved=True)
    lines = [sorted("".join(p.read_text() for p in s.paths()).split()) for s in (ordered, mixed)]
    assert lines[0] == lines[1]
    all_lines = "".join(path.read_text() for path in ordered.paths()).split()
    assert mixed.paths()[1].read_text().split() == all_lines[1::2]
