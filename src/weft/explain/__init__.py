"""EXPLAIN: the shared plan as text, JSON and SVG.

`outline` labels a plan's parts, with their cost, `statistics` says what is known of its stream;
`text`, `document` and `svg` write them, with `wording`, `axis`, `paragraph` and `canvas`. The
network of join queries is the room `network/`, aggregation joins are `aggregations`. Nothing here knows Spark, and no plan is chosen
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any

from weft.algebra.network.plan import NetworkPlan
from weft.algebra.plan import SharedPlan
from weft.explain import document, svg, text
from weft.explain.aggregations import (
    AggregationsMeasured,
    AggregationView,
    MatchedView,
    aggregation_document,
    aggregation_lines,
    measured_lines,
)
from weft.explain.network.view import NetworkMeasured, NodeMeasured
from weft.explain.outline import FallbackNote, Measured, Outline, outline
from weft.stats import StreamStatistics

__all__ = [
    "AggregationView",
    "AggregationsMeasured",
    "Explanation",
    "FallbackNote",
    "MatchedView",
    "Measured",
    "NetworkMeasured",
    "NodeMeasured",
    "explain",
]


@dataclass(frozen=True)
class Explanation:
    """A shared plan, explained: `print` it, or take it as JSON or SVG; notebooks draw it.

    `rate` is in rows per second of event time; without one the measured rate is taken, else
    one is assumed (1000 rows per second, or the setting `assumed_rate`), and the text says so.
    """

    plans: tuple[SharedPlan, ...]
    fallbacks: tuple[FallbackNote, ...]
    only: str | None = None
    rate: float | None = None
    measured: tuple[Measured, ...] = ()
    statistics: Mapping[str, StreamStatistics] = field(default_factory=dict)
    network: NetworkPlan | None = None
    """The network of the join queries."""
    network_measured: NetworkMeasured | None = None
    aggregations: tuple[AggregationView, ...] = ()
    """The aggregation joins."""
    lanes: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """By stream whose steps run in lanes, the predicted cost of each."""
    network_lanes: tuple[float, ...] = ()
    """The weights of the lanes, if the network's joins run in lanes."""
    aggregations_measured: AggregationsMeasured | None = None

    @cached_property
    def outline(self) -> Outline:
        return outline(
            self.plans,
            self.fallbacks,
            self.rate,
            self.measured,
            self.statistics,
            self.network,
            self.network_measured,
            self.lanes,
            self.network_lanes,
        )

    def __str__(self) -> str:
        named = [view for view in self.aggregations if self.only in (None, view.query.name)]
        paragraphs = ["\n".join(aggregation_lines(view)) for view in named]
        if self.only is None and self.aggregations_measured is not None:
            paragraphs.append("\n".join(measured_lines(self.aggregations_measured)))
        if self.only is None:
            whole = "" if paragraphs and self.outline.is_empty else text.text(self.outline)
            return "\n\n".join(part for part in (whole, *paragraphs) if part)
        return "\n\n".join(paragraphs) or text.query_text(self.outline, self.only)

    def summary(self) -> str:
        """How much is shared and what it saves, in a few lines."""
        return text.summary(self.outline)

    def to_json(self) -> dict[str, Any]:
        """All of it as values that `json.dumps` takes; see docs/explain.md."""
        views = {view.query.name: aggregation_document(view) for view in self.aggregations}
        if self.only in views:
            shared = {"format": document.FORMAT, "query": self.only, "status": "shared"}
            return {**views[self.only], **shared}
        body = document.document(self.outline, self.only)
        if self.only is not None:
            return body
        body["aggregation_joins"] = [*views.values()]
        if self.aggregations_measured is not None:
            body["aggregation_joins_measured"] = asdict(self.aggregations_measured)
        return body

    def to_svg(self) -> str:
        """A drawing: stream, nodes, weave groups, queries; and the network of the join queries."""
        return svg.svg(self.outline, self.only)

    def with_measured(self, measured: Sequence[Measured]) -> Explanation:
        """The same plan beside what a run counted."""
        return replace(self, measured=tuple(measured))

    def with_network(
        self, network: NetworkPlan | None, measured: NetworkMeasured | None = None
    ) -> Explanation:
        """The same beside the network of the join queries; without any there is no network."""
        shown = network if network is not None and network.queries else None
        return replace(self, network=shown, network_measured=measured)

    def with_aggregations(
        self,
        aggregations: Sequence[AggregationView],
        measured: AggregationsMeasured | None = None,
    ) -> Explanation:
        """The same beside the aggregation joins."""
        return replace(self, aggregations=tuple(aggregations), aggregations_measured=measured)

    def with_lanes(
        self, lanes: Mapping[str, Sequence[float]], network: Sequence[float] = ()
    ) -> Explanation:
        """The same with what each lane will cost, by stream, where steps run in lanes. `network`: the weights of the
        lanes, if the network's joins run in lanes."""
        return replace(self, lanes=dict(lanes), network_lanes=tuple(network))

    def with_statistics(self, statistics: Mapping[str, StreamStatistics]) -> Explanation:
        """The same plan beside what is known of its streams, by their names."""
        return replace(self, statistics=dict(statistics))

    def _repr_html_(self) -> str:
        return (
            f"<div>{self.to_svg()}<details><summary>EXPLAIN as text</summary>"
            f"<pre>{escape(str(self))}</pre></details></div>"
        )


def explain(
    plans: Sequence[SharedPlan],
    fallbacks: Sequence[FallbackNote],
    only: str | None = None,
    *,
    rate: float | None = None,
    network: NetworkPlan | None = None,
) -> Explanation:
    """Explain the plans of a weft; with `only`, one query's part of them."""
    return Explanation(tuple(plans), tuple(fallbacks), only, rate).with_network(network)
