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


def groups_of(stream: StreamView, known: StreamStatistics) -> list[NodeGroups]:
    """The nodes whose keys are known."""
    nodes = []
    for view in stream.nodes:
        keys = frozenset(key.sql for key in view.node.keys)
        rows = max(known.rate.value / view.cost.fragments.per_second, 1.0)
        groups = known.estimate(keys, rows)
        if keys and groups.source != "assumed":
            bounds = known.bounds(keys, rows)
            nodes.append(NodeGroups(view, rows, groups, bounds, known.skew(keys)))
    return nodes


def selectivities_of(plan: SharedPlan, known: StreamStatistics) -> dict[str, Estimate]:
    """The plan's predicates whose selectivity is known, by their SQL."""
    predicates = dict.fromkeys(query.predicate.sql for query in plan.queries if query.predicate)
    selectivities = {sql: known.selectivity(sql) for sql in predicates}
    return {sql: share for sql, share in selectivities.items() if share.source != "assumed"}


def statistics_lines(stream: StreamView, known: StreamStatistics) -> Iterator[tuple[str, str]]:
    """Labels and texts of EXPLAIN's section."""
    yield "rate", f"{figure(known.rate.value)} rows/s {_from(known.rate)}"
    groups = [_groups_text(each) for each in groups_of(stream, known)]
    shares = [
        f"{figure(100 * each.value)} %  {readable(sql)} {_from(each)}"
        for sql, each in selectivities_of(stream.plan, known).items()
    ]
    for label, texts in ("groups", groups), ("selectivity", shares):
        left = len(texts) - _SHOWN
        shown = [*texts[:_SHOWN], f"… and {left:,} more"] if left > 1 else texts
        for place, text in enumerate(shown):
            yield ("" if place else label), text


def statistics_document(stream: StreamView, known: StreamStatistics) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "rows": known.rows,
        "rate": known.rate.to_json(),
        "groups": [
            {
                "node": each.node.label,
                "keys": [readable(key.sql) for key in each.node.node.keys],
                "rows_per_fragment": each.rows,
                "groups": each.groups.to_json(),
                "at_least": each.between[0],
                "at_most": each.between[1],
                "alpha": each.alpha.to_json(),
            }
            for each in groups_of(stream, known)
        ],
        "selectivities": [
            {"predicate": readable(sql), **each.to_json()}
            for sql, each in selectivities_of(stream.plan, known).items()
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
