"""Late inputs that the query network joins, end to end: one physical join for join queries and aggregation joins, the same rows as joined at instants."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.test_aggregation_joins import (
    CHANNELS,
    DEAR,
    WEB,
    at,
    opened,
    oracle,
    put,
    rows_of,
    write,
)
from tests.support import seeds

import weft
from weft.kernel.network import program
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.network.engine import LOG

PAIRS = """SELECT a.auctionID, a.ts AS opened, b.ts AS bid FROM Auction a JOIN Bid b ON a.auctionID = b.auctionID
    AND b.ts BETWEEN a.ts - INTERVAL 30 SECONDS AND a.ts + INTERVAL 40 SECONDS"""
BY_CHANNEL = """SELECT B.channel, COUNT(*), SUM(A.sellerID) FROM Auction A, Bid B
    WHERE A.auctionID = B.auctionID GROUP BY B.channel"""
DEAR_BIDS = """SELECT COUNT(*) AS n, SUM(B.bidPrice) FROM Auction A, Bid B
    WHERE A.auctionID = B.auctionID AND B.bidPrice > 4"""
WINDOWS = {
    "Auction": "ts >= {at} - 40 AND ts < {at}",
    "Bid": "ts >= {at} - 30 AND ts < {at}",
}
REACHED = range(10, 91, 10)


def test_one_physical_join_finds_pairs_and_matches(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, [0, 1, 2])
    with opened(spark, tmp_path, "none", "auto", "network") as w:
        w.register("pairs", PAIRS)
        w.register("channels", CHANNELS)
        w.register("dear", DEAR)
        w.start(availableNow=True).awaitTermination()
        assert [handle.status for handle in w.queries] == ["active"] * 3
        explained = " ".join(str(w.explain()).split())
        channels, dear, pairs = (rows_of(w, name) for name in ("channels", "dear", "pairs"))
    log = StreamLog(Storage(str(tmp_path / "checkpoint")), LOG)
    last = log.last()
    assert last is not None
    plan = log.network(last.plan_version)
    assert [query.shown_name for query in plan.queries] == [
        "pairs",
        "matches of channels",
        "matches of dear",
    ]
    joins = [node for node in program(plan).nodes if node.join is not None]
    assert len(joins) == 1
    assert "A and B by the query network, each match once" in explained
    assert "in one physical join with matches of dear, pairs" in explained
    assert "network: 3 queries over Auction, Bid" in explained
    assert "query: matches of channels" in explained
    assert Counter(channels) == oracle(BY_CHANNEL, REACHED, WINDOWS)
    assert Counter(dear) == oracle(DEAR_BIDS, REACHED, WINDOWS)
    assert len(pairs) > 3


def test_where_a_step_has_too_many_matches_they_are_found_at_instants(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path, [0, 1, 2])
    late = {"early": "none", "late_joins": "network", "most_matches": 1}
    with weft.Weft(spark, tmp_path / "checkpoint", **late) as w:
        for name, folder, columns in (
            ("Auction", "auctions", "ts timestamp, auctionID bigint, sellerID bigint"),
            ("Bid", "bids", "ts timestamp, auctionID bigint, bidPrice int, channel string"),
        ):
            reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
            frame = reader.parquet(str(tmp_path / folder))
            w.add_stream(name, frame, time="ts", watermark="0 seconds")
        channels = w.register("channels", CHANNELS)
        w.start(availableNow=True).awaitTermination()
        assert channels.status == "active", channels.detail
        explained = " ".join(str(w.explain()).split())
        shown = rows_of(w, "channels")
    assert "since the query network could not join them: [JOIN_TOO_LARGE]" in explained
    assert Counter(shown) == oracle(BY_CHANNEL, REACHED, WINDOWS)


THREE = """SELECT B.channel, COUNT(*) AS n, SUM(C.bidPrice) AS prices
    FROM Auction A [WINDOW 40 SECONDS], Bid B [WINDOW 30 SECONDS], Bid C [WINDOW 30 SECONDS]
    WHERE A.auctionID = B.auctionID AND A.auctionID = C.auctionID GROUP BY B.channel EVERY 10 SECONDS"""


def drawn_rows(run: int, chance: Any) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """A micro-batch of either stream: a minute of rows, some of which come much too late."""

    def seconds() -> float:
        late = chance.random() < 0.15
        return float(60 * run + chance.randrange(-50 if late else 0, 60))

    key = [1, 2, 3, None]
    count = chance.randrange(8, 16)
    auctions = [(seconds(), chance.choice(key), chance.choice([7, 8])) for _ in range(count)]
    channels = ["web", "app", None]
    bids = [
        (seconds(), chance.choice(key), chance.randrange(1, 9), chance.choice(channels))
        for _ in range(count)
    ]
    return auctions, bids


@pytest.mark.parametrize("changes", seeds.some(__name__, [False, True], 1))
def test_restarts_and_queries_that_come_later_give_the_same_rows_either_way(
    spark: SparkSession, tmp_path: Path, changes: bool
) -> None:
    """One query from the beginning, one from the second run on, one dropped; the network runs without a join query beside it."""
    chance = seeds.chance_for(f"{__name__} random")
    batches = [drawn_rows(run, chance) for run in range(5)]
    emit = {"emit": "changes"} if changes else {}
    shown: dict[str, dict[str, Counter[Any]]] = {}
    for way in ("network", "instants"):
        root = tmp_path / way
        shown[way] = {}
        number = 0
        for run, count in enumerate((2, 2, 1)):
            for auctions, bids in batches[number : number + count]:
                write(root / "auctions", number, auctions, ["ts", "auctionID", "sellerID"])
                write(root / "bids", number, bids, ["ts", "auctionID", "bidPrice", "channel"])
                number += 1
            with opened(spark, root, "none", "auto", way) as w:
                if run < 2:
                    w.register("dropped", DEAR)
                else:
                    w.drop("dropped")
                w.register("channels", CHANNELS, **emit)
                if run:
                    w.register("dear", DEAR.replace("> 4", "> 2"))
                w.start(availableNow=True).awaitTermination()
                assert {handle.status for handle in w.queries} == {"active"}
                for name in ("channels", "dear", "dropped"):
                    if any(handle.name == name for handle in w.queries):
                        shown[way][name] = Counter(rows_of(w, name))
    assert shown["network"] == shown["instants"]
    assert all(len(rows) > 3 for rows in shown["network"].values())
    assert max(row[0] for row in shown["network"]["channels"]) > at(200)


def test_a_query_that_switches_to_another_plan_has_other_inputs_matched(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The network leaves the matches of three inputs, and finds those of two."""
    chance = seeds.chance_for(f"{__name__} switching")
    batches = [drawn_rows(run, chance) for run in range(6)]
    shown: dict[str, Counter[Any]] = {}
    for way in ("network", "instants"):
        root = tmp_path / way
        choices = root / "checkpoint" / "streams" / "@aggjoin" / "choices.json"
        for run in range(3):
            for number in (2 * run, 2 * run + 1):
                auctions, bids = batches[number]
                write(root / "auctions", number, auctions, ["ts", "auctionID", "sellerID"])
                write(root / "bids", number, bids, ["ts", "auctionID", "bidPrice", "channel"])
            if run == 1:
                (name,) = json.loads(choices.read_text())
                choices.write_text(json.dumps({name: [[False] * 3, [False, False, True]]}))
            with opened(spark, root, "none", "auto", way) as w:
                three = w.register("three", THREE)
                w.start(availableNow=True).awaitTermination()
                assert three.status == "active", three.detail
                explained = " ".join(str(w.explain()).split())
                shown[way] = Counter(rows_of(w, "three"))
        assert ("joined A and B by the query network" in explained) == (way == "network")
    assert shown["network"] == shown["instants"]
    assert len(shown["network"]) > 3


def test_rows_that_came_before_a_query_have_nothing_of_what_it_computes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Tasks write history anew in buckets: rows for which nobody computed what a SUM needs beside later ones."""
    runs = ("web", "auto", WEB), ("channels", "auto", CHANNELS), ("channels", "lanes", CHANNELS)
    for run, (name, kernel, sql) in enumerate(runs):
        for number in (2 * run, 2 * run + 1):
            seconds = range(4 * number, 4 * number + 4)
            auctions = [(second, second % 3, 7) for second in seconds]
            bids = [(second, second % 3, second, "web") for second in seconds]
            write(tmp_path / "auctions", number, auctions, ["ts", "auctionID", "sellerID"])
            write(tmp_path / "bids", number, bids, ["ts", "auctionID", "bidPrice", "channel"])
        with opened(spark, tmp_path, "none", kernel, "network") as w:
            w.register(name, sql)
            w.start(availableNow=True).awaitTermination()
            assert {handle.status for handle in w.queries} == {"active"}


def test_an_idle_stream_of_matches_holds_no_join_query_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Windows over a join close, though late inputs are matched with a stream that has no rows."""
    put(tmp_path, [0, 1, 2])
    (tmp_path / "offers").mkdir()
    with opened(spark, tmp_path, "none", "auto", "network") as w:
        offers = spark.readStream.schema("ts timestamp, auctionID bigint")
        frame = offers.parquet(str(tmp_path / "offers"))
        w.add_stream("Offer", frame, time="ts", watermark="0 seconds")
        w.register("matched", DEAR.replace("Bid B", "Offer B").replace("B.bidPrice", "B.auctionID"))
        w.register(
            "windows",
            f"""SELECT count(*) AS n FROM {PAIRS.split("FROM ")[1]}
                GROUP BY window(a.ts, '10 seconds')""",
        )
        w.start(availableNow=True).awaitTermination()
        assert {handle.status for handle in w.queries} == {"active"}
        assert "joined A and B by the query network" in " ".join(str(w.explain()).split())
        assert w.results("windows").count() > 1
