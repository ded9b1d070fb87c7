"""Aggregation joins in tasks: the same results as on the driver, whatever the number of buckets, and back again."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from tests.runtime.joinagg.test_engine import (
    Action,
    in_folder,
    oracle,
    run_script,
    scripted,
    too_large,
    with_changes,
)
from tests.runtime.joinagg.test_late_rows import joined, publish
from tests.support import joinagg_engine
from tests.support.joinagg import Row, query_of
from tests.support.joinagg_engine import EngineRun

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.canonical import predicate_set
from weft.algebra.scalar import Call, Literal, Ref
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.joinagg import statefiles
from weft.runtime.joinagg.lanes import task
from weft.runtime.joinagg.lanes.choice import use_lanes
from weft.runtime.joinagg.lanes.task import run_task
from weft.runtime.settings import Kernel, Settings
from weft.runtime.tasks import Output

SLIDING, LANDMARK = InputWindow("sliding", 30), InputWindow("landmark")
KERNELS: tuple[Kernel, ...] = ("driver", "lanes")
EARLY, LATE, MIXED = (True, True), (False, False), (True, False)


@given(scripted())
@settings(max_examples=8)
def test_all_plans_in_tasks_equal_duckdb(
    case: tuple[AggregationJoin, list[Action], dict[str, list[Row]]],
) -> None:
    query, script, tables = case
    for early in itertools.product([False, True], repeat=len(query.inputs)):

        def check(folder: Path, early: tuple[bool, ...] = early) -> None:
            run = run_script(folder, query, early, script, tables, "lanes")
            wanted = oracle(run, query)
            if not too_large(wanted):
                assert run.by_instant(query) == wanted, early

        in_folder(check)


def opened(folder: Path, early: tuple[bool, ...], kernel: Any, **options: Any) -> EngineRun:
    queries = [
        joined(1, windows=(LANDMARK, SLIDING)),
        joined(2, ("(`a` > 0)", None), function="max", keys=(1,)),
        with_changes(joined(3, ("(`g` = 'x')", "(`j` >= 0)"), function="avg")),
        joined(4, keys=()),
    ]
    run = EngineRun(folder, queries, {q.id: early for q in queries}, kernel=kernel, **options)
    for name in ("s0", "s1"):
        run.add_stream(name)
    return run


@pytest.mark.parametrize("early", [EARLY, LATE, MIXED])
def test_queries_in_tasks_and_on_the_driver_by_turns_with_files_written_anew(
    tmp_path: Path, early: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statefiles, "MOST_FILES", 3)
    run, other = opened(tmp_path / "a", early, "lanes"), opened(tmp_path / "b", early, "driver")
    kernels = itertools.cycle(["lanes", "lanes", "driver", "lanes"])
    for begin in range(0, 100, 10):
        run.settings = replace(run.settings, kernel=next(kernels))
        run.restart()
        publish(run, begin)
        publish(other, begin)
        assert run.stepper.last is not None
        assert run.stepper.last.metrics["where"] == run.settings.kernel
    for query in run.queries:
        shown = [sorted(map(str, each.shown(query))) for each in (run, other)]
        assert shown[0] == shown[1] and shown[0]
    assert run.stepper.last is not None and run.stepper.last.state
    metrics = run.stepper.last.metrics
    assert metrics["lane_weights"] == [1, 1] and min(metrics["lane_seconds"]) > 0
    left = list((tmp_path / "a/streams/@aggjoin/handoff").glob("*"))
    assert not left, "what tasks hand to the driver is deleted"


def test_a_second_attempt_at_a_task_writes_no_file_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every task runs twice, as if Spark had lost the first attempt."""
    attempts = map("t{}".format, itertools.count())
    written: list[str] = []
    write_table = Storage.write_table

    def noted(storage: Storage, name: str, table: pa.Table) -> Entry:
        written.append(name)
        return write_table(storage, name, table)

    def twice(payload: str, number: int) -> list[Output]:
        for _ in range(2):
            attempt = next(attempts)
            monkeypatch.setattr(task, "task_attempt", partial(str, attempt))
            outputs = list(run_task(payload, number))
        return outputs

    monkeypatch.setattr(statefiles, "MOST_FILES", 3)
    monkeypatch.setattr(Storage, "write_table", noted)
    monkeypatch.setattr(joinagg_engine, "run_task", twice)
    run = opened(tmp_path, MIXED, "lanes")
    for begin in range(0, 50, 10):
        publish(run, begin)
    assert any("/panes-" in name for name in written), "no file was written anew"
    assert not [name for name, times in Counter(written).items() if times > 1]


def test_lanes_of_several_portions_and_other_weights_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.runtime.joinagg.lanes.choice._PER_ROW", 1 << 24)
    run = opened(tmp_path, MIXED, "lanes")
    run.settings = replace(run.settings, lane_cap_bytes=1 << 25, lanes=[3, 1])
    run.restart()
    for begin in range(0, 50, 10):
        publish(run, begin)
    for query in (run.queries[0], run.queries[1], run.queries[3]):
        wanted = oracle(run, query)
        assert run.by_instant(query) == {at: rows for at, rows in wanted.items() if at <= 50}


def test_a_join_without_equal_keys_is_split_in_turn(tmp_path: Path) -> None:
    query = replace(query_of([SLIDING, SLIDING], [None, 1], ["count", "sum"], {0}), id="q@1")
    query = replace(query, predicates=PredicateSet(()))
    shown = []
    for kernel in KERNELS:
        run = EngineRun(tmp_path / kernel, [query], {"q@1": MIXED}, kernel=kernel)
        for name in ("s0", "s1"):
            run.add_stream(name)
        for begin in range(0, 30, 10):
            publish(run, begin)
        shown.append(run.by_instant(query))
    assert shown[0] == shown[1] and len(shown[0]) == 3


NEXT = Call("+", (Ref("0.j", "int"), Literal(1, "int")), "int")
ONE_STREAM = {
    "without keys": PredicateSet(()),
    "by keys that differ": predicate_set(Call("=", (NEXT, Ref("1.j", "int")), "boolean")),
    "with an input that is whole": predicate_set(
        Call(
            "and",
            (
                Call("=", (Ref("0.j", "int"), Ref("1.j", "int")), "boolean"),
                Call("=", (Ref("1.g", "string"), Ref("2.g", "string")), "boolean"),
            ),
            "boolean",
        )
    ),
}


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("predicates", ONE_STREAM.values(), ids=ONE_STREAM)
def test_a_stream_that_is_joined_with_itself_is_split_for_each_input(
    tmp_path: Path, predicates: PredicateSet, early: bool
) -> None:
    """Its inputs are the same set, of which each has other entries in a bucket."""
    count = max([1, *(slot for one in predicates.predicates for slot in one.slots)]) + 1
    windows: list[InputWindow | None] = [SLIDING] * count
    query = query_of(windows, [None], ["count"], {0})
    of_one = tuple(replace(entry, relation="s0") for entry in query.inputs)
    query = replace(query, id="q@1", inputs=of_one, predicates=predicates)
    rows: list[Row] = [(place, place, "xyz"[place % 3], 1) for place in range(9)]
    shown = []
    for kernel in KERNELS:
        run = EngineRun(tmp_path / kernel, [query], {"q@1": (early,) * count}, kernel=kernel)
        run.add_stream("s0")
        run.publish("s0", rows, 10)
        while run.advance():
            pass
        shown.append(run.by_instant(query))
    assert shown[0] == shown[1] and len(shown[0]) == 1


def test_a_query_that_overflows_in_tasks_is_named(tmp_path: Path) -> None:
    run = opened(tmp_path, EARLY, "lanes", ansi="true")
    for name in ("s0", "s1"):
        run.publish(name, [(1, 1, "x", 2**62), (2, 1, "x", 2**62)], 10)
    while run.advance():
        pass
    assert run.failed.keys() == {"q1@1", "q4@4"} and "overflow" in run.failed["q1@1"]
    assert run.by_instant(run.queries[1])[10] == {("x", 4, 2**62): 1}


def test_the_driver_until_its_cap_and_back_at_half_of_it() -> None:
    setting = Settings(driver_cap_bytes=1000)
    file = {"name": "f", "rows": 1, "size": 100}
    assert not use_lanes(setting, [file] * 3, False) and use_lanes(setting, [file] * 4, False)
    assert use_lanes(setting, [file] * 3, True) and not use_lanes(setting, [file], True)
    assert use_lanes(replace(setting, kernel="lanes"), [], False)
    assert not use_lanes(replace(setting, kernel="driver"), [file] * 9, True)
