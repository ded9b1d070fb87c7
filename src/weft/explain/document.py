"""EXPLAIN as JSON: everything by name, nothing summarised. Durations are in microseconds, on numbered
streams in rows, and what is per second is there per million rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from weft.algebra.partial import Invertible
from weft.algebra.query import Query
from weft.explain.axis import Axis
from weft.explain.network.document import network_document, query_document
from weft.explain.network.lookups import lookup_lines
from weft.explain.outline import (
    FallbackNote,
    GroupView,
    Measured,
    NodeView,
    Outline,
    RateIs,
    StreamView,
    aggregate_label,
    shown_sql,
)
from weft.explain.statistics import statistics_document
from weft.optimizer.cost import Cost, FragmentRate, query_cost

FORMAT = 1


def document(outline: Outline, only: str | None = None) -> dict[str, Any]:
    """The whole plan, or one query's part of it."""
    if only is not None:
        return _part(outline, only)
    return {
        "format": FORMAT,
        "streams": [_stream(stream) for stream in outline.streams],
        "network": network_document(outline.network) if outline.network is not None else None,
        "fallbacks": [_fallback(note) for note in outline.fallbacks],
    }


def _part(outline: Outline, name: str) -> dict[str, Any]:
    body: dict[str, Any] = {"format": FORMAT, "query": name}
    join = outline.find_join(name)
    if join is not None:
        return body | {"status": "shared", **query_document(*join)}
    part = outline.find(name)
    if part is None:
        return body | {"status": "not in a plan"}
    if isinstance(part, FallbackNote):
        return body | {"status": "fallback", **_fallback(part)}
    stream, query = part
    group = stream.group_of(query)
    return body | {
        "status": "shared",
        "stream": stream.name,
        **({"join": stream.join} if stream.join else {}),
        **_query(stream, query),
        "node_details": [_node(node, stream.axis) for node in stream.nodes_of(query)],
        "group_details": _group(group) if group else None,
    }


def _stream(stream: StreamView) -> dict[str, Any]:
    schema = stream.plan.stream
    body = {
        "stream": stream.name,
        "plan_version": stream.plan.version,
        "time": schema.time,
        "unit": stream.axis.unit,
        "watermark_delay": schema.delay,
        "columns": list(stream.plan.columns),
        "nodes": [_node(node, stream.axis) for node in stream.nodes],
        "groups": [_group(group) for group in stream.groups],
        "queries": [_query(stream, query) for query in stream.plan.queries],
        "cost": {"model": _model(stream), **_cost(stream.cost, stream.rate_is)},
        "sharing": {**asdict(stream.plan.sharing), "passes": list(stream.plan.sharing.passes)},
        "seconds_per_second": {**asdict(stream.seconds), "total": stream.seconds.total},
    }
    if stream.join:
        body["join"] = stream.join
    if stream.lanes:
        body["lanes"] = [{"seconds_per_second": cost} for cost in stream.lanes]
    if stream.measured is not None:
        body["measured"] = _measured(stream, stream.measured)
    if stream.statistics is not None:
        body["statistics"] = statistics_document(stream, stream.statistics)
    return body


def _node(node: NodeView, axis: Axis) -> dict[str, Any]:
    fragments = node.node.fragments
    return {
        "label": node.label,
        "id": node.node.id,
        "title": node.title,
        "lookups": node.lookups,
        "keys": node.keys,
        "distinct": node.distinct,
        "fragments": {
            "pane": fragments.pane or None,
            "offset": fragments.offset,
            "edge_classes": [
                {
                    "slide": edge.slide,
                    "residue": edge.residue,
                    "text": axis.edges(edge)[0],
                }
                for edge in fragments.classes
            ],
            **_edge_rate(node.cost.fragments),
        },
        "predicates": [
            {"label": f"P{number}", "sql": node.shown(predicate.sql)}
            for number, predicate in enumerate(node.node.predicates, 1)
        ],
        "selects_by": node.selects_by,
        "index": {
            "searched": [
                {"attribute": node.shown(cut.attribute), "classes": len(set(cut.classes))}
                for cut in node.node.signature.cuts
            ],
            "bits": [node.shown(sql) for sql in node.node.signature.bits],
        },
        "parent": node.parent,
        "intermediate": node.node.intermediate,
        "keeps_all_rows": node.node.keeps_all_rows,
        "partials": [
            {
                "name": partial.name,
                "label": view.label,
                "lift": partial.lift,
                "type": partial.type,
                "combine": partial.combine.name,
                "invertible": isinstance(partial.combine, Invertible),
                "queries": list(view.readers),
            }
            for partial, view in zip(node.node.partials, node.partials, strict=True)
        ],
        "queries": node.names,
        "groups": [group.label for group in node.groups],
        "operations_per_second": {
            "level1": node.cost.level1,
            "level2": node.cost.level2,
            "level3": node.cost.level3,
        },
    }


def _group(group: GroupView) -> dict[str, Any]:
    return {
        "label": group.label,
        "node": group.node,
        "predicate": group.predicate,
        "predicate_label": group.number,
        "queries": group.names,
        "overlap": group.overlap,
        "coarse_fragments": group.fragments is not None,
        **_edge_rate(group.edge_rate),
    }


def _query(stream: StreamView, query: Query) -> dict[str, Any]:
    window = query.window
    group = stream.group_of(query)
    return {
        "name": query.name,
        "id": query.id,
        "window": {
            "range": window.range,
            "slide": window.slide,
            "start": window.start,
            "text": stream.axis.window(window),
        },
        "lookups": [f"{words} {text}" for words, text in lookup_lines(query.lookups)],
        "keys": [shown_sql(key.sql, query.lookups) for key in query.keys],
        "predicate": shown_sql(query.predicate.sql, query.lookups) if query.predicate else None,
        "aggregates": [aggregate_label(a, query.lookups) for a in query.aggregates],
        "columns": [{"name": column.name, "type": column.type} for column in query.columns],
        "nodes": [node.label for node in stream.nodes_of(query)],
        "group": group.label if group else None,
        "operations_per_second": {
            "alone": query_cost(query, stream.cost.rate),
            "plain_spark": stream.cost.rate * window.overlap,
        },
    }


def _model(stream: StreamView) -> str:
    """The equation behind the shared cost: 3 where groups have nodes of their own, else 4."""
    return "twoops" if any(node.node.members for node in stream.nodes) else "triops"


def _cost(cost: Cost, rate_is: RateIs) -> dict[str, Any]:
    return {
        "rate": cost.rate,
        "rate_is": rate_is,
        "plain_spark": cost.plain_spark,
        "row_copies": cost.overlap,
        "alone": cost.alone,
        "shared": cost.shared,
        "level1": cost.level1,
        "level2": cost.level2,
        "level3": cost.level3,
        "exact": cost.exact,
        "saves": cost.saves,
        "saves_plain_spark": cost.saves_plain_spark,
    }


def _measured(stream: StreamView, measured: Measured) -> dict[str, Any]:
    return {
        "batches": measured.batches,
        "rows": measured.rows,
        "rows_per_second": measured.rows_per_second,
        "event_rate": measured.event_rate,
        "results": measured.results,
        "late_rows": measured.late_rows,
        "null_times": measured.null_times,
        "watermark": measured.watermark,
        "state_rows": measured.state_rows,
        "state_bytes": measured.state_bytes,
        "state_rows_by_node": {
            node.label: measured.state_rows_by_node.get(node.node.id, 0) for node in stream.nodes
        },
        "retired_nodes": [
            {
                "id": retired.node.id,
                "queries": [stream.plan.query_by_id[name].name for name in retired.queries],
                "state_rows": measured.state_rows_by_node.get(retired.node.id, 0),
            }
            for retired in stream.plan.retired
        ],
        "seconds": measured.seconds,
        "lane_seconds": list(measured.lane_seconds),
        "groups_per_fragment": measured.keys,
        "operations": {
            level: {
                "predicted_per_second": predicted,
                "counted": measured.operations.get(level),
                "counted_per_second": measured.per_event_second(level),
            }
            for level, predicted in stream.predicted_operations.items()
        },
    }


def _edge_rate(rate: FragmentRate) -> dict[str, Any]:
    return {
        "edge_rate": rate.per_second,
        "edge_rate_exact": rate.exact,
        "edge_rate_error": rate.error,
    }


def _fallback(note: FallbackNote) -> dict[str, Any]:
    return {"query": note.query, "stream": note.stream, "reason": note.reason}
