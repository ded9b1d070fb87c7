"""Late rows, NULL times, failing queries, fallbacks: what a user sees of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.support.harness import session
from tests.support.input_files import put_file
from tests.support.stored import stored_rows

import weft
from weft.runtime.windows import lanes

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
DDL = "ts timestamp, k string, v bigint"
BY_K = "FROM s GROUP BY window(ts, '10 seconds'), k"

Batch = list[tuple[int | None, str | None, int]]


def make_stream(spark: SparkSession, folder: Path, batches: list[Batch]) -> DataFrame:
    (folder / "input").mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(batches):
        times = [None if t is None else START + t * SECOND for t, _, _ in rows]
        table = pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
                "k": pa.array([k for _, k, _ in rows], pa.string()),
                "v": pa.array([v for _, _, v in rows], pa.int64()),
            }
        )
        put_file(table, folder / "input", number)
    reader = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder / "input"))


def started(
    spark: SparkSession, folder: Path, batches: list[Batch], queries: dict[str, str], **kw: Any
) -> tuple[weft.Weft, weft.Run]:
    own = session(spark, ansi=kw.pop("ansi", True), spark_settings=kw.pop("spark_settings", None))
    w = weft.Weft(own, folder / "checkpoint", **kw)
    w.add_stream("s", make_stream(own, folder, batches), time="ts", watermark="0 seconds")
    for name, sql in queries.items():
        w.register(name, sql)
    run = w.start(availableNow=True)
    run.awaitTermination()
    return w, run


def rows_of(w: weft.Weft, name: str) -> list[tuple[Any, ...]]:
    return sorted(stored_rows(w, name), key=str)


def test_late_rows_and_null_times_are_dropped_counted_and_shown(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches: list[Batch] = [
        [(1, "a", 1), (None, "a", 1), (None, "b", 2)],
        [(35, "a", 1)],
        [(36, "a", 1)],
        [(37, "a", 1), (2, "a", 9), (12, "a", 1)],
        [(60, "a", 1)],
    ]
    w, run = started(spark, tmp_path, batches, {"q": f"SELECT k, count(*) AS n {BY_K}"})
    assert w.query("q").late_pairs == 2
    assert sum(p["null_times"] for p in run.recentProgress) == 2
    assert sum(p["late_rows"] for p in run.recentProgress) == 2
    assert rows_of(w, "q") == [("a", 1), ("a", 3)]
    w._catalog.set_late({1: 0})  # as after a crash between the commit and the catalog
    again = weft.Weft(w._spark, tmp_path / "checkpoint")
    again.add_stream("s", w._registry.sources["s"].frame, time="ts", watermark="0 seconds")
    again.start(availableNow=True).awaitTermination()
    assert again.query("q").late_pairs == 2


def test_a_batch_without_event_times_below_a_deep_tree(spark: SparkSession, tmp_path: Path) -> None:
    """Nodes of all levels have no fragments then, and the rows are counted."""
    full: Batch = [(t, "ab"[t % 2], t % 3) for t in range(30)]
    batches: list[Batch] = [full, [(None, "a", 1)] * 5, [(t + 60, k, v) for t, k, v in full if t]]
    queries = {
        "fine": "SELECT k, v, count(*) AS n FROM s GROUP BY window(ts, '1 second'), k, v",
        "middle": "SELECT k, count(*) AS n FROM s GROUP BY window(ts, '20 seconds'), k",
        "coarse": "SELECT count(*) AS n FROM s GROUP BY window(ts, '20 seconds')",
    }
    w, run = started(spark, tmp_path, batches, queries, assumed_rate=1e5)
    nodes = {node.id: node.parent for node in w.plan("s").nodes}
    assert any(nodes.get(parent or "") for parent in nodes.values()), "no tree of three levels"
    assert sum(p["null_times"] for p in run.recentProgress) == 5
    assert rows_of(w, "coarse") == [(10,), (19,), (20,)]


def test_a_failing_query_is_quarantined_and_the_others_go_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    queries = {
        "good": f"SELECT k, sum(v) AS s {BY_K}",
        "divides": f"SELECT k, sum(10 / v) AS s {BY_K}",
        "casts": "SELECT k, count(*) AS n FROM s WHERE cast(k AS int) > 0 "
        "GROUP BY window(ts, '10 seconds'), k",
        "guarded": "SELECT k, sum(10 / v) AS s FROM s WHERE v <> 0 "
        "GROUP BY window(ts, '10 seconds'), k",
    }
    batches: list[Batch] = [[(1, "7", 1)], [(2, "7", 0), (3, "x", 5)], [(30, "7", 1)]]
    w, _ = started(spark, tmp_path, batches, queries)
    assert w.query("good").status == "active"
    assert w.query("guarded").status == "active"
    assert w.query("divides").status == "quarantined"
    assert "DIVIDE_BY_ZERO" in w.query("divides").detail
    assert w.query("casts").status == "quarantined"
    assert "CAST_INVALID_INPUT" in w.query("casts").detail
    assert rows_of(w, "good") == [("7", 1), ("x", 5)]
    assert rows_of(w, "guarded") == [("7", 10.0), ("x", 2.0)]


def test_overflow_is_judged_on_the_windows_value(spark: SparkSession, tmp_path: Path) -> None:
    """Partial sums leave the range of bigint; the sum of the window 'fits' does not."""
    top = 2**63 - 1
    batches: list[Batch] = [
        [(1, "fits", top), (1, "over", top)],
        [(2, "fits", top), (2, "over", 1)],
        [(3, "fits", -top), (30, "end", 0)],
    ]
    queries = {
        "all": f"SELECT k, sum(v) AS s {BY_K}",
        "fits": "SELECT k, sum(v) AS s FROM s WHERE k = 'fits' "
        "GROUP BY window(ts, '10 seconds'), k",
    }
    w, _ = started(spark, tmp_path / "ansi", batches, queries)
    assert w.query("all").status == "quarantined"
    assert "OVERFLOW" in w.query("all").detail
    assert rows_of(w, "fits") == [("fits", top)]
    w, _ = started(spark, tmp_path / "plain", batches, queries, ansi=False)
    assert rows_of(w, "all") == [("fits", top), ("over", -(2**63))]


def test_a_having_clause_that_fails_quarantines_its_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    queries = {
        "bad": f"SELECT k, count(*) AS n {BY_K} HAVING 1 / (count(*) - 1) > 0",
        "good": f"SELECT k, count(*) AS n {BY_K} HAVING count(*) > 0",
    }
    w, _ = started(spark, tmp_path, [[(1, "a", 1)], [(30, "a", 1)]], queries)
    assert w.query("bad").status == "quarantined"
    assert rows_of(w, "good") == [("a", 1)]


def test_projections_beyond_the_whitelist_are_evaluated_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = f"SELECT upper(k) AS u, round(avg(v) / 3, 2) AS r, concat(k, '!') AS c {BY_K} "
    sql += "HAVING length(k) = 1"
    batches: list[Batch] = [[(1, "a", 1), (2, "a", 4), (3, "bb", 1)], [(30, "z", 1)]]
    w, _ = started(spark, tmp_path, batches, {"q": sql})
    assert rows_of(w, "q") == [("A", 0.83, "a!")]


def test_a_query_without_a_shared_form_falls_back(spark: SparkSession, tmp_path: Path) -> None:
    queries = {
        "lists": f"SELECT k, collect_list(v) AS l {BY_K}",
        "filter": "SELECT k, v + 1 AS w FROM s WHERE v > 1",
        "named": "WITH t AS (SELECT v * 2 AS w FROM s) SELECT w FROM t WHERE w > 2; -- done",
        "shared": f"SELECT k, count(*) AS n {BY_K}",
    }
    batches: list[Batch] = [[(1, "a", 1)], [(2, "a", 2)], [(30, "b", 1)]]
    w, _ = started(spark, tmp_path, batches, queries)
    assert w.query("lists").status == "fallback"
    assert "collect_list" in w.query("lists").detail
    assert "collect_list" in str(w.explain())
    assert [(k, sorted(v)) for k, v in rows_of(w, "lists")] == [("a", [1, 2])]
    assert rows_of(w, "filter") == [("a", 3)]
    assert rows_of(w, "named") == [(4,)]
    assert rows_of(w, "shared") == [("a", 2)]


def test_first_and_last_are_by_event_time(spark: SparkSession, tmp_path: Path) -> None:
    sql = f"SELECT first(v) AS f, last(v) AS l {BY_K}"
    batches: list[Batch] = [[(5, "a", 5), (2, "a", 2)], [(8, "a", 8), (1, "a", 1)], [(30, "a", 0)]]
    w, _ = started(spark, tmp_path, batches, {"q": sql})
    assert rows_of(w, "q") == [(1, 8)]


def test_registering_twice_in_one_process_is_refused_and_in_a_new_one_taken_up(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = f"SELECT k, count(*) AS n {BY_K}"
    batches: list[Batch] = [[(1, "a", 1)], [(30, "a", 1)]]
    w, _ = started(spark, tmp_path, batches, {"q": sql})
    with pytest.raises(weft.CatalogError, match="DUPLICATE_NAME"):
        w.register("q", sql)
    again = weft.Weft(w._spark, tmp_path / "checkpoint")
    again.add_stream("s", make_stream(w._spark, tmp_path, []), time="ts", watermark="0 seconds")
    assert again.register("q", sql).name == "q"
    with pytest.raises(weft.CatalogError, match="DUPLICATE_NAME"):
        again.register("q", sql)


@pytest.mark.parametrize(
    ("error_class", "time", "watermark"),
    [
        ("TIME_COLUMN", "k", "1 second"),
        ("TIME_COLUMN", "nothing", "1 second"),
        ("TIME_COLUMN", None, "1 second"),
        ("WATERMARK", "ts", None),
        ("WATERMARK", "ts", "1 month"),
        ("WATERMARK", "ts", "-1 second"),
    ],
)
def test_bad_streams(
    spark: SparkSession, tmp_path: Path, error_class: str, time: str, watermark: str
) -> None:
    w = weft.Weft(session(spark), tmp_path / "checkpoint")
    frame = make_stream(w._spark, tmp_path, [])
    with pytest.raises(weft.CatalogError) as caught:
        w.add_stream("s", frame, time=time, watermark=watermark)
    assert caught.value.error_class == error_class


def test_time_and_delay_are_inferred_from_a_watermark(spark: SparkSession, tmp_path: Path) -> None:
    w = weft.Weft(session(spark), tmp_path / "checkpoint")
    w.add_stream("s", make_stream(w._spark, tmp_path, []).withWatermark("ts", "90 seconds"))
    schema = w._registry.sources["s"].schema
    assert (schema.time, schema.delay) == ("ts", 90 * SECOND)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", "foo"),
        ("lanes", 0),
        ("assumed_rate", float("nan")),
        ("assumed_rate", 0),
        ("replan_drift", 0),
        ("memory_budget", 1.5),
        ("memory_budget", "x"),
        ("passes", "windows"),
        ("passes", None),
        ("budget", 1),
    ],
)
def test_settings_that_mean_nothing(
    spark: SparkSession, tmp_path: Path, name: str, value: Any
) -> None:
    with pytest.raises(weft.RunError, match=name):
        weft.Weft(spark, tmp_path / "checkpoint", **{name: value})
    assert not (tmp_path / "checkpoint").exists()


def test_other_misuse(spark: SparkSession, tmp_path: Path) -> None:
    w = weft.Weft(session(spark), tmp_path / "checkpoint")
    with pytest.raises(weft.CatalogError, match="STREAM_NOT_STREAMING"):
        w.add_stream("s", w._spark.range(3), time="id", watermark="1 second")
    w.add_stream("s", make_stream(w._spark, tmp_path, []), time="ts", watermark="1 second")
    with pytest.raises(weft.CatalogError, match="DUPLICATE_NAME"):
        w.add_stream("S", make_stream(w._spark, tmp_path, []), time="ts", watermark="1 second")
    with pytest.raises(weft.RunError, match="NOTHING_TO_RUN"):
        w.start(availableNow=True)
    with pytest.raises(weft.CatalogError, match="BAD_NAME"):
        w.register("a b", f"SELECT count(*) AS n {BY_K}")
    with pytest.raises(weft.CatalogError, match="UNKNOWN_QUERY"):
        w.drop("nothing")
    assert w.queries == []


def test_a_conjunct_that_can_raise_is_not_reached_behind_one_that_is_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's WHERE stops at the first conjunct that is false or NULL."""
    sql = "SELECT count(*) AS n FROM s WHERE nullif(k, 'x') = 'a' AND 10 / v > 1 "
    sql += "GROUP BY window(ts, '10 seconds')"
    batches: list[Batch] = [[(1, "x", 0), (2, "a", 2), (3, "b", 0)], [(30, "a", 1)]]
    w, _ = started(spark, tmp_path, batches, {"q": sql})
    assert w.query("q").status == "active"
    assert rows_of(w, "q") == [(1,)]


def test_a_refused_query_inside_changes_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path
) -> None:
    w = weft.Weft(session(spark), tmp_path / "checkpoint")
    w.add_stream("s", make_stream(w._spark, tmp_path, []), time="ts", watermark="1 second")
    with w.changes():
        w.register("good", f"SELECT count(*) AS n {BY_K}")
        with pytest.raises(weft.SqlError, match="UNKNOWN_COLUMN"):
            w.register("bad", f"SELECT count(nope) AS n {BY_K}")
    assert [handle.name for handle in w.queries] == ["good"]


def test_a_registration_that_was_rolled_back_is_forgotten(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Another process may get the same number for another query of the same name."""
    first = weft.Weft(session(spark), tmp_path / "checkpoint")
    first.add_stream("s", make_stream(first._spark, tmp_path, []), time="ts", watermark="1 second")

    def roll_back() -> None:
        with first.changes():
            first.register("q", f"SELECT count(*) AS n {BY_K}")
            raise KeyError

    with pytest.raises(KeyError):
        roll_back()
    second = weft.Weft(first._spark, tmp_path / "checkpoint")
    second.add_stream("s", make_stream(first._spark, tmp_path, []), time="ts", watermark="1 second")
    second.register("q", f"SELECT max(v) AS m {BY_K}")
    (query,) = first.plan("s").queries
    assert query.aggregates[0].function == "max"


def test_the_kernel_moves_to_lanes_when_the_open_state_is_large(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches: list[Batch] = [[(t, k, t) for k in "abc"] for t in range(0, 48, 12)]
    sql = "SELECT k, sum(v) AS s FROM s GROUP BY window(ts, '20 seconds', '10 seconds'), k"
    found = {}
    for cap in (1 << 30, 1):
        folder = tmp_path / str(cap)
        w, run = started(spark, folder, batches, {"q": sql}, driver_cap_bytes=cap)
        places_used = {p["where"] for p in run.recentProgress}
        assert places_used == {"lanes" if cap == 1 else "driver"}
        found[cap] = rows_of(w, "q")
    assert found[1] == found[1 << 30]
    assert len(found[1]) > 5


def test_a_lane_that_the_system_ends(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it ends processes for want of memory: a clear error, and the next start goes on."""

    def killed(payload: str, number: int) -> list[tuple[str, object]]:
        os.kill(os.getpid(), signal.SIGKILL)
        return [(payload, number)]

    batches: list[Batch] = [[(t, k, t) for k in "abc"] for t in range(0, 48, 12)]
    sql = "SELECT k, sum(v) AS s FROM s GROUP BY window(ts, '20 seconds', '10 seconds'), k"
    with monkeypatch.context() as patched:
        patched.setattr(lanes, "_run_task", killed)
        with pytest.raises(weft.RunError, match=r"LANE_LOST.*stream 's'.*3 lanes"):
            started(spark, tmp_path, batches, {"q": sql}, kernel="lanes", lanes=3)
    w, _ = started(spark, tmp_path, batches, {}, kernel="lanes", lanes=3)
    expected, _ = started(spark, tmp_path / "driver", batches, {"q": sql})
    assert rows_of(w, "q") == rows_of(expected, "q")
    assert len(rows_of(w, "q")) > 5


def test_percentiles_rank_nan_above_all_numbers(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own approx_percentile counts NaN as the largest value."""
    nan = "CASE WHEN v = 0 THEN double('NaN') ELSE cast(v AS double) END"
    sql = f"SELECT k, approx_percentile({nan}, array(0.0, 0.5, 1.0)) AS p {BY_K}"
    rows: Batch = [(1, "all", 0), (2, "some", 0), (3, "some", 1), (4, "some", 2), (5, "none", 7)]
    w, _ = started(spark, tmp_path, [rows, [(30, "z", 1)]], {"q": sql})
    plain = w._spark.createDataFrame([(k, v) for _, k, v in rows], "k string, v bigint").coalesce(1)
    oracle = {
        k: plain.where(f"k = '{k}'")
        .selectExpr(f"approx_percentile({nan}, array(0.0, 0.5, 1.0)) AS p")
        .collect()[0]
        .p
        for k in ("all", "some", "none")
    }
    assert {k: str(p) for k, p in rows_of(w, "q")} == {k: str(p) for k, p in oracle.items()}
