"""Queries that weft does not share: retried, resumed, exactly once, and gone when dropped."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.oracle.plain_spark import python_rows
from tests.review.support import COUNTS, opened, put_rows, rows_of
from tests.support.harness import session

import weft
from weft.runtime.fallbacks import batches
from weft.runtime.fallbacks.log import FallbackLog
from weft.runtime.protocol import stepper
from weft.runtime.sinks import resultfiles, store
from weft.runtime.sinks.reading import QueryResults
from weft.sql.fallback import Fallback

#: A lambda has no shared form.
PLAIN = "SELECT k, transform(array(v), x -> x)[0] AS v FROM s WHERE v > 0"
NO_PAUSE = {"sink_pause_seconds": 0.01}


def run(w: weft.Weft, sink: Any = None) -> None:
    w.start(sink=sink, availableNow=True).awaitTermination()


def log_of(w: weft.Weft, name: str) -> FallbackLog:
    return FallbackLog(w._storage, w.query(name)._record.id)


def put_batches(folder: Path, count: int, first: int = 0) -> list[tuple[str, int]]:
    """One file per batch with two rows; the rows that `PLAIN` gives of them."""
    for number in range(first, first + count):
        put_rows(folder, number, [(number, "a", number + 1), (number, "b", -1)])
    return [("a", number + 1) for number in range(first, first + count)]


class Unsteady:
    """A sink that fails the first so many times, and records what it is given."""

    name = "unsteady"

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.given: list[tuple[int, list[tuple[Any, ...]]]] = []
        self.rows: list[tuple[Any, ...]] = []

    def write(self, results: Any) -> list[Any]:
        for _, table in results.by_query():
            self.given.append((results.batch, python_rows(table)))
            if len(self.given) <= self.failures:
                raise OSError("disk on fire")
            self.rows += python_rows(table)
        return []


def test_a_sink_that_fails_twice_gets_the_same_rows_a_third_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    w = opened(session(spark), tmp_path, **NO_PAUSE)
    w.register("plain", PLAIN)
    wanted = put_batches(tmp_path / "input", 2)
    sink = Unsteady(2)
    run(w, sink)
    assert w.query("plain").status == "fallback"
    assert sink.given[0] == sink.given[1] == sink.given[2]
    assert sink.rows == wanted


def test_a_sink_that_fails_for_good_is_the_cause_that_users_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Not Spark's text about a Python proxy; and the batch is run again after `resume`."""
    w = opened(session(spark), tmp_path, **NO_PAUSE)
    handle = w.register("plain", PLAIN)
    wanted = put_batches(tmp_path / "input", 1)
    sink = Unsteady(3)
    run(w, sink)
    assert handle.status == "quarantined"
    assert "unsteady failed 3 times on batch 0" in handle.detail
    assert "OSError: disk on fire" in handle.detail
    assert "py4j" not in handle.detail.lower() and "proxy" not in handle.detail.lower()
    assert len(sink.given) == 3
    handle.resume()
    run(w, sink)
    assert handle.status == "fallback" and "filter" not in handle.detail
    assert sink.rows == wanted


def test_a_source_that_fails_for_a_while_is_tried_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A file that cannot be read, and is whole again before the third try."""
    w = opened(session(spark), tmp_path, sink_pause_seconds=1.5)
    handle = w.register("plain", PLAIN)
    wanted = put_batches(tmp_path / "input", 1)
    file = tmp_path / "input" / "00000.parquet"
    whole = file.read_bytes()
    file.write_bytes(b"PAR1 this is no Parquet file PAR1")
    running = w.start(availableNow=True)
    try:
        fallback = next(iter(running._fallbacks.values()))
        while fallback._failures == 0:
            assert running.isActive
        file.write_bytes(whole)
        assert running.awaitTermination(60)
    finally:
        running.stop()
    assert handle.status == "fallback"
    assert rows_of(w, "plain") == wanted


def test_an_error_in_its_own_data_is_told_as_spark_tells_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    w = opened(session(spark), tmp_path, **NO_PAUSE)
    handle = w.register("divided", "SELECT k, 1 / transform(array(v), x -> x)[0] AS x FROM s")
    put_rows(tmp_path / "input", 0, [(1, "a", 0)])
    run(w)
    assert handle.status == "quarantined"
    assert handle.detail.startswith("[DIVIDE_BY_ZERO] Division by zero")
    assert "\n" not in handle.detail


def test_a_source_that_stays_broken_is_told_with_its_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    w = opened(session(spark), tmp_path, **NO_PAUSE)
    handle = w.register("plain", PLAIN)
    put_batches(tmp_path / "input", 1)
    (tmp_path / "input" / "00000.parquet").write_bytes(b"PAR1 this is no Parquet file PAR1")
    run(w)
    assert handle.status == "quarantined"
    assert "00000.parquet" in handle.detail
    assert "calling o" not in handle.detail


def test_results_are_under_the_folder_that_the_user_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    w = opened(session(spark), tmp_path)
    w.register("plain", PLAIN)
    w.register("counts", COUNTS)
    wanted = put_batches(tmp_path / "input", 3)
    run(w, weft.sinks.parquet(str(tmp_path / "out")))
    assert rows_of(w, "plain") == wanted
    entries = log_of(w, "plain").result_files()
    assert len(entries) == 3
    for entry in entries:
        assert Path(entry["root"]) == tmp_path / "out"
        assert (tmp_path / "out" / entry["name"]).is_file()
    assert not list((tmp_path / "checkpoint" / "fallback").rglob("*.parquet"))
    table = pa.concat_tables(pq.read_table(tmp_path / "out" / e["name"]) for e in entries)
    assert table.column_names == ["query", "c0", "c1", "batch"]
    assert Counter(table.column("batch").to_pylist()) == {0: 1, 1: 1, 2: 1}


@pytest.mark.parametrize("point", ["fallback_results", "fallback_commit"])
def test_a_batch_that_ends_at_any_moment_is_there_once(
    spark: SparkSession, tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before weft's commit the batch is written again, after it Spark's replay is skipped."""
    w = opened(session(spark), tmp_path, **NO_PAUSE)
    w.register("plain", PLAIN)
    wanted = put_batches(tmp_path / "input", 3)
    passed: list[str] = []

    def reach(name: str) -> None:
        if name == point:
            passed.append(name)
            if len(passed) == 2:
                raise OSError("pulled the plug")

    monkeypatch.setattr(batches, "reach", reach)
    run(w)
    assert len(passed) >= 3
    assert rows_of(w, "plain") == wanted
    again = opened(session(spark), tmp_path)
    again.register("plain", PLAIN)
    run(again)
    stored = {str(p.relative_to(tmp_path / "checkpoint/results")) for p in _parquet(tmp_path)}
    assert stored == {entry["name"] for entry in log_of(again, "plain").result_files()}


def _parquet(folder: Path) -> list[Path]:
    return list((folder / "checkpoint" / "results").rglob("*.parquet"))


TYPES = (
    "SELECT v, array(v, v + 1) AS list, map('a', v) AS map, named_struct('x', v) AS row, ts, "
    "cast(ts AS timestamp_ntz) AS nt, cast(ts AS date) AS d, cast(v AS decimal(20,3)) AS dec, "
    "cast(NULL AS string) AS nothing FROM s"
)


@pytest.mark.parametrize("merging", [False, True])
def test_small_files_become_few_in_the_order_of_batches(
    spark: SparkSession, tmp_path: Path, merging: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merged more than once, with nested types, and every row once and in order."""
    monkeypatch.setattr(batches, "BASE_EVERY", 3)
    monkeypatch.setattr(resultfiles, "MERGE_AT_LEAST", 2 if merging else 10_000)
    w = opened(session(spark), tmp_path)
    w.register("types", TYPES)
    for number in range(14):
        put_rows(tmp_path / "input", number, [(number, "a", number)])
    run(w)
    log = log_of(w, "types")
    entries = log.result_files()
    assert sum(entry["rows"] for entry in entries) == 14
    assert [entry["batch"] for entry in entries] == sorted(entry["batch"] for entry in entries)
    commits = len(list((tmp_path / "checkpoint" / log.folder / "commits").glob("*.json")))
    assert commits <= 4
    assert (len(entries) <= 5) is merging
    assert (len(_parquet(tmp_path)) <= 10) is merging
    rows = w.results("types")
    in_order = QueryResults(log.query_id, log.storage, entries).table(rows.columns)
    assert in_order.column("v").to_pylist() == list(range(14))
    table = rows.orderBy("v").toArrow()
    assert table.column("v").to_pylist() == list(range(14))
    assert table.column("list").to_pylist() == [[v, v + 1] for v in range(14)]
    bound = w._registry.of(w.query("types")._record)
    assert isinstance(bound, Fallback)
    assert rows.dtypes == w._registry.fallback_frame(bound).dtypes


def test_what_was_dropped_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Dropped while running, or before the next start; the query that stays keeps its rows."""
    w = opened(session(spark), tmp_path)
    wanted = put_batches(tmp_path / "input", 2)
    out = str(tmp_path / "out")
    for name in ("first", "second", "stays"):
        w.register(name, PLAIN)
    running = w.start(weft.sinks.parquet(out))
    try:
        running.processAllAvailable()
        assert len(list((tmp_path / "out" / "fallback").iterdir())) == 3
        w.drop("first")
        w._supervisor.sync()
        assert len(list((tmp_path / "out" / "fallback").iterdir())) == 2
        assert len(list((tmp_path / "checkpoint" / "fallback").iterdir())) == 2
    finally:
        running.stop()
    w.drop("second")
    run(w)
    assert [p.name for p in (tmp_path / "checkpoint" / "fallback").iterdir()] == ["stays-3"]
    left = list((tmp_path / "out" / "fallback").iterdir())
    assert [p.name.split("~")[1] for p in left] == ["stays-3"]
    run(w, weft.sinks.parquet(out))
    assert rows_of(w, "stays") == wanted


def test_a_spark_checkpoint_that_is_gone_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    w = opened(session(spark), tmp_path)
    handle = w.register("plain", PLAIN)
    wanted = put_batches(tmp_path / "input", 2)
    run(w)
    shutil.rmtree(tmp_path / "checkpoint" / log_of(w, "plain").spark_folder)
    run(w)
    assert handle.status == "quarantined"
    assert "SPARK_CHECKPOINT" in handle.detail
    assert rows_of(w, "plain") == wanted


def test_a_lost_commit_is_noticed(spark: SparkSession, tmp_path: Path) -> None:
    w = opened(session(spark), tmp_path)
    w.register("plain", PLAIN)
    put_batches(tmp_path / "input", 3)
    run(w)
    os.unlink(tmp_path / "checkpoint" / log_of(w, "plain").folder / "commits/000000000001.json")
    with pytest.raises(weft.CheckpointError, match="DAMAGED"):
        w.results("plain")


def test_a_truncated_result_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    w = opened(session(spark), tmp_path)
    w.register("plain", PLAIN)
    w.register("counts", COUNTS)
    for number in range(3):
        put_rows(tmp_path / "input", number, [(10 * number, "a", 1)])
    run(w)
    for name in ("plain", "counts"):
        log = log_of(w, name) if name == "plain" else w._log("s")
        file = tmp_path / "checkpoint/results" / log.result_files()[0]["name"]
        file.write_bytes(file.read_bytes()[:-10])
        with pytest.raises(weft.CheckpointError, match=rf"DAMAGED.*{file.name}.*bytes"):
            w.results(name)


def test_expired_results_go_and_late_ones_stay(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of both kinds; by the time at which they were written, whatever their events' time is."""
    monkeypatch.setattr(batches, "BASE_EVERY", 2)
    monkeypatch.setattr(stepper, "BASE_EVERY", 2)
    now = [1_000_000_000_000_000]
    for module in (batches, store, resultfiles):
        monkeypatch.setattr(module, "wall_clock", lambda: now[0])
    w = opened(session(spark), tmp_path, keep="7 days")
    w.register("plain", PLAIN)
    w.register("counts", "SELECT max(v) AS m FROM s GROUP BY window(ts, '1 second')")
    wanted = put_batches(tmp_path / "input", 4)
    run(w)
    now[0] += 6 * 86_400_000_000
    wanted += put_batches(tmp_path / "input", 4, first=4)
    run(w)
    assert rows_of(w, "plain") == wanted
    assert rows_of(w, "counts") == [(v,) for _, v in wanted[:-1]]
    now[0] += 2 * 86_400_000_000
    wanted += put_batches(tmp_path / "input", 4, first=8)
    run(w)
    assert sorted(rows_of(w, "plain"), key=lambda row: row[1]) == wanted[4:]
    latest = [v for (v,) in rows_of(w, "counts")]
    assert len(latest) == len(set(latest))
    assert max(latest) == 11 and min(latest) > 3


@pytest.mark.parametrize("value", ["7", "1 month", "", 7, "-1 day", "0 seconds"])
def test_keep_is_an_interval(spark: SparkSession, tmp_path: Path, value: Any) -> None:
    with pytest.raises(weft.RunError, match=r"BAD_SETTING.*keep.*7 days"):
        weft.Weft(spark, tmp_path / "checkpoint", keep=value)


@pytest.mark.parametrize("found", ["parquet", 7, weft.sinks.parquet])
def test_what_is_no_sink_is_refused_before_anything_starts(
    spark: SparkSession, tmp_path: Path, found: Any
) -> None:
    w = opened(session(spark), tmp_path)
    w.register("plain", PLAIN)
    with pytest.raises(weft.RunError, match=r"BAD_SETTING.*weft\.sinks"):
        w.start(sink=found)
    run(w)
