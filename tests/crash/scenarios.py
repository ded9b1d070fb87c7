"""What a run is busy with when it crashes: small streams, each with one thing done in every step."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import open_weft, register
from tests.oracle import compare, model, rows
from tests.oracle.plain_spark import write_batches
from tests.support.harness import session
from tests.support.stored import stored_rows

import weft

WINDOWS = ("counts", "extremes")

#: What every step visits, and what every step with rows does.
ALWAYS = frozenset(
    {"after_intent", "after_results", "before_commit", "after_commit", "after_cleanup"}
)
EVERY_STEP = ALWAYS | {"after_read"}
#: A stream has one plan here, and prunes its log after the first of a few batches.
ONCE = frozenset({"after_plan", "after_prune"})
USUAL = EVERY_STEP | ONCE
USUAL_SAMPLED = 3

STATEFILES = "weft.runtime.level1.statefiles"
RESULTS = "weft.runtime.sinks.resultfiles"
STEPPER = "weft.runtime.protocol.stepper"
LOG = "weft.runtime.checkpoint.log"


@dataclass(frozen=True)
class Scenario:
    """Queries and settings, and how it is known that the thing in question was done."""

    settings: Mapping[str, Any]
    done: Callable[[Path], bool]
    """Whether it was, by the checkpoint. (A step that crashes after its commit has no report.)"""
    queries: tuple[str, ...] = WINDOWS
    limits: Mapping[str, int] = field(default_factory=dict)
    """Constants of modules, lowered so that it is done in every step."""
    failpoints: frozenset[str] = USUAL
    """All that an undisturbed run visits."""
    once: frozenset[str] = ONCE
    """Those of them that it visits in one step only."""
    by_follower: frozenset[str] = frozenset()
    """Those of them that a follower visits, too. It takes one step at least."""
    batches: int = 3
    in_flush: bool = False
    """Whether it is to crash in a flush, and not in a step with rows."""
    combined: bool = False
    """Whether it combines things that other scenarios have by themselves: then it crashes at the failpoints
    that are not the usual ones, and at some of these, others in every run of the tests."""

    @property
    def crashes(self) -> frozenset[str]:
        """The failpoints to crash at."""
        return self.failpoints & ALWAYS if self.in_flush else self.failpoints

    def in_order(self, chance: random.Random) -> list[str]:
        """The failpoints to crash at, those first that only the first step visits, the others in any
        order."""
        chosen = self.crashes
        if self.combined:
            usual = sorted(chosen & USUAL)
            chosen = (chosen - USUAL) | set(chance.sample(usual, min(USUAL_SAMPLED, len(usual))))
        return sorted(chosen, key=lambda name: (name not in self.once, chance.random()))

    def visit(self, failpoint: str, chance: random.Random) -> int:
        """At which visit to crash: the first one, or a follower's."""
        return chance.randint(1, 1 + (failpoint in self.by_follower))


def _has(pattern: str) -> Callable[[Path], bool]:
    return lambda checkpoint: any(checkpoint.glob(pattern))


def _pruned(checkpoint: Path) -> bool:
    return not any(checkpoint.glob("streams/s/commits/*00.json"))


SERIAL = {"overlap": False}
BASES = {f"{STEPPER}.BASE_EVERY": 1, f"{RESULTS}.MERGE_AT_LEAST": 2}
PRUNING = {**BASES, f"{STEPPER}.CLEAN_EVERY": 1, f"{LOG}.KEPT_COMMITS": 1}
FOLLOWER = Scenario(
    {},
    _has("streams/s@rows/commits/*"),
    queries=("counts", "row_sums"),
    failpoints=USUAL | {"after_published", "after_staged"},
    by_follower=EVERY_STEP | {"after_plan"},
)
NETWORK = replace(
    FOLLOWER,
    done=_has("streams/@network/commits/*"),
    queries=("counts", *workload.JOIN_QUERIES),
)
SCENARIOS = {
    "data": Scenario(SERIAL, _has("streams/s/state/*")),
    "flush": Scenario(SERIAL, _has("results/*/*"), in_flush=True, batches=2),
    "overlap": Scenario(
        {}, _has("streams/s/staged"), failpoints=USUAL | {"after_staged"}, combined=True
    ),
    "lanes": Scenario(
        {"kernel": "lanes", "lanes": 2},
        _has("results/*/*~s~*-t*.parquet"),
        batches=3,
    ),
    "compaction": Scenario(
        SERIAL,
        _has("streams/s/state/*-compact*"),
        limits={f"{STATEFILES}.MOST_FILES": 1},
    ),
    "base": Scenario(
        SERIAL,
        _has("results/*/*~merged~*"),
        limits=BASES,
        failpoints=USUAL | {"after_base"},
    ),
    "pruning": Scenario(
        SERIAL,
        _pruned,
        limits=PRUNING,
        failpoints=USUAL | {"after_base"},
        once=frozenset({"after_plan"}),
    ),
    "follower": FOLLOWER,
    "network": NETWORK,
    "network-history": replace(
        NETWORK,
        done=_has("streams/@network/state/*/*-compact.parquet"),
        limits={**PRUNING, "weft.runtime.network.history.MOST_FILES": 1},
        failpoints=NETWORK.failpoints | {"after_base"},
        once=frozenset({"after_plan"}),
        by_follower=NETWORK.by_follower | {"after_base", "after_prune"},
        combined=True,
    ),
    "network-lanes": replace(
        NETWORK,
        settings={"kernel": "lanes", "lanes": 2},
        done=_has("streams/@network/buckets/*/*-right-*.parquet"),
        failpoints=USUAL | {"after_published", "after_stage"},
        batches=3,
        combined=True,
    ),
    "follower-flush": replace(FOLLOWER, in_flush=True, batches=2, combined=True),
    "follower-pruning": replace(
        FOLLOWER,
        done=lambda checkpoint: FOLLOWER.done(checkpoint) and _pruned(checkpoint),
        limits=PRUNING,
        failpoints=FOLLOWER.failpoints | {"after_base"},
        once=frozenset({"after_plan"}),
        by_follower=FOLLOWER.by_follower | {"after_base", "after_prune"},
        combined=True,
    ),
}


def write_input(folder: Path, end: int, first: int = 0) -> None:
    """Some of the workload's batches as files, in the order of their names and times."""
    whole = folder / f"batches-{first}"
    write_batches(whole, workload.SCHEMA, workload.batches())
    (folder / "input").mkdir(exist_ok=True)
    for path in sorted(whole.iterdir())[first:end]:
        path.rename(folder / "input" / path.name)


def all_read(folder: Path, scenario: Scenario) -> bool:
    """Whether Spark is done with all batches of the input: what remains is a flush."""
    last = str(scenario.batches - 1)
    return (folder / "checkpoint/streams/s/spark/commits" / last).exists()


def opened(spark: SparkSession, folder: Path, scenario: Scenario) -> weft.Weft:
    """A new weft on whatever earlier ones left."""
    own = session(spark)
    w = open_weft(own, folder, statistics_every=0, **scenario.settings)
    register(w, list(scenario.queries))
    return w


def limited(scenario: Scenario, patch: pytest.MonkeyPatch) -> None:
    for name, value in scenario.limits.items():
        patch.setattr(name, value)


def expected(name: str, count: int) -> list[tuple[int, tuple[Any, ...]]]:
    """What a query emits on the first batches of the workload."""
    batches = workload.batches()[:count]
    if name in workload.ROW_SPECS:
        return rows.run(workload.ROW_SPECS[name], workload.SCHEMA, batches, workload.DELAY)
    return model.run(workload.SPECS[name], workload.SCHEMA, batches, workload.DELAY)


def _assert_joined(w: weft.Weft, name: str, count: int) -> None:
    """No match is missing of rows that were surely admitted, and none is there twice."""
    emitted = Counter(stored_rows(w, name))
    every_row = [row for rows in workload.batches()[:count] for row in rows]
    admitted = every_row if name == "picked" else workload.surely_admitted(count)
    possible = Counter(workload.joined(name, every_row, admitted))
    certain = Counter(workload.joined(name, admitted, every_row))
    assert certain
    assert certain <= emitted <= possible


def assert_complete(w: weft.Weft, scenario: Scenario) -> None:
    """All results are there, each once."""
    for name in scenario.queries:
        if name in workload.JOIN_QUERIES:
            _assert_joined(w, name, scenario.batches)
            continue
        emitted = [(0, row) for row in stored_rows(w, name)]
        compare.assert_same(emitted, expected(name, scenario.batches), batch_ids=False)
        assert emitted
