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
from weft.runtime.queries.streaming_rules import StreamingRules
from weft.runtime.run.run import Run

REFUSED_BY_SPARK = "SELECT k, v FROM s ORDER BY v"
#: A lambda has no shared form.
ALONE = "SELECT k, transform(array(v), x -> x)[0] AS v FROM s"


def wait_until(condition: Any, seconds: float = 60) -> bool:
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


def test_a_start_that_fails_leaves_nothing_running(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails at its last part, when everything else runs already."""
    own_session = session(spark)
    w = opened(own_session, tmp_path)
    w.register("q", COUNTS)
    w.register("alone", ALONE)
    put_rows(tmp_path / "input", 0, [(1, "a", 1), (30, "a", 1)])
    running: list[int] = []

    def fail(_: Run) -> None:
        running.append(len(own_session.streams.active))
        raise OSError("no more threads")

    with monkeypatch.context() as patched:
        patched.setattr(Run, "watch", fail)
        with pytest.raises(OSError, match="no more threads"):
            w.start()
    assert running == [2]
    assert own_session.streams.active == []
    w.start(availableNow=True).awaitTermination()
    assert rows_of(w, "q") == [("a", 1)]


def test_a_query_that_spark_will_not_start_disturbs_no_other(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`register` refuses such queries; another version of Spark may have other rules than then."""
    w = opened(session(spark), tmp_path)
    with pytest.raises(weft.SqlError, match="INVALID_QUERY"):
        w.register("sorted", REFUSED_BY_SPARK)
    monkeypatch.setattr(StreamingRules, "check", lambda *_: None)
    w.register("q", COUNTS)
    put_rows(tmp_path / "input", 0, [(1, "a", 1), (30, "a", 1)])
    run = w.start()
    try:
        w.register("sorted", REFUSED_BY_SPARK)
        w.register("alone", ALONE)
        assert wait_until(lambda: w.query("alone")._record.id in run.fallback_ids)
        run.processAllAvailable()
        assert w.query("sorted").status == store.QUARANTINED
        assert "Sorting is not supported" in w.query("sorted").detail
        assert rows_of(w, "q") == [("a", 1)]
        assert rows_of(w, "alone") == [("a", 1), ("a", 1)]
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
    own_session = session(spark)
    schema = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("x", pa.string())])
    put(tmp_path / "input", 0, {"ts": [0, 1], "x": ["1", "oops"]}, schema)
    frame = read(own_session, tmp_path / "input", "ts timestamp, x string")
    w = weft.Weft(own_session, tmp_path / "checkpoint")
    w.add_stream("s", frame.selectExpr("ts", "cast(x AS int) AS v"), "ts", "0 seconds")
    w.register("plain", "SELECT sum(v) AS n FROM s GROUP BY window(ts, '10 seconds')")
    w.register("suspect", "SELECT sum(v + 1) AS n FROM s GROUP BY window(ts, '10 seconds')")
    with pytest.raises(weft.WeftError):
        w.start(availableNow=True).awaitTermination()
    assert w.query("suspect").status == "active"


def test_a_failing_fallback_is_quarantined(spark: SparkSession, tmp_path: Path) -> None:
    w = opened(session(spark), tmp_path)
    w.register("q", COUNTS)
    divided = w.register("divided", "SELECT k, 1 / transform(array(v), x -> x)[0] AS x FROM s")
    assert divided.status == "fallback"
    put_rows(tmp_path / "input", 0, [(1, "a", 0), (30, "a", 0)])
    run = w.start()
    try:
        assert wait_until(lambda: divided.status == store.QUARANTINED)
        run.processAllAvailable()
        assert rows_of(w, "q") == [("a", 1)]
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
    own_session = session(spark)
    w = opened(own_session, tmp_path)
    w.register(
        "q",
        "SELECT date_format(window.start, 'z') AS zone, count(*) AS n FROM s "
        "GROUP BY window(ts, '10 seconds')",
    )
    put_rows(tmp_path / "input", 0, [(1, "a", 1)])
    run = w.start()
    run.processAllAvailable()
    own_session.conf.set("spark.sql.session.timeZone", "America/New_York")
    put_rows(tmp_path / "input", 1, [(30, "a", 1)])
    run.processAllAvailable()
    run.stop()
    assert rows_of(w, "q") == [("UTC", 1)]
