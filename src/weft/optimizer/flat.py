"""A first-level node for every group-by set, and one more for every distinct argument.

Computes, for each query, the nodes it reads: the node of its own keys, and for each
count(distinct x) the node of its keys and x. A key expression that can raise stands behind
its query's predicate, so that it is never evaluated on rows the query would not reach.
"""

from __future__ import annotations

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


def nodes_of(query: Query) -> dict[str, Keys]:
    """The nodes that a query reads: what their ids begin with, and their keys."""
    found = {group_node(query): group_keys(query)}
    for aggregate in query.aggregates:
        if aggregate.distinct:
            found[distinct_node(query, aggregate)] = distinct_keys(query, aggregate)
    return found


def _guarded(key: Expression, query: Query) -> Expression:
    if not key.can_raise or query.predicate is None:
        return key
    guarded = f"CASE WHEN {query.predicate.sql} THEN {key.sql} END"
    columns = tuple(sorted({*key.columns, *query.predicate.columns}))
    return replace(key, sql=guarded, columns=columns)
