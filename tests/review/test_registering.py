"""Registrations that stay, vanish or are judged wrongly."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.review.support import COUNTS, START, opened, put, put_rows, read, rows_of
from tests.support.harness import session

import weft

TIME = ("ts", pa.timestamp("us", tz="UTC"))
PLAIN = "SELECT k, transform(array(v), x -> x)[0] AS v FROM s WHERE v > 0"


def test_a_refused_query_is_not_registered_inside_changes(
    spark: SparkSession, tmp_path: Path
) -> None:
    w = opened(session(spark), tmp_path)
    with w.changes():
        with pytest.raises(weft.WeftError):
            w.register("bad", "SELECT nope FROM s GROUP BY window(ts, '1 second')")
        w.register("good", COUNTS)
    assert [query.name for query in w.queries] == ["good"]


def test_looking_at_a_query_before_its_stream_is_added_does_not_reject_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    own_session = session(spark)
    w = opened(own_session, tmp_path)
    w.register("plain", PLAIN)
    w.register("q", COUNTS)
    looking = weft.Weft(own_session, tmp_path / "checkpoint")
    for look in (lambda: looking.results("plain"), looking.explain, looking.start):
        with suppress(weft.WeftError):
            look()
    again = opened(own_session, tmp_path)
    assert {q.name: q.status for q in again.queries} == {"plain": "fallback", "q": "active"}


def test_registering_again_after_another_process_dropped_the_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    own_session = session(spark)
    opened(own_session, tmp_path).register("q", COUNTS)
    ours, other = opened(own_session, tmp_path), opened(own_session, tmp_path)
    other.drop("q")
    assert ours.register("q", COUNTS).status == "active"


def test_complete_from_of_each_stream(spark: SparkSession, tmp_path: Path) -> None:
    """Plan versions are numbered by stream."""
    own_session = session(spark)
    w = opened(own_session, tmp_path)
    w.add_stream("t", read(own_session, tmp_path / "input"), time="ts", watermark="0 seconds")
    put_rows(tmp_path / "input", 0, [(1, "a", 1), (12, "a", 1)])
    w.register("s1", COUNTS)
    w.register("t1", COUNTS.replace("FROM s", "FROM t"))
    w.start(availableNow=True).awaitTermination()
    sums = "SELECT k, sum(v) AS n FROM s GROUP BY window(ts, '20 seconds'), k"
    w.register("s2", sums)
    w.register("t2", sums.replace("FROM s", "FROM t"))
    put_rows(tmp_path / "input", 1, [(61, "a", 1)])
    w.start(availableNow=True).awaitTermination()
    assert w.query("s2").complete_from is not None
    assert w.query("t2").complete_from == w.query("s2").complete_from


def test_a_column_with_a_dot_in_its_name(spark: SparkSession, tmp_path: Path) -> None:
    own_session = session(spark)
    schema = pa.schema([TIME, ("a.b", pa.int64())])
    put(tmp_path / "input", 0, {"ts": [START, START + 30_000_000], "a.b": [1, 2]}, schema)
    w = weft.Weft(own_session, tmp_path / "checkpoint")
    frame = read(own_session, tmp_path / "input", "ts timestamp, `a.b` bigint")
    w.add_stream("s", frame, time="ts", watermark="0 seconds")
    w.register("q", "SELECT sum(`a.b`) AS x FROM s GROUP BY window(ts, '10 seconds')")
    w.start(availableNow=True).awaitTermination()
    assert rows_of(w, "q") == [(1,)]


def test_approx_count_distinct_of_empty_strings_and_negative_zero(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark counts '' as a value, and 0.0 and -0.0 as one."""
    own_session = session(spark)
    schema = pa.schema([TIME, ("x", pa.string()), ("f", pa.float64())])
    times = [START, START + 1, START + 2, START + 30_000_000]
    columns = {"ts": times, "x": ["", "a", "", "z"], "f": [0.0, -0.0, 0.0, 9.0]}
    put(tmp_path / "input", 0, columns, schema)
    w = weft.Weft(own_session, tmp_path / "checkpoint")
    frame = read(own_session, tmp_path / "input", "ts timestamp, x string, f double")
    w.add_stream("s", frame, time="ts", watermark="0 seconds")
    w.register(
        "q",
        "SELECT approx_count_distinct(x) AS a, approx_count_distinct(f) AS b FROM s "
        "GROUP BY window(ts, '10 seconds')",
    )
    w.start(availableNow=True).awaitTermination()
    assert rows_of(w, "q") == [(2, 1)]


def test_a_damaged_catalog_is_refused_with_advice(spark: SparkSession, tmp_path: Path) -> None:
    w = opened(session(spark), tmp_path)
    w.register("q", COUNTS)
    w._catalog.close()
    for path in (tmp_path / "checkpoint").glob("catalog.db*"):
        path.unlink()
    (tmp_path / "checkpoint/catalog.db").write_bytes(b"x" * 5000)
    with pytest.raises(weft.CheckpointError, match="DAMAGED"):
        opened(session(spark), tmp_path)
