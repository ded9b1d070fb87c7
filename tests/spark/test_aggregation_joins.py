"""Aggregation joins end to end: SQL in, results at instants out, over streams and a table, in another time zone, with a restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.support import seeds
from tests.support.input_files import put_file

import weft

START = datetime(2024, 1, 1, 0, 59, 20, tzinfo=UTC)
"""The hour is full after 40 seconds: an instant of the query that is printed."""
AUCTIONS = "ts timestamp, auctionID bigint, sellerID bigint"
BIDS = "ts timestamp, auctionID bigint, bidPrice int, channel string"
PEOPLE = "personID bigint, state string"
PRINTED = """SELECT A.auctionID, COUNT(B.*)
FROM Auction AS A [WINDOW UNTIL NOW], Bid AS B [WINDOW 1 HOUR],
     Person AS P
WHERE A.auctionID = B.auctionID AND A.sellerID = P.personID AND P.state = "VT"
GROUP BY A.auctionID;
"""
"""As in the paper's introduction."""
OFTEN = """SELECT A.auctionID, COUNT(B.*) AS bids, MAX(B.bidPrice) AS best, AVG(B.bidPrice) AS mean,
        MIN(B.ts) AS first
    FROM Auction AS A [WINDOW UNTIL NOW], Bid AS B [WINDOW 30 SECONDS], Person AS P
    WHERE A.auctionID = B.auctionID AND A.sellerID = P.personID AND P.state = "VT"
    GROUP BY A.auctionID HAVING COUNT(*) > 0 EVERY 10 SECONDS"""
CHANGES = """SELECT upper(B.channel) AS channel, SUM(B.bidPrice) AS total, COUNT(*) AS n
    FROM Auction A [WINDOW 40 SECONDS] JOIN Bid B [WINDOW 20 SECONDS TUMBLING] USING (auctionID)
    WHERE B.bidPrice > 1 GROUP BY upper(B.channel)"""
FAILING = """SELECT SUM(100 / (B.bidPrice - 10)) AS s FROM Auction A [WINDOW 10 SECONDS]
    JOIN Bid B [WINDOW 10 SECONDS] USING (auctionID)"""
CHANNELS = """SELECT B.channel, COUNT(*) AS n, SUM(A.sellerID) AS sellers
    FROM Auction A [WINDOW 40 SECONDS], Bid B [WINDOW 30 SECONDS]
    WHERE A.auctionID = B.auctionID GROUP BY B.channel EVERY 10 SECONDS"""
SEVERAL = """SELECT B.channel, SUM(A.sellerID * B.bidPrice) AS product, COUNT(DISTINCT A.sellerID) AS different,
        COUNT(*) FILTER (WHERE A.sellerID > B.bidPrice) AS low
    FROM Auction A [WINDOW 40 SECONDS], Bid B [WINDOW 30 SECONDS]
    WHERE A.auctionID = B.auctionID GROUP BY B.channel EVERY 10 SECONDS"""
DEAR = """SELECT count(*) AS n, sum(B.bidPrice) AS total
    FROM Auction A [WINDOW 40 SECONDS], Bid B [WINDOW 30 SECONDS]
    WHERE A.auctionID = B.auctionID AND B.bidPrice > 4 EVERY 10 SECONDS"""
WEB = """SELECT count(*) AS n FROM Auction A [WINDOW 40 SECONDS], Bid B [WINDOW 30 SECONDS]
    WHERE A.auctionID = B.auctionID AND B.channel = 'web' EVERY 10 SECONDS"""
WINDOWED = "SELECT auctionID, count(*) AS n FROM Bid GROUP BY window(ts, '10 seconds'), auctionID"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


AUCTION_ROWS = [
    [(1, 1, 7), (3, 2, 8), (4, None, 7)],
    [(21, 3, 7), (2, 4, 7), (25, 1, None)],
    [(64, 5, 7), (90, 6, 8)],
]
BID_ROWS = [
    [(2, 1, 10, "web"), (8, 1, None, "app"), (9, 2, 5, None)],
    [(24, 3, 7, "web"), (26, 1, 4, "app"), (1, 1, 99, "web"), (27, None, 3, "web")],
    [(66, 5, 1, "web"), (70, 5, 2, "Web"), (95, 1, 6, "app")],
]
PERSON_ROWS = [(7, "VT"), (8, "NY"), (7, "VT")]


def write(folder: Path, number: int, rows: Sequence[tuple[Any, ...]], names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    types = {"bidPrice": pa.int32(), "channel": pa.string()}
    table = {
        name: pa.array([at(v) for v in values], pa.timestamp("us", tz="UTC"))
        if name == "ts"
        else pa.array(values, types.get(name, pa.int64()))
        for name, values in columns.items()
    }
    put_file(pa.table(table), folder, number)


def opened(
    spark: SparkSession, root: Path, early: str, kernel: str, late_joins: str = "instants"
) -> weft.Weft:
    def stream(name: str, schema: str) -> DataFrame:
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(root / name))

    w = weft.Weft(spark, root / "checkpoint", early=early, kernel=kernel, late_joins=late_joins)
    w.add_stream("Auction", stream("auctions", AUCTIONS), time="ts", watermark="0 seconds")
    w.add_stream("Bid", stream("bids", BIDS), time="ts", watermark="0 seconds")
    w.add_table("Person", spark.createDataFrame(PERSON_ROWS, PEOPLE))
    return w


def put(root: Path, numbers: Sequence[int]) -> None:
    for number in numbers:
        write(root / "auctions", number, AUCTION_ROWS[number], ["ts", "auctionID", "sellerID"])
        write(root / "bids", number, BID_ROWS[number], ["ts", "auctionID", "bidPrice", "channel"])


def admitted(batches: Sequence[Sequence[tuple[Any, ...]]], pane: int) -> list[tuple[Any, ...]]:
    """The rows whose panes were still open when they came; a batch knows the watermark of those before the last."""
    kept, marks = [], [0.0, 0.0]
    for rows in batches:
        before = marks[-2]
        kept += [row for row in rows if (row[0] // pane + 1) * pane > before]
        marks.append(max(marks[-1], *(row[0] for row in rows)))
    return kept


def oracle(select: str, instants: Sequence[int], windows: dict[str, str]) -> Counter[Any]:
    """What DuckDB gives over the contents of the windows, at every instant."""
    connection = duckdb.connect()
    for name, rows, columns in (
        ("Auction", admitted(AUCTION_ROWS, 10), "ts DOUBLE, auctionID BIGINT, sellerID BIGINT"),
        (
            "Bid",
            admitted(BID_ROWS, 10),
            "ts DOUBLE, auctionID BIGINT, bidPrice INT, channel VARCHAR",
        ),
        ("Person", PERSON_ROWS, "personID BIGINT, state VARCHAR"),
    ):
        connection.execute(f"CREATE TABLE all_{name} ({columns})")
        for row in rows:
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO all_{name} VALUES ({marks})", row)
    wanted: Counter[Any] = Counter()
    for instant in instants:
        for name, window in windows.items():
            connection.execute(
                f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM all_{name} "
                f"WHERE {window.format(at=instant)}"
            )
        for row in connection.execute(select).fetchall():
            wanted[(at(instant), *row)] += 1
    return wanted


def rows_of(w: weft.Weft, name: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in w.results(name).toArrow().to_pylist()]


@pytest.mark.parametrize(
    ("early", "kernel", "late_joins"),
    seeds.some(
        __name__,
        [("all", "lanes", "auto"), ("none", "auto", "instants"), ("none", "auto", "network")],
        1,
    ),
)
def test_sql_to_results_with_a_restart_in_another_time_zone(
    spark: SparkSession, tmp_path: Path, early: str, kernel: str, late_joins: str
) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    own.conf.set("spark.sql.shuffle.partitions", "1")
    put(tmp_path, [0, 1])
    for numbers in ([], [2]):
        put(tmp_path, numbers)
        with opened(own, tmp_path, early, kernel, late_joins) as w:
            failing = w.register("failing", FAILING)
            often = w.register("often", OFTEN)
            w.register("printed", PRINTED)
            w.register("changes", CHANGES, emit="changes")
            w.register("windowed", WINDOWED)
            w.register("channels", CHANNELS)
            w.register("several", SEVERAL)
            w.register("dear", DEAR)
            w.start(availableNow=True).awaitTermination()
            statuses = [handle.status for handle in w.queries]
            assert statuses == ["quarantined", *["active"] * 7], often.detail
            assert "zero" in failing.detail.lower()
            explained = " ".join(str(w.explain()).split())
            shown, changed = rows_of(w, "often"), rows_of(w, "changes")
            printed = rows_of(w, "printed")
            columns = w.results("often").columns, w.results("changes").columns
            windowed, by_channel = w.results("windowed").count(), rows_of(w, "channels")
            several = rows_of(w, "several")
            dear = rows_of(w, "dear")
    assert columns == (
        ["at", "auctionID", "bids", "best", "mean", "first"],
        ["at", "channel", "total", "n", "removed"],
    )
    assert windowed > 0
    plan = "plan EAP111" if early == "all" else "plan LAP"
    assert f"aggregation join often: {plan}" in explained
    assert ("aggregation set of Bid" in explained) == (early == "all")
    finer = "by (auctionID) from the set by (cast(`bidPrice` AS bigint), auctionID, channel) and 1 selection;"
    assert (finer in explained) == (early == "all")
    select = """SELECT A.auctionID, COUNT(*), MAX(B.bidPrice), AVG(B.bidPrice), MIN(B.ts)
        FROM Auction A, Bid B, Person P
        WHERE A.auctionID = B.auctionID AND A.sellerID = P.personID AND P.state = 'VT' GROUP BY A.auctionID"""
    windows = {"Auction": "ts < {at}", "Bid": "ts >= {at} - 30 AND ts < {at}", "Person": "true"}
    reached = range(10, 91, 10)
    wanted = oracle(select, reached, windows)
    assert sum(wanted.values()) > 5
    assert Counter((*row, at(first)) for *row, first in wanted.elements()) == Counter(shown)
    windows["Bid"] = "ts >= {at} - 3600 AND ts < {at}"
    in_the_hour = oracle(select, [40], windows)
    assert len(in_the_hour) > 1
    assert Counter(row[:3] for row in in_the_hour.elements()) == Counter(printed)
    windows["Bid"] = "ts >= {at} - 30 AND ts < {at}"
    select = """SELECT B.channel, COUNT(*), SUM(A.sellerID) FROM Auction A, Bid B
        WHERE A.auctionID = B.auctionID GROUP BY B.channel"""
    windows["Auction"] = "ts >= {at} - 40 AND ts < {at}"
    assert oracle(select, reached, windows) == Counter(by_channel)
    select = """SELECT B.channel, SUM(A.sellerID * B.bidPrice), COUNT(DISTINCT A.sellerID),
        COUNT(*) FILTER (WHERE A.sellerID > B.bidPrice) FROM Auction A, Bid B
        WHERE A.auctionID = B.auctionID GROUP BY B.channel"""
    assert oracle(select, reached, windows) == Counter(several)
    select = """SELECT COUNT(*) AS n, SUM(B.bidPrice) FROM Auction A, Bid B
        WHERE A.auctionID = B.auctionID AND B.bidPrice > 4"""
    assert oracle(select, reached, windows) == Counter(dear)
    select = """SELECT upper(B.channel), SUM(B.bidPrice), COUNT(*) FROM Auction A JOIN Bid B USING (auctionID)
        WHERE B.bidPrice > 1 GROUP BY ALL"""
    windows = {"Auction": "ts >= {at} - 40 AND ts < {at}"}
    windows["Bid"] = "ts >= floor(({at} - 1) / 20) * 20 AND ts < {at}"
    check_changes(changed, oracle(select, range(20, 81, 20), windows))


def test_a_set_goes_on_when_a_query_that_made_it_wide_is_dropped(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The set reads the channel for the selection of the query that is gone, which no other query reads."""
    for numbers in ([0, 1], [2]):
        put(tmp_path, numbers)
        with opened(spark, tmp_path, "all", "auto") as w:
            w.register("dear", DEAR)
            w.register("web", WEB)
            if numbers == [2]:
                w.drop("web")
            explained = " ".join(str(w.explain("dear")).split())
            w.start(availableNow=True).awaitTermination()
            dear = rows_of(w, "dear")
    assert "from the set by (auctionID) and 2 selections" in explained
    select = """SELECT COUNT(*) AS n, SUM(B.bidPrice) FROM Auction A, Bid B
        WHERE A.auctionID = B.auctionID AND B.bidPrice > 4"""
    windows = {"Auction": "ts >= {at} - 40 AND ts < {at}", "Bid": "ts >= {at} - 30 AND ts < {at}"}
    assert oracle(select, range(10, 91, 10), windows) == Counter(dear)


def check_changes(changes: list[tuple[Any, ...]], wanted: Counter[Any]) -> None:
    """Changes, applied one instant after the other, give the whole result of each."""
    assert any(row[-1] for row in changes), "no group has gone"
    shown: dict[Any, Any] = {}
    for seconds in range(20, 81, 20):
        for instant, channel, *values, removed in changes:
            if instant == at(seconds) and removed:
                assert values == [None, None]
                del shown[channel]
            elif instant == at(seconds):
                assert shown.get(channel) != values
                shown[channel] = values
        whole = Counter((at(seconds), channel, *values) for channel, values in shown.items())
        assert whole == Counter({row: n for row, n in wanted.items() if row[0] == at(seconds)})
