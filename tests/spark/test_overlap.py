"""A micro-batch is finished beside the next one, and nothing else changes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import DDL, open_weft, register
from tests.oracle import compare, model
from tests.oracle.plain_spark import python_rows, write_batches
from tests.support.harness import Recorder, session

import weft
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.protocol.step import StepFailed
from weft.runtime.sinks.delivery import StepResults
from weft.runtime.windows import engine

BATCHES = workload.batches()[:5]
NAMES = list(workload.QUERIES)
WAIT = 30.0


def opened(spark: SparkSession, folder: Path, **settings: Any) -> weft.Weft:
    if not (folder / "input").exists():
        write_batches(folder / "input", workload.SCHEMA, BATCHES)
    w = open_weft(session(spark), folder, **settings)
    register(w, NAMES)
    return w


def assert_complete(
    rows: dict[str, list[tuple[int, tuple[Any, ...]]]], *, batch_ids: bool = True
) -> None:
    """All results with the ids of the steps that plain Spark would have emitted them in."""
    for name in NAMES:
        wanted = model.run(workload.SPECS[name], workload.SCHEMA, BATCHES, workload.DELAY)
        compare.assert_same(rows.get(name, []), wanted, batch_ids=batch_ids)


class Level1:
    """Counts the batches whose level 1 has begun, and lets others wait for one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[int] = []
        self.failed = threading.Event()
        self._changed = threading.Condition()
        original = engine.subaggregate

        def counted(work: Any, *arguments: Any, **options: Any) -> None:
            with self._changed:
                self.begun.append(work.batch)
                self._changed.notify_all()
            try:
                original(work, *arguments, **options)
            except StepFailed:
                self.failed.set()
                raise

        monkeypatch.setattr(engine, "subaggregate", counted)

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


def test_a_query_that_fails_beside_another_one_stays_away(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`total` overflows in the kernel of batch 2 while `share` divides by zero in level 1 of batch 3."""
    second, half = 1_000_000, 1 << 62
    times = [[0, 1], [12], [22], [32], [42], [52]]
    values = [[half, half], [1], [1], [0], [1], [1]]
    batches = [
        [
            {"ts": workload.START + at * second, "k": "a", "v": value, "x": 0.0}
            for at, value in zip(*each, strict=True)
        ]
        for each in zip(times, values, strict=True)
    ]
    write_batches(tmp_path / "input", workload.SCHEMA, batches)
    w = open_weft(session(spark), tmp_path, statistics_every=0)
    window = "FROM s GROUP BY k, window(ts, '10 seconds')"
    with w.changes():
        w.register("counts", f"SELECT k, window.start AS at, COUNT(*) AS n {window}")
        w.register("total", f"SELECT k, window.start AS at, SUM(v) AS n {window}")
        w.register("share", f"SELECT k, window.start AS at, SUM(100 DIV v) AS n {window}")
    level1, recorder = Level1(monkeypatch), Recorder()
    original, waited = engine.WindowsEngine.compute, list[bool]()

    def waiting(self: engine.WindowsEngine, work: Any, *arguments: Any) -> Any:
        if work.batch == 2 and not waited:
            waited.append(level1.failed.wait(WAIT))
        return original(self, work, *arguments)

    monkeypatch.setattr(engine.WindowsEngine, "compute", waiting)
    w.start(sink=recorder, availableNow=True).awaitTermination()
    assert waited == [True]
    assert {handle.name: handle.status for handle in w.queries} == {
        "counts": "active",
        "total": "quarantined",
        "share": "quarantined",
    }
    assert not recorder.rows.get("total")
    counts = [(batch, row[2]) for batch, row in recorder.rows["counts"]]
    assert counts == [(2, 2), (3, 1), (4, 1), (5, 1), (6, 1)]


def test_spark_s_query_stopped_by_others(spark: SparkSession, tmp_path: Path) -> None:
    """The run ends when the step under way is finished, and the next one does not repeat it. Which file comes with which batch may have changed:
    if Spark is stopped when its source has noted a file, and the query has not, two files are one batch after the restart."""
    recorder, entered, leave = Recorder(), threading.Event(), threading.Event()

    class Slow(Recorder):
        def write(self, results: StepResults) -> list[Entry]:
            if results.batch == 1:
                entered.set()
                assert leave.wait(WAIT)
            return recorder.write(results)

    w = opened(spark, tmp_path)
    run = w.start(sink=Slow())
    assert entered.wait(WAIT)
    # Spark's `stop` waits for a batch that has begun, and that one waits for the step under way.
    stopping = [threading.Thread(target=query.stop) for query in w._spark.streams.active]
    for thread in stopping:
        thread.start()
    assert not run.awaitTermination(1)
    assert run.isActive
    leave.set()
    for thread in stopping:
        thread.join(WAIT)
    run.awaitTermination(WAIT)
    w.start(sink=Slow(), availableNow=True).awaitTermination()
    assert_complete(recorder.rows, batch_ids=False)


def within(seconds: float, call: Callable[[], object]) -> None:
    """Fail instead of hanging."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive()


def test_a_sink_may_stop_the_run_in_a_flush(spark: SparkSession, tmp_path: Path) -> None:
    running: list[weft.Run] = []
    steps: list[int] = []

    class Stopping(Recorder):
        def write(self, results: StepResults) -> list[Entry]:
            steps.append(results.batch)
            if results.batch == len(BATCHES):
                running[0].stop()
            return []

    run = opened(spark, tmp_path, idle_seconds=600.0).start(sink=Stopping())
    running.append(run)
    within(WAIT, run.processAllAvailable)
    assert steps == [*range(len(BATCHES) + 1)]
    assert run.awaitTermination(WAIT)


def test_sinks_of_two_streams_may_stop_the_run_at_once(spark: SparkSession, tmp_path: Path) -> None:
    w = opened(spark, tmp_path)
    source = w._spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1)
    other = source.parquet(str(tmp_path / "input"))
    w.add_stream("other", other, time="ts", watermark="2 seconds")
    w.register("others", "SELECT k, COUNT(*) AS n FROM other GROUP BY k, window(ts, '2 seconds')")
    running: list[weft.Run] = []
    both = threading.Barrier(2)

    class Stopping(Recorder):
        def write(self, results: StepResults) -> list[Entry]:
            if results.batch == 1:
                both.wait(WAIT)
                running[0].stop()
            return []

    running.append(w.start(sink=Stopping()))
    within(WAIT, running[0].awaitTermination)
    assert not running[0].isActive


def test_a_sink_that_fails_in_a_flush_ends_the_run(spark: SparkSession, tmp_path: Path) -> None:
    class Failing(Recorder):
        def write(self, results: StepResults) -> list[Entry]:
            if results.batch == len(BATCHES):
                raise OSError("disk full")
            return []

    run = opened(spark, tmp_path, sink_tries=1, idle_seconds=600.0).start(sink=Failing())
    with pytest.raises(weft.WeftError, match="SINK_FAILED"):
        run.processAllAvailable()
    assert "disk full" in str(run.exception())
    with pytest.raises(weft.WeftError, match="SINK_FAILED"):
        run.awaitTermination(WAIT)
    assert not run.isActive


def test_a_kill_while_spark_writes_its_first_offsets(spark: SparkSession, tmp_path: Path) -> None:
    """Spark takes the folder for that of another query, and would not start."""
    w = opened(spark, tmp_path)
    folder = tmp_path / "checkpoint" / "streams" / "s" / "spark"
    (folder / "offsets").mkdir(parents=True)
    (folder / "offsets" / ".0.3f6c.tmp").write_text("v1")
    (folder / "metadata").write_text('{"id":"6a0e1a51-5b0b-4a6a-9d0e-0c3f0a1f5f11"}')
    recorder = Recorder()
    w.start(sink=recorder, availableNow=True).awaitTermination()
    assert_complete(recorder.rows)
