"""What is known of a stream, for the nodes and predicates of its plan.

A node's groups are those in the rows of one fragment: the rate over the node's fragments per second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from weft.algebra.plan import SharedPlan
from weft.explain.outline import NodeView, StreamView
from weft.explain.wording import figure, readable
from weft.stats import Estimate, StreamStatistics

_SHOWN = 8


@dataclass(frozen=True)
class NodeGroups:
    """The groups of a node in the rows of a fragment, the bounds of that, and their skew."""

    node: NodeView
    rows: float
    groups: Estimate
    between: tuple[float, float]
    alpha: Estimate


def groups_of(stream: StreamView, statistics: StreamStatistics) -> list[NodeGroups]:
    """The nodes whose keys are known."""
    nodes = []
    for view in stream.nodes:
        keys = frozenset(key.sql for key in view.node.keys)
        rows = max(statistics.rate.value / view.cost.fragments.per_second, 1.0)
        groups = statistics.estimate(keys, rows)
        if keys and groups.source != "assumed":
            bounds = statistics.bounds(keys, rows)
            nodes.append(NodeGroups(view, rows, groups, bounds, statistics.skew(keys)))
    return nodes


def selectivities_of(plan: SharedPlan, statistics: StreamStatistics) -> dict[str, Estimate]:
    """The plan's predicates whose selectivity is known, by their SQL."""
    predicates = dict.fromkeys(query.predicate.sql for query in plan.queries if query.predicate)
    selectivities = {sql: statistics.selectivity(sql) for sql in predicates}
    return {sql: share for sql, share in selectivities.items() if share.source != "assumed"}


def statistics_lines(stream: StreamView, statistics: StreamStatistics) -> Iterator[tuple[str, str]]:
    """Labels and texts of EXPLAIN's section."""
    yield "rate", f"{figure(statistics.rate.value)} rows/s {_from(statistics.rate)}"
    groups = [_groups_text(node_groups) for node_groups in groups_of(stream, statistics)]
    shares = [
        f"{figure(100 * selectivity.value)} %  {readable(sql)} {_from(selectivity)}"
        for sql, selectivity in selectivities_of(stream.plan, statistics).items()
    ]
    for label, texts in ("groups", groups), ("selectivity", shares):
        left = len(texts) - _SHOWN
        shown = [*texts[:_SHOWN], f"… and {left:,} more"] if left > 1 else texts
        for number, text in enumerate(shown):
            yield ("" if number else label), text


def statistics_document(stream: StreamView, statistics: StreamStatistics) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "rows": statistics.rows,
        "rate": statistics.rate.to_json(),
        "groups": [
            {
                "node": node_groups.node.label,
                "keys": [node_groups.node.shown(key.sql) for key in node_groups.node.node.keys],
                "rows_per_fragment": node_groups.rows,
                "groups": node_groups.groups.to_json(),
                "at_least": node_groups.between[0],
                "at_most": node_groups.between[1],
                "alpha": node_groups.alpha.to_json(),
            }
            for node_groups in groups_of(stream, statistics)
        ],
        "selectivities": [
            {"predicate": readable(sql), **selectivity.to_json()}
            for sql, selectivity in selectivities_of(stream.plan, statistics).items()
        ],
    }


def _groups_text(node: NodeGroups) -> str:
    return (
        f"{node.node.label}  {figure(node.groups.value)} in the {figure(node.rows)} rows of a "
        f"fragment, exponent {node.alpha.value:.2f} {_from(node.groups)}"
    )


def _from(estimate: Estimate) -> str:
    if estimate.source == "assumed":
        return "(assumed)"
    return f"({estimate.source}, {figure(estimate.rows)} rows)"
