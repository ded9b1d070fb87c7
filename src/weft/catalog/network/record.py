"""What the catalog says of a network beyond its predicates: order, columns, queries.

Only what differs from the plan before is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from weft.algebra.network.plan import Feed, NetworkNode, NetworkPlan
from weft.algebra.predicates.slots import column_name, plain_name, slot_of
from weft.algebra.scalar import quoted_sql
from weft.catalog.network import tables
from weft.optimizer.network.index import Entry
from weft.optimizer.network.topology import joined

_MANY = 500


def union_rows(node: NetworkNode) -> list[dict[str, Any]]:
    """A union's rows, one for each parent."""
    return [
        {"node": node.id, "position": position, "parent": parent, "parents": len(node.parents)}
        for position, parent in enumerate(node.parents)
    ]


def node_rows(entry: Entry, set_id: str) -> tuple[sa.Table, dict[str, Any]]:
    """A selection's or join's row in the relation of its kind."""
    node, topology = entry
    if node.kind == "join":
        left, right = topology.jvoas
        return tables.joins, {
            "node": node.id,
            "left_parent": node.parents[0],
            "right_parent": node.parents[1],
            "predicates": node.predicates.sql,
            "left_jvoa": left,
            "right_jvoa": right,
            "jvoa_set": set_id,
        }
    left_jvoa, right_jvoa = topology.jvoas or (None, None)
    return tables.selections, {
        "node": node.id,
        "parent": node.parents[0],
        "predicates": node.predicates.sql,
        "svoa": topology.svoa,
        "svoa_set": set_id,
        "left_jvoa": left_jvoa,
        "right_jvoa": right_jvoa,
        "jvoa_predicates": joined(topology.jvoa_predicates, topology.svoa_predicates).sql,
    }


def record(connection: Connection, before: NetworkPlan | None, plan: NetworkPlan) -> None:
    """Write a plan's order, columns and queries over those of the plan before."""
    old_nodes = before.node_by_id if before is not None else {}
    old_feeds = before.feed_by_query if before is not None else {}
    new = [node for node in plan.nodes if old_nodes.get(node.id) != node]
    stale = [node.id for node in new if node.id in old_nodes]
    stale += [name for name in old_nodes if name not in plan.node_by_id]
    _delete(connection, tables.nodes.c.node, stale)
    _delete(connection, tables.columns.c.node, stale)
    _insert(connection, tables.nodes, map(_node_row, new))
    _insert(connection, tables.columns, (row for node in new for row in _column_rows(node, plan)))
    feeds = [feed for feed in plan.feeds if old_feeds.get(feed.query) != feed]
    gone = [name for name, feed in old_feeds.items() if plan.feed_by_query.get(name) != feed]
    _delete(connection, tables.queries.c.query, gone)
    _delete(connection, tables.groups.c.query, gone)
    _insert(connection, tables.queries, map(_query_row, feeds))
    _insert(connection, tables.groups, (row for feed in feeds for row in _group_rows(feed, plan)))


def _node_row(node: NetworkNode) -> dict[str, Any]:
    return {
        "node": node.id,
        "kind": node.kind,
        "relations": " ".join(node.relations),
        "level": node.level,
        "sequence": node.sequence,
    }


def _column_rows(node: NetworkNode, plan: NetworkPlan) -> Iterable[dict[str, Any]]:
    # For every slot the parent that it comes from, and the place of that parent's first slot.
    origins: list[tuple[str | None, int]] = []
    for parent in node.parents:
        slots = len(plan.node_by_id[parent].relations)
        origins += [(parent, len(origins))] * slots
    for name in node.columns:
        origin, first = origins[slot_of(name)] if origins else (None, 0)
        parent_name = column_name(slot_of(name) - first, plain_name(name)) if origin else None
        yield {"node": node.id, "column": name, "parent": origin, "parent_column": parent_name}


def _query_row(feed: Feed) -> dict[str, Any]:
    return {"query": feed.query, "node": feed.node, "slots": " ".join(map(str, feed.slots))}


def _group_rows(feed: Feed, plan: NetworkPlan) -> Iterable[dict[str, Any]]:
    query = plan.query_by_id[feed.query]
    grouped = [
        column
        for branch, within in zip(query.branches, query.distinct_in, strict=True)
        if within is not None
        for column in branch.columns
    ]
    for position, column in enumerate(grouped):
        expression = quoted_sql(column.value)
        yield {"query": query.id, "position": position, "expression": expression}


def _delete(connection: Connection, key: sa.Column[Any], names: Sequence[str]) -> None:
    for start in range(0, len(names), _MANY):
        some = names[start : start + _MANY]
        connection.execute(sa.delete(key.table).where(key.in_(some)))


def _insert(connection: Connection, table: sa.Table, rows: Iterable[dict[str, Any]]) -> None:
    several = list(rows)
    if several:
        connection.execute(sa.insert(table), several)
