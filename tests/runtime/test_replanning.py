"""When weave groups are chosen again."""

from __future__ import annotations

import numpy as np
import pytest
from tests.explain.support import BIDS, explained

from weft.algebra.plan import SharedPlan, Sharing
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import WindowWeaving
from weft.runtime.planning.replanning import drifted, groups_drifted, pays, updated_measures
from weft.stats import JointSample, StreamStatistics

SQL = """-- name: alert
    SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '2 seconds', '1 second');
    -- name: minute
    SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '1 minute', '7 seconds');
    -- name: report
    SELECT COUNT(*) AS n FROM bids GROUP BY window(ts, '1 day', '1 hour')"""


def plan(sharing: Sharing) -> SharedPlan:
    (made,) = explained(SQL).plans
    return share(1, BIDS, made.queries, {}, WindowWeaving(sharing))


def test_averages_follow_the_stream() -> None:
    made = plan(Sharing("shared"))
    first = updated_measures({}, 10_000_000, 5000, 20, made)
    assert (first["rate"], first["step"]) == (500.0, 10.0)
    later = updated_measures(first, 10_000_000, 15000, 20, made)
    assert first["rate"] < later["rate"] < 1500
    for _ in range(50):
        later = updated_measures(later, 10_000_000, 15000, 20, made)
    assert later["rate"] == pytest.approx(1500, rel=1e-3)


def test_a_step_without_rows_or_time_measures_nothing() -> None:
    assert updated_measures({"rate": 1.0}, 0, 100, 5, plan(Sharing())) == {}
    assert updated_measures({"rate": 1.0}, 1000, 0, 0, plan(Sharing())) == {}


def test_drift_is_a_factor_in_any_measure() -> None:
    then = Sharing(rate=100.0, keys=10.0, step=1.0, measured=True)
    assert not drifted(then, Sharing(rate=199.0, keys=10.0, step=1.0, measured=True), 2.0)
    assert drifted(then, Sharing(rate=201.0, keys=10.0, step=1.0, measured=True), 2.0)
    assert drifted(then, Sharing(rate=49.0, keys=10.0, step=1.0, measured=True), 2.0)
    assert drifted(then, Sharing(rate=100.0, keys=10.0, step=3.0, measured=True), 2.0)
    assert drifted(then, Sharing("triweave", rate=100.0, keys=10.0, step=1.0, measured=True), 2.0)
    assert not drifted(Sharing(), Sharing(), 2.0), "nothing is measured yet"
    assert drifted(Sharing(), Sharing(measured=True), 2.0), "the first measurement"


def test_groups_of_a_node_that_drift_are_seen_where_samples_know_them() -> None:
    by_auction = """SELECT auction, COUNT(*) AS n FROM bids
        GROUP BY window(ts, '10 seconds'), auction"""
    (made,) = explained(by_auction).plans

    def known(groups: int, column: str = "`auction`") -> StreamStatistics:
        values = np.arange(5000, dtype=np.uint32) % groups
        sampled = StreamStatistics(sample=JointSample().then({column: values.astype(np.uint32)}))
        return sampled.counted({"rows": 5000, "rate": 400.0})

    assert not groups_drifted(known(100), known(180), made, 2.0)
    assert groups_drifted(known(100), known(230), made, 2.0)
    assert groups_drifted(known(230), known(100), made, 2.0)
    assert not groups_drifted(known(100), known(230, "`bidder`"), made, 2.0), "not known in both"
    assert not groups_drifted(StreamStatistics.unknown(), known(1), made, 2.0)


def test_only_groups_that_cost_clearly_less_are_taken() -> None:
    cheap = Sharing("best", rate=1000.0, keys=100.0, step=10.0, measured=True)
    assert not pays(plan(cheap), cheap), "the same groups"
    assert pays(plan(Sharing("shared", rate=1000.0)), cheap), "another optimizer was asked for"
    one_group = share(1, BIDS, plan(cheap).queries, {})
    flood = Sharing("shared", rate=1e12, keys=1.0, step=10.0, measured=True)
    assert not pays(one_group, flood)
