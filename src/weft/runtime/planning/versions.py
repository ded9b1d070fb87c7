"""Plan versions: the next one, and from which time on a new query's windows are complete.

A new query can use the state of an earlier version if that version had every node that the query reads,
with its partials and its predicate's bit, and with fragments that its windows never cut. Otherwise the
query's windows begin after the rows of that version. So the contents of a window never depend on when
its query was registered (DESIGN section 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.algebra.nodes.reads import alike, nodes_read, partials_read
from weft.algebra.plan import Node, Retired, SharedPlan
from weft.algebra.query import Query, StreamSchema
from weft.algebra.scalar import Expression
from weft.algebra.signature import membership
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import Weaving
from weft.runtime.checkpoint.commits import Commit, Entry
from weft.runtime.checkpoint.log import StreamLog

ALWAYS = -(1 << 62)
"""`complete_from` of a query that has seen every row of its stream."""

FORGOTTEN = 0
"""The version that stands for all versions without state. No query can use it."""


def next_plan(
    log: StreamLog,
    stream: StreamSchema,
    queries: Sequence[Query],
    last: Commit | None,
    weaving: Weaving | None = None,
) -> SharedPlan:
    """The plan for changed queries or other weave groups. Queries that stay keep their `complete_from`,
    and continue to read the nodes that they had."""
    version = max(log.plan_versions(), default=0) + 1
    always = {query.id: ALWAYS for query in queries}
    plan = share(version, stream, queries, always, weaving)
    if last is None:
        return plan
    previous = log.plan(last.plan_version)
    plan = replace(plan, retired=_retired(previous, plan, last))
    bounds: dict[str, int] = {}
    bounds_alike: dict[tuple[object, ...], int] = {}
    for query in queries:
        if query.id in previous.complete_from:
            bounds[query.id] = previous.complete_from[query.id]
            continue
        own = query.id if plan.has_member_nodes else ""
        key = (*alike(query), query.window, own)
        if key not in bounds_alike:
            bounds_alike[key] = complete_from(log, plan, query, last)
        bounds[query.id] = bounds_alike[key]
    return replace(plan, complete_from=bounds)


def _retired(previous: SharedPlan, plan: SharedPlan, last: Commit) -> tuple[Retired, ...]:
    """Nodes with state that queries read under the previous plan and no longer read."""
    open_nodes = {entry["node"] for entry in last.state}
    stay = {query.id: nodes_read(plan, query) for query in plan.queries}
    read: dict[str, tuple[Node, list[str]]] = {}
    for query in previous.queries:
        for name in nodes_read(previous, query) if query.id in stay else ():
            read.setdefault(name, (previous.node_by_id[name], []))[1].append(query.id)
    for retired in previous.retired:
        for name in retired.queries:
            if name in stay:
                read.setdefault(retired.node.id, (retired.node, []))[1].append(name)
    return tuple(
        Retired(node, readers)
        for node, names in read.values()
        if node.id in open_nodes
        and (readers := tuple(name for name in names if node.id not in stay[name]))
    )


def complete_from(log: StreamLog, plan: SharedPlan, query: Query, last: Commit | None) -> int:
    """The event time from which on all logged rows are in state that the query can use."""
    if last is None:
        return ALWAYS
    needed = [plan.node_by_id[name] for name in nodes_read(plan, query)]
    bound = ALWAYS
    for entry in last.engine["versions"]:
        if entry["max_event"] is not None and not _usable(log, entry, query, needed, plan):
            bound = max(bound, _last_end(log, entry, needed))
    for node in needed:
        bound = max(bound, last.engine["horizons"].get(node.id, ALWAYS))
    return bound


def updated_versions(
    last: Commit | None, plan: SharedPlan, max_event: int | None, state: Sequence[Entry]
) -> tuple[Entry, ...]:
    """What each version in use has logged, after a step under `plan`. `max_event` is the latest event
    time of the step's rows."""
    # The files of a node that no query reads are deleted, so no later query can use them.
    live_nodes = {name for query in plan.queries for name in nodes_read(plan, query)}
    live_nodes |= {retired.node.id for retired in plan.retired}
    live_versions = {entry["version"] for entry in state} | {plan.version}
    entries = {entry["version"]: dict(entry) for entry in (last.engine["versions"] if last else ())}
    current = entries.setdefault(
        plan.version,
        {"version": plan.version, "max_event": None, "nodes": sorted(live_nodes)},
    )
    current["max_event"] = _later(current["max_event"], max_event)
    forgotten = None
    kept = []
    for entry in entries.values():
        if entry["version"] in live_versions:
            entry["nodes"] = [name for name in entry["nodes"] if name in live_nodes]
            kept.append(entry)
        else:
            forgotten = _later(forgotten, entry["max_event"])
    if forgotten is not None:
        kept.append({"version": FORGOTTEN, "max_event": forgotten, "nodes": []})
    return tuple(sorted(kept, key=lambda entry: int(entry["version"])))


def _later(first: int | None, second: int | None) -> int | None:
    times = [time for time in (first, second) if time is not None]
    return max(times, default=None)


def _last_end(log: StreamLog, entry: Entry, needed: Sequence[Node]) -> int:
    """The latest end of a fragment that a version may have logged for nodes with these keys.

    Nodes are compared by their keys, not by their names. Under other weave groups a query may read
    another node with the same keys, and that node may hold fragments of the older version.
    """
    latest: int = entry["max_event"] + 1
    if entry["version"] != FORGOTTEN:
        bases = {node.base for node in needed}
        for old_node in log.plan(entry["version"]).nodes:
            if old_node.base in bases:
                latest = max(latest, old_node.fragments.end_of(entry["max_event"]))
    return latest


def _usable(
    log: StreamLog, entry: Entry, query: Query, needed: Sequence[Node], plan: SharedPlan
) -> bool:
    """Whether the query can use the state that a version has logged."""
    if entry["version"] == FORGOTTEN:
        return False
    old_nodes = log.plan(entry["version"]).node_by_id
    for node in needed:
        old_node = old_nodes.get(node.id)
        if old_node is None or node.id not in entry["nodes"]:
            return False
        if not set(partials_read(query, node.base, plan.stream)) <= set(old_node.partials):
            return False
        if not _decides(old_node, query.predicate):
            return False
        if not all(old_node.fragments.refines(edge) for edge in query.window.edge_classes):
            return False
    return True


def _decides(node: Node, predicate: Expression | None) -> bool:
    """Whether a node's shards hold all rows that satisfy a predicate, and tell which these are."""
    if predicate is None:
        return node.keeps_all_rows
    if any(predicate.sql == node_predicate.sql for node_predicate in node.predicates):
        return True
    return node.keeps_all_rows and membership(predicate, node.signature, node.keys) is not None
