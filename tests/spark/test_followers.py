"""Row windows follow their stream by published files: beside it, bounded, and with nothing lost."""

from __future__ import annotations

import random
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import open_weft, register
from tests.crash.simulated import dying
from tests.oracle import compare, model, rows
from tests.oracle.expressions import Aggregate, Column
from tests.oracle.plain_spark import python_rows, write_batches
from tests.oracle.rows import RowWindow
from tests.oracle.spec import Item, Query
from tests.support.harness import session

import weft
from weft.runtime.protocol.publishing import PUBLISHED
from weft.runtime.rows.engine import RowsEngine

NAMES = ["counts", "row_sums", "row_sample"]
WAIT = 60.0


def opened(spark: SparkSession, folder: Path, **settings: Any) -> weft.Weft:
    if not (folder / "input").exists():
        write_batches(folder / "input", workload.SCHEMA, workload.batches())
    w = open_weft(session(spark), folder, **settings)
    register(w, NAMES)
    return w


def assert_complete(w: weft.Weft) -> None:
    """Every result is there once."""
    for name in NAMES:
        if name in workload.ROW_SPECS:
            oracle: Any = rows
            spec = workload.ROW_SPECS[name]
        else:
            oracle, spec = model, workload.SPECS[name]
        expected = oracle.run(spec, workload.SCHEMA, workload.batches(), workload.DELAY)
        emitted = [(0, row) for row in python_rows(w.results(name).toArrow())]
        assert emitted
        compare.assert_same(emitted, expected, batch_ids=False)


class Gate:
    """Holds every step of the row windows until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._open = threading.Event()
        original = RowsEngine.compute

        def waiting(engine: Any, *arguments: Any) -> Any:
            assert self._open.wait(WAIT)
            return original(engine, *arguments)

        monkeypatch.setattr(RowsEngine, "compute", waiting)

    def open(self) -> None:
        self._open.set()


def wait_until(holds: Any) -> None:
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def steps(run: Any, stream: str) -> list[dict[str, Any]]:
    return [step for step in run.recentProgress if step["stream"] == stream]


def test_a_slow_follower_holds_its_stream_back_only_at_the_bound(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    w = opened(spark, tmp_path, most_unconsumed=3)
    run = w.start(availableNow=True)
    leader = run._streams[0].leader
    wait_until(lambda: leader.waiting)
    committed = steps(run, "s")
    assert len(committed) == 4
    assert [step["unconsumed"] for step in committed] == [1, 2, 3, 4]
    assert not steps(run, "s@rows")
    gate.open()
    run.awaitTermination()
    batches = [step for step in steps(run, "s") if step["kind"] == "data"]
    assert len(batches) == workload.BATCHES
    assert [step for step in batches if step["durations"].get("followers", 0) > 0]
    assert_complete(w)


def test_a_follower_that_lags_takes_several_batches_in_one_step(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    w = opened(spark, tmp_path)
    run = w.start(availableNow=True)
    wait_until(lambda: len(steps(run, "s")) == workload.BATCHES + 1)
    assert run.isActive
    gate.open()
    run.awaitTermination()
    assert len(steps(run, "s@rows")) == 2
    assert_complete(w)


def test_published_files_go_when_they_are_consumed(spark: SparkSession, tmp_path: Path) -> None:
    """The rows of the delay still wait for their number: their files, and no others, stay."""
    w = opened(spark, tmp_path)
    w.start(availableNow=True).awaitTermination()
    last = w._log("s@rows").last()
    assert last is not None
    published = tmp_path / "checkpoint/streams/s" / PUBLISHED
    folders = {path.name for path in published.iterdir()}
    retained = {entry["name"].rsplit("/", 2)[1] for entry in last.retained}
    assert retained
    assert folders == retained
    assert len(folders) < workload.BATCHES
    for entry in last.retained:
        assert entry["last"] >= last.watermark


def test_a_follower_that_fails_ends_the_run_and_the_next_one_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = RowsEngine.compute
    taken: list[int] = []

    def failing(engine: Any, work: Any, *arguments: Any) -> Any:
        taken.append(work.batch)
        if work.batch == 1:
            raise OSError("the disk is gone")
        return original(engine, work, *arguments)

    w = opened(spark, tmp_path, most_unconsumed=1)
    with monkeypatch.context() as patched:
        patched.setattr(RowsEngine, "compute", failing)
        run = w.start(availableNow=True)
        with pytest.raises(weft.WeftError, match="the disk is gone"):
            run.awaitTermination()
    assert not run.isActive
    assert taken[-1] == 1
    w.start(availableNow=True).awaitTermination()
    assert_complete(w)


def test_a_run_that_is_stopped_leaves_the_rest_for_the_next(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = opened(spark, tmp_path)
    with monkeypatch.context() as patched:
        gate = Gate(patched)
        run = w.start()
        wait_until(lambda: len(steps(run, "s")) >= 3)
        threading.Timer(0.5, gate.open).start()
        run.stop()
    assert not run.isActive
    again = opened(spark, tmp_path)
    again.start(availableNow=True).awaitTermination()
    assert_complete(again)


def test_processing_all_that_is_available_includes_followers(
    spark: SparkSession, tmp_path: Path
) -> None:
    w = opened(spark, tmp_path)
    run = w.start()
    try:
        run.processAllAvailable()
        assert_complete(w)
    finally:
        run.stop()


ZONE = "Asia/Kolkata"
LATEST = (
    "SELECT date_format(max(ts), 'yyyy-MM-dd HH:mm:ss') AS t FROM s [RANGE 3 ROWS SLIDE 2 ROWS]"
)


def test_row_windows_of_two_streams_in_a_time_zone_with_a_crash(
    spark: SparkSession, tmp_path: Path, chance: random.Random
) -> None:
    """Each stream has a follower of its own; the other's steps do not disturb it."""
    batches = {
        "s": workload.batches()[:3],
        "t": [[{**row, "v": row["v"] + 10} for row in batch] for batch in workload.batches()[3:6]],
    }
    for name, rows_of_batches in batches.items():
        write_batches(tmp_path / name, workload.SCHEMA, rows_of_batches)
    own_session = session(spark)
    own_session.conf.set("spark.sql.session.timeZone", ZONE)
    spec = workload.ROW_SPECS["row_sums"]

    def opened_on_both() -> weft.Weft:
        w = weft.Weft(own_session, tmp_path / "checkpoint", statistics_every=0)
        for name in batches:
            reader = own_session.readStream.schema(workload.DDL).option("maxFilesPerTrigger", 1)
            frame = reader.parquet(str(tmp_path / name))
            w.add_stream(name, frame, time="ts", watermark="2 seconds")
        if not w.queries:
            with w.changes():
                w.register("latest", LATEST)
                for name in batches:
                    w.register(f"{name}_sums", spec.sql(name))
        return w

    with dying("before_commit", chance.randint(1, 8)), pytest.raises(weft.WeftError, match="Crash"):
        opened_on_both().start(availableNow=True).awaitTermination()
    w = opened_on_both()
    w.start(availableNow=True).awaitTermination()
    for name, rows_of_batches in batches.items():
        expected = rows.run(spec, workload.SCHEMA, rows_of_batches, workload.DELAY)
        emitted = [(0, row) for row in python_rows(w.results(f"{name}_sums").toArrow())]
        assert emitted
        compare.assert_same(emitted, expected, batch_ids=False)
    windows = Query(RowWindow(3, 2), (Item(Aggregate("max", (Column("ts"),)), "t"),))
    latest = rows.run(windows, workload.SCHEMA, batches["s"], workload.DELAY)
    texts = sorted(row[0] for row in python_rows(w.results("latest").toArrow()))
    assert texts == sorted(local_time(at) for _, (at,) in latest)


def local_time(micros: Any) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return f"{at.astimezone(ZoneInfo(ZONE)):%Y-%m-%d %H:%M:%S}"
