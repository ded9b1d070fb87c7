"""From bound queries to one shared plan.

Composes the parts: first-level nodes (`groupby.flat`), weave groups by windows (a `Weaving`),
signatures (`predicates.bits`) and fragments (`windows.slices`). A weave group has one predicate:
the parts that the windows make are divided once more by it, and read the same fragments.

With three levels (TriOps) a node serves all its groups, and groups with coarser edges than the
node's get fragments of their own at level 2. With two levels (TwoOps) every part has a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from weft.algebra.aggregate import Aggregate, lift
from weft.algebra.partial import Partial
from weft.algebra.plan import Fragments, Node, Retired, SharedPlan, Sharing, WeaveGroup, member_id
from weft.algebra.query import Query, StreamSchema
from weft.optimizer.groupby.flat import Keys, distinct_node, flat, group_node, nodes_of
from weft.optimizer.predicates.bits import bits
from weft.optimizer.windows.slices import irreducible, slices


@dataclass(frozen=True)
class Parts:
    """The queries of a node, each in one part; with two `levels` every part has a node, with
    three a single part may be `coarse`, too, if the node writes panes finer than its edges."""

    levels: int
    parts: Sequence[Sequence[Query]]
    coarse: bool = False


class Weaving(Protocol):
    """Chooses which queries of a node read the same fragments."""

    @property
    def sharing(self) -> Sharing: ...
    def parts(self, queries: Sequence[Query]) -> Parts: ...


class OnePart:
    """All queries of a node read the node's own fragments (Shared Time Slices)."""

    sharing = Sharing()

    def parts(self, queries: Sequence[Query]) -> Parts:
        return Parts(3, [queries])


def share(
    version: int,
    stream: StreamSchema,
    queries: Sequence[Query],
    complete_from: Mapping[str, int],
    weaving: Weaving | None = None,
    retired: tuple[Retired, ...] = (),
) -> SharedPlan:
    """The shared plan of a stream's queries."""
    weaving = weaving or OnePart()
    nodes: list[Node] = []
    groups: list[WeaveGroup] = []
    for base, readers in _by_group_node(queries).items():
        woven = weaving.parts(readers)
        parts = [part for part in woven.parts if part]
        two_levels = woven.levels == 2 and len(parts) > 1
        if not two_levels:
            nodes += _nodes(readers, stream, ())
        for part in parts:
            members = tuple(sorted(query.id for query in part)) if two_levels else ()
            if two_levels:
                nodes += _nodes(part, stream, members)
            own = (len(parts) > 1 or woven.coarse) and not two_levels
            coarse = _coarse(part) if own else None
            groups += _weave_groups(member_id(base, members), part, coarse)
    return SharedPlan(
        version,
        stream,
        tuple(queries),
        tuple(nodes),
        tuple(groups),
        dict(complete_from),
        retired,
        weaving.sharing,
    )


def nodes_read(plan: SharedPlan, query: Query) -> set[str]:
    """The ids of the nodes that a query reads and that are written."""
    return {plan.node_of(query.id, base) for base in nodes_of(query)}


def partials(query: Query, aggregate: Aggregate, stream: StreamSchema) -> tuple[Partial, ...]:
    """The partials that a query's own node carries for one of its aggregates."""
    return lift(aggregate, stream.time_micros, query.predicate)


def presence(query: Query, aggregate: Aggregate, stream: StreamSchema) -> Partial:
    """The partial of a distinct node that says how often its value counts for the query."""
    counted = Aggregate("count", aggregate.arguments, "bigint", aggregate.filter)
    return lift(counted, stream.time_micros, query.predicate)[0]


def _by_group_node(queries: Sequence[Query]) -> dict[str, list[Query]]:
    found: dict[str, list[Query]] = {}
    for query in queries:
        found.setdefault(group_node(query), []).append(query)
    return found


def _nodes(readers: Sequence[Query], stream: StreamSchema, members: tuple[str, ...]) -> list[Node]:
    """The node of the readers' keys, and those of their distinct arguments."""
    return [
        _node(base, keys, group, own, stream, members)
        for base, (keys, group, own) in flat(readers).items()
    ]


def _node(
    base: str,
    keys: Keys,
    group: int,
    readers: Sequence[Query],
    stream: StreamSchema,
    members: tuple[str, ...],
) -> Node:
    carried: dict[str, Partial] = {}
    for query in readers:
        for aggregate in query.aggregates:
            if aggregate.distinct:
                if distinct_node(query, aggregate) == base:
                    partial = presence(query, aggregate, stream)
                    carried[partial.name] = partial
            elif group_node(query) == base:
                for partial in partials(query, aggregate, stream):
                    carried[partial.name] = partial
    return Node(
        id=member_id(base, members),
        keys=keys,
        group_keys=group,
        predicates=bits(readers),
        keeps_all_rows=any(query.predicate is None for query in readers),
        partials=tuple(carried.values()),
        fragments=slices({query.window for query in readers}),
        members=members,
    )


def _coarse(part: Sequence[Query]) -> Fragments:
    """The fragments of a part, exactly at its edges: level 2 maps fragments, not rows, so many
    edge classes cost it little."""
    edges = {edge for query in part for edge in query.window.edge_classes}
    return Fragments(classes=irreducible(edges))


def _weave_groups(
    node: str, part: Sequence[Query], coarse: Fragments | None
) -> tuple[WeaveGroup, ...]:
    members: dict[str | None, list[str]] = {}
    for query in part:
        predicate = query.predicate.sql if query.predicate else None
        members.setdefault(predicate, []).append(query.id)
    return tuple(
        WeaveGroup(node, predicate, tuple(names), coarse) for predicate, names in members.items()
    )
