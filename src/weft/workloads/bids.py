"""Nexmark's bid stream, seeded.

Of every 50 Nexmark events one is a person, three are auctions and 46 are bids. Bid i therefore is
event (i div 46) × 50 + 4 + i mod 46, which fixes its time and the newest auction and person it can
refer to. Everything random is a hash of (seed, event number): the same rows on every run and any
number of cores. The reference generator is unseeded, so values agree in distribution only.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.workloads.hashing import uniform, uniform_below
from weft.workloads.stored import StoredStream, store

BASE = datetime(2024, 1, 1, tzinfo=UTC)
WATERMARK = "4 seconds"
FIRST_ID = 1000
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
COLD_CHANNELS = 10_000
AUCTIONS_IN_FLIGHT = 100
ACTIVE_PEOPLE = 1000

_CYCLE, _PEOPLE, _AUCTIONS, _BIDS = 50, 1, 3, 46
_HOT_EVERY = 100


def bids(numbers: DataFrame, seed: int = 1, rate: int = 10_000) -> DataFrame:
    """Bid(auction, bidder, price, channel, url, dateTime, extra) for the numbers in column ``id``.

    ``rate`` is in Nexmark events per second of event time, of which 92 % are bids.
    """
    bid = F.col("id")
    cycle = F.floor(bid / _BIDS).cast("bigint")
    event = cycle * _CYCLE + (_PEOPLE + _AUCTIONS) + bid % _BIDS
    micros = F.lit(round(BASE.timestamp() * 1e6)) + (event * F.lit(1e6 / rate)).cast("bigint")
    return numbers.select(
        _auction(event, cycle, seed).alias("auction"),
        _bidder(event, cycle, seed).alias("bidder"),
        F.round(F.pow(F.lit(10.0), uniform(event, seed, "price") * 6) * 100)
        .cast("bigint")
        .alias("price"),
        _channel(event, seed).alias("channel"),
        F.concat(
            F.lit("https://www.nexmark.com/"),
            F.lower(F.hex(F.xxhash64(event, F.lit(seed), F.lit("url")))),
            F.lit("/item.htm?query=1"),
        ).alias("url"),
        F.timestamp_millis(F.floor(micros / 1000)).alias("dateTime"),
        F.lower(F.hex(F.xxhash64(event, F.lit(seed), F.lit("extra")))).alias("extra"),
    )


def store_bids(
    spark: SparkSession, folder: Path, rows: int, files: int, seed: int = 1, rate: int = 10_000
) -> StoredStream:
    """The bids as Parquet files in stream order."""
    recipe = f"bids seed={seed} rate={rate}"
    return store(spark, lambda n: bids(n, seed, rate), folder, rows, files, recipe)


def _auction(event: Column, cycle: Column, seed: int) -> Column:
    newest = cycle * _AUCTIONS + (_AUCTIONS - 1)
    hot = F.floor(newest / _HOT_EVERY).cast("bigint") * _HOT_EVERY
    in_flight = F.least(newest + 1, F.lit(AUCTIONS_IN_FLIGHT).cast("bigint"))
    cold = newest - uniform_below(in_flight, event, seed, "auction")
    return F.when(uniform(event, seed, "hot auction") < 1 / 2, hot).otherwise(cold) + FIRST_ID


def _bidder(event: Column, cycle: Column, seed: int) -> Column:
    newest = cycle * _PEOPLE + (_PEOPLE - 1)
    hot = F.floor(newest / _HOT_EVERY).cast("bigint") * _HOT_EVERY
    active = F.least(newest + 1, F.lit(ACTIVE_PEOPLE).cast("bigint"))
    cold = newest - uniform_below(active, event, seed, "bidder")
    return F.when(uniform(event, seed, "hot bidder") < 3 / 4, hot).otherwise(cold) + FIRST_ID


def _channel(event: Column, seed: int) -> Column:
    names = F.array(*[F.lit(name) for name in HOT_CHANNELS])
    index = uniform_below(len(HOT_CHANNELS), event, seed, "channel").cast("int")
    cold = uniform_below(COLD_CHANNELS, event, seed, "cold channel").cast("string")
    return F.when(
        uniform(event, seed, "hot channel") < 1 / 2, F.element_at(names, index + 1)
    ).otherwise(F.concat(F.lit("channel-"), cold))
