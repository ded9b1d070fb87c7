"""EXPLAIN of a network as JSON: everything by name, nothing summarised."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from weft.algebra.network.query import JoinQuery
from weft.explain.network.conditions import conditions, scalar_text
from weft.explain.network.view import NetworkMeasured, NetworkNodeView, NetworkView


def network_document(view: NetworkView) -> dict[str, Any]:
    """The whole network."""
    body: dict[str, Any] = {
        "plan_version": view.plan.version,
        "relations": [
            {"name": node.node.relations[0], "label": node.label, "stream": node.is_stream}
            for node in view.nodes
            if node.node.kind == "source"
        ],
        "nodes": [_node(view, node) for node in view.nodes],
        "queries": [_query(view, query) for query in view.plan.queries],
        "sharing": asdict(view.savings),
    }
    if view.measured is not None:
        body["measured"] = _measured(view.measured)
    return body


def query_document(view: NetworkView, query: JoinQuery) -> dict[str, Any]:
    """One query's path through the network."""
    fed = query.id in view.plan.feed_by_query
    return {
        **_query(view, query),
        "node_details": [_node(view, node) for node in view.path(query)] if fed else [],
    }


def _node(view: NetworkView, node: NetworkNodeView) -> dict[str, Any]:
    body: dict[str, Any] = {
        "label": node.label,
        "id": node.node.id,
        "kind": node.node.kind,
        "parents": list(node.parents),
        "relations": list(node.node.relations),
        "slots": list(node.slots),
        "conditions": list(node.conditions),
        "level": node.node.level,
        "sequence": node.node.sequence,
        "columns": list(node.node.columns),
        "physical_join": node.physical,
        "feeds": list(node.feeds),
        "queries": list(node.readers),
        "estimated_rows": view.estimated_rows(node),
    }
    if node.measured is not None:
        body["measured"] = asdict(node.measured)
    return body


def _query(view: NetworkView, query: JoinQuery) -> dict[str, Any]:
    names = [entry.alias for entry in query.inputs]
    feed = view.plan.feed_by_query.get(query.id)
    return {
        "name": query.name,
        "id": query.id,
        "inputs": [{"relation": entry.relation, "alias": entry.alias} for entry in query.inputs],
        "conditions": conditions(query.predicates, names),
        "warning": view.warnings.get(query.name, ""),
        "distinct": query.distinct,
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "value": scalar_text(column.value, names),
            }
            for column in query.columns
        ],
        "node": view.label_by_id[feed.node] if feed else None,
        "slots": list(feed.slots) if feed else [],
    }


def _measured(measured: NetworkMeasured) -> dict[str, Any]:
    return {
        "steps": measured.steps,
        "rows": measured.rows,
        "results": measured.results,
        "late_rows": measured.late_rows,
        "watermark": measured.watermark,
        "seconds": measured.seconds,
        "history_rows": measured.history_rows,
        "history_bytes": measured.history_bytes,
        "where": measured.where,
    }
