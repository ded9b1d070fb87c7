"""A micro-batch is finished beside the next one, and nothing else changes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import open_weft, register
from tests.oracle import compare, model
from tests.oracle.plain_spark import python_rows, write_batches
from tests.support.harness import Recorder, session

import weft
from weft.runtime import loom
from weft.runtime.log import Entry
from weft.runtime.sinks import StepResults

BATCHES = workload.batches()[:5]
NAMES = list(workload.QUERIES)
WAIT = 30.0


def opened(spark: SparkSession, folder: Path, **settings: Any) -> weft.Weft:
    if not (folder / "input").exists():
        write_batches(folder / "input", workload.SCHEMA, BATCHES)
    w = open_weft(session(spark), folder, **settings)
    register(w, NAMES)
    return w


def assert_complete(rows: dict[str, list[tuple[int, tuple[Any, ...]]]]) -> None:
    """All results with the ids of the steps that plain Spark would have emitted them in."""
    for name in NAMES:
        wanted = model.run(workload.SPECS[name], workload.SCHEMA, BATCHES, workload.DELAY)
        compare.assert_same(rows.get(name, []), wanted)


class Level1:
    """Counts the batches whose level 1 has begun, and lets others wait for one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[int] = []
        self._changed = threading.Condition()
        original = loom.subaggregate

        def counted(work: Any, *arguments: Any) -> None:
            with self._changed:
                self.begun.append(work.batch)
                self._changed.notify_all()
            original(work, *arguments)

        monkeypatch.setattr(loom, "subaggregate", counted)

    def wait_for(self, batch: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: batch in self.begun, WAIT)


def test_the_next_batch_begins_before_the_sink_is_done(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    level1, recorder = Level1(monkeypatch), Recorder()
    waited: list[bool] = []

    class Waiting(Recorder):
        def write(self, results: StepResults) -> list[Entry]:
            if results.batch == 1:
                waited.append(level1.wait_for(2))
            return recorder.write(results)

    opened(spark, tmp_path).start(sink=Waiting(), availableNow=True).awaitTermination()
    assert waited == [True]
    assert_complete(recorder.rows)


def test_without_overlap_it_does_not(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    level1, recorder = Level1(monkeypatch), Recorder()
    begun: list[list[int]] = []

    class Looking(Recorder):
        def write(self, results: StepResults) -> list[Entry]:
            begun.append(list(level1.begun))
            return recorder.write(results)

    w = opened(spark, tmp_path, overlap=False)
    w.start(sink=Looking(), availableNow=True).awaitTermination()
    last = len(BATCHES) - 1
    assert begun == [*([*range(batch + 1)] for batch in range(last + 1)), [*range(last + 1)]]
    assert_complete(recorder.rows)


def test_a_sink_that_fails_ends_the_run_and_the_next_one_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    recorder = Recorder()
    broken = {2}

    class Failing(Recorder):
        def write(self, results: StepResults) -> list[Entry]:
            if results.batch in broken:
                raise OSError("disk full")
            return recorder.write(results)

    w = opened(spark, tmp_path, sink_tries=1)
    run = w.start(sink=Failing(), availableNow=True)
    with pytest.raises(weft.WeftError, match="SINK_FAILED"):
        run.awaitTermination()
    assert "disk full" in str(run.exception())
    assert not run.isActive
    assert {batch for rows in recorder.rows.values() for batch, _ in rows} <= {0, 1}
    broken.clear()
    w.start(sink=Failing(), availableNow=True).awaitTermination()
    assert_complete(recorder.rows)


def test_processing_all_that_is_there_meets_the_failure(
    spark: SparkSession, tmp_path: Path
) -> None:
    class Failing(Recorder):
        def write(self, results: StepResults) -> list[Entry]:
            raise OSError("disk full")

    run = opened(spark, tmp_path, sink_tries=1).start(sink=Failing())
    with pytest.raises(weft.WeftError, match="SINK_FAILED"):
        run.processAllAvailable()
    run.stop()
    assert not run.isActive


def test_a_run_that_is_idle_ends_with_the_failure(spark: SparkSession, tmp_path: Path) -> None:
    class Failing(Recorder):
        def write(self, results: StepResults) -> list[Entry]:
            raise OSError("disk full")

    run = opened(spark, tmp_path, sink_tries=1).start(sink=Failing())
    with pytest.raises(weft.WeftError, match="SINK_FAILED"):
        run.awaitTermination(WAIT)
    assert not run.isActive


def test_a_sink_may_stop_the_run(spark: SparkSession, tmp_path: Path) -> None:
    """Its own step is finished, and a later start goes on behind it."""
    rows: dict[str, list[tuple[int, tuple[Any, ...]]]] = {}
    running: list[weft.Run] = []

    def keep(name: str, table: pa.Table, batch: int) -> None:
        rows.setdefault(name, []).extend((batch, row) for row in python_rows(table))
        if running and batch >= 1:
            running[0].stop()

    w = opened(spark, tmp_path)
    running.append(w.start(sink=weft.sinks.callback(keep)))
    assert running[0].awaitTermination(WAIT)
    running.clear()
    w.start(sink=weft.sinks.callback(keep), availableNow=True).awaitTermination()
    assert_complete(rows)
