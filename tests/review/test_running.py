"""Runs that hang, leak, end for the wrong reason or cannot be started again."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.review.support import COUNTS, opened, put, put_rows, read, rows_of
from tests.support.harness import session

import weft
from weft.catalog import database, store

REFUSED_BY_SPARK = "SELECT k, v FROM s ORDER BY v"


def wait_until(condition: Any, seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(condition())


def test_a_run_that_ended_by_itself_can_be_followed_by_another(
    spark: SparkSession, tmp_path: Path
) -> None:
    w = opened(session(spark), tmp_path)
    w.register("q", COUNTS)
    put_rows(tmp_path / "input", 0, [(1, "a", 1), (30, "a", 1)])
    first = w.start(availableNow=True)
    assert wait_until(lambda: not first.isActive)
    w.start(availableNow=True).awaitTermination()
    assert rows_of(w, "q") == [("a", 1)]


def test_a_start_that_fails_leaves_nothing_running(spark: SparkSession, tmp_path: Path) -> None:
    own = session(spark)
    w = opened(own, tmp_path)
    w.register("q", COUNTS)
    try:
        w.register("sorted", REFUSED_BY_SPARK)
        w.start()
    except Exception:
        active = own.streams.active
        for query in active:
            query.stop()
        assert not active
    else:
        w.close()


def test_a_query_that_spark_will_not_start_disturbs_no_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    w = opened(session(spark), tmp_path)
    w.register("q", COUNTS)
    run = w.start()
    try:
        try:
            w.register("sorted", REFUSED_BY_SPARK)
        except weft.WeftError:
            return
        w.register("plain", "SELECT k, v FROM s WHERE v > 0")
        plain = w.query("plain")._record.id
        assert wait_until(lambda: plain in run.fallback_ids, 5)
        assert w.query("sorted").status in (store.QUARANTINED, store.REJECTED)
    finally:
        run.stop()


def test_stop_from_inside_a_sink_does_not_hang(spark: SparkSession, tmp_path: Path) -> None:
    w = opened(session(spark), tmp_path)
    w.register("q", COUNTS)
    put_rows(tmp_path / "input", 0, [(1, "a", 1)])
    put_rows(tmp_path / "input", 1, [(30, "a", 1)])
    started, returned, runs = threading.Event(), threading.Event(), []

    def stop(_name: str, _table: pa.Table, _batch: int) -> None:
        started.wait()
        runs[0].stop()
        returned.set()

    runs.append(w.start(sink=weft.sinks.callback(stop)))
    started.set()
    assert returned.wait(10)


def test_an_error_of_the_source_quarantines_no_query(spark: SparkSession, tmp_path: Path) -> None:
    own = session(spark)
    schema = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("x", pa.string())])
    put(tmp_path / "input", 0, {"ts": [0, 1], "x": ["1", "oops"]}, schema)
    frame = read(own, tmp_path / "input", "ts timestamp, x string")
    w = weft.Weft(own, tmp_path / "checkpoint")
    w.add_stream("s", frame.selectExpr("ts", "cast(x AS int) AS v"), "ts", "0 seconds")
    w.register("plain", "SELECT sum(v) AS n FROM s GROUP BY window(ts, '10 seconds')")
    w.register("suspect", "SELECT sum(v + 1) AS n FROM s GROUP BY window(ts, '10 seconds')")
    with pytest.raises(weft.WeftError):
        w.start(availableNow=True).awaitTermination()
    assert w.query("suspect").status == "active"


def test_a_failing_fallback_is_quarantined(spark: SparkSession, tmp_path: Path) -> None:
    w = opened(session(spark), tmp_path)
    w.register("q", COUNTS)
    w.register("divided", "SELECT k, 1 / v AS x FROM s")
    put_rows(tmp_path / "input", 0, [(1, "a", 0), (30, "a", 0)])
    run = w.start()
    try:
        assert wait_until(lambda: w.query("divided").status == store.QUARANTINED, 8)
    finally:
        run.stop()


def test_a_long_change_does_not_end_the_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step writes to the catalog after its commit, while the user's transaction is open."""
    monkeypatch.setattr(database, "_PATIENCE_SECONDS", 0.5)
    w = opened(session(spark), tmp_path)
    w.register("q", COUNTS)
    put_rows(tmp_path / "input", 0, [(1, "a", 1), (40, "a", 1)])
    run = w.start()
    run.processAllAvailable()
    with w.changes():
        w.register("other", COUNTS)
        put_rows(tmp_path / "input", 1, [(2, "a", 1), (41, "a", 1)])
        assert wait_until(lambda: run.status["batch"] == 1 or not run.isActive)
        time.sleep(1)
    error, active = run.exception(), run.isActive
    run.stop()
    assert active and error is None


def test_the_time_zone_of_a_run_is_that_of_its_start(spark: SparkSession, tmp_path: Path) -> None:
    own = session(spark)
    w = opened(own, tmp_path)
    w.register(
        "q",
        "SELECT date_format(window.start, 'z') AS zone, count(*) AS n FROM s "
        "GROUP BY window(ts, '10 seconds')",
    )
    put_rows(tmp_path / "input", 0, [(1, "a", 1)])
    run = w.start()
    run.processAllAvailable()
    own.conf.set("spark.sql.session.timeZone", "America/New_York")
    put_rows(tmp_path / "input", 1, [(30, "a", 1)])
    run.processAllAvailable()
    run.stop()
    assert rows_of(w, "q") == [("UTC", 1)]
