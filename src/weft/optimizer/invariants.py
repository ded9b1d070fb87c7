"""What holds for every shared plan, whatever passes made it.

1. A node's id is its own, and its parent comes before it.
2. A node decides each of its predicates by its signature and its keys.
3. A node below another has all from it: its lookups, its keys, its partials, its edges and its
   predicates; and all rows, if it keeps all rows.
4. An intermediate has a node below it, and no weave group.
5. A query that a row can match is in one weave group, and any other query is in none.
6. A query's nodes exist, have its lookups, have the partials and decide the predicate that it needs,
   and no window of it cuts a fragment that it reads.

So a plan that satisfies them gives each query its rows, by fragments that its windows are unions of.
Queries that consist of the same objects are checked once. Time: linear in the plan's text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from weft.algebra.nodes.reads import (
    alike,
    can_match,
    nodes_of,
    nodes_read,
    partials_read,
)
from weft.algebra.plan import Fragments, Node, SharedPlan
from weft.algebra.query import Query
from weft.algebra.signature import membership
from weft.algebra.window import EdgeClass, Window


def broken_invariants(plan: SharedPlan) -> Iterator[str]:
    """What does not hold, as sentences; nothing for a sound plan."""
    yield from _broken_nodes(plan)
    yield from _broken_groups(plan)
    contents = {node.id: _Contents(node) for node in plan.nodes}
    nodes_of_alike: dict[tuple[object, ...], list[Node]] = {}
    ended: set[tuple[str, Window]] = set()
    checked: set[tuple[object, ...]] = set()
    each_by_itself = plan.has_member_nodes
    for query in plan.queries:
        key = (*alike(query), query.id if each_by_itself else "")
        whole = (*key, id(query.window))
        if whole in checked:
            continue
        checked.add(whole)
        if key not in nodes_of_alike:
            names = nodes_read(plan, query)
            nodes = [plan.node_by_id[name] for name in names if name in plan.node_by_id]
            nodes_of_alike[key] = nodes
            if can_match(query):
                yield from _broken_reads(plan, query, contents)
        for node in nodes_of_alike[key]:
            if (node.id, query.window) not in ended:
                ended.add((node.id, query.window))
                if not _all_ends(node.fragments, query.window.edge_classes):
                    yield f"a window of query {query.id} cuts a fragment of node {node.id}"


class _Contents:
    """The names of what a node has, to look up."""

    def __init__(self, node: Node) -> None:
        self.partials = {partial.name for partial in node.partials}
        self.predicates = {predicate.sql for predicate in node.predicates}


def _broken_nodes(plan: SharedPlan) -> Iterator[str]:
    above: dict[str, Node] = {}
    parents = {node.parent for node in plan.nodes}
    for node in plan.nodes:
        if node.id in above:
            yield f"two nodes are named {node.id}"
        if any(membership(p, node.signature, node.keys) is None for p in node.predicates):
            yield f"node {node.id} does not decide its predicates"
        if node.intermediate and node.id not in parents:
            yield f"nothing is computed from the intermediate {node.id}"
        if node.parent is not None:
            parent = above.get(node.parent)
            if parent is None:
                yield f"node {node.id} comes before its parent {node.parent}"
            else:
                yield from _broken_below(node, parent)
        above[node.id] = node


def _broken_below(node: Node, parent: Node) -> Iterator[str]:
    pair = f"node {node.id} below {parent.id}"
    if node.lookups != parent.lookups:
        yield f"{pair} has other lookups"
    if not {key.sql for key in node.keys} <= {key.sql for key in parent.keys}:
        yield f"{pair} has other keys"
    if not set(node.partials) <= set(parent.partials):
        yield f"{pair} has other partials"
    if node.keeps_all_rows and not parent.keeps_all_rows:
        yield f"{pair} keeps rows that are dropped above"
    if not _all_ends(parent.fragments, node.fragments.edge_classes):
        yield f"{pair} ends fragments where those above do not end"
    if any(membership(p, parent.signature, parent.keys) is None for p in node.predicates):
        yield f"{pair} has predicates that are not decided above"


def _broken_groups(plan: SharedPlan) -> Iterator[str]:
    groups_of = Counter(name for group in plan.groups for name in group.queries)
    can_match_alike: dict[tuple[int, ...], int] = {}
    for query in plan.queries:
        key = alike(query)
        if key not in can_match_alike:
            can_match_alike[key] = int(can_match(query))
        if groups_of[query.id] != can_match_alike[key]:
            yield f"query {query.id} is in {groups_of[query.id]} weave groups"
    for name in groups_of.keys() - plan.query_by_id.keys():
        yield f"a weave group has the unknown query {name}"
    for group in plan.groups:
        node = plan.node_by_id.get(group.node)
        if node is None:
            yield f"a weave group reads the unknown node {group.node}"
            continue
        if node.intermediate:
            yield f"a weave group reads the intermediate {node.id}"
        if group.fragments is None:
            continue
        if not _all_ends(node.fragments, group.fragments.edge_classes):
            yield f"a weave group ends fragments where node {node.id} does not"
        windows = {plan.query_by_id[name].window for name in group.queries}
        if not all(_all_ends(group.fragments, window.edge_classes) for window in windows):
            yield f"a window cuts a coarse fragment of node {node.id}"


def _broken_reads(
    plan: SharedPlan, query: Query, contents: Mapping[str, _Contents]
) -> Iterator[str]:
    for base, keys in nodes_of(query).items():
        name = plan.node_of(query, base, keys)
        node = plan.node_by_id.get(name)
        if node is None:
            yield f"query {query.id} reads the unknown node {name}"
            continue
        if node.members and query.id not in node.members:
            yield f"query {query.id} reads node {name}, which is for others"
        if node.lookups != query.lookups:
            yield f"node {name} has other lookups than query {query.id}"
        carried = contents[name].partials
        if any(p.name not in carried for p in partials_read(query, base, plan.stream)):
            yield f"node {name} lacks partials of query {query.id}"
        if query.predicate is None:
            if not node.keeps_all_rows:
                yield f"node {name} drops rows of query {query.id}"
        elif query.predicate.sql not in contents[name].predicates:
            yield f"node {name} lacks the predicate of query {query.id}"


def _all_ends(fragments: Fragments, classes: tuple[EdgeClass, ...]) -> bool:
    """Whether every time of the classes is an end of a fragment."""
    return all(fragments.refines(edge) for edge in classes)
