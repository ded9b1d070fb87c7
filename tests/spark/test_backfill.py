"""Queries with backfill: what they emit is what DuckDB says of the rows that history held when they were
added, and of all rows since."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.crash.simulated import dying
from tests.spark.test_network import QUERIES, Streams, _comparable, running, some_rows
from tests.support import seeds
from tests.support.harness import session

import weft
from weft.errors import SqlError
from weft.runtime.checkpoint.commits import RETAINED
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage

EVERY_COLUMN = "x.id, x.a, x.b, x.s, x.x, x.d, x.m, x.ts"
KEEPERS = {
    "keeps_t": f"SELECT {EVERY_COLUMN}, y.id AS other FROM t x, t y WHERE x.b = y.a "
    "AND y.id > x.id AND y.id < x.id + 3 AND x.a <> 5 AND y.a <> 5",
    "keeps_u": f"SELECT {EVERY_COLUMN}, y.id AS other FROM u x, u y WHERE x.id = y.id + 1",
    "old_chain": f"{QUERIES['chain']} AND x.a <> 5 AND y.a <> 5",
}
"""They need all rows of `u` for ever, and some rows of `t`, with all columns."""
PARTNERS = {
    "exists": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.b = t.b AND u.id > t.id "
    "AND u.ts <= t.ts + INTERVAL 5 SECONDS)",
}


class Held(Streams):
    """Streams, and the rows that history held of them when backfilled queries were added."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        super().__init__(spark, folder)
        self.held: dict[str, dict[str, pa.Table]] = {}

    def backfill(self, w: weft.Weft, queries: Mapping[str, str]) -> None:
        last = StreamLog(Storage(str(self.folder / "checkpoint")), "@network").last()
        assert last is not None
        held = {}
        for stream, tables in self.rows.items():
            entries = [e for e in last.live[RETAINED] if e["relation"] == stream]
            files = [pq.read_table(self.folder / "checkpoint" / e["name"]) for e in entries]
            ids = pa.concat_tables(files).column("id")
            everything = pa.concat_tables(tables)
            held[stream] = everything.filter(pc.is_in(everything["id"], ids))
        with w.changes():
            for name, sql in queries.items():
                assert w.register(name, sql, backfill=True).status == "active"
                self.since[name] = {stream: len(rows) for stream, rows in self.rows.items()}
                self.held[name] = held

    def expected(self, name: str, sql: str) -> Counter[tuple[Any, ...]]:
        if name not in self.held:
            return super().expected(name, sql)
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'")
            for stream, tables in self.rows.items():
                later = tables[self.since[name][stream] :]
                database.register(stream, pa.concat_tables([self.held[name][stream], *later]))
            return Counter(map(_comparable, database.execute(sql).fetchall()))


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Held:
    return Held(session(spark), tmp_path)


ADDED = {name: sql for name, sql in QUERIES.items() if name != "function"} | PARTNERS
ADDED |= {"chain_again": KEEPERS["old_chain"]}


@pytest.mark.parametrize("kernel", seeds.some(__name__, ["driver", "lanes"], 1))
def test_a_query_sees_what_history_holds_and_then_new_rows(streams: Held, kernel: str) -> None:
    """Also while the streams stand still; also a query whose joins others have; also after a restart, and in
    another place."""
    with streams.open(kernel=kernel, lanes=2) as w:
        streams.register(w, KEEPERS)
        with running(w) as run:
            streams.add("t", some_rows(0, 40))
            streams.add("u", some_rows(0, 30, shift=2))
            run.processAllAvailable()
            streams.backfill(w, ADDED)
            run.processAllAvailable()
            assert len(streams.held["filter"]["t"]) < 40 and len(streams.held["filter"]["u"]) == 30
            assert streams.check(w, ADDED) > 100
            streams.add("t", some_rows(40, 60))
            streams.add("u", some_rows(30, 55, shift=2))
            run.processAllAvailable()
        streams.check(w, ADDED)
    with streams.open(kernel="driver") as w:
        assert w.query("chain").backfill and not w.query("old_chain").backfill
        streams.add("t", some_rows(60, 70))
        w.start(availableNow=True).awaitTermination()
        streams.check(w, ADDED | KEEPERS)


def test_rows_without_a_column_of_the_query_are_not_seen(streams: Held) -> None:
    """Nobody has asked for the column while these rows came."""
    narrow = "SELECT x.id AS x, y.id AS y FROM t x, t y WHERE x.b = y.a AND y.id < x.id + 3"
    wide = "SELECT x.id AS x, x.s, y.id AS y FROM t x, t y WHERE x.b = y.a AND y.id < x.id + 3"
    with streams.open() as w:
        streams.register(w, {"narrow": narrow})
        streams.add("t", some_rows(0, 10))
        w.start(availableNow=True).awaitTermination()
        w.register("wide", wide, backfill=True)
        w.register("as_narrow", narrow, backfill=True)
        streams.since |= {"wide": {"t": 1, "u": 0}, "as_narrow": {"t": 0, "u": 0}}
        streams.add("t", some_rows(10, 20))
        w.start(availableNow=True).awaitTermination()
        streams.check(w, {"narrow": narrow, "wide": wide, "as_narrow": narrow})


def test_backfill_is_for_filters_and_joins(streams: Held) -> None:
    with streams.open() as w:
        for sql in (
            "SELECT count(*) FROM t GROUP BY window(ts, '1 hour')",
            "SELECT x.id FROM t x LEFT JOIN u y ON x.b = y.b",
        ):
            with pytest.raises(SqlError, match="backfill is for filters and joins"):
                w.register("q", sql, backfill=True)


def in_network() -> bool:
    return threading.current_thread().name == "weft-@network"


@pytest.mark.parametrize("kernel", seeds.some(__name__, ["driver", "lanes"], 1))
def test_crashes_while_history_is_shown(streams: Held, kernel: str) -> None:
    """At every failpoint of the step, one after the other: every row is shown once."""
    some = {name: ADDED[name] for name in ("filter", "chain_again", "distinct", "exists")}
    with streams.open(kernel=kernel, lanes=2) as w:
        streams.register(w, KEEPERS)
        streams.add("t", some_rows(0, 30))
        streams.add("u", some_rows(0, 20, shift=2))
        w.start(availableNow=True).awaitTermination()
        streams.backfill(w, some)
    if kernel == "lanes":
        failpoints = ["after_stage", "before_commit"]
    else:
        failpoints = ["after_plan", "after_intent", "after_read", "after_results", "before_commit"]
    for failpoint in [*failpoints, "after_commit"]:
        with dying(failpoint, when=in_network) as crash, pytest.raises(weft.RunError):
            streams.open(kernel=kernel, lanes=2).start(availableNow=True).awaitTermination()
        assert crash.crashed
    with streams.open(kernel=kernel, lanes=2) as w:
        streams.add("u", some_rows(20, 30, shift=2))
        w.start(availableNow=True).awaitTermination()
        assert streams.check(w, some) > 20
