"""EXPLAIN of a network as JSON: everything by name, nothing summarised."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from weft.algebra.network.query import JoinInput, JoinQuery, Partner
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.predicates.slots import column_name, slot_of
from weft.explain.network.lookups import Shown, lookup_lines, of_query
from weft.explain.network.view import NetworkMeasured, NetworkNodeView, NetworkView


def network_document(view: NetworkView) -> dict[str, Any]:
    """The whole network."""
    body: dict[str, Any] = {
        "plan_version": view.plan.version,
        "relations": [
            {
                "name": node.relation,
                "label": node.label,
                "stream": node.is_stream,
                "lookups": [" ".join(line) for line in node.lookup_lines],
            }
            for node in view.nodes
            if node.node.kind == "source"
        ],
        "nodes": [_node(view, node) for node in view.nodes],
        "queries": [_query(view, query) for query in view.plan.queries],
        "sharing": asdict(view.savings),
    }
    if view.lanes:
        body["lanes"] = [{"rows": rows} for rows in view.lane_rows]
    if view.measured is not None:
        body["measured"] = _measured(view.measured)
    return body


def query_document(view: NetworkView, query: NetworkQuery) -> dict[str, Any]:
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
        "columns": [
            column_name(slot_of(name), node.shown.column(name)) for name in node.node.columns
        ],
        "physical_join": node.physical,
        "feeds": list(node.feeds),
        "queries": list(node.readers),
        "estimated_rows": view.estimated_rows(node),
    }
    if node.measured is not None:
        body["measured"] = asdict(node.measured)
    return body


def _query(view: NetworkView, query: NetworkQuery) -> dict[str, Any]:
    feed = view.plan.feed_by_query.get(query.id)
    branches = [
        _branch(branch, within)
        for branch, within in zip(query.branches, query.distinct_in, strict=True)
    ]
    body = {
        "name": query.shown_name,
        "id": query.id,
        "warning": view.warnings.get(query.name, ""),
        "backfill": query.backfill,
        "node": view.label_by_id[feed.node] if feed else None,
        "slots": list(feed.slots) if feed else [],
    }
    if len(branches) > 1:
        return {**body, "branches": branches}
    return {**body, **branches[0], "distinct": query.distinct_in[0] is not None}


def _branch(branch: JoinQuery, within: int | None) -> dict[str, Any]:
    """A branch of a query. `distinct_in` numbers the sets within which equal rows are shown once."""
    names, shown = [entry.alias for entry in branch.inputs], of_query(branch)
    return {
        "inputs": [_input(entry) for entry in branch.inputs],
        "conditions": shown.conditions(branch.predicates, names),
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "value": shown.scalar(column.value, names),
            }
            for column in branch.columns
        ],
        "distinct_in": within,
        "partner": None if branch.partner is None else _partner(branch, branch.partner),
    }


def _input(entry: JoinInput) -> dict[str, Any]:
    return {
        "relation": entry.relation,
        "alias": entry.alias,
        "lookups": [" ".join(line) for line in lookup_lines(entry.lookups)],
    }


def _partner(branch: JoinQuery, partner: Partner) -> dict[str, Any]:
    """What rows of a branch must have a match in, or none."""
    alone = Shown(tuple(entry.lookups for entry in partner.inputs))
    names = [entry.alias for entry in partner.inputs]
    every = [entry.alias for entry in branch.every_input]
    return {
        "kind": partner.kind,
        "inputs": [_input(entry) for entry in partner.inputs],
        "conditions": alone.conditions(partner.predicates, names),
        "matching": of_query(branch).conditions(partner.matching, every),
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
        "lane_seconds": list(measured.lane_seconds),
    }
