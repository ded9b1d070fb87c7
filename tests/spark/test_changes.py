"""Queries come and go; a window's contents never depend on when its query came."""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import open_weft
from tests.oracle import compare, model
from tests.oracle.plain_spark import python_rows, write_batches
from tests.support import seeds
from tests.support.harness import session

import weft

NAMES = list(workload.QUERIES)


class Feed:
    """The workload's batches, laid into the input folder one by one."""

    def __init__(self, folder: Path) -> None:
        write_batches(folder / "made", workload.SCHEMA, workload.batches())
        (folder / "input").mkdir()
        self._files = iter(sorted((folder / "made").iterdir()))
        self._target = folder / "input"

    def next(self) -> None:
        path = next(self._files)
        path.rename(self._target / path.name)


def flushed_batches() -> list[list[dict[str, object]]]:
    """The batches with a flush, which is a batch without data, after each."""
    return list(itertools.chain.from_iterable((rows, []) for rows in workload.batches()))


SHARING: list[dict[str, str]] = [
    {},
    {"optimizer": "noshare", "model": "twoops"},
    {"optimizer": "triweave", "model": "triops"},
]


@pytest.mark.parametrize("sharing", seeds.some(__name__, SHARING, 1))
def test_random_registrations_and_drops_between_batches(
    spark: SparkSession, tmp_path: Path, chance: random.Random, sharing: dict[str, str]
) -> None:
    """Each query is registered before one batch and dropped before a later one, or never."""
    starts = {name: chance.choice([0, 0, 1, 2, 3]) for name in NAMES}
    stops = {name: chance.choice([5, 99, 99]) for name in NAMES}
    feed = Feed(tmp_path)
    w = open_weft(session(spark), tmp_path, **sharing)
    complete_from: dict[str, int | None] = {}
    found: dict[str, list[tuple[int, tuple[object, ...]]]] = {name: [] for name in NAMES}
    for batch in range(workload.BATCHES):
        for name in NAMES:
            if starts[name] == batch:
                w.register(name, workload.QUERIES[name])
            if stops[name] == batch:
                w.drop(name)
        feed.next()
        if not w.queries:
            w.register("other", workload.QUERIES["counts"])
        w.start(availableNow=True).awaitTermination()
        for name in NAMES:
            if starts[name] <= batch < stops[name]:
                complete_from[name] = w.query(name).complete_from
                rows = python_rows(w.results(name).toArrow())
                found[name] = [(0, row) for row in rows]
    for name in NAMES:
        spec = workload.SPECS[name]
        emitted = model.run(spec, workload.SCHEMA, flushed_batches(), workload.DELAY)
        bound = complete_from[name]
        wanted = [
            (0, row)
            for step, row in emitted
            if 2 * starts[name] <= step < 2 * stops[name] and (bound is None or row[1] >= bound)
        ]
        compare.assert_same(found[name], wanted, batch_ids=False)
        if starts[name]:
            before = [row for rows in workload.batches()[: starts[name]] for row in rows]
            latest = max(row["ts"] for row in before)
            assert bound is None or bound <= latest + 10 * workload.SECOND


def test_registering_while_running_takes_effect_at_a_micro_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    feed = Feed(tmp_path)
    w = open_weft(session(spark), tmp_path)
    w.register("counts", workload.QUERIES["counts"])
    run = w.start(processingTime="0 seconds")
    try:
        for batch in range(workload.BATCHES):
            if batch == 2:
                w.register("extremes", workload.QUERIES["extremes"])
                _wait_for_columns(run, {"ts", "k", "v", "x"})
            feed.next()
            run.processAllAvailable()
    finally:
        run.stop()
    assert not run.isActive
    counts = [(0, row) for row in python_rows(w.results("counts").toArrow())]
    emitted = model.run(
        workload.SPECS["counts"], workload.SCHEMA, flushed_batches(), workload.DELAY
    )
    compare.assert_same(counts, emitted, batch_ids=False)
    bound = w.query("extremes").complete_from
    assert bound is not None
    extremes = [(0, row) for row in python_rows(w.results("extremes").toArrow())]
    emitted = model.run(
        workload.SPECS["extremes"], workload.SCHEMA, flushed_batches(), workload.DELAY
    )
    wanted = [(0, row) for _, row in emitted if row[1] >= bound]
    assert wanted
    compare.assert_same(extremes, wanted, batch_ids=False)


def _wait_for_columns(run: weft.Run, columns: set[str]) -> None:
    """Until Spark's query reads the columns of a query that was just registered."""
    deadline = time.monotonic() + 60
    while set(run._streams[0].columns) != columns:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_changes_are_all_or_nothing(spark: SparkSession, tmp_path: Path) -> None:
    Feed(tmp_path)
    w = open_weft(session(spark), tmp_path)

    def register_both() -> None:
        with w.changes():
            w.register("counts", workload.QUERIES["counts"])
            w.register("broken", "SELECT nothing FROM s GROUP BY window(ts, '1 second')")

    with pytest.raises(weft.SqlError):
        register_both()
    assert w.queries == []


def test_an_idle_stream_flushes_what_is_due(spark: SparkSession, tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    w = open_weft(session(spark), tmp_path)
    w.register("counts", workload.QUERIES["counts"])
    run = w.start(processingTime="0 seconds")
    try:
        feed.next()
        deadline = time.monotonic() + 90
        while not any(p["kind"] == "flush" for p in run.recentProgress):
            assert time.monotonic() < deadline
            time.sleep(0.2)
    finally:
        run.stop()
    first = [workload.batches()[0]]
    emitted = model.run(workload.SPECS["counts"], workload.SCHEMA, first, workload.DELAY)
    rows = [(0, row) for row in python_rows(w.results("counts").toArrow())]
    compare.assert_same(rows, emitted, batch_ids=False)
    assert rows
