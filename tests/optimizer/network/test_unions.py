"""Union nodes: shared where the parents of one are among the parents of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from tests.support.networks import STREAMS, join_query, linear, literal

from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.query import JoinQuery
from weft.algebra.network.sets import SetQuery
from weft.algebra.predicates.predicate_set import all_of
from weft.catalog import Catalog
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import dropped, with_queries
from weft.optimizer.network.index import NetworkIndex, ScanIndex
from weft.optimizer.network.options import Options


def part(low: int, output: str = "0.a") -> JoinQuery:
    """The rows of F with a from some number on."""
    return join_query("", "F", all_of([literal(linear(a0=1), low, None)]), [output])


def union(number: int, *branches: JoinQuery) -> SetQuery:
    return SetQuery(f"u@{number}", f"u{number}", "", branches, (None,) * len(branches))


def network(
    queries: Sequence[SetQuery], index: NetworkIndex | None = None, options: Options | None = None
) -> NetworkPlan:
    return with_queries(
        NetworkPlan(0),
        queries,
        (),
        STREAMS,
        index or ScanIndex(),
        options or Options(),
        HeuristicEstimate(),
    )


def unions(plan: NetworkPlan) -> list[tuple[str, ...]]:
    return [node.parents for node in plan.nodes if node.kind == "union"]


@pytest.fixture(params=["scan", "catalog"])
def index(request: pytest.FixtureRequest) -> Iterator[NetworkIndex]:
    if request.param == "scan":
        yield ScanIndex()
        return
    catalog = Catalog("sqlite://")
    yield catalog.network()
    catalog.close()


def test_branches_in_another_order_and_with_other_columns_are_the_same_union(
    index: NetworkIndex,
) -> None:
    plan = network([union(1, part(1), part(5)), union(2, part(5, "0.b"), part(1, "0.c"))], index)
    (parents,) = unions(plan)
    assert len(set(parents)) == 2
    assert len({feed.node for feed in plan.feeds}) == 1
    (node,) = (node for node in plan.nodes if node.kind == "union")
    assert set(node.columns) == {"0.a", "0.c", "1.a", "1.b"}


def test_a_larger_union_takes_the_smaller_one_as_a_part(index: NetworkIndex) -> None:
    one, two, three = part(1), part(5), part(9)
    plan = network(
        [union(1, one, two), union(2, three, one, two), union(3, one, three, two)], index
    )
    smaller, larger = unions(plan)
    small_node = plan.feed_by_query["u@1"].node
    assert small_node in larger and len(larger) == 2
    assert plan.feed_by_query["u@2"].node == plan.feed_by_query["u@3"].node
    levels = [node.level for node in plan.nodes if node.kind == "union"]
    assert levels == [1, 2]
    without = dropped(plan, ["u@1"], index)
    assert unions(without) == [smaller, larger], "the larger one still needs it"
    assert unions(dropped(without, ["u@2", "u@3"], index)) == []


def test_a_branch_that_comes_twice_counts_twice(index: NetworkIndex) -> None:
    one, two = part(1), part(5)
    plan = network([union(1, one, one), union(2, one, two), union(3, one, one, two)], index)
    twice, once, larger = unions(plan)
    assert twice[0] == twice[1] and once[0] != once[1]
    assert plan.feed_by_query["u@1"].node in larger
    assert len(larger) == 2


def test_nothing_is_shared_without_sharing() -> None:
    queries = [union(number, part(1), part(5)) for number in range(3)]
    assert len(unions(network(queries))) == 1
    assert len(unions(network(queries, options=Options(share_joins=False)))) == 3
