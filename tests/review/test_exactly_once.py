"""Rows that came twice, got lost, or could not be told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.review.support import (
    COUNTS,
    Broken,
    Recorded,
    opened,
    put_rows,
    read,
    rows_of,
)
from tests.support.harness import session

import weft
from weft.runtime.protocol.leader import Leader


def test_a_flush_before_a_replay_does_not_emit_windows_twice(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restart that is slow to replay a batch looks idle, so the watcher flushes before the
    replay; the batch's intent is from before that flush. Here the flush always comes first."""
    own_session = session(spark)
    for number, rows in enumerate([[(1, "a", 1)], [(12, "a", 1)], [(25, "a", 1), (2, "a", 1)]]):
        put_rows(tmp_path / "input", number, rows)
    w = opened(own_session, tmp_path, sink_tries=1)
    sliding = "window(ts, '20 seconds', '5 seconds')"
    w.register("q", f"SELECT window.end AS e, count(*) AS n FROM s GROUP BY {sliding}")
    with pytest.raises(weft.WeftError):
        w.start(sink=Broken(), availableNow=True).awaitTermination()
    assert w._log("s").intent(2) is not None
    batch = Leader.batch

    def after_a_flush(self: Leader, rows: DataFrame, *rest: Any) -> None:
        self.flush(rows.sparkSession)
        batch(self, rows, *rest)

    monkeypatch.setattr(Leader, "batch", after_a_flush)
    again = opened(own_session, tmp_path)
    recorded = Recorded()
    again.start(sink=recorded, availableNow=True).awaitTermination()
    ends = [row[0] for _, _, row in recorded.rows]
    assert len(ends) == len(set(ends)), recorded.rows


def test_batch_query_and_sequence_identify_a_row(spark: SparkSession, tmp_path: Path) -> None:
    """A batch and the flush after it have results of their own."""
    own_session = session(spark)
    for number, second in enumerate([1, 12, 25]):
        put_rows(tmp_path / "input", number, [(second, "a", 1)])
    w = opened(own_session, tmp_path)
    w.register("q", COUNTS)
    sink = weft.sinks.spark("json", path=str(tmp_path / "out"))
    w.start(sink=sink, availableNow=True).awaitTermination()
    found = own_session.read.json(str(tmp_path / "out"))
    assert found.count() == 2
    tags = [c for c in found.columns if c.startswith("weft_")]
    assert found.select(*tags).distinct().count() == 2


def test_a_replay_numbers_the_rows_as_the_first_attempt_did(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = [
        [(1, "b", 1), (1, "c", 1)],
        [(30, "z", 1)],
        [(31, "a", 1)],
        [(32, "c", 1)],
        [(33, "b", 1)],
    ]
    orders = []
    for restarted in (False, True):
        own_session, folder, got = session(spark), tmp_path / str(restarted), []
        for number, rows in enumerate(batches):
            put_rows(folder / "input", number, rows)
        sink = weft.sinks.callback(lambda _q, table, _b, got=got: got.append(table.to_pylist()))
        w = opened(own_session, folder)
        w.register("q", COUNTS)
        run = w.start(sink=sink)
        run.processAllAvailable()
        if restarted:
            run.stop()
            run = opened(own_session, folder).start(sink=sink)
        put_rows(folder / "input", len(batches), [(60, "z", 1)])
        run.processAllAvailable()
        run.stop()
        orders.append([row["k"] for row in got[-1]])
    assert orders[0] == orders[1]


def test_a_lost_catalog_gives_no_query_the_results_of_a_dropped_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    own_session = session(spark)
    w = opened(own_session, tmp_path)
    put_rows(tmp_path / "input", 0, [(1, "a", 1), (12, "a", 1)])
    w.register("q", COUNTS)
    w.register("b", COUNTS)
    w.start(availableNow=True).awaitTermination()
    w.drop("b")
    put_rows(tmp_path / "input", 1, [(61, "a", 1)])
    w.start(availableNow=True).awaitTermination()
    w._catalog.close()
    for path in (tmp_path / "checkpoint").glob("catalog.db*"):
        path.unlink()
    again = opened(own_session, tmp_path)
    again.register("b", COUNTS.replace("count(*)", "sum(v) * 1000"))
    assert rows_of(again, "b") == []


def test_two_checkpoints_of_one_project_name_keep_each_others_results(
    spark: SparkSession, tmp_path: Path
) -> None:
    own_session = session(spark)
    put_rows(tmp_path / "input", 0, [(1, "a", 1)])
    put_rows(tmp_path / "input", 1, [(30, "a", 1)])
    wefts = []
    for name in ("one", "two"):
        w = weft.Weft(own_session, tmp_path / name, project="demo")
        w.add_stream("s", read(own_session, tmp_path / "input"), time="ts", watermark="0 seconds")
        w.register("q", COUNTS)
        sink = weft.sinks.parquet(str(tmp_path / "out"))
        w.start(sink=sink, availableNow=True).awaitTermination()
        wefts.append(w)
    assert [rows_of(w, "q") for w in wefts] == [[("a", 1)], [("a", 1)]]
