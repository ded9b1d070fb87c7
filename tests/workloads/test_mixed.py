"""The mixed queries and rules: seeded, all of them shared, and as few nodes as they promise."""

from __future__ import annotations

from collections.abc import Sequence

from weft.algebra.plan import SharedPlan, Sharing
from weft.algebra.query import Field, Query, StreamSchema
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import WindowWeaving, assumed_groups
from weft.sql import bind
from weft.workloads.mixed import NamedQuery, equality_rules, mixed_queries, range_rules

COLUMNS = {"auction": "bigint", "bidder": "bigint", "channel": "string", "price": "bigint"}
COLUMNS |= {"subject": "bigint", "amount": "bigint", "ts": "timestamp"}
EVENTS = StreamSchema(
    "events", tuple(Field(*column) for column in COLUMNS.items()), "ts", 10_000_000
)


class Silent:
    """Nothing needs to be asked of Spark."""

    def types(self, fields: object, expressions: object) -> tuple[str, ...]:
        raise AssertionError(f"asked for {expressions}")

    output_names = types


def planned(queries: Sequence[NamedQuery]) -> SharedPlan:
    bound = []
    for query in queries:
        bound_query = bind(
            query.name, query.sql, {"events": EVENTS}, Silent(), query_id=f"{query.name}@1"
        )
        assert isinstance(bound_query, Query), query.sql
        bound.append(bound_query)
    sharing = Sharing(rate=100_000.0, step=40.0, measured=True)
    return share(1, EVENTS, bound, {}, WindowWeaving(sharing, assumed_groups(10)))


def test_a_thousand_mixed_queries_need_one_pass_over_the_rows() -> None:
    queries = mixed_queries(1000)
    assert queries == mixed_queries(1000) != mixed_queries(1000, seed=2)
    plan = planned(queries)
    assert sum(node.parent is None for node in plan.nodes) == 1
    assert len(plan.nodes) > 20


def test_a_thousand_rules_are_one_node_with_one_search() -> None:
    for rules in (equality_rules(), range_rules()):
        assert len({rule.sql for rule in rules}) == 1000
        (node,) = planned(rules).nodes
        assert len(node.signature.cuts) == 1 and not node.signature.bits
