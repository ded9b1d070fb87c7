"""The life of a `Weft`: how it is closed and printed, and what is said when something is in the way."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.review.support import COUNTS, opened, put_rows, read, rows_of
from tests.support.harness import session

import weft
from weft.catalog.store import Catalog
from weft.errors import CatalogError
from weft.runtime.api import weft as weft_module
from weft.runtime.checkpoint.lease import Lease
from weft.runtime.checkpoint.storage import Storage


def disk_full(*arguments: Any, **options: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def wait_until(holds: Any, seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False


def test_the_end_of_a_block_stops_the_run_and_gives_back_the_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    own_session = session(spark)
    put_rows(tmp_path / "input", 0, [(1, "a", 1), (30, "a", 1)])
    with opened(own_session, tmp_path) as w:
        w.register("q", COUNTS)
        run = w.start()
        run.processAllAvailable()
        assert repr(w) == f"<Weft {str(tmp_path / 'checkpoint')!r}: 1 streams, 1 queries, running>"
    assert not run.isActive
    assert own_session.streams.active == []
    lease = Lease(Storage(tmp_path / "checkpoint"))
    lease.acquire()
    lease.release()
    w.close()
    with opened(own_session, tmp_path) as again:
        assert rows_of(again, "q") == [("a", 1)]


def test_a_closed_weft_says_so(spark: SparkSession, tmp_path: Path) -> None:
    own_session = session(spark)
    w = opened(own_session, tmp_path)
    handle = w.register("q", COUNTS)
    assert repr(handle) == "<QueryHandle 'q': active>"
    w.close()
    frame = read(own_session, tmp_path / "input")

    def changes() -> None:
        with w.changes():
            pass

    uses = [
        lambda: w.register("r", COUNTS),
        lambda: w.drop("q"),
        lambda: w.add_stream("t", frame, time="ts", watermark="0 seconds"),
        lambda: w.add_table("t", frame),
        lambda: w.query("q"),
        lambda: w.queries,
        lambda: w.plan("s"),
        lambda: w.counted("s"),
        lambda: w.statistics("s"),
        lambda: w.explain(),
        lambda: w.start(availableNow=True),
        lambda: w.results("q"),
        changes,
        lambda: handle.status,
        handle.results,
    ]
    for use in uses:
        with pytest.raises(weft.WeftError, match="CLOSED"):
            use()
    assert repr(w) == f"<Weft {str(tmp_path / 'checkpoint')!r}: closed>"
    assert repr(handle) == "<QueryHandle 'q': closed>"
    assert w._repr_html_() is None


def test_settings_and_arguments_are_checked_when_they_are_given(
    spark: SparkSession, tmp_path: Path
) -> None:
    w = opened(session(spark), tmp_path)
    w.register("q", COUNTS)
    for arguments in (
        {"sink": "parquet"},
        {"sink": weft.sinks.parquet},
        {"processingTime": "5 s"},
        {"processingTime": "1 month"},
        {"processingTime": "-1 seconds"},
        {"processingTime": 5},
        {"processingTime": ""},
        {"availableNow": "yes"},
        {"availableNow": True, "processingTime": "5 seconds"},
    ):
        with pytest.raises(weft.RunError, match="BAD_SETTING"):
            w.start(**arguments)
    assert repr(w).endswith("stopped>")
    w.close()


def test_one_of_two_threads_adds_a_stream(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_session = session(spark)
    w = opened(own_session, tmp_path)
    make = weft_module.source

    def slowly(*arguments: Any) -> Any:
        time.sleep(0.3)
        return make(*arguments)

    monkeypatch.setattr(weft_module, "source", slowly)
    frame = read(own_session, tmp_path / "input")
    refused: list[str] = []

    def add() -> None:
        try:
            w.add_stream("t", frame, time="ts", watermark="0 seconds")
        except weft.CatalogError as error:
            refused.append(error.error_class)

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == ["DUPLICATE_NAME"]
    w.close()


def test_a_run_that_fails_on_a_full_disk_says_so_and_gives_back_its_lease(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_session = session(spark)
    w = opened(own_session, tmp_path)
    w.register("q", COUNTS)
    w.register("filtered", "SELECT k, v FROM s WHERE v > 0")
    alone = w.register("alone", "SELECT k, transform(array(v), x -> x)[0] AS v FROM s")
    assert alone.status == "fallback"
    put_rows(tmp_path / "input", 0, [(1, "a", 1), (30, "a", 1)])
    with monkeypatch.context() as patched:
        patched.setattr(Storage, "_write_temporary", disk_full)
        with pytest.raises(weft.CheckpointError, match=r"CANNOT_WRITE.*No space left"):
            w.start(availableNow=True)
    with monkeypatch.context() as patched:
        run = w.start()
        patched.setattr(Storage, "_write_temporary", disk_full)
        patched.setattr(Catalog, "set_status", no_room)
        put_rows(tmp_path / "input", 1, [(60, "a", 1)])
        with pytest.raises(weft.CheckpointError, match=r"CANNOT_WRITE.*No space left"):
            run.awaitTermination(60)
    assert wait_until(lambda: not run.isActive)
    w.start(availableNow=True).awaitTermination()
    assert rows_of(w, "q") == [("a", 1), ("a", 1)]
    assert rows_of(w, "filtered") == [("a", 1)] * 3
    w.close()


def test_what_spark_cannot_write_is_told_in_a_line(spark: SparkSession, tmp_path: Path) -> None:
    """State, in the place of which there is a file; and a sink of Spark's whose folder is none."""
    w = opened(session(spark), tmp_path, sink_tries=1)
    w.register("q", COUNTS)
    put_rows(tmp_path / "input", 0, [(1, "a", 1), (30, "a", 1)])
    state = tmp_path / "checkpoint/streams/s/state"
    state.parent.mkdir(parents=True)
    state.write_text("in the way")
    with pytest.raises(weft.RunError, match="QUERY_FAILED") as of_state:
        w.start(availableNow=True).awaitTermination()
    state.unlink()
    (tmp_path / "out").write_text("in the way")
    sink = weft.sinks.spark("parquet", path=str(tmp_path / "out" / "{query}"))
    with pytest.raises(weft.RunError, match="SINK_FAILED") as of_sink:
        w.start(sink, availableNow=True).awaitTermination()
    for failed, place in ((of_state, "streams/s/state"), (of_sink, "out")):
        message = str(failed.value)
        assert place in message
        assert "\n" not in message and "calling o" not in message and len(message) < 600, message
    w.close()


def no_room(self: Catalog, change: int, status: str, detail: str = "") -> None:
    raise CatalogError("CATALOG_UNAVAILABLE", url="catalog.db", detail="database or disk is full")


def test_a_checkpoint_that_cannot_be_written_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*arguments: Any, **options: Any) -> Any:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Storage, "_write_temporary", read_only)
    with pytest.raises(weft.CheckpointError, match=r"CANNOT_WRITE.*Read-only file system"):
        weft.Weft(session(spark), tmp_path / "checkpoint")


def test_a_database_that_does_not_answer_does_not_end_the_run(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    w = opened(session(spark), tmp_path)
    w.register("q", COUNTS)
    put_rows(tmp_path / "input", 0, [(1, "a", 1), (30, "a", 1)])
    run = w.start()
    run.processAllAvailable()

    def gone(self: Catalog, *arguments: Any) -> Any:
        raise CatalogError("CATALOG_UNAVAILABLE", url="a database", detail="it is gone")

    caplog.set_level(logging.WARNING, "weft")
    with monkeypatch.context() as patched:
        for method in ("revision", "live", "set_late", "set_status", "put_statistics"):
            patched.setattr(Catalog, method, gone)
        time.sleep(1.2)
        put_rows(tmp_path / "input", 1, [(31, "a", 1), (60, "a", 1)])
        run.processAllAvailable()
        assert run.isActive
    warnings = [
        record.message for record in caplog.records if "CATALOG_UNAVAILABLE" in record.message
    ]
    assert len(warnings) == 1
    w.register("later", COUNTS)
    put_rows(tmp_path / "input", 2, [(90, "a", 1), (120, "a", 1)])
    run.processAllAvailable()
    assert rows_of(w, "q") == [("a", 1), ("a", 1), ("a", 1), ("a", 2)]
    run.stop()
    assert run.exception() is None
    w.close()


def test_a_run_looks_at_the_catalog_about_twice_a_second(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = opened(session(spark), tmp_path)
    w.register("q", COUNTS)
    put_rows(tmp_path / "input", 0, [(1, "a", 1)])
    run = w.start()
    run.processAllAvailable()
    looks: list[float] = []
    look = Catalog.revision

    def counted(self: Catalog) -> int:
        looks.append(time.monotonic())
        return look(self)

    monkeypatch.setattr(Catalog, "revision", counted)
    time.sleep(3)
    counts = len(looks)
    w.close()
    assert 1 <= counts <= 10, counts
