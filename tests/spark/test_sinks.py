"""Every sink gets every result with its batch; a failing one stops the run, uncommitted."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import open_weft, register
from tests.oracle import compare, model
from tests.oracle.plain_spark import python_rows, write_batches
from tests.support import seeds
from tests.support.harness import session

import weft
from weft.runtime.sinks.console import ConsoleSink
from weft.runtime.sinks.delivery import Sink

BATCHES = workload.batches()[:3]
NAMES = ["counts", "extremes"]


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> weft.Weft:
    write_batches(tmp_path / "input", workload.SCHEMA, BATCHES)
    w = open_weft(session(spark), tmp_path)
    register(w, NAMES)
    return w


def run(w: weft.Weft, sink: Sink | None) -> None:
    w.start(sink=sink, availableNow=True).awaitTermination()


def expected(name: str) -> list[tuple[int, tuple[Any, ...]]]:
    return model.run(workload.SPECS[name], workload.SCHEMA, BATCHES, workload.DELAY)


def assert_rows(rows: list[tuple[Any, ...]], name: str) -> None:
    assert rows
    compare.assert_same([(0, row) for row in rows], expected(name), batch_ids=False)


def test_parquet_families_in_a_folder_of_ones_own(project: weft.Weft, tmp_path: Path) -> None:
    run(project, weft.sinks.parquet(str(tmp_path / "out")))
    for name in NAMES:
        assert_rows(python_rows(project.results(name).toArrow()), name)
    files = list((tmp_path / "out").rglob("*.parquet"))
    assert files
    stored = project._spark.read.parquet(*map(str, files))
    assert "batch" in stored.columns
    assert stored.count() == sum(len(expected(name)) for name in NAMES)


def test_the_memory_sink(project: weft.Weft) -> None:
    run(project, weft.sinks.memory())
    for name in NAMES:
        assert_rows(python_rows(project.results(name).toArrow()), name)


def test_the_callback_gets_query_table_and_batch(project: weft.Weft) -> None:
    calls: list[tuple[str, pa.Table, int]] = []
    run(project, weft.sinks.callback(lambda name, table, batch: calls.append((name, table, batch))))
    for name in NAMES:
        assert_rows([row for n, table, _ in calls if n == name for row in python_rows(table)], name)
    assert {batch for _, _, batch in calls} <= {0, 1, 2, 3}


def test_the_console_names_query_and_batch(project: weft.Weft) -> None:
    stream = io.StringIO()
    run(project, ConsoleSink(rows=2, stream=stream))
    text = stream.getvalue()
    assert "counts, batch" in text
    assert "extremes, batch" in text


def test_any_spark_format_with_columns_to_deduplicate_by(
    project: weft.Weft, tmp_path: Path
) -> None:
    run(project, weft.sinks.spark("json", path=f"{tmp_path}/json/{{query}}"))
    found = project._spark.read.json(f"{tmp_path}/json/counts")
    assert {"weft_batch", "weft_query", "weft_seq"} <= set(found.columns)
    assert found.count() == len(expected("counts"))
    distinct = found.select("weft_batch", "weft_query", "weft_seq").distinct().count()
    assert distinct == found.count()
    with pytest.raises(weft.RunError, match="NO_RESULTS"):
        project.results("counts")


def test_a_route_for_a_single_query(project: weft.Weft) -> None:
    calls: list[str] = []
    to_callback = weft.sinks.callback(lambda name, _table, _batch: calls.append(name))
    run(project, weft.sinks.route({"extremes": to_callback}))
    assert set(calls) == {"extremes"}
    assert_rows(python_rows(project.results("counts").toArrow()), "counts")
    with pytest.raises(weft.RunError, match="NO_RESULTS"):
        project.results("extremes")


def shared_memory(_: str) -> Sink:
    memory = weft.sinks.memory()
    return weft.sinks.route({"counts": memory}, memory)


ROUTES: dict[str, Callable[[str], Sink]] = {
    "to the default's folder": lambda path: weft.sinks.route(
        {"counts": weft.sinks.parquet(path)}, weft.sinks.parquet(path + "/")
    ),
    "all, to one folder": lambda path: weft.sinks.route(
        {name: weft.sinks.parquet(path) for name in ("counts", "twin", "extremes")}
    ),
    "to the default's memory": shared_memory,
    "to the checkpoint's store": lambda _: weft.sinks.route({"counts": weft.sinks.store()}),
    "of a query that there is not": lambda _: weft.sinks.route({"other": weft.sinks.memory()}),
    "inside routes": lambda path: weft.sinks.route(
        {"counts": weft.sinks.route({"other": weft.sinks.memory()}, weft.sinks.parquet(path))},
        weft.sinks.route({"twin": weft.sinks.memory()}, weft.sinks.parquet(path)),
    ),
}


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        *(("driver", kind) for kind in seeds.some(__name__, [*ROUTES], 2)),
        ("lanes", "to the default's folder"),
    ],
)
def test_routes_that_meet_or_lead_nowhere(
    spark: SparkSession, tmp_path: Path, kernel: str, kind: str
) -> None:
    """Every query has its own rows, once, whatever else is written to the same place."""
    write_batches(tmp_path / "input", workload.SCHEMA, BATCHES)
    w = open_weft(session(spark), tmp_path, kernel=kernel)
    register(w, NAMES)
    w.register("twin", workload.QUERIES["counts"])
    run(w, ROUTES[kind](str(tmp_path / "out")))
    for name, spec in (("counts", "counts"), ("twin", "counts"), ("extremes", "extremes")):
        assert_rows(python_rows(w.results(name).toArrow()), spec)


@pytest.mark.parametrize("overlap", [False, True])
def test_a_sink_that_wants_the_process_to_end(
    spark: SparkSession, tmp_path: Path, overlap: bool
) -> None:
    """Spark must hear of it, or it waits for ever."""

    def leave(_name: str, _table: pa.Table, _batch: int) -> None:
        raise SystemExit(3)

    write_batches(tmp_path / "input", workload.SCHEMA, BATCHES)
    w = open_weft(session(spark), tmp_path, overlap=overlap)
    register(w, NAMES)
    running = w.start(sink=weft.sinks.callback(leave), availableNow=True)
    with pytest.raises(weft.RunError, match=r"QUERY_FAILED.*SystemExit: 3"):
        running.awaitTermination(60)
    assert not running.isActive


def failing(times: int) -> tuple[list[int], Callable[[str, pa.Table, int], None]]:
    tries: list[int] = []

    def function(_name: str, _table: pa.Table, batch: int) -> None:
        tries.append(batch)
        if len(tries) <= times:
            raise OSError("disk on fire")

    return tries, function


def test_a_sink_that_fails_for_good_stops_the_run_with_its_cause(project: weft.Weft) -> None:
    tries, function = failing(10_000)
    with pytest.raises(weft.RunError, match=r"SINK_FAILED.*3 times.*disk on fire"):
        run(project, weft.sinks.callback(function))
    assert len(tries) == 3
    assert len(set(tries)) == 1
    log = project._log("s")
    last = log.last()
    assert last is None or last.batch < tries[0]
    run(project, None)
    first = [row for step, row in expected("counts") if step >= tries[0]]
    found = python_rows(project.results("counts").toArrow())
    compare.assert_same([(0, r) for r in found], [(0, r) for r in first], batch_ids=False)


def test_a_sink_that_recovers_is_tried_again_with_the_same_batch(project: weft.Weft) -> None:
    tries, function = failing(1)
    run(project, weft.sinks.callback(function))
    assert tries[0] == tries[1]
