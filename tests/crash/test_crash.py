"""A run that ends at any failpoint loses nothing and repeats nothing.

Here runs end by an exception, in this process: at every failpoint, whatever the run is busy with, in
any of its steps. `test_kill` has a few processes that are really killed.
"""

from __future__ import annotations

import functools
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.scenarios import (
    SCENARIOS,
    all_read,
    assert_complete,
    expected,
    limited,
    opened,
    write_input,
)
from tests.crash.simulated import dying
from tests.oracle import compare, model
from tests.oracle.plain_spark import python_rows

import weft
from weft.runtime.checkpoint.failpoints import (
    FAILPOINTS,
    FALLBACK_FAILPOINTS,
    Crash,
    crashing,
    reach,
)
from weft.runtime.checkpoint.storage import Storage

pytestmark = pytest.mark.crash

CASES = [
    (name, failpoint)
    for name, scenario in SCENARIOS.items()
    for failpoint in FAILPOINTS
    if failpoint in scenario.crashes
]


#: Scenarios and failpoints that are left to chance.
LEFT_OUT = [
    (name, failpoint)
    for name, scenario in SCENARIOS.items()
    for failpoint in FAILPOINTS
    if failpoint in scenario.left_out
]


def always() -> bool:
    return True


def test_every_failpoint_is_visited_in_some_scenario() -> None:
    visited = set().union(*(scenario.failpoints for scenario in SCENARIOS.values()))
    assert visited == set(FAILPOINTS)


def test_every_failpoint_in_the_code_is_declared() -> None:
    code = (path.read_text() for path in Path(weft.__file__).parent.rglob("*.py"))
    named = {name for text in code for name in re.findall(r'\breach\("(\w+)"\)', text)}
    assert named == {*FAILPOINTS, *FALLBACK_FAILPOINTS}


@pytest.mark.parametrize("name", [name for name in SCENARIOS if not SCENARIOS[name].in_flush])
def test_an_undisturbed_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It does what the scenario is named after, and visits the failpoints that it says."""
    scenario = SCENARIOS[name]
    limited(scenario, monkeypatch)
    write_input(tmp_path, scenario.batches)
    w = opened(spark, tmp_path, scenario)
    with crashing() as counting:
        run = w.start(availableNow=True)
        run.awaitTermination()
    assert_complete(w, scenario)
    assert set(counting.visited) == scenario.failpoints
    assert scenario.done(tmp_path / "checkpoint", run.recentProgress)
    assert "flush" in [step["kind"] for step in run.recentProgress]


@pytest.mark.parametrize(("name", "failpoint"), CASES)
def test_a_crash(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chance: random.Random,
    name: str,
    failpoint: str,
) -> None:
    crash_and_go_on(spark, tmp_path, monkeypatch, chance, name, failpoint)


def test_a_crash_in_one_of_all_other_cases(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chance: random.Random,
) -> None:
    """Another one in every run of the tests."""
    crash_and_go_on(spark, tmp_path, monkeypatch, chance, *chance.choice(LEFT_OUT))


def test_every_scenario_is_tried_at_all_failpoints_that_it_visits() -> None:
    tried = {*CASES, *LEFT_OUT}
    for name in ("data", "overlap", "lanes", "compaction", "base", "pruning", "follower"):
        assert {point for case, point in tried if case == name} == SCENARIOS[name].failpoints


def crash_and_go_on(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chance: random.Random,
    name: str,
    failpoint: str,
) -> None:
    """A run that ends at a failpoint, and one after it: all results are there, each once."""
    scenario = SCENARIOS[name]
    limited(scenario, monkeypatch)
    write_input(tmp_path, scenario.batches)
    visit = chance.randint(1, scenario.visits(failpoint))
    flushing = functools.partial(all_read, tmp_path, scenario) if scenario.in_flush else always
    with dying(failpoint, visit, flushing) as crash, pytest.raises(weft.RunError, match="Crash"):
        opened(spark, tmp_path, scenario).start(availableNow=True).awaitTermination()
    assert crash.crashed
    w = opened(spark, tmp_path, scenario)
    w.start(availableNow=True).awaitTermination()
    assert_complete(w, scenario)


def test_a_staged_batch_is_finished_without_new_data(spark: SparkSession, tmp_path: Path) -> None:
    """Also by a run that would go on for ever."""
    overlap = SCENARIOS["overlap"]
    write_input(tmp_path, 1)
    with dying("after_staged"), pytest.raises(weft.RunError, match="Crash"):
        opened(spark, tmp_path, overlap).start(availableNow=True).awaitTermination()
    staged = tmp_path / "checkpoint/streams/s/staged"
    assert list(staged.glob("*.json"))
    w = opened(spark, tmp_path, overlap)
    run = w.start()
    try:
        run.processAllAvailable()
        assert w.counted("s")["rows"] == len(workload.batches()[0])
    finally:
        run.stop()
    assert not list(staged.iterdir())


def test_queries_registered_and_dropped_around_a_crash(spark: SparkSession, tmp_path: Path) -> None:
    """`spread` is dropped and `extremes` registered after two batches, then comes a crash."""
    before = replace(SCENARIOS["overlap"], queries=("counts", "sums", "spread"))
    after = replace(before, queries=("counts", "sums", "extremes"))
    write_input(tmp_path, 2)
    opened(spark, tmp_path, before).start(availableNow=True).awaitTermination()
    write_input(tmp_path, workload.BATCHES, first=2)
    with dying("after_results", 3), pytest.raises(weft.RunError, match="Crash"):
        opened(spark, tmp_path, after).start(availableNow=True).awaitTermination()
    w = opened(spark, tmp_path, after)
    w.start(availableNow=True).awaitTermination()
    # The run that ended after two batches flushed: later rows may be late for it.
    marks = model.watermarks(workload.batches(), workload.DELAY)
    extremes = w.query("extremes")
    assert extremes.complete_from is not None
    emitted = python_rows(w.results("extremes").toArrow())
    assert emitted
    for row in emitted:
        assert row[1] >= extremes.complete_from
        assert row[1] + workload.SPECS["extremes"].window.range <= marks[-1]
    whole = [row for _, row in expected("extremes", workload.BATCHES)]
    wanted = [(0, row) for row in whole if row[1] >= extremes.complete_from]
    compare.assert_same([(0, row) for row in emitted], wanted, batch_ids=False)
    with pytest.raises(weft.WeftError, match="UNKNOWN_QUERY"):
        w.results("spread")


def test_nothing_goes_on_or_is_written_after_a_crash(tmp_path: Path) -> None:
    storage = Storage(tmp_path)
    with dying("before_commit", 2) as crash:
        reach("before_commit")
        storage.put("before", b"")
        with pytest.raises(Crash, match="before_commit:2"):
            reach("before_commit")
        with pytest.raises(Crash):
            reach("after_commit")
        for write in (storage.put, storage.put_new):
            with pytest.raises(Crash):
                write("after", b"")
        with pytest.raises(Crash):
            storage.delete("before")
    assert crash.visited == ["before_commit", "before_commit"]
    assert storage.names("") == ["before"]


def test_only_declared_failpoints_can_be_named() -> None:
    with pytest.raises(ValueError, match="nowhere"), crashing("nowhere"):
        pass
