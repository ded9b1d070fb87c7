"""Row windows that come, go and fail while their stream goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.review.support import SCHEMA, START, opened, put, put_rows, rows_of
from tests.support import seeds
from tests.support.harness import session

import weft
from weft.runtime.protocol.publishing import PUBLISHED
from weft.runtime.rows.engine import RowsEngine

WAIT = 30.0
TIMES = "SELECT k, count(*) AS n FROM s GROUP BY window(ts, '10 seconds'), k"
EACH = "SELECT k, sum(v) AS v FROM s [RANGE 1 ROWS SLIDE 1 ROWS] GROUP BY k"
PAIRS = "SELECT count(*) AS n, min(v) AS low, max(v) AS high FROM s [RANGE 2 ROWS SLIDE 1 ROWS]"
FAILS = "SELECT sum(v DIV (v - v)) AS n FROM s [RANGE 1 ROWS SLIDE 1 ROWS]"
OVERFLOWS = "SELECT sum(9223372036854775807 + v * 0) AS n FROM s [RANGE 2 ROWS SLIDE 1 ROWS]"


def write(folder: Path, batches: range, each: int = 4) -> None:
    """One file for each batch: rows one second apart, `v` counts them."""
    for batch in batches:
        numbers = range(batch * each, (batch + 1) * each)
        put_rows(folder / "input", batch, [(n, "a", n) for n in numbers])


def ends(run: Any) -> None:
    """The run ends by itself; one that hangs is stopped, so that other tests go on."""
    if not run.awaitTermination(WAIT):
        run.stop()
        pytest.fail("the run hangs")


def wait_until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def published(folder: Path) -> list[str]:
    place = folder / "checkpoint/streams/s" / PUBLISHED
    return sorted(path.name for path in place.iterdir()) if place.exists() else []


class Gate:
    """Holds the follower's steps in `compute` until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.reached = threading.Event(), threading.Event()
        original = RowsEngine.compute

        def waiting(engine: Any, *arguments: Any) -> Any:
            self.reached.set()
            assert self.open.wait(WAIT)
            return original(engine, *arguments)

        monkeypatch.setattr(RowsEngine, "compute", waiting)


@pytest.mark.parametrize("failing", [FAILS, OVERFLOWS])
def test_a_stream_goes_on_when_its_only_row_window_is_quarantined(
    spark: SparkSession, tmp_path: Path, failing: str
) -> None:
    """What was published for it before is let go, and does not hold the stream back."""
    write(tmp_path, range(8))
    w = opened(session(spark), tmp_path, most_unconsumed=1)
    w.register("times", TIMES)
    w.register("bad", failing)
    ends(w.start(availableNow=True))
    assert w.query("bad").status == "quarantined"
    assert [row[-1] for row in rows_of(w, "times")] == [10, 10, 10]
    assert published(tmp_path) == []


def test_a_stream_goes_on_when_rows_are_published_after_the_last_row_window_is_dropped(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, range(8))
    w = opened(session(spark), tmp_path, most_unconsumed=2)
    w.register("times", TIMES)
    w.register("each", EACH)
    gate = Gate(monkeypatch)
    run = w.start(availableNow=True)
    assert gate.reached.wait(WAIT)
    wait_until(lambda: run._streams[0].leader.waiting)
    w.drop("each")
    gate.open.set()
    ends(run)
    assert [row[-1] for row in rows_of(w, "times")] == [10, 10, 10]
    assert published(tmp_path) == []


def test_a_row_window_is_dropped_before_its_follower_took_a_step(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, range(2))
    own_session = session(spark)
    w = opened(own_session, tmp_path, most_unconsumed=1)
    w.register("times", TIMES)
    w.register("each", EACH)
    original = RowsEngine.new_plan

    def fails(*_: Any) -> int:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(RowsEngine, "new_plan", fails)
        with pytest.raises(weft.WeftError, match="the disk is gone"):
            w.start(availableNow=True).awaitTermination(WAIT)
    assert RowsEngine.new_plan is original
    assert published(tmp_path)
    w.drop("each")
    write(tmp_path, range(2, 8))
    ends(w.start(availableNow=True))
    assert [row[-1] for row in rows_of(w, "times")] == [10, 10, 10]
    assert published(tmp_path) == []


def test_waiting_for_all_data_says_why_a_follower_failed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(RowsEngine, "compute", fails)
    write(tmp_path, range(6))
    w = opened(session(spark), tmp_path, most_unconsumed=1)
    w.register("each", EACH)
    run = w.start()
    try:
        with pytest.raises(weft.WeftError, match="the disk is gone"):
            run.processAllAvailable()
    finally:
        run.stop()


def test_a_missing_commit_that_a_follower_has_not_consumed_is_noticed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.runtime.protocol.stepper.BASE_EVERY", 1)
    write(tmp_path, range(6))
    w = opened(session(spark), tmp_path)
    w.register("each", EACH)
    with resting_follower():
        w.start(availableNow=True).awaitTermination(WAIT)
    (tmp_path / "checkpoint/streams/s/commits/000000000003.json").unlink()
    with pytest.raises(weft.WeftError, match="DAMAGED"):
        w.start(availableNow=True).awaitTermination(WAIT)


def test_a_published_file_that_is_missing_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, range(3))
    w = opened(session(spark), tmp_path)
    w.register("each", EACH)
    with resting_follower():
        w.start(availableNow=True).awaitTermination(WAIT)
    (file,) = (tmp_path / "checkpoint/streams/s/published").glob("000000000001-*/*.parquet")
    file.unlink()
    with pytest.raises(weft.WeftError, match="DAMAGED"):
        w.start(availableNow=True).awaitTermination(WAIT)


def test_published_times_keep_their_microseconds(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever precision the session writes Parquet files with."""
    own_session = session(
        spark, spark_settings={"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}
    )
    at = [START + n * 1_000_000 + 123 for n in range(3)]
    put(tmp_path / "input", 0, {"ts": at, "k": ["a"] * 3, "v": [1, 2, 3]}, SCHEMA)
    w = opened(own_session, tmp_path)
    w.register("at", "SELECT max(unix_micros(ts)) AS t FROM s [RANGE 1 ROWS SLIDE 1 ROWS]")
    w.register("spark_at", "SELECT max(ts) AS t FROM s [RANGE 1 ROWS SLIDE 1 ROWS]")
    ends(w.start(availableNow=True))
    assert [row[0] for row in rows_of(w, "at")] == at[:2]
    assert "000123" in str(w.results("spark_at").toArrow())


@pytest.mark.parametrize("small", seeds.some(f"{__name__} small", [False, True], 1))
def test_row_windows_come_and_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    """With restarts between, after long rests, and while commits are pruned."""
    if small:
        for name, value in {
            "protocol.stepper.BASE_EVERY": 2,
            "protocol.stepper.CLEAN_EVERY": 1,
            "checkpoint.log.KEPT_COMMITS": 2,
            "rows.engine.MOST_FILES": 1,
        }.items():
            monkeypatch.setattr(f"weft.runtime.{name}", value)
    own_session = session(spark)
    batch = 0
    emitted: list[tuple[Any, ...]] = []
    for turn in range(3):
        w = opened(own_session, tmp_path, most_unconsumed=1)
        if turn == 0:
            w.register("times", TIMES)
        for name, query in (("each", EACH), ("pairs", PAIRS)):
            w.register(f"{name}{turn}", query)
        write(tmp_path, range(batch, batch + 2))
        batch += 2
        ends(w.start(availableNow=True))
        emitted = rows_of(w, f"each{turn}")
        first, last = batch * 4 - 8, batch * 4 - 1
        assert sorted(row[-1] for row in emitted) == list(range(first, last)), turn
        pairs = sorted(row for row in rows_of(w, f"pairs{turn}") if row[0] == 2)
        assert pairs == [(2, n, n + 1) for n in range(first, last - 1)], turn
        w = opened(own_session, tmp_path, most_unconsumed=1)
        with w.changes():
            w.drop(f"each{turn}")
            w.drop(f"pairs{turn}")
        write(tmp_path, range(batch, batch + 2 * turn + 1))
        batch += 2 * turn + 1
        ends(w.start(availableNow=True))
        assert published(tmp_path) == []
    assert sum(row[-1] for row in rows_of(w, "times")) == (batch * 4 - 1) // 10 * 10


@contextmanager
def resting_follower() -> Iterator[None]:
    """Within the block followers take no step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weft.runtime.run.follower_run.FollowerRun._advance", lambda _: False)
        yield


def in_milliseconds(spark: SparkSession) -> SparkSession:
    """A session that writes times into Parquet files in milliseconds."""
    setting = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}
    return session(spark, spark_settings=setting)


def put_times(folder: Path, batch: int, times: list[int]) -> None:
    columns = {"ts": times, "k": ["a"] * len(times), "v": list(range(len(times)))}
    put(folder / "input", batch, columns, SCHEMA)


def test_a_follower_without_a_new_batch_keeps_microseconds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It numbers and compacts rows although Spark has made no copy of the session for its stream."""
    monkeypatch.setattr("weft.runtime.rows.engine.MOST_FILES", 0)
    own_session = in_milliseconds(spark)
    at = [START + n * 1_000_000 + 123 for n in range(4)]
    w = opened(own_session, tmp_path)
    w.register("at", "SELECT max(ts) AS t FROM s [RANGE 1 ROWS SLIDE 1 ROWS]")
    put_times(tmp_path, 0, at[:3])
    with resting_follower():
        ends(w.start(availableNow=True))
    ends(w.start(availableNow=True))
    put_times(tmp_path, 1, at[3:])
    with resting_follower():
        ends(w.start(availableNow=True))
    ends(w.start(availableNow=True))
    assert [row[0] for row in rows_of(w, "at")] == at[:3]
    assert own_session.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MILLIS"


@pytest.mark.parametrize("released", seeds.some(f"{__name__} released", [False, True], 1))
def test_a_new_row_window_uses_no_state_from_before_a_gap(
    spark: SparkSession, tmp_path: Path, released: bool
) -> None:
    """`first` is dropped, batches pass that are not published, then `second` is registered: whether the
    follower takes a step in between or not, no window of `second` spans the gap."""
    query = "SELECT count(*) AS n, min(v) AS low, max(v) AS high FROM s [RANGE 6 ROWS SLIDE 2 ROWS]"
    own_session = session(spark)
    w = opened(own_session, tmp_path)
    w.register("first", query)
    write(tmp_path, range(3))
    ends(w.start(availableNow=True))
    w.drop("first")
    write(tmp_path, range(3, 6))
    if released:
        ends(w.start(availableNow=True))
    else:
        with resting_follower():
            ends(w.start(availableNow=True))
    w = opened(own_session, tmp_path)
    w.register("second", query)
    write(tmp_path, range(6, 12))
    ends(w.start(availableNow=True))
    emitted = sorted(row for row in rows_of(w, "second") if row[0] == 6)
    assert len(emitted) >= 8
    assert all(low >= 24 and high == low + 5 for _, low, high in emitted)
