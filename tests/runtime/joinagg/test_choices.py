"""Which inputs of aggregation joins are early: by setting, by cost, by what can be run; and when a query switches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.joinagg import query_of
from tests.support.joinagg_engine import schema

from weft.algebra.aggregate import Aggregate
from weft.algebra.joinagg.plan import AggregationPlan
from weft.algebra.joinagg.query import AggregationJoin, JoinedAggregate
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.scalar import Expression
from weft.optimizer.joinagg.possible import fixed_inputs
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.joinagg.choices import Choices
from weft.runtime.joinagg.inputs import Inputs
from weft.runtime.joinagg.loads import load_of
from weft.runtime.joinagg.matches.possible import matching_slots
from weft.runtime.settings import Settings
from weft.stats import StreamStatistics
from weft.stats.estimate import Estimate
from weft.stats.sample import JointSample

SECOND = 1_000_000
HOUR = InputWindow("sliding", 3600 * SECOND)


def joined(*windows: InputWindow) -> AggregationJoin:
    return replace(query_of(list(windows), [None], ["count"], {0}), step=60 * SECOND)


def choices(
    folder: Path,
    rates: dict[str, float],
    early: Any = "auto",
    sampled: int | None = 100,
    late_joins: Any = "auto",
) -> Choices:
    """Streams with measured rates, and a sample in which each key has so many values; None: without a sample."""

    def statistics(stream: str) -> StreamStatistics:
        if stream not in rates:
            return StreamStatistics.unknown()
        rate = Estimate(rates[stream], "measured", 1000)
        if sampled is None:
            return StreamStatistics(rate=rate)
        values = np.random.default_rng(1).integers(0, sampled, (2, 10_000)).astype(np.uint32)
        columns = {name: values[place] for place, name in enumerate(("`j`", "`g`"))}
        return StreamStatistics(rate=rate, sample=JointSample().then(columns))

    chosen = Settings(early=early, late_joins=late_joins)
    return Choices(Storage(str(folder)), chosen, statistics, "@aggjoin")


@pytest.mark.parametrize(
    ("early", "plan"),
    [("all", (True, True)), ("none", (False, False)), ((False, True), (False, True))],
)
def test_a_setting_chooses(tmp_path: Path, early: Any, plan: tuple[bool, ...]) -> None:
    assert choices(tmp_path, {}, early).plans(joined(HOUR, HOUR)) == (plan, None)


def test_many_rows_of_few_keys_are_aggregated_early_and_few_rows_are_not(tmp_path: Path) -> None:
    plans = choices(tmp_path, {"s0": 5000.0, "s1": 0.001})
    assert plans.plans(joined(HOUR, HOUR)) == ((True, False), None)


@pytest.mark.parametrize("rates", [{}, {"s0": 5000.0, "s1": 5000.0}], ids=["nothing", "rates"])
def test_without_statistics_inputs_are_early(tmp_path: Path, rates: dict[str, float]) -> None:
    """Keys are assumed to be as many as there may be, so that a set looks as large as the rows and scaling its aggregates dearer than not."""
    short = InputWindow("sliding", 10 * SECOND)
    query = query_of([short, short], [0, 1], ["sum", "avg"], {0, 1})
    for place, every in enumerate((1, 5, 10)):
        asked = replace(query, id=f"q@{place}", step=every * SECOND)
        plans = choices(tmp_path, rates, sampled=None)
        assert plans.plans(asked) == ((True, True), None)
        assert not plans.reconsider(asked), "what is assumed is no reason to switch"


def test_a_set_that_is_updated_costs_its_keys_and_not_its_panes(tmp_path: Path) -> None:
    """Sixty panes of up to ten thousand keys: counts are updated by what comes and goes, extremes are merged from all panes."""
    statistics = choices(tmp_path, {"s0": 5000.0, "s1": 5000.0})._statistics
    query = joined(HOUR, HOUR)
    updated = load_of(query, statistics).inputs[0]
    assert updated.entries == updated.keys + 2 * updated.new_entries
    most = replace(query_of([HOUR, HOUR], [0], ["max"], {0}), step=60 * SECOND)
    assert load_of(most, statistics).inputs[0].entries == 60 * updated.new_entries
    tumbling = replace(joined(HOUR, HOUR), step=1800 * SECOND)
    of_two_panes = load_of(tumbling, statistics).inputs[0]
    assert of_two_panes.entries == 2 * of_two_panes.new_entries


def test_keys_that_are_as_many_as_the_rows_make_inputs_late(tmp_path: Path) -> None:
    short = InputWindow("sliding", 10 * SECOND)
    query = replace(query_of([short, short], [0, 1], ["sum", "avg"], {0, 1}), step=5 * SECOND)
    rates = {"s0": 100.0, "s1": 100.0}
    assert choices(tmp_path, rates, sampled=10**9).plans(query) == ((False, False), None)


def test_what_may_raise_or_has_sketches_is_early_and_quantiles_make_the_others_late() -> None:
    query = joined(HOUR, HOUR)
    value = Expression("`a`", "bigint", ("a",))

    def with_aggregate(aggregate: Aggregate) -> AggregationJoin:
        return replace(query, aggregates=(JoinedAggregate(aggregate, 0),))

    raising = Aggregate("sum", (replace(value, can_raise=True),), "bigint")
    assert fixed_inputs(with_aggregate(raising)) == (True, None)
    distinct = Aggregate("approx_count_distinct", (value,), "bigint", parameters=(0.05,))
    assert fixed_inputs(with_aggregate(distinct)) == (True, None)
    median = Aggregate("approx_percentile", (value,), "bigint", parameters=(False, 100, 0.5))
    assert fixed_inputs(with_aggregate(median)) == (True, False)
    both = replace(query, aggregates=(JoinedAggregate(median, 0), JoinedAggregate(median, 1)))
    assert fixed_inputs(both) is None


def test_an_early_sketch_beside_late_rows_asks_for_no_form_of_one_row() -> None:
    value = Expression("`a`", "bigint", ("a",))
    median = Aggregate("approx_percentile", (value,), "bigint", parameters=(False, 100, 0.5))
    query = replace(joined(HOUR, HOUR), aggregates=(JoinedAggregate(median, 0),))
    plan = AggregationPlan(1, (query,), {query.id: (True, False)})
    inputs = Inputs(plan, {name: schema(name) for name in ("s0", "s1")})
    assert [key[0] for key in inputs.any_of] == ["panes", "rows"]
    assert not any(inputs.any_of.values()), "all rows are kept"


def test_a_choice_lasts_and_a_drift_makes_the_query_switch(tmp_path: Path) -> None:
    query = joined(HOUR, HOUR)
    before = choices(tmp_path, {"s0": 0.001, "s1": 0.001})
    first, _ = before.plans(query)
    drifted = choices(tmp_path, {"s0": 5000.0, "s1": 5000.0})
    assert drifted.plans(query) == (first, None), "as it was chosen"
    assert drifted.reconsider(query)
    assert not drifted.reconsider(query), "one switch at a time"
    assert drifted.plans(query) == (first, (True, True)) != (first, first)
    again = choices(tmp_path, {})
    assert again.plans(query) == drifted.plans(query), "a restart goes on with it"
    again.settle(query)
    assert choices(tmp_path, {}).plans(query) == ((True, True), None)


def test_landmark_windows_and_forced_plans_do_not_switch(tmp_path: Path) -> None:
    endless = joined(InputWindow("landmark"), InputWindow("landmark"))
    forced = choices(tmp_path, {"s0": 1e4, "s1": 1e4}, "none")
    assert forced.plans(endless) == ((False, False), None)
    assert not forced.reconsider(endless)
    assert not choices(tmp_path, {"s0": 1e4, "s1": 1e4}).reconsider(endless)


@pytest.mark.parametrize("setting", [{"finer_sets": False}, {"passes": ("predicates", "windows")}])
def test_finer_sets_can_be_switched_off(tmp_path: Path, setting: dict[str, Any]) -> None:
    fine = joined(HOUR, HOUR)
    by_key = tuple(replace(entry, attributes=entry.attributes[:1]) for entry in fine.inputs)
    coarse = replace(fine, id="r@2", keys=(), inputs=by_key)

    def published(**settings: Any) -> int:
        unknown = StreamStatistics.unknown()
        storage = Storage(str(tmp_path / str(sorted(settings))))
        chosen = Choices(storage, Settings(early="all", **settings), lambda _: unknown, "@aggjoin")
        return len(chosen.sources([fine, coarse], "s0", early=True))

    assert (published(), published(**setting)) == (1, 2)


RARE: dict[str, Any] = {"rates": {"s0": 3000.0, "s1": 3000.0}, "sampled": 10**9}
"""Windows of ten million rows with keys of their own."""


def test_late_inputs_are_joined_where_a_setting_says_or_where_it_costs_less(tmp_path: Path) -> None:
    query = joined(HOUR, HOUR)

    def slots(name: str, early: str, late_joins: str, **known: Any) -> tuple[int, ...]:
        folder = tmp_path / name
        known = known or {"rates": {}}
        return choices(folder, early=early, late_joins=late_joins, **known).matched(query)

    assert slots("network", "none", "network") == (0, 1)
    assert slots("early", "all", "network") == (), "early inputs have no rows to be joined"
    assert slots("instants", "none", "instants", **RARE) == ()
    assert slots("by cost", "auto", "auto", **RARE) == (0, 1)
    assert slots("unknown", "none", "auto") == ()
    few = {"rates": {"s0": 1.0, "s1": 1.0}, "sampled": 10**9}
    assert slots("few rows", "none", "auto", **few) == ()


def test_a_choice_stays_after_a_restart_and_is_made_anew_for_another_plan(tmp_path: Path) -> None:
    query = joined(HOUR, HOUR)
    assert choices(tmp_path, **RARE).matched(query) == (0, 1)
    again = choices(tmp_path, {})
    assert again.matched(query) == (0, 1), "nothing is known of the streams, but it was chosen"
    assert again.late_join(query).slots == (0, 1)
    again._put(query, ((True, False), None))
    assert again.matched(query) == ()
    assert choices(tmp_path, **RARE).matched(query) == ()


def test_another_setting_after_a_restart_is_obeyed_and_tasks_join_at_instants(
    tmp_path: Path,
) -> None:
    query = joined(HOUR, HOUR)
    for setting, slots in (("network", (0, 1)), ("instants", ()), ("network", (0, 1))):
        plans = choices(tmp_path, {}, "none", late_joins=setting)
        before = plans.version
        assert plans.matched(query) == slots
        changed = plans.version
        assert changed > before and plans.matched(query) == slots and plans.version == changed
    in_tasks = Settings(early="none", late_joins="network", kernel="lanes")
    storage = Storage(str(tmp_path / "lanes"))
    nothing = lambda _: StreamStatistics.unknown()  # noqa: E731
    assert Choices(storage, in_tasks, nothing, "@aggjoin").matched(query) == ()


def test_what_the_network_refuses_is_joined_at_instants_for_ever(tmp_path: Path) -> None:
    query = joined(HOUR, HOUR)
    plans = choices(tmp_path, {}, "none", late_joins="network")
    assert plans.matched(query) == (0, 1)
    plans.join_at_instants(query.id, "too many")
    for now in (plans, choices(tmp_path, {}, "none", late_joins="network")):
        assert now.matched(query) == () and not now.reconsider(query)
        assert now.late_join(query).refused == "too many"


def test_streams_that_drift_are_joined_in_another_way(tmp_path: Path) -> None:
    query = joined(HOUR, HOUR)
    few = {"rates": {"s0": 1.0, "s1": 1.0}, "sampled": 10**9}
    plans = choices(tmp_path, early="none", **few)
    assert plans.matched(query) == () and not plans.reconsider(query)
    grown = choices(tmp_path, early="none", **RARE)
    grown._late_joins._known = dict(plans._late_joins._known or {})
    assert grown.reconsider(query) and grown.matched(query) == (0, 1)
    assert not grown.reconsider(query)


def test_matches_that_are_counted_decide_and_not_those_that_are_assumed(tmp_path: Path) -> None:
    """Of a window of a minute every row is assumed to match one, which is too many for the network; really hardly any does."""
    minute = InputWindow("sliding", 60 * SECOND)
    query = replace(query_of([minute, minute], [None], ["count"], {0}), step=5 * SECOND)
    rare: dict[str, Any] = {"rates": {"s0": 20_000.0, "s1": 20_000.0}, "sampled": 10**9}
    plans = choices(tmp_path, early="none", **rare)
    assert plans.matched(query) == () and not plans.reconsider(query)
    assert not plans.reconsider(query, joined=1e6)
    assert plans.reconsider(query, joined=70_000.0) and plans.matched(query) == (0, 1)
    assert not plans.reconsider(query, joined=70_000.0)
    assert plans.reconsider(query, joined=1e7) and plans.matched(query) == ()


def test_a_query_switches_to_a_late_plan_that_the_network_makes_cheap(tmp_path: Path) -> None:
    query = joined(HOUR, HOUR)
    plans = choices(tmp_path, **RARE)
    plans._put(query, ((True, True), None))
    assert plans.matched(query) == () and plans.reconsider(query)
    assert plans.plans(query) == ((True, True), (False, False))
    assert plans.matched(query) == (), "until its windows are complete"
    plans.settle(query)
    assert plans.matched(query) == (0, 1)
    at_instants = choices(tmp_path / "instants", late_joins="instants", **RARE)
    costs = {choice.plan: choice.cost for choice in at_instants.priced(query).priced}
    cheaper = {choice.plan: choice.cost for choice in plans.priced(query).priced}
    assert cheaper[False, False] < 0.7 * costs[False, False]
    assert cheaper[True, True] == costs[True, True]


def test_landmarks_tables_and_computed_keys_are_not_joined_by_the_network(tmp_path: Path) -> None:
    landmark = joined(HOUR, InputWindow("landmark"))
    assert matching_slots(landmark, (False, False)) == ()
    table = replace(query_of([HOUR, HOUR, None], [None], ["count"], {0}), step=60 * SECOND)
    assert matching_slots(table, (False, False, False)) == (0, 1)
    assert matching_slots(table, (False, True, False)) == ()
    far = replace(query_of([HOUR, None, HOUR], [None], ["count"], {0}), step=60 * SECOND)
    assert matching_slots(far, (False, False, False)) == (), "only the table connects them"
    query = joined(HOUR, HOUR)
    computed = replace(query.inputs[0].attributes[0], value=Expression("`j` + 1", "int", ("j",)))
    first = replace(query.inputs[0], attributes=(computed, query.inputs[0].attributes[1]))
    odd = replace(query, inputs=(first, query.inputs[1]))
    assert matching_slots(odd, (False, False)) == ()
