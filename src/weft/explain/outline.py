"""A shared plan as people look at it: nodes N1, N2, …, weave groups G1, G2, …, who reads what.

Text, JSON and SVG are all written from an `Outline`, so they name the same things alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal as OneOf

from weft.algebra.aggregate import EXTREMES, MOMENTS, ORDERED_BY, Aggregate
from weft.algebra.joinagg.sets import signatures
from weft.algebra.network.derived import DerivedQuery
from weft.algebra.network.lookup import Lookup, tables_of
from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.nodes.reads import alike, distinct_node, one_of_each, partials, presence
from weft.algebra.nodes.selectors import OTHER
from weft.algebra.plan import Fragments, Node, SharedPlan
from weft.algebra.query import Query
from weft.algebra.types import FRACTIONAL
from weft.explain.axis import Axis, axis_of
from weft.explain.network.lookups import lookup_lines, with_table_names
from weft.explain.network.view import NetworkMeasured, NetworkView, network_view
from weft.explain.wording import readable
from weft.optimizer.cost import (
    ASSUMED_RATE,
    SECOND,
    Cost,
    FragmentRate,
    NodeCost,
    Seconds,
    fragment_rate,
    node_costs,
    plan_cost,
    readers_by_node,
    seconds,
)
from weft.optimizer.windows.calibration import calibrated
from weft.stats import StreamStatistics

RateIs = OneOf["assumed", "given", "measured", "exact"]


@dataclass(frozen=True)
class FallbackNote:
    """A query that runs alone, and why."""

    query: str
    stream: str
    reason: str


@dataclass(frozen=True)
class Measured:
    """What a stream's last commit counted.

    `watermark` is in microseconds, on a numbered stream the number of rows that have a number.
    `seconds` is the time spent in steps; `event_rate`, the λ of the cost model, is in rows per
    second of event time after the first batch. Both may be unknown.
    """

    stream: str
    batches: int
    rows: int
    results: int
    late_rows: int
    null_times: int
    state_rows: int
    state_bytes: int
    watermark: int
    state_rows_by_node: Mapping[str, int]
    seconds: float | None = None
    event_rate: float | None = None
    event_seconds: float | None = None
    keys: float | None = None
    operations: Mapping[str, int] = field(default_factory=dict)
    """Aggregate operations at each level, counted as the papers count them."""
    lane_costs: tuple[float, ...] = ()
    """For each lane, the predicted seconds of work per second of event time, if steps ran in lanes."""
    lane_seconds: tuple[float, ...] = ()
    """What each lane took, in all steps that ran in lanes."""

    def per_event_second(self, level: str) -> float | None:
        """Operations of a level per second of event time."""
        if not self.event_seconds or level not in self.operations:
            return None
        return self.operations[level] / self.event_seconds

    @property
    def rows_per_second(self) -> float | None:
        """Rows per second of processing."""
        return self.rows / self.seconds if self.seconds else None


@dataclass(frozen=True)
class GroupView:
    """A weave group under its label."""

    label: str
    node: str
    number: str | None
    predicate: str | None
    queries: tuple[Query, ...]
    edge_rate: FragmentRate
    fragments: Fragments | None = None

    @property
    def names(self) -> list[str]:
        return [query.name for query in self.queries]

    @cached_property
    def overlap(self) -> float:
        return sum(query.window.overlap for query in self.queries)


@dataclass(frozen=True)
class PartialView:
    """A partial under a readable name, and the queries that use it."""

    name: str
    label: str
    readers: tuple[str, ...]


@dataclass(frozen=True)
class NodeView:
    """A first-level node under its label."""

    label: str
    node: Node
    cost: NodeCost
    partials: tuple[PartialView, ...]
    readers: tuple[Query, ...]
    groups: tuple[GroupView, ...]
    parent: str | None = None
    """The label of the node that this one is computed from; None: the stream."""

    @property
    def selects_by(self) -> list[str]:
        """The attributes beside its keys by which its predicates select."""
        return ["other conditions" if s == OTHER else self.shown(s) for s in self.node.selectors]

    @property
    def keys(self) -> list[str]:
        return [self.shown(key.sql) for key in self.node.keys[: self.node.group_keys]]

    @property
    def distinct(self) -> list[str]:
        return [self.shown(key.sql) for key in self.node.keys[self.node.group_keys :]]

    @property
    def lookups(self) -> list[str]:
        """What the stream's rows get from tables before the node groups them."""
        return [f"{words} {text}" for words, text in lookup_lines(self.node.lookups)]

    def shown(self, sql: str) -> str:
        """An expression over the node's rows, for people."""
        if sql in self._signatures:
            return "signature"
        return shown_sql(sql, self.node.lookups)

    @cached_property
    def _signatures(self) -> frozenset[str]:
        return frozenset().union(*map(signatures, self.readers))

    @property
    def heading(self) -> str:
        """What the node groups by, in a few words."""
        heading = f"by {', '.join(self.keys)}" if self.keys else "one group"
        heading += f", distinct {', '.join(self.distinct)}" if self.distinct else ""
        tables = " and ".join(dict.fromkeys(tables_of(self.node.lookups)))
        heading += f", looked up in {tables}" if tables else ""
        return heading + (f", selecting by {', '.join(self.selects_by)}" if self.selects_by else "")

    @property
    def title(self) -> str:
        """The heading, and what the node is computed from."""
        source = f", from {self.parent}" if self.parent else ""
        return self.heading + source + (", an intermediate" if self.node.intermediate else "")

    @property
    def names(self) -> list[str]:
        return [query.name for query in self.readers]


@dataclass(frozen=True)
class StreamView:
    """One stream's plan."""

    plan: SharedPlan
    nodes: tuple[NodeView, ...]
    cost: Cost
    seconds: Seconds
    rate_is: RateIs
    measured: Measured | None = None
    statistics: StreamStatistics | None = None
    """What is known of the stream; None if nothing is."""
    lanes: tuple[float, ...] = ()
    """For each lane, the predicted seconds of work per second of event time, if steps run in lanes."""

    @property
    def name(self) -> str:
        return self.plan.stream.name

    @property
    def join(self) -> str:
        """Of a derived stream: what it is. Else empty."""
        derived = (query for query in self.plan.queries if isinstance(query, DerivedQuery))
        return next((query.derived.described for query in derived), "")

    @property
    def axis(self) -> Axis:
        return axis_of(self.plan.stream)

    @property
    def predicted_operations(self) -> dict[str, float]:
        """By level, per second of event time, for all groups that a fragment was seen to have."""
        keys = (self.measured.keys if self.measured else None) or 1.0
        cost = self.cost
        return {"level1": cost.level1, "level2": cost.level2 * keys, "level3": cost.level3 * keys}

    @property
    def groups(self) -> list[GroupView]:
        return [group for node in self.nodes for group in node.groups]

    def group_of(self, query: Query) -> GroupView | None:
        """The weave group of a query; None if no row can satisfy its predicate."""
        return self._group_by_query.get(query.id)

    def nodes_of(self, query: Query) -> list[NodeView]:
        """The nodes that a query reads."""
        return self._nodes_by_query[query.id]

    @cached_property
    def _group_by_query(self) -> dict[str, GroupView]:
        return {query.id: group for group in self.groups for query in group.queries}

    @cached_property
    def _nodes_by_query(self) -> dict[str, list[NodeView]]:
        by_query: dict[str, list[NodeView]] = {query.id: [] for query in self.plan.queries}
        for node in self.nodes:
            for query in node.readers:
                by_query[query.id].append(node)
        return by_query


@dataclass(frozen=True)
class Outline:
    """All that EXPLAIN shows."""

    streams: tuple[StreamView, ...]
    fallbacks: tuple[FallbackNote, ...]
    network: NetworkView | None = None

    @property
    def is_empty(self) -> bool:
        return not self.streams and not self.fallbacks and self.network is None

    def find(self, name: str) -> tuple[StreamView, Query] | FallbackNote | None:
        """A windowed aggregate with its stream, or why a query runs alone; None if it is neither."""
        for stream in self.streams:
            for query in stream.plan.queries:
                if query.name == name:
                    return stream, query
        return next((note for note in self.fallbacks if note.query == name), None)

    def find_join(self, name: str) -> tuple[NetworkView, NetworkQuery] | None:
        """A join query with its network; None if there is none of that name."""
        query = self.network.find(name) if self.network is not None else None
        return (self.network, query) if self.network is not None and query is not None else None


def outline(
    plans: Sequence[SharedPlan],
    fallbacks: Sequence[FallbackNote],
    rate: float | None = None,
    measured: Sequence[Measured] = (),
    statistics: Mapping[str, StreamStatistics] | None = None,
    network: NetworkPlan | None = None,
    network_measured: NetworkMeasured | None = None,
    lanes: Mapping[str, Sequence[float]] | None = None,
    network_lanes: Sequence[float] = (),
) -> Outline:
    """Label the parts of the plans and count their costs.

    The costs are at the given rate, else at the one that was measured, else at an assumed one.
    """
    counts = {measurement.stream: measurement for measurement in measured}
    streams: list[StreamView] = []
    nodes = groups = 0
    for plan in plans:
        measured_statistics = (statistics or {}).get(plan.stream.name)
        counted = counts.get(plan.stream.name)
        at = _rate(rate, counted, measured_statistics)
        view = _stream(plan, at, counted, nodes, groups)
        known_lanes = counted.lane_costs if counted is not None else ()
        view = replace(view, lanes=tuple((lanes or {}).get(plan.stream.name, known_lanes)))
        nodes, groups = nodes + len(view.nodes), groups + len(view.groups)
        streams.append(
            replace(view, statistics=measured_statistics)
            if measured_statistics and measured_statistics.known
            else view
        )
    shown = None
    if network is not None:
        shown = network_view(network, network_measured, network_lanes)
    return Outline(tuple(streams), tuple(fallbacks), shown)


def _stream(
    plan: SharedPlan,
    at: tuple[float, RateIs],
    measured: Measured | None,
    nodes: int,
    groups: int,
) -> StreamView:
    rate, rate_is = at
    if plan.stream.counts_rows:
        rate, rate_is = float(SECOND), "exact"
    costs = node_costs(plan, rate)
    readers: dict[str, list[Query]] = {node.id: [] for node in plan.nodes}
    for group in plan.groups:
        for node_id, queries in readers_by_node(plan, group).items():
            readers[node_id] += queries
    order = {query.id: position for position, query in enumerate(plan.queries)}
    coarse: dict[Fragments, FragmentRate] = {}
    labels = {node.id: f"N{number}" for number, node in enumerate(plan.nodes, nodes + 1)}
    lifting = _Lifting(plan)
    views = []
    for node in plan.nodes:
        label = labels[node.id]
        node_groups = []
        for group in plan.groups:
            if group.node == node.id:
                groups += 1
                members = tuple(plan.query_by_id[name] for name in group.queries)
                number, predicate = _number(node, group.predicate)
                read = costs[node.id].fragments
                if group.fragments is not None:
                    read = coarse.setdefault(group.fragments, fragment_rate(group.fragments))
                view = GroupView(
                    f"G{groups}", label, number, predicate, members, read, group.fragments
                )
                node_groups.append(view)
        reading = tuple(sorted(readers[node.id], key=lambda query: order[query.id]))
        named = _partials(node, reading, lifting)
        above = None if node.parent is None else labels[node.parent]
        views.append(
            NodeView(label, node, costs[node.id], named, reading, tuple(node_groups), above)
        )
    sharing = replace(plan.sharing, rate=rate)
    if measured is not None and measured.keys:
        sharing = replace(sharing, keys=measured.keys)
    took = seconds(costs.values(), sharing, calibrated())
    return StreamView(plan, tuple(views), plan_cost(plan, rate), took, rate_is, measured)


def _rate(
    asked: float | None, measured: Measured | None, statistics: StreamStatistics | None
) -> tuple[float, RateIs]:
    if asked:
        return asked, "given"
    if measured is not None and measured.event_rate:
        return measured.event_rate, "measured"
    if statistics is not None:
        is_assumed = statistics.rate.source == "assumed"
        return statistics.rate.value, "assumed" if is_assumed else "measured"
    return ASSUMED_RATE, "assumed"


def _number(node: Node, predicate: str | None) -> tuple[str | None, str | None]:
    if predicate is None:
        return None, None
    shown = shown_sql(predicate, node.lookups)
    for number, numbered in enumerate(node.predicates, 1):
        if numbered.sql == predicate:
            return f"P{number}", shown
    return None, shown


@dataclass(frozen=True, slots=True)
class _Lifted:
    """A partial that a query needs; `base` is what the node's id begins with, if it is one of a distinct argument."""

    name: str
    label: str
    base: str | None


class _Lifting:
    """The partials of a plan's queries, found once for queries that consist of the same objects."""

    def __init__(self, plan: SharedPlan) -> None:
        self.queries = one_of_each(plan.queries)
        self._of = {alike(query): _lifted(query, plan) for query in self.queries}

    def of(self, query: Query, node: Node) -> Iterator[_Lifted]:
        """Those that a query may need of a node."""
        if query.lookups == node.lookups:
            for lifted in self._of[alike(query)]:
                if lifted.base is None or node.intermediate or lifted.base == node.base:
                    yield lifted


def _lifted(query: Query, plan: SharedPlan) -> list[_Lifted]:
    needed: list[_Lifted] = []
    for aggregate in query.aggregates:
        if aggregate.distinct:
            partial = presence(query, aggregate, plan.stream)
            label = f"present({_arguments(aggregate, query.lookups)}){_condition(aggregate, query)}"
            needed.append(_Lifted(partial.name, label, distinct_node(query, aggregate)))
            continue
        names = partial_labels(aggregate, query.lookups)
        for partial, name in zip(partials(query, aggregate, plan.stream), names, strict=True):
            needed.append(_Lifted(partial.name, name + _condition(aggregate, query), None))
    return needed


def _partials(node: Node, readers: Sequence[Query], lifting: _Lifting) -> tuple[PartialView, ...]:
    labels: dict[str, str] = {}
    users: dict[str, dict[str, None]] = {partial.name: {} for partial in node.partials}
    for query in lifting.queries:
        for lifted in lifting.of(query, node):
            if lifted.name in users:
                labels.setdefault(lifted.name, lifted.label)
    for query in readers:
        for lifted in lifting.of(query, node):
            if lifted.name in users:
                users[lifted.name][query.name] = None
    return tuple(
        PartialView(
            p.name, labels.get(p.name, shown_sql(p.lift, node.lookups)), tuple(users[p.name])
        )
        for p in node.partials
    )


def partial_labels(aggregate: Aggregate, lookups: tuple[Lookup, ...] = ()) -> tuple[str, ...]:
    """Short names for the partials of an aggregate, in the order of `lift`."""
    function, arguments = aggregate.function, _arguments(aggregate, lookups)
    if function == "count":
        return (f"count({arguments or '*'})",)
    if function in ("sum", "avg"):
        return f"sum({arguments})", f"count({arguments})"
    if function in MOMENTS:
        return (f"moments({arguments})",)
    if function in EXTREMES:
        operation = "min" if function in ("min", "bool_and") else "max"
        return (f"{operation}({arguments})",)
    if function in ORDERED_BY:
        return (f"{function}({arguments})",)
    if function == "approx_count_distinct":
        return (f"hll({arguments})",)
    labels = (f"kll({arguments})", f"count({arguments})")
    fractional = aggregate.arguments[0].type in FRACTIONAL
    return (*labels, f"count(isnan({arguments}))") if fractional else labels


def aggregate_label(aggregate: Aggregate, lookups: tuple[Lookup, ...] = ()) -> str:
    """An aggregate as SQL."""
    arguments = _arguments(aggregate, lookups) or ("*" if aggregate.function == "count" else "")
    distinct = "distinct " if aggregate.distinct else ""
    text = f"{aggregate.function}({distinct}{arguments})"
    if aggregate.filter is not None:
        text += f" filter ({shown_sql(aggregate.filter.sql, lookups)})"
    return text


def _arguments(aggregate: Aggregate, lookups: tuple[Lookup, ...]) -> str:
    return ", ".join(shown_sql(argument.sql, lookups) for argument in aggregate.arguments)


def shown_sql(sql: str, lookups: tuple[Lookup, ...]) -> str:
    """An expression over rows with lookups, for people."""
    return readable(with_table_names(sql, lookups))


def _condition(aggregate: Aggregate, query: Query) -> str:
    """What a partial is lifted behind: a FILTER, and the predicate where it may raise."""
    parts = []
    risky = any(argument.can_raise for argument in aggregate.arguments)
    risky = risky or (aggregate.filter is not None and aggregate.filter.can_raise)
    if risky and query.predicate is not None:
        parts.append(shown_sql(query.predicate.sql, query.lookups))
    if aggregate.filter is not None:
        parts.append(shown_sql(aggregate.filter.sql, query.lookups))
    return f" if {' and '.join(parts)}" if parts else ""
