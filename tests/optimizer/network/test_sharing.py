"""What the generator shares: the paper's example, both strategies, the configurations of Table 3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.support.networks import STREAMS, join_query, linear, literal

from weft.algebra.network.plan import NetworkNode, NetworkPlan
from weft.algebra.network.query import JoinQuery
from weft.algebra.predicates import OrPredicate
from weft.algebra.predicates.predicate_set import all_of
from weft.algebra.query import Field, StreamSchema
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import dropped, with_queries
from weft.optimizer.network.index import ScanIndex
from weft.optimizer.network.options import Options

TRANSFERS = StreamSchema(
    "F",
    tuple(
        Field(name, "bigint")
        for name in ("tranid", "type", "amount", "sbank", "rbank", "orig", "benef", "date")
    ),
    "date",
    0,
)


def of_type(slot: int) -> OrPredicate:
    return literal(linear(**{f"type{slot}": 1}), 1000, 1000)


def amount(slot: int, above: int) -> OrPredicate:
    return literal(linear(**{f"amount{slot}": 1}), above + 1, None)


def onward(first: int, second: int, days: int) -> list[OrPredicate]:
    """The receiver of the first transfer sends the second one within some days."""
    return [
        literal(linear(**{f"rbank{first}": 1, f"sbank{second}": -1}), 0, 0),
        literal(linear(**{f"benef{first}": 1, f"orig{second}": -1}), 0, 0),
        literal(linear(**{f"date{second}": 1, f"date{first}": -1}), -days, 0),
    ]


def fraud(query_id: str, days: int) -> JoinQuery:
    """Q1 (20 days) and Q2 (10 days) of section 3, with the predicates that transitivity infers."""
    predicates = [
        *(of_type(slot) for slot in range(3)),
        amount(0, 1_000_000),
        amount(1, 500_000),
        amount(2, 500_000),
        *onward(0, 1, days),
        literal(linear(amount0=1, amount1=-2), None, -1),
        *onward(1, 2, days),
        literal(linear(amount1=1, amount2=-1), 0, 0),
    ]
    return join_query(query_id, "FFF", all_of(predicates), ["0.tranid", "1.tranid", "2.tranid"])


def built(queries: Sequence[JoinQuery], options: Options | None = None) -> NetworkPlan:
    plan, index = NetworkPlan(0), ScanIndex()
    for query in queries:
        plan = with_queries(
            plan,
            [query],
            (),
            (TRANSFERS, *STREAMS[1:]),
            index,
            options or Options(),
            HeuristicEstimate(),
        )
    return plan


def kinds(plan: NetworkPlan) -> dict[str, int]:
    return dict(Counter(node.kind for node in plan.nodes))


def new_nodes(before: NetworkPlan, after: NetworkPlan) -> list[NetworkNode]:
    return [node for node in after.nodes if node.id not in before.node_by_id]


def test_the_first_query_of_section_3_selects_before_it_joins() -> None:
    #   F ── S1 (type, > 500000) ── S2 (> 1000000)
    #        J1 of two transfers, J2 of three
    plan = built([fraud("q1", 20)])
    assert kinds(plan) == {"source": 1, "selection": 2, "join": 2}
    weak, strong = (node for node in plan.nodes if node.kind == "selection")
    assert strong.parents == (weak.id,)
    assert strong.predicates == all_of([amount(0, 1_000_000)])
    (feed,) = plan.feeds
    assert plan.node_by_id[feed.node].kind == "join"
    assert plan.node_by_id[feed.node].level == 2


def test_the_second_query_of_section_3_adds_one_selection_on_the_last_join() -> None:
    one = built([fraud("q1", 20)])
    both = built([fraud("q1", 20), fraud("q2", 10)])
    (added,) = new_nodes(one, both)
    assert added.kind == "selection"
    assert added.parents == (one.feed_by_query["q1"].node,)
    assert added.level == 2
    assert len(added.predicates.predicates) == 2, "the two spans of 10 days"
    assert both.feed_by_query["q2"].node == added.id


def test_match_plan_shares_the_same_where_the_plans_agree() -> None:
    options = Options(strategy="match-plan")
    one = built([fraud("q1", 20)], options)
    both = built([fraud("q1", 20), fraud("q2", 10)], options)
    assert [node.kind for node in new_nodes(one, both)] == ["selection"]


def test_without_canonicalization_another_span_is_another_join() -> None:
    queries = [fraud("q1", 20), fraud("q2", 10), fraud("q3", 10)]
    plan = built(queries, Options(canonicalize=False))
    assert kinds(plan) == {"source": 1, "selection": 2, "join": 4}
    assert plan.feed_by_query["q2"].node == plan.feed_by_query["q3"].node, "equal words are shared"


def test_without_join_sharing_every_query_has_its_joins() -> None:
    plan = built([fraud("q1", 20), fraud("q2", 20)], Options(share_joins=False))
    assert kinds(plan) == {"source": 1, "selection": 2, "join": 4}


def test_an_equal_query_adds_nothing() -> None:
    one = built([fraud("q1", 20)])
    both = built([fraud("q1", 20), fraud("q2", 20)])
    assert not new_nodes(one, both)
    assert both.feed_by_query["q2"].node == both.feed_by_query["q1"].node


def test_the_order_of_from_does_not_matter() -> None:
    query = fraud("q1", 20)
    turned = {0: 2, 1: 0, 2: 1}
    other = join_query("q2", "FFF", query.predicates.moved(turned), ["0.tranid"])
    plan = built([query, other])
    assert kinds(plan) == kinds(built([query]))
    first, second = plan.feed_by_query["q1"], plan.feed_by_query["q2"]
    assert second.node == first.node
    assert [second.slots[turned[i]] for i in range(3)] == list(first.slots)


def two_joins(query_id: str) -> JoinQuery:
    """Figure 11(b): B1 ⋈ B2 and B2 ⋈ B3, of which the second one is smaller."""
    predicates = [
        literal(linear(rbank0=1, sbank1=-1), 0, 0),
        literal(linear(a2=1, orig1=-1), 0, 0),
        literal(linear(b2=1, benef1=-1), 0, 0),
    ]
    return join_query(query_id, "FFG", all_of(predicates), ["0.tranid"])


def test_sharing_selection_finds_the_join_that_match_plan_passes_by() -> None:
    #   Figure 11(c): J1, J2 (B2 ⋈ B3) and their join.   Figure 12(c): J1 and its join with B3.
    key = literal(linear(rbank0=1, sbank1=-1), 0, 0)
    first = join_query("q1", "FF", all_of([key]), ["0.tranid"])
    matched = built([first, two_joins("q2")], Options(strategy="match-plan"))
    selected = built([first, two_joins("q2")])
    assert kinds(matched) == {"source": 2, "join": 3}
    assert kinds(selected) == {"source": 2, "join": 2}


def filters(query_id: str, *predicates: OrPredicate) -> JoinQuery:
    return join_query(query_id, "F", all_of(predicates), ["0.tranid"])


def test_a_filter_is_one_selection_below_the_smallest_that_includes_it() -> None:
    plan = built(
        [
            filters("wide", amount(0, 10)),
            filters("narrow", amount(0, 50), of_type(0)),
            filters("narrower", amount(0, 60), of_type(0)),
            filters("all"),
        ]
    )
    node = {feed.query: plan.node_by_id[feed.node] for feed in plan.feeds}
    assert node["all"].kind == "source"
    assert node["wide"].parents == (node["all"].id,)
    assert node["narrow"].parents == (node["wide"].id,)
    assert node["narrower"].parents == (node["narrow"].id,)
    assert node["narrower"].predicates == all_of([amount(0, 60)])
    assert [node[name].sequence for name in ("all", "wide", "narrow", "narrower")] == [
        0,
        1000,
        2000,
        3000,
    ]


def test_selections_that_keep_many_rows_are_tested_by_the_join() -> None:
    weak = join_query(
        "q",
        "FF",
        all_of([*onward(0, 1, 5), amount(0, 10), of_type(1)]),
        ["0.tranid"],
    )
    plan = built([weak])
    (selection,) = (node for node in plan.nodes if node.kind == "selection")
    assert selection.predicates == all_of([of_type(0)]), "one value of many is selective"
    (join,) = (node for node in plan.nodes if node.kind == "join")
    assert {name for name in join.predicates.names if "amount" in name}, (
        "a third of the rows is not"
    )


def test_dropping_the_first_query_keeps_what_the_second_one_uses() -> None:
    plan, index = NetworkPlan(0), ScanIndex()
    for query in (fraud("q1", 20), fraud("q2", 10)):
        plan = with_queries(plan, [query], (), [TRANSFERS], index, Options(), HeuristicEstimate())
    kept = dropped(plan, ["q1"], index)
    assert [node.id for node in kept.nodes] == [node.id for node in plan.nodes]
    assert dropped(plan, ["q2"], index).nodes == built([fraud("q1", 20)]).nodes


def together(queries: Sequence[JoinQuery], options: Options) -> NetworkPlan:
    """The plan of queries that are added as one change."""
    streams = (TRANSFERS, *STREAMS[1:])
    return with_queries(
        NetworkPlan(0), queries, (), streams, ScanIndex(), options, HeuristicEstimate()
    )


def test_rerouting_moves_a_selection_below_a_smaller_one() -> None:
    #   off: F ── narrow, F ── wide        on: F ── wide ── narrow
    queries = [
        filters("narrow", amount(0, 50), of_type(0)),
        filters("wide", amount(0, 40), of_type(0)),
    ]
    for rerouting, parent in ((False, "n0"), (True, "n2")):
        plan = together(queries, Options(reroute=rerouting))
        narrow = plan.node_by_id[plan.feed_by_query["narrow"].node]
        assert narrow.parents == (parent,)
        wide = plan.node_by_id[plan.feed_by_query["wide"].node]
        if rerouting:
            assert (wide.sequence, narrow.sequence) == (500, 1000)
            assert narrow.predicates == all_of([amount(0, 50)])


def test_nodes_that_have_run_are_not_moved() -> None:
    plan = built(
        [
            filters("narrow", amount(0, 50), of_type(0)),
            filters("wide", amount(0, 40), of_type(0)),
            pair("less", 10, 5),
            pair("more", 5, 10),
        ],
        Options(reroute=True, restructure=True),
    )
    assert plan.node_by_id[plan.feed_by_query["narrow"].node].parents == ("n0",)
    assert [plan.node_by_id[plan.feed_by_query[q].node].kind for q in ("less", "more")] == [
        "join",
        "join",
    ]


def pair(query_id: str, above: int, days: int) -> JoinQuery:
    return join_query(query_id, "FF", all_of([*onward(0, 1, days), amount(0, above)]), ["0.tranid"])


def test_restructuring_lets_a_weaker_join_feed_two_that_do_not_imply_each_other() -> None:
    #   Figure 13(b), off: two joins       on: J (> 5, 10 days) ── (> 10, 5 days) and (> 5, 10 days)
    queries = [pair("q1", 10, 5), pair("q2", 5, 8), pair("q3", 5, 10), pair("q4", 7, 9)]
    assert kinds(together(queries[:2], Options())) == {"source": 1, "join": 2}
    plan = together(queries[:2], Options(restructure=True))
    assert kinds(plan) == {"source": 1, "join": 1, "selection": 1}, "the hull is the second query's"
    crossed = [pair("q1", 10, 9), pair("q2", 5, 8)]
    plan = together(crossed, Options(restructure=True))
    assert kinds(plan) == {"source": 1, "join": 1, "selection": 2}
    (join,) = (node for node in plan.nodes if node.kind == "join")
    assert join.predicates == pair("hull", 5, 9).predicates


def test_restructuring_keeps_joins_apart_that_select_other_rows() -> None:
    first = join_query("q1", "FF", all_of([*onward(0, 1, 5), of_type(0)]), ["0.tranid"])
    second = join_query("q2", "FF", all_of([*onward(0, 1, 9), of_type(1)]), ["0.tranid"])
    plan = together([first, second], Options(restructure=True))
    assert kinds(plan)["join"] == 2, "without the types it would have a hundred times the rows"
