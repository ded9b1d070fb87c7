"""The query network in the catalog: sound look-ups, bounded work, and always what a rebuild gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.optimizer.network.test_generate import changes, check_invariants
from tests.support.networks import (
    STREAMS,
    Row,
    direct_rows,
    join_queries,
    join_query,
    linear,
    literal,
    network_rows,
    relation_rows,
)

import weft
from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.query import JoinQuery
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.predicates import TRUE, PredicateSet
from weft.algebra.predicates.predicate_set import all_of
from weft.catalog import Catalog
from weft.catalog.network import tables
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import dropped, rebuilt, with_queries
from weft.optimizer.network.index import NetworkIndex, Probe, ScanIndex
from weft.optimizer.network.network import Network
from weft.optimizer.network.options import Options

ESTIMATE = HeuristicEstimate()
Opening = Callable[[str], Catalog]


@pytest.fixture
def opening() -> Iterator[Opening]:
    """Opens catalogs and closes them after the test."""
    opened: list[Catalog] = []

    def open_catalog(url: str) -> Catalog:
        opened.append(Catalog(url))
        return opened[-1]

    yield open_catalog
    for catalog in opened:
        catalog.close()


def changed(
    plan: NetworkPlan,
    new: Sequence[NetworkQuery],
    gone: list[str],
    index: NetworkIndex,
    options: Options | None = None,
) -> NetworkPlan:
    return with_queries(plan, new, gone, STREAMS, index, options or Options(), ESTIMATE)


def relations(catalog: Catalog) -> dict[str, set[tuple[Any, ...]]]:
    """All rows of the network's relations. Which OR predicate leads to a set depends on the order in
    which sets were added, so it is left out."""
    contents = {}
    with catalog._database.reading() as connection:
        for table in tables.ALL:
            columns = [column for column in table.columns if column.name != "access"]
            rows = connection.execute(sa.select(*columns)).all()
            assert len(rows) == len(set(rows))
            contents[table.name] = {tuple(row) for row in rows}
    return contents


def test_both_databases_hold_the_same_network(catalog_url: str, opening: Opening) -> None:
    catalog = opening(catalog_url)
    plan, scanned = NetworkPlan(0), NetworkPlan(0)
    index, scan = catalog.network(), ScanIndex()
    spans = [(5, 3), (4, 2), (9, 1), (4, 2), (2, 9)]
    queries = [
        join_query(
            f"q@{number}",
            "FFG",
            all_of(
                [
                    literal(linear(a0=1, b1=-1), 0, 0),
                    literal(linear(a1=1, b2=-1), 0, 0),
                    literal(linear(c0=1, c1=-1), 0, span),
                    literal(linear(c2=1), low, None),
                ]
            ),
        )
        for number, (span, low) in enumerate(spans)
    ]
    for query in queries:
        plan = changed(plan, [query], [], index)
        scanned = changed(scanned, [query], [], scan)
        assert plan == scanned
    reopened = opening(catalog_url)
    assert reopened.network().holds(plan)
    plan = changed(plan, [], ["q@0", "q@2"], reopened.network())
    assert plan == dropped(scanned, ["q@0", "q@2"], scan)
    other = Catalog("sqlite://")
    rebuilt(plan, other.network())
    assert relations(reopened) == relations(other)


@settings(max_examples=12)
@given(
    batches=changes(),
    rows=relation_rows(),
    options=st.sampled_from([Options(), Options(reroute=True, restructure=True)]),
)
def test_after_every_change_the_relations_are_those_of_a_rebuild(
    batches: list[tuple[list[NetworkQuery], list[str]]],
    rows: dict[str, list[Row]],
    options: Options,
) -> None:
    catalog, fresh = Catalog("sqlite://"), Catalog("sqlite://")
    plan, index = NetworkPlan(0), catalog.network()
    for number, (new, gone) in enumerate(batches):
        if number % 2:
            index = catalog.network()
        plan = changed(plan, new, gone, index, options)
        check_invariants(plan)
        rebuilt(plan, fresh.network())
        assert relations(catalog) == relations(fresh)
        expected = {query.id: direct_rows(query, rows) for query in plan.queries}
        assert network_rows(plan, rows) == expected


@settings(max_examples=15)
@given(
    queries=st.lists(join_queries("q", most_inputs=2), min_size=1, max_size=8),
    data=st.data(),
)
def test_look_ups_name_only_what_is_implied_and_miss_nothing_in_small_networks(
    queries: list[JoinQuery], data: st.DataObject
) -> None:
    queries = [replace(query, id=f"q@{number}") for number, query in enumerate(queries)]
    catalog, scan = Catalog("sqlite://"), ScanIndex()
    plan = changed(NetworkPlan(0), queries, [], catalog.network())
    rebuilt(plan, scan)
    index = catalog.network()
    assert index.holds(plan)
    network = Network(plan, index, ESTIMATE)
    wanted = data.draw(join_queries("probe", most_inputs=2)).predicates
    entries = list(network.entries)
    for probe in {entry.probe for entry in entries} | {
        Probe(entry.probe.scope, wanted) for entry in entries
    }:
        (implied,) = index.implied([probe])
        assert set(implied) <= set(scan.implied([probe])[0])
        if not probe.predicates.never:  # what is never true implies everything
            assert set(implied) == set(scan.implied([probe])[0])
        assert set(index.implying(probe)) <= set(scan.implying(probe))


def test_stronger_selections_are_found() -> None:
    catalog = Catalog("sqlite://")
    index = catalog.network()
    bounds = [(3, None), (5, None), (5, 9), (None, 2)]
    queries = [
        join_query(f"q@{number}", "F", all_of([literal(linear(a0=1), low, high)]))
        for number, (low, high) in enumerate(bounds)
    ]
    plan = changed(NetworkPlan(0), queries, [], index)
    stronger = index.implying(Probe("n0", all_of([literal(linear(a0=1), 4, None)])))
    assert set(stronger) == {plan.feed_by_query[name].node for name in ("q@1", "q@2")}


def test_an_index_of_another_plan_is_rebuilt(catalog_url: str, opening: Opening) -> None:
    catalog = opening(catalog_url)
    index = catalog.network()
    first = join_query("q@1", "FG", all_of([literal(linear(a0=1, b1=-1), 0, 0)]))
    second = join_query("q@2", "F", all_of([literal(linear(a0=1), 3, None)]))
    one = changed(NetworkPlan(0), [first], [], index)
    two = changed(one, [second], [], index)
    assert index.holds(two) and not index.holds(one)
    again = changed(one, [second], [], index)
    assert again == two
    assert index.holds(two)


def test_a_transaction_that_is_rolled_back_leaves_the_old_network(
    catalog_url: str, opening: Opening
) -> None:
    catalog = opening(catalog_url)
    index = catalog.network()
    first = join_query("q@1", "FG", all_of([literal(linear(a0=1, b1=-1), 0, 0)]))
    second = join_query("q@2", "FG", all_of([literal(linear(a0=1, b1=-1), 0, 4)]))
    one = changed(NetworkPlan(0), [first], [], index)

    def failing() -> None:
        with catalog.transaction():
            changed(one, [second], [], index)
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError):
        failing()
    assert index.holds(one)
    two = changed(one, [second], [], index)
    fresh = Catalog("sqlite://")
    rebuilt(two, fresh.network())
    assert relations(catalog) == relations(fresh)


def test_a_process_that_ends_amid_changes_leaves_a_network_that_is_rebuilt(
    catalog_url: str, opening: Opening
) -> None:
    catalog = opening(catalog_url)
    index = catalog.network()
    first = join_query("q@1", "F", all_of([literal(linear(a0=1), 3, None)]))
    one = changed(NetworkPlan(0), [first], [], index)
    network = Network(one, index, ESTIMATE)
    network.add_selection(network.source("F"), all_of([literal(linear(b0=1), 3, None)]))
    assert not opening(catalog_url).network().holds(one)
    rebuilt(one, opening(catalog_url).network())
    assert index.holds(one)


def ranges(number: int, of: int) -> PredicateSet:
    """A condition that all queries have in common, and two that differ."""
    return all_of(
        [
            literal(linear(b0=1), 7, 7),
            literal(linear(a0=1), number, None),
            literal(linear(c0=1), None, (number * 7919) % of),
        ]
    )


def test_look_ups_fetch_no_more_rows_when_the_network_grows() -> None:
    fetched = {}
    for size in (100, 1000):
        catalog = Catalog("sqlite://")
        index = catalog.network()
        with catalog.transaction():
            queries = [join_query(f"q@{n}", "F", ranges(n, size)) for n in range(size)]
            plan = changed(NetworkPlan(0), queries, [], index)
            assert sum(node.kind == "selection" for node in plan.nodes) == size
            before = index.rows_fetched
            for number in range(0, size, size // 50):
                index.implied([Probe("n0", ranges(number, size))])
            fetched[size] = index.rows_fetched - before
    assert 0 < fetched[1000] <= 1.5 * fetched[100]


def test_equal_predicates_are_found_whatever_lies_nearer() -> None:
    catalog = Catalog("sqlite://")
    index = catalog.network()
    queries = [join_query(f"q@{n}", "F", ranges(n, 400)) for n in range(400)]
    plan = changed(NetworkPlan(0), queries, [], index)
    for query in queries[::37]:
        (nodes,) = index.implied([Probe("n0", query.predicates)])
        assert plan.feed_by_query[query.id].node in nodes


def test_joins_without_conditions_are_found() -> None:
    catalog = Catalog("sqlite://")
    index = catalog.network()
    plan = changed(NetworkPlan(0), [join_query("q@1", "FG", TRUE)], [], index)
    (nodes,) = catalog.network().implied([Probe("n0 n1", TRUE)])
    assert nodes == ()
    index = catalog.network()
    assert index.holds(plan)
    assert index.implied([Probe("n0 n1", TRUE), Probe("n1 n0", TRUE)]) == [("n2",), ()]
    empty = dropped(plan, ["q@1"], index)
    assert not empty.nodes
    assert index.implied([Probe("n0 n1", TRUE)]) == [()]


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(weft.CatalogError, match="CATALOG_UNAVAILABLE"):
        Catalog("postgresql://weft:secret@/nothing?host=/nonexistent")
