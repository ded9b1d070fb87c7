"""Tables, derived streams and closed windows under input that is unusual but fair."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.explain.support import NoAnalyzer
from tests.review.support import COUNTS, put_rows, read, rows_of
from tests.support.harness import session

import weft
from weft.algebra.network.derived import DerivedQuery
from weft.algebra.query import Field, StreamSchema
from weft.sql import Fallback, bind

STREAMS = {
    name: StreamSchema(
        name, (Field("ts", "timestamp"), Field("k", "int"), Field("v", "bigint")), "ts", 0
    )
    for name in ("s", "r")
}
TABLES = {"t": (Field("k", "bigint"), Field("name", "string"))}
BOUND = "r.ts BETWEEN s.ts AND s.ts + INTERVAL 5 SECONDS"
WINDOW = "window(s.ts, '10 seconds')"


def bound(sql: str) -> Any:
    return bind("q", sql, STREAMS, NoAnalyzer(), query_id="q@1", tables=TABLES, time_zone="UTC")


def opened(spark: SparkSession, folder: Path, **settings: Any) -> weft.Weft:
    """Streams `s` and `r` with rows of the same times, and one that ends all windows."""
    for name in ("s", "r"):
        put_rows(folder / name, 0, [(1, "x", 1), (2, "y", 2), (12, "x", 3)])
        put_rows(folder / name, 1, [(100, "z", 4)])
    w = weft.Weft(spark, folder / "checkpoint", **settings)
    for name in ("s", "r"):
        w.add_stream(name, read(spark, folder / name), time="ts", watermark="0 seconds")
    return w


def finish(w: weft.Weft) -> None:
    w.start(availableNow=True).awaitTermination()


class TestJoinsThatNeverMatch:
    """An aggregate over a join whose conditions contradict each other."""

    SQL = f"SELECT count(*) AS n FROM s JOIN r ON s.k = r.k AND {BOUND} WHERE s.v > 5 AND s.v < 3 GROUP BY {WINDOW}"

    def test_is_shared(self) -> None:
        assert isinstance(bound(self.SQL), DerivedQuery)

    def test_has_no_results_and_disturbs_nobody(self, spark: SparkSession, tmp_path: Path) -> None:
        with opened(session(spark), tmp_path) as w:
            handle = w.register("never", self.SQL)
            assert handle.status == "active"
            assert "no row can ever match" in handle.detail
            w.register("some", self.SQL.replace(" WHERE s.v > 5 AND s.v < 3", ""))
            finish(w)
            assert rows_of(w, "never") == []
            assert rows_of(w, "some") == [(1,), (2,)]


def test_windows_over_two_streams_of_a_join_are_refused_as_such() -> None:
    sql = f"SELECT count(*) AS n FROM s JOIN r ON s.k = r.k AND {BOUND} GROUP BY {WINDOW}, window(r.ts, '10 seconds')"
    with pytest.raises(weft.WeftError, match="SEVERAL_WINDOWS"):
        bound(sql)


def test_an_unknown_column_of_the_row_outside_is_looked_for_there() -> None:
    sql = "SELECT v FROM s WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = s.wrong AND r.ts <= s.ts)"
    with pytest.raises(
        weft.WeftError, match=r"'s\.wrong' is not a column of 's'; columns: ts, k, v"
    ):
        bound(sql)


def test_a_table_that_is_found_by_a_condition_that_may_raise_names_it() -> None:
    query = bound(
        f"SELECT t.name, count(*) AS n FROM s JOIN t ON s.k + 1 = t.k GROUP BY {WINDOW}, t.name"
    )
    assert isinstance(query, Fallback)
    assert query.reason.endswith("may raise an error on some rows: s.k + 1")


def test_what_spark_refuses_says_why_it_is_not_shared(spark: SparkSession, tmp_path: Path) -> None:
    with opened(session(spark), tmp_path) as w, pytest.raises(weft.WeftError) as caught:
        w.register("q", "SELECT v FROM s WHERE k IN (SELECT k FROM r) OR v > 5")
    assert "IN (SELECT …) over a stream below other conditions has no shared form" in str(
        caught.value
    )


def test_a_resumed_query_says_again_what_is_known_of_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    with opened(session(spark), tmp_path) as w:
        sql = f"SELECT sum(1 DIV (s.v - 1)) AS n FROM s JOIN r ON s.k = r.k AND {BOUND}"
        before = w.register("fails", f"{sql} GROUP BY {WINDOW}").detail
        finish(w)
        assert w.query("fails").status == "quarantined"
        assert w.resume("fails").detail == before == "over the join of r, s"


class TestTables:
    def test_columns_that_arrow_cannot_hold_disturb_nobody(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        """A query that reads one runs alone; others do not notice."""
        own = session(spark)
        table = own.sql("SELECT 'x' AS k, 7 AS n, INTERVAL '1' YEAR AS age")
        with opened(own, tmp_path) as w:
            w.add_table("t", table)
            window = f"GROUP BY {WINDOW}"
            w.register("windowed", f"SELECT sum(t.n) AS n FROM s JOIN t ON s.k = t.k {window}")
            w.register("joined", "SELECT s.v, t.n FROM s JOIN t ON s.k = t.k")
            w.register("counted", f"SELECT count(t.age) AS n FROM s JOIN t ON s.k = t.k {window}")
            w.register("known", "SELECT s.v FROM s JOIN t ON s.k = t.k WHERE t.age IS NOT NULL")
            w.register("plain", COUNTS)
            alone = [handle.name for handle in w.queries if handle.status == "fallback"]
            assert alone == ["counted", "known"]
            finish(w)
            assert rows_of(w, "windowed") == [(7,), (7,)]
            assert rows_of(w, "joined") == [(1, 7), (3, 7)]
            assert (1,) in rows_of(w, "counted"), "in Spark it has a watermark of its own"
            assert rows_of(w, "known") == [(1,), (3,)]

    def test_columns_that_differ_in_case_are_refused(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        own = session(spark)
        with opened(own, tmp_path) as w, pytest.raises(weft.WeftError, match="DUPLICATE_COLUMN"):
            w.add_table("t", own.sql("SELECT 'x' AS k, 7 AS n, 8 AS N"))
