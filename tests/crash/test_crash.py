"""A run that ends at any failpoint loses nothing and repeats nothing.

Here runs end by an exception, in this process: at every failpoint, whatever the run is busy with, in
any of its steps. `test_kill` has a few processes that are really killed.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.scenarios import (
    SCENARIOS,
    Scenario,
    all_read,
    assert_complete,
    expected,
    limited,
    opened,
    write_input,
)
from tests.crash.simulated import dying
from tests.oracle import compare, model
from tests.support.stored import stored_rows

import weft
from weft.runtime.checkpoint.failpoints import (
    FAILPOINTS,
    FALLBACK_FAILPOINTS,
    Crash,
    crashing,
    reach,
)
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.run.run import Run

pytestmark = pytest.mark.crash


def always() -> bool:
    return True


def test_every_failpoint_is_visited_in_some_scenario() -> None:
    visited = set().union(*(scenario.failpoints for scenario in SCENARIOS.values()))
    assert visited == set(FAILPOINTS)


def test_every_failpoint_in_the_code_is_declared() -> None:
    code = (path.read_text() for path in Path(weft.__file__).parent.rglob("*.py"))
    named = {name for text in code for name in re.findall(r'\breach\("(\w+)"\)', text)}
    assert named == {*FAILPOINTS, *FALLBACK_FAILPOINTS}


@pytest.mark.parametrize("name", SCENARIOS)
def test_crashes_one_after_the_other(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chance: random.Random,
    name: str,
) -> None:
    """At every failpoint, each time by a new run on what the one before left. When the input is at its
    end, the results are compared, and the next crashes are those of a new stream. The runs visit no
    failpoint that the scenario does not name, and do what it is named after: if not those that crash all
    the time, then one that does not."""
    scenario = SCENARIOS[name]
    limited(scenario, monkeypatch)
    failpoints = scenario.in_order(chance)
    visited: set[str] = set()
    done = False
    for stream in itertools.count():
        folder = tmp_path / str(stream)
        folder.mkdir()
        write_input(folder, scenario.batches)
        story = crash_until_the_end(spark, folder, scenario, failpoints, chance)
        assert story.crashes or not failpoints, f"no run visits {failpoints[0]}"
        failpoints = failpoints[story.crashes :]
        visited |= story.visited
        done |= scenario.done(folder / "checkpoint")
        if not failpoints and (done or not story.crashes):
            break
    assert done
    assert visited <= scenario.failpoints


@dataclass
class Story:
    """What the runs of one stream did: how many crashed, and the failpoints that they visited."""

    crashes: int = 0
    visited: set[str] = field(default_factory=set)


def crash_until_the_end(
    spark: SparkSession,
    folder: Path,
    scenario: Scenario,
    failpoints: Sequence[str],
    chance: random.Random,
) -> Story:
    """Crash at one failpoint after the other, and go on to the end of the input. All results are there,
    each once."""
    flushing = functools.partial(all_read, folder, scenario) if scenario.in_flush else always
    story = Story()
    for failpoint in failpoints:
        visit = scenario.visit(failpoint, chance)
        with dying(failpoint, visit, flushing) as crash:
            run = opened(spark, folder, scenario).start(availableNow=True)
            ended = ended_by_itself(run)
        story.visited.update(crash.visited)
        if ended:
            break
        assert crash.crashed
        story.crashes += 1
    w = opened(spark, folder, scenario)
    with crashing() as counting:
        w.start(availableNow=True).awaitTermination()
    story.visited.update(counting.visited)
    assert_complete(w, scenario)
    return story


def ended_by_itself(run: Run) -> bool:
    """Whether a run came to its end. Any other end than a crash is an error."""
    try:
        return run.awaitTermination()
    except weft.RunError as error:
        if "Crash" not in str(error):
            raise
        return False


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
    emitted = stored_rows(w, "extremes")
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
