"""The network generator: every query's rows come out of a network that shares what it can."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.networks import (
    STREAMS,
    Row,
    direct_rows,
    join_queries,
    join_query,
    linear,
    literal,
    network_queries,
    network_rows,
    relation_rows,
)

from weft.algebra.network.plan import PARTNER_KINDS, NetworkPlan
from weft.algebra.network.query import JoinQuery
from weft.algebra.network.sets import NetworkQuery, placed
from weft.algebra.predicates.predicate_set import all_of
from weft.algebra.predicates.slots import column_name, moved_name, names_in, plain_name, slot_of
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import with_queries
from weft.optimizer.network.index import ScanIndex
from weft.optimizer.network.options import Options

ESTIMATE = HeuristicEstimate()
OPTIONS = {
    "all sharing": Options(),
    "no join sharing": Options(share_joins=False),
    "no canonicalization": Options(canonicalize=False),
    "match-plan": Options(strategy="match-plan"),
    "match-plan, no canonicalization": Options(strategy="match-plan", canonicalize=False),
    "selections always before joins": Options(materialize_below=1.1),
    "rerouting": Options(reroute=True, materialize_below=1.1),
    "restructuring": Options(restructure=True),
    "both, match-plan": Options(strategy="match-plan", reroute=True, restructure=True),
    "selections never before joins": Options(materialize_below=0.0),
}


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[list[NetworkQuery], list[str]]]:
    """Batches of new queries and of queries to drop."""
    batches: list[tuple[list[NetworkQuery], list[str]]] = []
    live: list[str] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        gone = draw(st.lists(st.sampled_from(live), unique=True)) if live else []
        new = []
        for _ in range(draw(st.integers(0, 4))):
            new.append(draw(network_queries(f"q@{number}")))
            number += 1
        live = [name for name in live if name not in gone] + [query.id for query in new]
        batches.append((new, gone))
    return batches


def columns_in_use(plan: NetworkPlan) -> dict[str, set[str]]:
    """The columns that children and queries read, found from the last node to the first."""
    reads: dict[str, set[str]] = {node.id: set() for node in plan.nodes}
    for feed in plan.feeds:
        for first, branch in placed(plan.query_by_id[feed.query]):
            slots = dict(enumerate(feed.slots[first:]))
            for column in branch.columns:
                reads[feed.node] |= {moved_name(name, slots) for name in names_in(column.value)}
    for node in reversed(plan.nodes):
        origins = [
            (parent, slot)
            for parent in node.parents
            for slot in range(len(plan.node_by_id[parent].relations))
        ]
        for name in reads[node.id] | node.predicates.names if origins else ():
            parent, slot = origins[slot_of(name)]
            reads[parent].add(column_name(slot, plain_name(name)))
    return reads


def check_invariants(plan: NetworkPlan) -> None:
    seen: dict[str, int] = {}
    used = {feed.node for feed in plan.feeds} | {p for node in plan.nodes for p in node.parents}
    columns = columns_in_use(plan)
    for position, node in enumerate(plan.nodes):
        assert all(parent in seen for parent in node.parents), "parents come first"
        parents = [plan.node_by_id[parent] for parent in node.parents]
        assert node.id in used, "no node without use"
        assert set(node.columns) == columns[node.id]
        if node.kind == "join" or node.kind in PARTNER_KINDS:
            assert node.level == 1 + max(parent.level for parent in parents)
            assert node.relations == parents[0].relations + parents[1].relations
        elif node.kind == "union":
            assert node.level == 1 + max(parent.level for parent in parents)
            assert node.relations == sum((parent.relations for parent in parents), ())
            assert len(parents) >= 2
        elif node.kind == "selection":
            assert node.level == parents[0].level
            assert node.sequence > parents[0].sequence
            assert node.predicates.predicates
        else:
            assert (node.level, node.sequence) == (0, 0)
        seen[node.id] = position
    assert len({node.relations for node in plan.nodes if node.kind == "source"}) == sum(
        node.kind == "source" for node in plan.nodes
    )
    read = {entry.relation for query in plan.queries for entry in query.every_input}
    assert {node.relations[0] for node in plan.nodes if node.kind == "source"} == read
    assert {stream.name for stream in plan.streams} == read
    assert {feed.query for feed in plan.feeds} == {query.id for query in plan.queries}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@settings(max_examples=12)
@given(batches=changes(), relations=relation_rows())
def test_every_query_gets_its_rows_whatever_is_added_and_dropped(
    options: Options,
    batches: list[tuple[list[NetworkQuery], list[str]]],
    relations: dict[str, list[Row]],
) -> None:
    plan, index = NetworkPlan(0), ScanIndex()
    ids: set[str] = set()
    for new, gone in batches:
        before = {node.id for node in plan.nodes}
        plan = with_queries(plan, new, gone, STREAMS, index, options, ESTIMATE)
        check_invariants(plan)
        fresh = {node.id for node in plan.nodes} - before
        assert not fresh & ids, "ids are never used again"
        ids |= fresh
        expected = {query.id: direct_rows(query, relations) for query in plan.queries}
        assert network_rows(plan, relations) == expected


def test_a_selection_that_lost_its_child_is_still_there_for_the_query_being_added() -> None:
    """Of the second query's two selections the weaker one gets the first query's below it, and loses it
    to the stronger one before their join is made."""
    one = linear(b0=1)
    first = all_of([literal(linear(a0=1), 1, None), literal(one, 1, 1)])
    second = all_of([literal(one, 1, 1), literal(linear(a2=1), 0, None)])
    queries = [join_query(f"q@{n}", "FFF", asked) for n, asked in enumerate((first, second))]
    options = OPTIONS["rerouting"]
    plan = with_queries(NetworkPlan(0), queries, [], STREAMS, ScanIndex(), options, ESTIMATE)
    check_invariants(plan)
    relations: dict[str, list[Row]] = {
        "F": [{"a": 0, "b": 1, "c": 0}, {"a": 1, "b": 1, "c": 0}, {"a": None, "b": 2, "c": 0}]
    }
    expected = {query.id: direct_rows(query, relations) for query in queries}
    assert network_rows(plan, relations) == expected
    assert all(expected.values())


@settings(max_examples=20)
@given(batches=changes())
def test_without_queries_nothing_is_left(
    batches: list[tuple[list[NetworkQuery], list[str]]],
) -> None:
    plan, index = NetworkPlan(0), ScanIndex()
    for new, gone in batches:
        plan = with_queries(plan, new, gone, STREAMS, index, Options(), ESTIMATE)
    everything = [query.id for query in plan.queries]
    empty = with_queries(plan, [], everything, STREAMS, index, Options(), ESTIMATE)
    assert empty == replace(NetworkPlan(plan.version + 1), next_id=plan.next_id)


@settings(max_examples=20)
@given(new=st.lists(join_queries("q"), min_size=2, max_size=5))
def test_what_a_plan_keeps_for_lost_queries_goes_with_the_next_change(
    new: list[JoinQuery],
) -> None:
    queries = [replace(query, id=f"q@{number}") for number, query in enumerate(new)]
    index = ScanIndex()
    plan = with_queries(NetworkPlan(0), queries, [], STREAMS, index, Options(), ESTIMATE)
    lost = plan.without(["q@0"], plan.version)
    cleaned = with_queries(lost, [], [], STREAMS, index, Options(), ESTIMATE)
    check_invariants(cleaned)
    assert cleaned == with_queries(plan, [], ["q@0"], STREAMS, ScanIndex(), Options(), ESTIMATE)
