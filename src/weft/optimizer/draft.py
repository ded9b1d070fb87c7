"""The nodes and weave groups of queries before anything is chosen, and how they are drawn again.

Every group-by set has a node that is computed from the stream, and so has every set of keys with a
distinct argument. All queries of a node with the same predicate are one weave group, and read the
node's own fragments. The passes of `gtweave` start from this plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from weft.algebra.nodes.reads import (
    Keys,
    alike,
    can_match,
    group_keys,
    group_node,
    nodes_of,
    one_of_each,
    partials_read,
)
from weft.algebra.nodes.selectors import selectors
from weft.algebra.partial import Partial
from weft.algebra.plan import Fragments, Node, SharedPlan, WeaveGroup, member_id, selected
from weft.algebra.query import Query, StreamSchema
from weft.algebra.scalar import Expression
from weft.optimizer.edges.slices import irreducible, slices
from weft.optimizer.predicates.index import bits_only, index

Members = Mapping[str, tuple[str, ...]]
"""For a query that shares its node with some queries only: the ids of these, and its own."""


def drawn(plan: SharedPlan, indexed: bool) -> SharedPlan:
    """The plan with a node for every group-by set: one for all its queries, or, if predicates are
    `indexed`, one for every set of attributes that they select by."""
    by_node: dict[str, list[Query]] = {}
    own_nodes: dict[tuple[int, ...], str | None] = {}
    for query in plan.queries:
        key = alike(query)
        if key not in own_nodes:
            own_nodes[key] = _own_node(query, indexed) if can_match(query) else None
        own_node = own_nodes[key]
        if own_node is not None:
            by_node.setdefault(own_node, []).append(query)
    active = [query for readers in by_node.values() for query in readers]
    groups = [
        group for node, readers in by_node.items() for group in weave_groups(node, readers, None)
    ]
    nodes = drawn_nodes(active, {}, plan.stream, indexed)
    return replace(plan, nodes=tuple(nodes), groups=tuple(groups))


def _own_node(query: Query, indexed: bool) -> str:
    """The id of the node of a query's keys."""
    attributes = selectors(query.predicate, group_keys(query)) if indexed else ()
    return group_node(query) + selected(attributes)


def drawn_nodes(
    queries: Sequence[Query], members_of: Members, stream: StreamSchema, indexed: bool
) -> list[Node]:
    """The nodes of the queries' keys, and those of their distinct arguments."""
    readers: dict[tuple[str, tuple[str, ...], tuple[str, ...]], tuple[Keys, list[Query]]] = {}
    nodes_of_alike: dict[tuple[int, ...], list[tuple[str, Keys, tuple[str, ...]]]] = {}
    for query in queries:
        key = alike(query)
        if key not in nodes_of_alike:
            nodes_of_alike[key] = [
                (base, keys, selectors(query.predicate, keys) if indexed else ())
                for base, keys in nodes_of(query).items()
            ]
        for base, keys, attributes in nodes_of_alike[key]:
            node = (base, attributes, members_of.get(query.id, ()))
            readers.setdefault(node, (keys, []))[1].append(query)
    return [
        _node(base, keys, attributes, members, own_readers, stream, indexed)
        for (base, attributes, members), (keys, own_readers) in readers.items()
    ]


def _node(
    base: str,
    keys: Keys,
    attributes: tuple[str, ...],
    members: tuple[str, ...],
    readers: Sequence[Query],
    stream: StreamSchema,
    indexed: bool,
) -> Node:
    partials: dict[str, Partial] = {}
    different = one_of_each(readers)
    for query in different:
        for partial in partials_read(query, base, stream):
            partials[partial.name] = partial
    predicates = distinct_predicates(different)
    return Node(
        id=member_id(base + selected(attributes), members),
        keys=keys,
        group_keys=len(readers[0].keys),
        predicates=predicates,
        keeps_all_rows=any(query.predicate is None for query in different),
        partials=tuple(partials.values()),
        fragments=slices({query.window for query in readers}),
        members=members,
        selectors=attributes,
        signature=index(predicates, keys) if indexed else bits_only(predicates),
        lookups=readers[0].lookups,
    )


def distinct_predicates(queries: Sequence[Query]) -> tuple[Expression, ...]:
    """The distinct predicates in the order of their first use."""
    predicates = {query.predicate.sql: query.predicate for query in queries if query.predicate}
    return tuple(predicates.values())


def weave_groups(
    node: str, part: Sequence[Query], coarse: Fragments | None
) -> tuple[WeaveGroup, ...]:
    """The weave groups of queries that read the same fragments: one for every predicate."""
    members: dict[str | None, list[str]] = {}
    for query in part:
        predicate = query.predicate.sql if query.predicate else None
        members.setdefault(predicate, []).append(query.id)
    return tuple(
        WeaveGroup(node, predicate, tuple(names), coarse) for predicate, names in members.items()
    )


def coarse_fragments(part: Sequence[Query]) -> Fragments:
    """The fragments of a part, exactly at its edges: level 2 maps fragments, not rows, so many
    edge classes cost it little."""
    edges = {edge for query in part for edge in query.window.edge_classes}
    return Fragments(classes=irreducible(edges))


def queries_by_node(plan: SharedPlan) -> dict[str, list[Query]]:
    """For every node that weave groups read: their queries, in the order of the plan's queries."""
    names: dict[str, set[str]] = {}
    for group in plan.groups:
        names.setdefault(group.node, set()).update(group.queries)
    return {
        node: sorted((plan.query_by_id[name] for name in members), key=plan.position_of)
        for node, members in names.items()
    }
