"""A first-level node for every group-by set, and one more for every distinct argument.

Computes, for each query, the nodes it reads: the node of its own keys, and for each
count(distinct x) the node of its keys and x. A key expression that can raise stands behind
its query's predicate, so that it is never evaluated on rows the query would not reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from weft.algebra.aggregate import Aggregate
from weft.algebra.plan import node_id
from weft.algebra.query import Query
from weft.algebra.scalar import Expression

Keys = tuple[Expression, ...]


def group_keys(query: Query) -> Keys:
    """The keys of a query's own node."""
    return tuple(_guarded(key, query) for key in query.keys)


def distinct_keys(query: Query, aggregate: Aggregate) -> Keys:
    """The keys of the node that counts the distinct arguments of an aggregate."""
    return group_keys(query) + tuple(_guarded(x, query) for x in aggregate.arguments)


def group_node(query: Query) -> str:
    """The id of the query's own node."""
    keys = group_keys(query)
    return node_id(keys, len(keys))


def distinct_node(query: Query, aggregate: Aggregate) -> str:
    """The id of the node that counts the distinct arguments of an aggregate."""
    return node_id(distinct_keys(query, aggregate), len(query.keys))


def nodes_of(query: Query) -> set[str]:
    """The ids of all nodes that a query reads."""
    distinct = {distinct_node(query, a) for a in query.aggregates if a.distinct}
    return {group_node(query), *distinct}


def flat(queries: Iterable[Query]) -> dict[str, tuple[Keys, int, list[Query]]]:
    """All nodes: id → (keys, how many of them are the group, the queries that read it)."""
    nodes: dict[str, tuple[Keys, int, list[Query]]] = {}
    for query in queries:
        keys = group_keys(query)
        readers = [(keys, group_node(query))]
        readers += [
            (distinct_keys(query, aggregate), distinct_node(query, aggregate))
            for aggregate in query.aggregates
            if aggregate.distinct
        ]
        for node_keys, name in readers:
            entry = nodes.setdefault(name, (node_keys, len(keys), []))
            if not entry[2] or entry[2][-1] is not query:
                entry[2].append(query)
    return nodes


def _guarded(key: Expression, query: Query) -> Expression:
    if not key.can_raise or query.predicate is None:
        return key
    guarded = f"CASE WHEN {query.predicate.sql} THEN {key.sql} END"
    columns = tuple(sorted({*key.columns, *query.predicate.columns}))
    return replace(key, sql=guarded, columns=columns)
