"""What a shared plan costs: in operations per second as the papers count, and in seconds.

From: the TriOps paper, equations 1 to 4. λ is the input rate, E an edge rate (fragments per
second), Ω the sum of range / slide over the queries that read them. Per key:

- plain Spark: every query copies a row into each of its windows, so λ Ω.
- every query alone, with fragments (equations 1 and 3): the sum of λ + E Ω over queries.
- shared (equation 4, for every first-level node by itself, as section IV-B composes it):
  λ at level 1, E for every part with coarse fragments of its own at level 2, the sum of E_i Ω_i
  at level 3, where E_i is the rate of the fragments that a weave group reads.

Departures. A query with count(distinct) reads two nodes and pays for both, alone as well as
shared. Groups that read a node's own fragments need no level 2. Level 3 of the running system
is incremental, so its true cost is below E Ω: `Seconds` is weft's own (`optimizer.windows.spans`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from weft.algebra.nodes.reads import distinct_node, nodes_read
from weft.algebra.plan import Fragments, SharedPlan, Sharing, WeaveGroup
from weft.algebra.query import Query
from weft.algebra.window import EdgeClass, Window
from weft.optimizer.edges import edges
from weft.optimizer.windows.calibration import Constants

ASSUMED_RATE = 1000.0
"""Rows per second where none was measured."""

SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class FragmentRate:
    """Fragments per second; an estimate within a relative `error` where counting takes too long."""

    per_second: float
    error: float = 0.0

    @property
    def exact(self) -> bool:
        return self.error == 0


def edge_rate(classes: Iterable[EdgeClass]) -> FragmentRate:
    """How many distinct edges the classes have per second.

    >>> edge_rate([EdgeClass(4 * SECOND, 0), EdgeClass(6 * SECOND, 0)])
    FragmentRate(per_second=0.3333333333333333, error=0.0)
    """
    rate = edges.edge_rate(classes).per(SECOND)
    return FragmentRate(float(rate), rate.error)


def fragment_rate(fragments: Fragments) -> FragmentRate:
    """How many fragments there are per second, for every key."""
    return edge_rate(fragments.edge_classes)


def window_rate(windows: Iterable[Window]) -> FragmentRate:
    """The edge rate of a set of windows."""
    return edge_rate({edge for window in set(windows) for edge in window.edge_classes})


@dataclass(frozen=True, slots=True)
class GroupCost:
    """A weave group at one of the nodes it reads: the rate of its fragments, whether they are
    its own, its overlap factor, its longest range and how many results it has per second."""

    edge_rate: FragmentRate
    overlap: float
    longest: float
    results: float
    fragments: Fragments | None = None

    @property
    def level3(self) -> float:
        return self.edge_rate.per_second * self.overlap


@dataclass(frozen=True)
class NodeCost:
    """Equation 4 for one node; `rate` is what comes in: rows of the stream, or its parent's
    fragments."""

    rate: float
    fragments: FragmentRate
    groups: tuple[GroupCost, ...]

    @property
    def level1(self) -> float:
        return self.rate

    @property
    def level2(self) -> float:
        parts = {group.fragments for group in self.groups} - {None}
        return len(parts) * self.fragments.per_second

    @cached_property
    def level3(self) -> float:
        return sum(group.level3 for group in self.groups)

    @property
    def total(self) -> float:
        return self.level1 + self.level2 + self.level3

    @property
    def exact(self) -> bool:
        return self.fragments.exact and all(group.edge_rate.exact for group in self.groups)


@dataclass(frozen=True)
class Cost:
    """Operations per second of a set of queries, without and with sharing."""

    rate: float
    queries: int
    overlap: float
    alone: float
    level1: float
    level2: float
    level3: float
    exact: bool

    @property
    def plain_spark(self) -> float:
        return self.rate * self.overlap

    @property
    def shared(self) -> float:
        return self.level1 + self.level2 + self.level3

    @property
    def saves(self) -> float:
        """How many times less than the queries alone."""
        return self.alone / self.shared if self.shared else 1.0

    @property
    def saves_plain_spark(self) -> float:
        """How many times less than plain Spark."""
        return self.plain_spark / self.shared if self.shared else 1.0


@lru_cache(maxsize=4096)
def _rate_of(window: Window) -> float:
    return window_rate([window]).per_second


def query_cost(query: Query, rate: float) -> float:
    """A query alone, by equation 1 for each node it would read."""
    distinct = {distinct_node(query, a) for a in query.aggregates if a.distinct}
    edges = _rate_of(query.window)
    return (1 + len(distinct)) * (rate + edges * query.window.overlap)


@dataclass(frozen=True)
class Seconds:
    """weft's own cost: seconds of work per second of event time, by level."""

    level1: float
    level2: float
    level3: float
    results: float

    @property
    def total(self) -> float:
        return self.level1 + self.level2 + self.level3 + self.results


def seconds(costs: Iterable[NodeCost], sharing: Sharing, constants: Constants) -> Seconds:
    """What nodes cost by the calibrated model (`optimizer.windows.spans`)."""
    level1 = level2 = level3 = results = 0.0
    for node in costs:
        level1 += node.level1 * constants.row
        level2 += node.level2 * sharing.keys * constants.coalesce
        pools: dict[Fragments | None, GroupCost] = {}
        for group in node.groups:
            longest = pools.get(group.fragments, group)
            pools[group.fragments] = group if group.longest > longest.longest else longest
            results += group.results * sharing.keys * constants.result
        for pool in pools.values():
            steps = (pool.longest + sharing.step) / sharing.step
            level3 += pool.edge_rate.per_second * steps * sharing.keys * constants.scan
    return Seconds(level1, level2, level3, results)


def node_costs(plan: SharedPlan, rate: float) -> dict[str, NodeCost]:
    """The cost of every first-level node, by its id."""
    rates = {node.id: fragment_rate(node.fragments) for node in plan.nodes}
    coarse_rates: dict[Fragments, FragmentRate] = {}
    groups: dict[str, list[GroupCost]] = {node.id: [] for node in plan.nodes}
    for group in plan.groups:
        coarse = group.fragments
        if coarse is not None and coarse not in coarse_rates:
            coarse_rates[coarse] = fragment_rate(coarse)
        for node, readers in readers_by_node(plan, group).items():
            windows = [query.window for query in readers]
            groups[node].append(
                GroupCost(
                    rates[node] if coarse is None else coarse_rates[coarse],
                    overlap=sum(window.overlap for window in windows),
                    longest=max(window.range for window in windows) / SECOND,
                    results=sum(SECOND / window.slide for window in windows),
                    fragments=coarse,
                )
            )
    return {
        node.id: NodeCost(
            rate if node.parent is None else rates[node.parent].per_second,
            rates[node.id],
            tuple(groups[node.id]),
        )
        for node in plan.nodes
    }


def readers_by_node(plan: SharedPlan, group: WeaveGroup) -> dict[str, list[Query]]:
    """The nodes that a weave group reads, and which of its queries read each."""
    queries = [plan.query_by_id[name] for name in group.queries]
    readers: dict[str, list[Query]] = {group.node: queries}
    for query in queries:
        for node in nodes_read(plan, query) - {group.node}:
            readers.setdefault(node, []).append(query)
    return readers


def plan_cost(plan: SharedPlan, rate: float) -> Cost:
    """What a stream's queries cost without and with sharing."""
    nodes = node_costs(plan, rate).values()
    return Cost(
        rate=rate,
        queries=len(plan.queries),
        overlap=sum(query.window.overlap for query in plan.queries),
        alone=sum(query_cost(query, rate) for query in plan.queries),
        level1=sum(node.level1 for node in nodes),
        level2=sum(node.level2 for node in nodes),
        level3=sum(node.level3 for node in nodes),
        exact=all(node.exact for node in nodes),
    )
