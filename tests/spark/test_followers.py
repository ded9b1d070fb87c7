"""Row windows follow their stream by published files: beside it, bounded, and with nothing lost."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import open_weft, register
from tests.oracle import compare, model, rows
from tests.oracle.plain_spark import python_rows, write_batches
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
