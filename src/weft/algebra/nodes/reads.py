"""What a query reads: the nodes of its keys and of its distinct arguments, and partials of them.

A query reads the node of its own keys, and for each count(distinct x) the node of its keys and x.
Its lookups in tables are part of a node's name, so queries share nodes only if their rows come from equal
lookups. A key expression that can raise stands behind its query's predicate, so that it is never evaluated on
rows that the query would not reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from weft.algebra.aggregate import Aggregate, lift
from weft.algebra.partial import Partial
from weft.algebra.plan import SharedPlan, node_id
from weft.algebra.query import Query, StreamSchema
from weft.algebra.scalar import Expression

Keys = tuple[Expression, ...]


def can_match(query: Query) -> bool:
    """Whether any row can satisfy a query's predicate; if not, no node reads rows for it."""
    condition = query.predicate.condition if query.predicate is not None else None
    return condition is None or not condition.never


def group_keys(query: Query) -> Keys:
    """The keys of a query's own node."""
    return tuple(_guarded(key, query) for key in query.keys)


def distinct_keys(query: Query, aggregate: Aggregate) -> Keys:
    """The keys of the node that counts the distinct arguments of an aggregate."""
    return group_keys(query) + tuple(_guarded(x, query) for x in aggregate.arguments)


def group_node(query: Query) -> str:
    """What the id of a query's own node begins with."""
    keys = group_keys(query)
    return node_id(keys, len(keys), query.lookups)


def distinct_node(query: Query, aggregate: Aggregate) -> str:
    """What the id of the node that counts the distinct arguments of an aggregate begins with."""
    return node_id(distinct_keys(query, aggregate), len(query.keys), query.lookups)


def nodes_of(query: Query) -> dict[str, Keys]:
    """The nodes that a query reads: what their ids begin with, and their keys."""
    nodes = {group_node(query): group_keys(query)}
    for aggregate in query.aggregates:
        if aggregate.distinct:
            nodes[distinct_node(query, aggregate)] = distinct_keys(query, aggregate)
    return nodes


def nodes_read(plan: SharedPlan, query: Query) -> frozenset[str]:
    """The ids of the nodes of a plan that a query reads and that are written."""
    if plan.has_member_nodes:
        return _nodes_read(plan, query)
    key = alike(query)
    kept = plan.kept_reads.get(key)
    if kept is None or not reads_alike(kept[0], query):
        kept = plan.kept_reads[key] = (query, _nodes_read(plan, query))
    return kept[1]


def _nodes_read(plan: SharedPlan, query: Query) -> frozenset[str]:
    if not can_match(query):
        return frozenset()
    return frozenset(plan.node_of(query, base, keys) for base, keys in nodes_of(query).items())


def alike(query: Query) -> tuple[int, int, int, int]:
    """Equal for queries that consist of the same objects, apart from their windows and results, and so read the same
    nodes and partials. Of use while these queries live; queries that were bound by one template have such parts."""
    return id(query.keys), id(query.predicate), id(query.aggregates), id(query.lookups)


def reads_alike(first: Query, second: Query) -> bool:
    """Whether two queries consist of the same objects, apart from their windows and results."""
    return (
        first.keys is second.keys
        and first.predicate is second.predicate
        and first.aggregates is second.aggregates
        and first.lookups is second.lookups
    )


def one_of_each(queries: Iterable[Query]) -> list[Query]:
    """The queries without those that consist of the same objects as one before, apart from windows and results."""
    firsts: dict[tuple[int, int, int, int], Query] = {}
    for query in queries:
        firsts.setdefault(alike(query), query)
    return list(firsts.values())


def partials(query: Query, aggregate: Aggregate, stream: StreamSchema) -> tuple[Partial, ...]:
    """The partials that a query's own node carries for one of its aggregates."""
    return lift(aggregate, stream.time_micros, query.predicate)


def presence(query: Query, aggregate: Aggregate, stream: StreamSchema) -> Partial:
    """The partial of a distinct node that says how often its value counts for the query."""
    counted = Aggregate("count", aggregate.arguments, "bigint", aggregate.filter)
    return lift(counted, stream.time_micros, query.predicate)[0]


def partials_read(query: Query, base: str, stream: StreamSchema) -> list[Partial]:
    """The partials that a query needs of its node whose id begins with `base`."""
    needed: list[Partial] = []
    for aggregate in query.aggregates:
        if aggregate.distinct:
            if distinct_node(query, aggregate) == base:
                needed.append(presence(query, aggregate, stream))
        elif group_node(query) == base:
            needed += partials(query, aggregate, stream)
    return needed


def _guarded(key: Expression, query: Query) -> Expression:
    if not key.can_raise or query.predicate is None:
        return key
    guarded = f"CASE WHEN {query.predicate.sql} THEN {key.sql} END"
    columns = tuple(sorted({*key.columns, *query.predicate.columns}))
    return replace(key, sql=guarded, columns=columns)
