"""From bound queries to one shared plan: GTWeave.

From: the TriOps paper, section VI (Algorithm 2), in three passes over a draft of the plan, each of
which can be switched off without changing a result:

- `predicates` gives every node an index of its predicates (`predicates.index`), and divides the
  queries of a group-by set by the attributes that they select by. Off: a bit per predicate.
- `groupby` arranges the nodes in an aggregate tree (`groupby.arrange`): some are computed from the
  fragments of others, or of intermediates that no query asked for. Off: all from the stream.
- `windows` weaves the queries of a node into groups that read the same fragments (a `Weaving`).
  Off: all read the node's own.

Departures from Algorithm 2. The paper weaves all queries below a first-level node together, and
drops an inner node whose queries fall into different groups. Here every node weaves its own queries:
a node's state is its own fragments, so no group needs to reach over two nodes, and a tree may change
while windows are open. The paper keeps one index of signatures before every operator; here every
node's shards carry the columns that its predicates need, and level 2 inverts them.

With three levels (TriOps) a node serves all its groups, and groups with coarser edges than the
node's get fragments of their own at level 2. With two levels (TwoOps) every part has a node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from weft.algebra.aggregate import Aggregate, lift
from weft.algebra.partial import Partial
from weft.algebra.plan import (
    Fragments,
    Node,
    Retired,
    SharedPlan,
    Sharing,
    WeaveGroup,
    member_id,
    selected,
    selectors,
)
from weft.algebra.query import Query, StreamSchema
from weft.algebra.scalar import Expression
from weft.algebra.signature import Signature
from weft.optimizer.edges.slices import irreducible, slices
from weft.optimizer.flat import Keys, distinct_node, group_keys, group_node, nodes_of
from weft.optimizer.predicates.index import index


@dataclass(frozen=True)
class Parts:
    """The queries of a node, each in one part; with two `levels` every part has a node, with
    three a single part may be `coarse`, too, if the node writes panes finer than its edges."""

    levels: int
    parts: Sequence[Sequence[Query]]
    coarse: bool = False


class Weaving(Protocol):
    """Chooses which queries of a node read the same fragments, and the tree of the nodes."""

    @property
    def sharing(self) -> Sharing: ...
    def parts(self, queries: Sequence[Query]) -> Parts: ...
    def tree(self, nodes: Sequence[Node], readers: Mapping[str, Sequence[Query]]) -> Sequence[Node]:
        """The nodes with their parents, and intermediates; parents first."""
        ...


class OnePart:
    """All queries of a node read the node's own fragments (Shared Time Slices), and all nodes
    read the stream."""

    def __init__(self, sharing: Sharing | None = None) -> None:
        self.sharing = sharing or Sharing()

    def parts(self, queries: Sequence[Query]) -> Parts:
        return Parts(3, [queries])

    def tree(self, nodes: Sequence[Node], readers: Mapping[str, Sequence[Query]]) -> Sequence[Node]:
        return nodes


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
    passes = weaving.sharing.passes
    groups: list[WeaveGroup] = []
    members_of: dict[str, tuple[str, ...]] = {}
    by_node = _by_group_node(queries, passes)
    for name, readers in by_node.items():
        woven = weaving.parts(readers) if "windows" in passes else Parts(3, [readers])
        parts = [part for part in woven.parts if part]
        two_levels = woven.levels == 2 and len(parts) > 1
        for part in parts:
            members = tuple(sorted(query.id for query in part)) if two_levels else ()
            members_of |= dict.fromkeys(members, members)
            own = (len(parts) > 1 or woven.coarse) and not two_levels
            coarse = _coarse(part) if own else None
            groups += _weave_groups(member_id(name, members), part, coarse)
    active = [query for readers in by_node.values() for query in readers]
    nodes, node_readers = _nodes(active, members_of, stream, passes)
    if "groupby" in passes:
        drawn = {node.id: node.fragments for node in nodes}
        nodes = list(weaving.tree(nodes, node_readers))
        finer = {node.id for node in nodes if drawn.get(node.id, node.fragments) != node.fragments}
        groups = [_not_finer(group, finer, node_readers) for group in groups]
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


def can_match(query: Query) -> bool:
    """Whether any row can satisfy a query's predicate; if not, no node reads rows for it."""
    condition = query.predicate.condition if query.predicate is not None else None
    return condition is None or not condition.never


def nodes_read(plan: SharedPlan, query: Query) -> set[str]:
    """The ids of the nodes that a query reads and that are written."""
    if not can_match(query):
        return set()
    return {plan.node_of(query, base, keys) for base, keys in nodes_of(query).items()}


def partials(query: Query, aggregate: Aggregate, stream: StreamSchema) -> tuple[Partial, ...]:
    """The partials that a query's own node carries for one of its aggregates."""
    return lift(aggregate, stream.time_micros, query.predicate)


def presence(query: Query, aggregate: Aggregate, stream: StreamSchema) -> Partial:
    """The partial of a distinct node that says how often its value counts for the query."""
    counted = Aggregate("count", aggregate.arguments, "bigint", aggregate.filter)
    return lift(counted, stream.time_micros, query.predicate)[0]


def _by_group_node(queries: Sequence[Query], passes: Sequence[str]) -> dict[str, list[Query]]:
    found: dict[str, list[Query]] = {}
    for query in queries:
        if can_match(query):
            own = selected(selectors(query.predicate, group_keys(query), passes))
            found.setdefault(group_node(query) + own, []).append(query)
    return found


def _nodes(
    queries: Sequence[Query],
    members_of: Mapping[str, tuple[str, ...]],
    stream: StreamSchema,
    passes: Sequence[str],
) -> tuple[list[Node], dict[str, list[Query]]]:
    """The nodes of the queries' keys, and those of their distinct arguments; who reads them."""
    found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], tuple[Keys, list[Query]]] = {}
    for query in queries:
        for base, keys in nodes_of(query).items():
            own = selectors(query.predicate, keys, passes)
            place = (base, own, members_of.get(query.id, ()))
            found.setdefault(place, (keys, []))[1].append(query)
    nodes = [
        _node(base, keys, own, members, readers, stream, passes)
        for (base, own, members), (keys, readers) in found.items()
    ]
    return nodes, {
        node.id: readers for node, (_, readers) in zip(nodes, found.values(), strict=True)
    }


def _node(
    base: str,
    keys: Keys,
    own: tuple[str, ...],
    members: tuple[str, ...],
    readers: Sequence[Query],
    stream: StreamSchema,
    passes: Sequence[str],
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
    found = predicates(readers)
    indexed = "predicates" in passes
    return Node(
        id=member_id(base + selected(own), members),
        keys=keys,
        group_keys=len(readers[0].keys),
        predicates=found,
        keeps_all_rows=any(query.predicate is None for query in readers),
        partials=tuple(carried.values()),
        fragments=slices({query.window for query in readers}),
        members=members,
        selectors=own,
        signature=index(found, keys) if indexed else Signature(bits=tuple(p.sql for p in found)),
    )


def predicates(queries: Sequence[Query]) -> tuple[Expression, ...]:
    """The distinct predicates in the order of their first use."""
    found = {query.predicate.sql: query.predicate for query in queries if query.predicate}
    return tuple(found.values())


def _coarse(part: Sequence[Query]) -> Fragments:
    """The fragments of a part, exactly at its edges: level 2 maps fragments, not rows, so many
    edge classes cost it little."""
    edges = {edge for query in part for edge in query.window.edge_classes}
    return Fragments(classes=irreducible(edges))


def _not_finer(
    group: WeaveGroup, finer: set[str], readers: Mapping[str, Sequence[Query]]
) -> WeaveGroup:
    """The group with fragments of its own, if its node has come to write finer ones for others."""
    if group.fragments is not None or group.node not in finer:
        return group
    return replace(group, fragments=_coarse(readers[group.node]))


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
