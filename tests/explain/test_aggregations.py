"""EXPLAIN of aggregation joins: the plan, what others would cost, and who shares."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.support.joinagg import query_of

from weft.algebra.joinagg.serving import united
from weft.algebra.joinagg.sets import set_of
from weft.algebra.joinagg.sources import source_of
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.query import Field, StreamSchema
from weft.algebra.scalar import Expression
from weft.explain import AggregationsMeasured, AggregationView, MatchedView, explain
from weft.explain.aggregations import sharing
from weft.optimizer.gtweave import share
from weft.optimizer.joinagg.possible import fixed_inputs
from weft.optimizer.joinagg.weft_cost import InputLoad, JoinLoad, choose_plan

SECOND = 1_000_000
MANY = InputLoad(rows=50_000, new_rows=1000, keys=50, entries=600, new_entries=50)
FEW = InputLoad(rows=50, new_rows=1, keys=50, entries=50, new_entries=1)


def test_an_input_that_a_finer_set_serves_says_so() -> None:
    windows = [InputWindow("sliding", 30 * SECOND), InputWindow("landmark")]
    query = replace(query_of(windows, [None], ["count"], {0}), step=10 * SECOND)
    finer = replace(source_of(query, 0), selections=(Expression("`a` > 4", "boolean", ("a",)),))
    inputs = tuple(replace(e, attributes=e.attributes[:1]) for e in query.inputs)
    coarse = replace(query, inputs=inputs)
    choice = choose_plan(JoinLoad((MANY, FEW), {(0, 1): 50.0}), (True, True))
    view = AggregationView(coarse, (True, True), choice, ((), ()), finer=(finer, None))
    explanation = explain([], []).with_aggregations([view])
    assert "early: panes of 10 s by (j) from the set by (j, g) and 1 selection" in str(explanation)
    (join,) = explanation.to_json()["aggregation_joins"]
    assert [entry["finer_set"] for entry in join["inputs"]] == [["j", "g"], None]
    assert [entry["finer_selections"] for entry in join["inputs"]] == [["a > 4"], None]


def test_a_signature_is_named_and_not_spelled_out() -> None:
    query = query_of([InputWindow("sliding", 30 * SECOND)] * 2, [0], ["sum"], {0})
    selections = tuple(Expression(f"`a` > {n}", "boolean", ("a",)) for n in (4, 5))
    provider = united([replace(source_of(query, 0), predicate=one) for one in selections])
    assert provider is not None
    stream = StreamSchema("s0", (Field("j", "int"), Field("g", "string"), Field("a", "bigint"), Field("t", "timestamp")), "t", 0)  # fmt: skip
    explanation = explain([share(1, stream, [set_of(provider, stream)], {})], [])
    text = " ".join(str(explanation).split())
    assert "N1 by j, g, signature" in text and "CASE" not in text
    assert "aggregation set of s0 by (j, g), of 2 selections, panes of" in text
    assert explanation.to_json()["streams"][0]["nodes"][0]["keys"] == ["j", "g", "signature"]


def test_idle_streams_and_endless_state_are_told_with_what_to_do() -> None:
    windows = [InputWindow("sliding", 30 * SECOND), InputWindow("landmark")]
    query = replace(query_of(windows, [None], ["count"], {0}), step=10 * SECOND)
    choice = choose_plan(JoinLoad((MANY, FEW), {(0, 1): 50.0}), (True, True))
    waits_for = {"s1": 1_704_067_200 * SECOND, "s2": None}
    view = AggregationView(query, (True, True), choice, ((), ()), held=(9, 50), waits_for=waits_for)
    explanation = explain([], []).with_aggregations([view])
    text = " ".join(str(explanation).split())
    assert "waits for s1 (watermark 2024-01-01 00:00:00 UTC), s2 (no rows yet): an instant" in text
    assert "If it is idle, let it send a row with a later event time" in text
    assert "9 entries kept s1 s1 [until now]" in text, "a sliding window does not grow"
    assert "50 entries kept for ever, they grow with its keys" in text
    (join,) = explanation.to_json()["aggregation_joins"]
    assert join["waits_for"] == waits_for


def test_the_plan_its_cost_the_others_and_who_shares() -> None:
    windows = [InputWindow("sliding", 30 * SECOND), InputWindow("landmark"), None]
    first = replace(query_of(windows, [None], ["count"], {0}), step=10 * SECOND, name="first")
    second = replace(first, id="r@2", name="second", changes=True)
    fixed = fixed_inputs(first)
    assert fixed == (None, None, None)
    choice = choose_plan(JoinLoad((MANY, FEW, FEW), {(0, 1): 50.0, (1, 2): 50.0}), fixed)
    plans = {first.id: choice.best.plan, second.id: (True, True, True)}
    shared = sharing([first, second], plans)
    views = [
        AggregationView(query, plans[query.id], choice, shared[query.id], held=(600, 50, None))
        for query in (first, second)
    ]
    explanation = explain([], []).with_aggregations(views)
    text = str(explanation)
    assert choice.best.plan[0], "many rows of few keys are aggregated early"
    lines = text.splitlines()
    assert lines[0].startswith("aggregation join first: plan EAP1")
    assert "the whole result every 10 s" in lines[0]
    assert "s0 [30 s], early: panes of 10 s by (j, g), shared with second; 600 entries kept" in text
    assert "s1 [until now]" in text and "s2, a table" in text
    assert "changes every 10 s" in text
    assert "LAP" in text, "what the late plan would cost"
    body = json.loads(json.dumps(explanation.to_json()))
    joins = body["aggregation_joins"]
    assert [join["query"] for join in joins] == ["first", "second"]
    assert joins[0]["plans"][0]["plan"] == "LAP" and len(joins[0]["plans"]) == 8
    assert joins[0]["cost"] == min(plan["cost"] for plan in joins[0]["plans"])
    alone = explain([], [], "second").with_aggregations(views)
    assert str(alone).startswith("aggregation join second") and "first:" not in str(alone)
    assert alone.to_json()["status"] == "shared"


def test_lanes_have_a_predicted_cost_each_and_what_they_took() -> None:
    windows = [InputWindow("sliding", 30 * SECOND), InputWindow("landmark")]
    query = replace(query_of(windows, [None], ["count"], {0}), step=10 * SECOND)
    choice = choose_plan(JoinLoad((MANY, FEW), {(0, 1): 50.0}), (True, True))
    view = AggregationView(query, (True, True), choice, ((), ()), lanes=(2.0, 1.0))
    measured = AggregationsMeasured(
        4, 100, 7, 12, 3, seconds=2.0, where="lanes", lane_seconds=(0.5, 0.25)
    )
    explanation = explain([], []).with_aggregations([view], measured)
    text = str(explanation)
    assert view.cost is not None and view.lane_costs == [view.cost * 2 / 3, view.cost / 3]
    assert "lanes       2 lanes, µs per instant in each: " in text
    assert "aggregation joins, measured in 4 steps" in text
    assert "12, in 3 physical joins, in tasks" in text and "seconds in each: 0.50, 0.25" in text
    document = json.loads(json.dumps(explanation.to_json()))
    assert document["aggregation_joins"][0]["lane_costs"] == view.lane_costs
    assert document["aggregation_joins_measured"]["lane_seconds"] == [0.5, 0.25]
    alone = replace(view, lanes=())
    assert alone.lane_costs is None
    assert "lanes" not in str(explain([], []).with_aggregations([alone]))


def test_late_inputs_that_the_network_joins_say_with_whom_or_why_not() -> None:
    windows = [InputWindow("sliding", 30 * SECOND)] * 2
    query = replace(query_of(windows, [None], ["count"], {0}), step=10 * SECOND)
    choice = choose_plan(JoinLoad((MANY, FEW), {(0, 1): 50.0}), (False, False))

    def told(matched: MatchedView | None) -> tuple[str, object]:
        view = AggregationView(query, (False, False), choice, ((), ()), matched=matched)
        explanation = explain([], []).with_aggregations([view])
        (join,) = explanation.to_json()["aggregation_joins"]
        return " ".join(str(explanation).split()), join["matched"]

    text, document = told(MatchedView((0, 1), held=1200, joined_with=("pairs",)))
    assert (
        "joined s0 and s1 by the query network, each match once; 1,200 matches kept; "
        "in one physical join with pairs"
    ) in text
    assert document == {"inputs": [0, 1], "refused": "", "matches": 1200, "joined_with": ["pairs"]}
    text, _ = told(MatchedView(refused="too many"))
    assert "anew at every instant, since the query network could not join them: too many" in text
    assert told(None) == (text.split(" joined")[0] + text[text.index(" cost") :], None)
