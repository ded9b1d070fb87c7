"""Weave groups: any optimizer, any model, and changing them, gives the same windows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.crash import workload
from tests.crash.child import open_weft
from tests.oracle import compare, model
from tests.oracle.plain_spark import python_rows
from tests.spark.test_changes import Feed, flushed_batches
from tests.support import seeds
from tests.support.harness import session

import weft
from weft.algebra.plan import SharedPlan

TURNS = [
    ("shared", "calibrated"),
    ("noshare", "twoops"),
    ("triweave", "triops"),
    ("insert-then-weave", "twoops"),
    ("weaveshare", "twoops"),
    ("noshare", "triops"),
    ("best", "calibrated"),
]


def check_all(w: weft.Weft) -> None:
    for name, spec in workload.SPECS.items():
        found = [(0, row) for row in python_rows(w.results(name).toArrow())]
        wanted = model.run(spec, workload.SCHEMA, flushed_batches(), workload.DELAY)
        assert wanted
        compare.assert_same(found, [(0, row) for _, row in wanted], batch_ids=False)


def last_plan(w: weft.Weft) -> SharedPlan:
    log = w._log("s")
    last = log.last()
    assert last is not None
    return log.plan(last.plan_version)


@pytest.mark.parametrize("kernel", seeds.some(__name__, ["driver", "lanes"], 1))
def test_groups_change_between_micro_batches_and_no_window_is_lost(
    spark: SparkSession, tmp_path: Path, kernel: str
) -> None:
    """Every batch runs under another plan: other groups, other levels, retired nodes."""
    feed = Feed(tmp_path)
    own_session = session(spark)
    shapes = set()
    for batch in range(workload.BATCHES):
        optimizer, chosen = TURNS[batch % len(TURNS)]
        w = open_weft(
            own_session, tmp_path, optimizer=optimizer, model=chosen, kernel=kernel, lanes=2
        )
        for name, sql in workload.QUERIES.items():
            w.register(name, sql)
        feed.next()
        w.start(availableNow=True).awaitTermination()
        plan = last_plan(w)
        assert (plan.sharing.optimizer, plan.sharing.model) == (optimizer, chosen)
        shapes.add((len(plan.nodes), len({group.fragments for group in plan.groups})))
        assert all(handle.complete_from is None for handle in w.queries)
    assert len(shapes) >= 3, "the plans were not different"
    check_all(w)


def test_two_levels_have_a_node_for_every_group_and_three_levels_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    own_session = session(spark)
    Feed(tmp_path)
    windows = {"optimizer": "noshare", "passes": ("windows",)}
    two = open_weft(own_session, tmp_path, model="twoops", **windows)
    with two.changes():
        for name, sql in workload.QUERIES.items():
            two.register(name, sql)
    edge_sets = len(workload.QUERIES) - 1  # two of the windows have the same edges
    assert len(two.plan("s").nodes) == edge_sets + 1, "and one for distinct values"
    three = open_weft(own_session, tmp_path, model="triops", **windows)
    plan = three.plan("s")
    assert len(plan.nodes) == 2
    assert len({group.fragments for group in plan.groups}) == edge_sets


def test_a_rate_that_drifts_changes_the_groups_of_a_running_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    """WeaveShare splits more at low rates: a flood of rows makes it merge."""
    import random

    from tests.oracle.plain_spark import write_batches

    chance = random.Random(3)

    def rows(batch: int, count: int) -> list[dict[str, object]]:
        span = 40 * workload.SECOND
        return [
            {
                "ts": workload.START + batch * span + chance.randrange(span),
                "k": "a",
                "v": 1,
                "x": 0.5,
            }
            for _ in range(count)
        ]

    batches = [rows(0, 8), rows(1, 8), rows(2, 8), rows(3, 4000), rows(4, 4000), rows(5, 4000)]
    write_batches(tmp_path / "input", workload.SCHEMA, batches)
    w = open_weft(session(spark), tmp_path, optimizer="weaveshare", model="twoops")
    for name, sql in workload.QUERIES.items():
        w.register(name, sql)
    run = w.start(availableNow=True)
    run.awaitTermination()
    versions = [step["plan_version"] for step in run.recentProgress]
    assert len(set(versions)) > 1, "the plan never changed"
    log = w._log("s")
    parts = [len(log.plan(version).nodes) for version in dict.fromkeys(versions)]
    assert parts[-1] < max(parts), parts
    for name, spec in workload.SPECS.items():
        found = [(0, row) for row in python_rows(w.results(name).toArrow())]
        wanted = model.run(spec, workload.SCHEMA, [*batches, []], workload.DELAY)
        compare.assert_same(found, [(0, row) for _, row in wanted], batch_ids=False)


@pytest.mark.parametrize(("name", "value"), [("optimizer", "greedy"), ("model", "fourops")])
def test_unknown_names_are_refused(
    spark: SparkSession, tmp_path: Path, name: str, value: str
) -> None:
    with pytest.raises(weft.RunError, match=f"UNKNOWN_SETTING.*{value}"):
        weft.Weft(spark, tmp_path / "checkpoint", **{name: value})
