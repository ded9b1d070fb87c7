"""From bound queries to one shared plan.

Composes the parts: first-level nodes (`groupby.flat`), signatures (`predicates.bits`),
fragments (`windows.slices`), and one weave group for every (node, predicate).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.algebra.aggregate import Aggregate, lift
from weft.algebra.partial import Partial
from weft.algebra.plan import Node, SharedPlan, WeaveGroup
from weft.algebra.query import Query, StreamSchema
from weft.optimizer.groupby.flat import Keys, distinct_node, flat, group_node
from weft.optimizer.predicates.bits import bits
from weft.optimizer.windows.slices import slices


def share(
    version: int,
    stream: StreamSchema,
    queries: Sequence[Query],
    complete_from: Mapping[str, int],
) -> SharedPlan:
    """The shared plan of a stream's queries."""
    nodes = tuple(
        _node(name, keys, group, readers, stream)
        for name, (keys, group, readers) in flat(queries).items()
    )
    return SharedPlan(
        version, stream, tuple(queries), nodes, _weave_groups(queries), dict(complete_from)
    )


def partials(query: Query, aggregate: Aggregate, stream: StreamSchema) -> tuple[Partial, ...]:
    """The partials that a query's own node carries for one of its aggregates."""
    return lift(aggregate, stream.time_micros, query.predicate)


def presence(query: Query, aggregate: Aggregate, stream: StreamSchema) -> Partial:
    """The partial of a distinct node that says how often its value counts for the query."""
    counted = Aggregate("count", aggregate.arguments, "bigint", aggregate.filter)
    return lift(counted, stream.time_micros, query.predicate)[0]


def _node(
    name: str, keys: Keys, group: int, readers: Sequence[Query], stream: StreamSchema
) -> Node:
    carried: dict[str, Partial] = {}
    for query in readers:
        for aggregate in query.aggregates:
            if aggregate.distinct:
                if distinct_node(query, aggregate) == name:
                    partial = presence(query, aggregate, stream)
                    carried[partial.name] = partial
            elif group_node(query) == name:
                for partial in partials(query, aggregate, stream):
                    carried[partial.name] = partial
    return Node(
        id=name,
        keys=keys,
        group_keys=group,
        predicates=bits(readers),
        keeps_all_rows=any(query.predicate is None for query in readers),
        partials=tuple(carried.values()),
        fragments=slices({query.window for query in readers}),
    )


def _weave_groups(queries: Sequence[Query]) -> tuple[WeaveGroup, ...]:
    members: dict[tuple[str, str | None], list[str]] = {}
    for query in queries:
        predicate = query.predicate.sql if query.predicate else None
        members.setdefault((group_node(query), predicate), []).append(query.id)
    return tuple(
        WeaveGroup(node, predicate, tuple(names)) for (node, predicate), names in members.items()
    )
