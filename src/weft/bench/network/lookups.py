"""How long a query takes to be added, by the number of queries in the network."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.query import JoinQuery
from weft.algebra.query import StreamSchema
from weft.optimizer.network.estimate import Estimate
from weft.optimizer.network.generate import with_queries
from weft.optimizer.network.index import NetworkIndex
from weft.optimizer.network.options import Options


@dataclass(frozen=True)
class Addition:
    """Seconds per query while the network grew to so many queries and nodes."""

    queries: int
    nodes: int
    seconds: float


def additions(
    queries: Sequence[JoinQuery],
    schema: StreamSchema,
    index: NetworkIndex,
    estimate: Estimate,
    sizes: Sequence[int],
) -> list[Addition]:
    """Add the queries, in groups that end at the sizes."""
    plan = NetworkPlan(version=0)
    points: list[Addition] = []
    before = 0
    for size in sizes:
        group = queries[before:size]
        started = time.perf_counter()
        plan = with_queries(plan, group, (), (schema,), index, Options(), estimate)
        seconds = (time.perf_counter() - started) / len(group)
        points.append(Addition(size, len(plan.nodes), seconds))
        before = size
    return points


def addition_chart(points: Sequence[Addition]) -> alt.Chart:
    """Milliseconds per query and nodes of the network, by number of queries."""
    rows = [
        {"queries": point.queries, "milliseconds per query": point.seconds * 1000}
        for point in points
    ]
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows), title="Adding a query to the network")
        .mark_line(point=True)
        .encode(alt.X("queries:Q"), alt.Y("milliseconds per query:Q"))
        .properties(width=420, height=280)
    )
    return chart
