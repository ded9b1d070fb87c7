"""Which micro-batches are sampled, and for which expressions."""

from __future__ import annotations

from itertools import count

import pytest
from tests.explain.support import explained, numbered

from weft.runtime.planning import sampling as sampling_module
from weft.runtime.planning.sampling import Sampling, key_sets, keys_of, predicates_of
from weft.stats import Selectivity, StreamStatistics

MANY = numbered(
    "SELECT auction, bidder, COUNT(*) AS n FROM bids WHERE price > {n} "
    "GROUP BY window(ts, '1 hour'), auction, bidder",
    100,
)


def test_the_first_large_micro_batches_and_then_every_nth() -> None:
    sampling = Sampling(every=5)
    assert not sampling.due(0, 999, 1.0), "too few rows to hurry"
    assert sampling.due(0, 1000, 1.0)
    assert not sampling.due(4, 0, 1.0)
    assert [batch for batch in range(12) if sampling.due(batch, 10, 1.0)] == [4, 9]
    assert not any(Sampling(every=0).due(batch, 10**6, 1.0) for batch in range(12)), "off"


def test_sampling_takes_a_fiftieth_of_the_time_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample takes as long as a step, so no more than one step in fifty is sampled."""
    (plan,) = explained(MANY).plans
    clock = count()

    class Clock:
        """A second passes between the beginning of a sample and its end."""

        perf_counter = staticmethod(lambda: float(next(clock)))

    monkeypatch.setattr(sampling_module, "time", Clock)
    monkeypatch.setattr(sampling_module, "sampled", lambda known, *_: known)
    sampling = Sampling(every=5)
    taken = []
    for batch in range(1000):
        if sampling.due(batch, 5000, seconds=1.0):
            taken.append(batch)
            sampling.collect(None, plan, 5000, {})  # type: ignore[arg-type]
    assert taken[:2] == [0, 1]
    assert 18 <= len(taken[2:]) <= 21, "2 % of 1000 steps, and the one that goes beyond"


def test_predicates_take_turns() -> None:
    (plan,) = explained(MANY).plans
    first = predicates_of(plan, StreamStatistics.unknown())
    assert len(first) == 64
    tried = {each.sql: Selectivity(1.0, 100.0) for each in first}
    second = predicates_of(plan, StreamStatistics(selectivities=tried))
    assert len({each.sql for each in [*first, *second]}) == 100


def test_keys_that_can_raise_are_not_evaluated() -> None:
    (plan,) = explained(
        """SELECT auction, COUNT(DISTINCT bidder) AS n, price div bidder AS d FROM bids
        GROUP BY window(ts, '1 hour'), auction, price div bidder"""
    ).plans
    assert sorted(key.sql for key in keys_of(plan)) == ["`auction`", "`bidder`"]
    assert key_sets(plan, keys_of(plan)) == [], "no node has safe keys only"
    (safe,) = explained(MANY).plans
    assert key_sets(safe, keys_of(safe)) == [frozenset({"`auction`", "`bidder`"})]
