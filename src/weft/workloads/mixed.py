"""Mixed aggregate queries, and many rules: WORKLOADS sections 2 and 4. Seeded.

Bids `(auction, bidder, channel, price, ts)` are dense in event time, channels have Zipf popularity,
prices are spread over six powers of ten. `FEW` keys keep the groups of a fragment below a tenth of
its rows; with `MANY`, two thirds of its rows are groups of their own. Records `(subject, amount, ts)` are matched by rules: the
k-th rule's equality condition is true for a share of the rows that falls as 1/k, all of them
together for a fifth.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.workloads.events import BASE, DISORDER_SECONDS, RATE
from weft.workloads.hashing import uniform, uniform_below
from weft.workloads.stored import StoredStream, store

RULES = 1000
MATCHED = 0.2
SUBJECTS = 100_000
AMOUNTS = 1_000_000
PRICE_POINTS = tuple(round(10 ** (2 + step / 2)) for step in range(1, 12))
AGGREGATES = (
    "COUNT(*)",
    "SUM(price)",
    "AVG(price)",
    "MIN(price)",
    "MAX(price)",
    "approx_count_distinct(bidder)",
)
_SLIDES = (10, 20, 30, 60, 120)
_RANGES = (1, 2, 3, 6, 30, 60, 360, 1440, 8640)
_DAY = 86_400


@dataclass(frozen=True)
class Keys:
    """How many values the group-by columns have."""

    auctions: int
    bidders: int
    channels: int


FEW = Keys(auctions=10, bidders=10, channels=10)
MANY = Keys(auctions=50, bidders=100, channels=20)


@dataclass(frozen=True)
class NamedQuery:
    """A query under its name; `overlap` is how many of its windows a row is in."""

    name: str
    sql: str
    overlap: float = 1.0


def store_bids(
    spark: SparkSession, folder: Path, rows: int, files: int, keys: Keys, seed: int = 1
) -> StoredStream:
    """The bids as Parquet files in stream order."""
    recipe = f"mixed bids seed={seed} keys={keys}"
    return store(spark, lambda n: bids(n, keys, seed), folder, rows, files, recipe)


def bids(numbers: DataFrame, keys: Keys, seed: int = 1) -> DataFrame:
    """`(auction, bidder, channel, price, ts)` for the row numbers in column `id`."""
    n = F.col("id")
    price = F.pow(F.lit(10.0), F.lit(2.0) + uniform(n, seed, "price") * 6)
    return numbers.select(
        uniform_below(keys.auctions, n, seed, "auction").alias("auction"),
        uniform_below(keys.bidders, n, seed, "bidder").alias("bidder"),
        F.concat(F.lit("channel-"), _zipf(keys.channels, n, seed, "channel")).alias("channel"),
        price.cast("bigint").alias("price"),
        _time(n, seed),
    )


def mixed_queries(count: int, keys: Keys = FEW, seed: int = 1) -> list[NamedQuery]:
    """Windows × predicates × group-bys, as WORKLOADS section 2 has them."""
    draw = random.Random(f"mixed {seed}")
    columns = ("auction", "bidder", "channel")
    subsets = [[c for i, c in enumerate(columns) if mask >> i & 1] for mask in range(1, 8)]
    queries = []
    for number in range(count):
        group = ", ".join(draw.choice(subsets))
        slide = draw.choice(_SLIDES)
        length = min(slide * draw.choice(_RANGES), _DAY)
        if draw.random() < 0.3 and length > slide:
            length -= 5
        where = _predicate(draw, keys)
        sql = (
            f"SELECT {group}, window.start AS start, {draw.choice(AGGREGATES)} AS value FROM events "
            f"{where}GROUP BY {group}, window(ts, '{length} seconds', '{slide} seconds')"
        )
        queries.append(NamedQuery(f"mixed_{number}", sql, length / slide))
    return queries


def _predicate(draw: random.Random, keys: Keys) -> str:
    kind = draw.randrange(4)
    if kind == 0:
        return ""
    if kind == 1:
        low, high = sorted(draw.sample(PRICE_POINTS, 2))
        return f"WHERE price BETWEEN {low} AND {high} "
    if kind == 2:
        weights = [1 / rank for rank in range(1, keys.channels + 1)]
        (channel,) = draw.choices(range(keys.channels), weights)
        return f"WHERE channel = 'channel-{channel}' "
    modulus = draw.choice((2, 3, 5))
    return f"WHERE auction % {modulus} = {draw.randrange(modulus)} "


def store_records(
    spark: SparkSession, folder: Path, rows: int, files: int, seed: int = 1
) -> StoredStream:
    """The records as Parquet files in stream order."""
    return store(spark, lambda n: records(n, seed), folder, rows, files, f"records seed={seed}")


def records(numbers: DataFrame, seed: int = 1) -> DataFrame:
    """`(subject, amount, ts)` for the row numbers in column `id`."""
    n = F.col("id")
    matched = uniform(n, seed, "matched") < MATCHED
    unmatched = RULES + uniform_below(SUBJECTS - RULES, n, seed, "other")
    return numbers.select(
        F.when(matched, _zipf(RULES, n, seed, "subject")).otherwise(unmatched).alias("subject"),
        uniform_below(AMOUNTS, n, seed, "amount").alias("amount"),
        _time(n, seed),
    )


def equality_rules(count: int = RULES) -> list[NamedQuery]:
    """Rules that ask for one subject each."""
    return [_rule("equal", number, f"subject = {number}") for number in range(count)]


def range_rules(count: int = RULES, seed: int = 1) -> list[NamedQuery]:
    """Rules that ask for a range of amounts each; widths fall as 1/k and add up to a fifth."""
    draw = random.Random(f"ranges {seed}")
    whole = sum(1 / rank for rank in range(1, count + 1))
    rules = []
    for number in range(count):
        width = max(1, round(AMOUNTS * MATCHED / whole / (number + 1)))
        low = draw.randrange(AMOUNTS - width)
        condition = f"amount BETWEEN {low} AND {low + width - 1}"
        rules.append(_rule("range", number, condition))
    return rules


def _rule(kind: str, number: int, condition: str) -> NamedQuery:
    sql = (
        "SELECT window.start AS start, COUNT(*) AS n, SUM(amount) AS total FROM events "
        f"WHERE {condition} GROUP BY window(ts, '10 seconds')"
    )
    return NamedQuery(f"{kind}_{number}", sql)


def _zipf(values: int, number: Column, seed: int, purpose: str) -> Column:
    """A BIGINT below `values`; value k comes about as often as 1/(k+1). By the inverse of the
    continuous distribution, so that a row costs one power."""
    power = F.pow(F.lit(float(values + 1)), uniform(number, seed, purpose))
    return F.least(F.floor(power - 1), F.lit(values - 1)).cast("bigint")


def _time(number: Column, seed: int) -> Column:
    delay = uniform(number, seed, "disorder") * F.lit(DISORDER_SECONDS * 1e6)
    base = F.lit(round(BASE.timestamp() * 1e6))
    return F.timestamp_micros(base + (number * F.lit(1e6 / RATE) - delay).cast("bigint")).alias(
        "ts"
    )
