"""EXISTS, NOT EXISTS, IN, EXCEPT over streams through the whole runtime, against DuckDB: on the driver and in
tasks, over a crash and restarts, in a time zone other than UTC."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.crash.simulated import dying
from tests.spark.test_network import SCHEMA, START, Streams, some_rows
from tests.support.harness import session

import weft

DELAY = 10
WINDOW = "u.ts BETWEEN t.ts - INTERVAL 20 SECONDS AND t.ts + INTERVAL 5 SECONDS"
QUERIES = {
    "exists": f"SELECT t.id, t.s FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.b AND {WINDOW})",
    "not_exists": "SELECT t.id, upper(t.s) AS big FROM t WHERE t.b < 6 "
    f"AND NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a AND u.s = t.s AND {WINDOW})",
    "not_in": f"SELECT t.id FROM t WHERE t.s NOT IN (SELECT u.s FROM u WHERE u.b > 5 AND u.b = t.b AND {WINDOW})",
    "anti_self": "SELECT x.id FROM t x LEFT ANTI JOIN t y ON y.a = x.a AND y.s = x.s AND y.ts > x.ts "
    "AND y.ts <= x.ts + INTERVAL 12 SECONDS",
    "excepted": "SELECT ts, a FROM t EXCEPT SELECT ts, a FROM u",
    "intersected": "SELECT ts, s FROM t INTERSECT SELECT ts, s FROM u WHERE b > 2",
}
CLOSED_AFTER = {"not_exists": 5, "not_in": 5, "anti_self": 12, "excepted": 0}
TIMES = {"anti_self": "x.ts"}


class Zoned(Streams):
    """The streams of a session in India, a few seconds behind."""

    def open(self, **settings: Any) -> weft.Weft:
        w = weft.Weft(self.spark, self.folder / "checkpoint", statistics_every=0, **settings)
        for name in self.rows:
            source = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
            frame = source.parquet(str(self.folder / name))
            w.add_stream(name, frame, time="ts", watermark=f"{DELAY} seconds")
        return w

    def expected_rows(self, name: str, admitted: int, watermark: int) -> Counter[Any]:
        """Over the rows above `admitted`, which were late in no step, as far as they are closed."""
        sql = QUERIES[name]
        if name in CLOSED_AFTER:
            closed = f"epoch({TIMES.get(name, 't.ts')}) + {CLOSED_AFTER[name]} <= {watermark}"
            before, word, behind = sql.partition(" EXCEPT ")
            sql = f"{before} {'AND' if 'WHERE' in before else 'WHERE'} {closed}{word}{behind}"
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'")
            for stream, tables in self.rows.items():
                first, *others = tables
                above = [table.filter(pc.greater(_seconds(table), admitted)) for table in others]
                database.register(stream, pa.concat_tables([first, *above]))
            text = sql.replace("LEFT ANTI", "ANTI")
            return Counter(database.execute(text).fetchall())


def _seconds(table: pa.Table) -> pa.Array:
    return pc.divide(table.column("ts").cast(pa.int64()), 1_000_000)


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Zoned:
    own_session = session(spark)
    own_session.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    return Zoned(own_session, tmp_path)


def emitted(w: weft.Weft, name: str) -> Counter[Any]:
    return Counter(zip(*w.results(name).toArrow().to_pydict().values(), strict=True))


def register(w: weft.Weft, names: Iterable[str]) -> None:
    with w.changes():
        for name in names:
            handle = w.register(name, QUERIES[name])
            assert handle.status == "active", (name, handle.detail)


def crashed_run(w: weft.Weft, failpoint: str) -> None:
    """A run that ends as if its process had been killed."""
    with dying(failpoint) as crash:
        run = w.start(availableNow=True)
        with pytest.raises(weft.WeftError):
            run.awaitTermination()
        w.close()
    assert crash.crashed


def test_rows_are_shown_once_they_are_closed(streams: Zoned) -> None:
    """Three runs; the second one crashes. Rows that are not closed at the end of a run wait for the
    next one. Rows of the second run that are older than the watermark of the first are late."""
    w = streams.open()
    register(w, QUERIES)
    streams.add("t", some_rows(0, 40))
    streams.add("u", some_rows(0, 40, shift=2))
    w.start(availableNow=True).awaitTermination()
    reached = START + 39 - DELAY
    for name in QUERIES:
        rows = emitted(w, name)
        assert rows == streams.expected_rows(name, 0, reached), name
        waiting = streams.expected_rows(name, 0, 1 << 40) - rows
        assert rows and (waiting or name not in CLOSED_AFTER), name
    streams.add("t", pa.concat_tables([some_rows(15, 25), some_rows(40, 60)]))
    streams.add("u", pa.concat_tables([some_rows(15, 25, shift=1), some_rows(40, 60, shift=2)]))
    crashed_run(w, "before_commit")
    with streams.open() as w:
        w.start(availableNow=True).awaitTermination()
        for name in QUERIES:
            expected = streams.expected_rows(name, reached, START + 59 - DELAY)
            assert emitted(w, name) == expected, name


def test_rows_are_closed_in_tasks(streams: Zoned) -> None:
    """A run ends between two stages of a step. The next one does the step again."""
    names = ("exists", "not_in")
    w = streams.open(kernel="lanes", lanes=2)
    register(w, names)
    streams.add("t", some_rows(0, 40))
    streams.add("u", some_rows(0, 40, shift=2))
    crashed_run(w, "after_stage")
    with streams.open(kernel="lanes", lanes=2) as w:
        w.start(availableNow=True).awaitTermination()
        for name in names:
            expected = streams.expected_rows(name, 0, START + 39 - DELAY)
            assert expected and emitted(w, name) == expected, name


def test_a_query_that_would_take_rows_back_is_refused(streams: Zoned) -> None:
    """The error says where, and which condition would close the rows."""
    w = streams.open()
    sql = "SELECT t.id FROM t\nWHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)"
    with pytest.raises(weft.WeftError) as raised:
        w.register("open", sql)
    text = str(raised.value)
    assert "[NEVER_CLOSED] query 'open', line 2, column 11" in text
    assert "u.ts <= t.ts + INTERVAL 1 HOUR" in text
    with pytest.raises(weft.WeftError, match="NEVER_CLOSED"):
        w.register("days", sql.replace("t.a)", "t.a AND u.ts <= t.ts + INTERVAL 1 DAY)"))
    w.close()
