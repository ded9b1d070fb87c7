"""What a shared plan costs, in aggregate operations per second.

From: the TriOps paper, equations 1 to 4. λ is the input rate, E an edge rate (fragments per
second), Ω the sum of range / slide over the queries that read them.

- plain Spark: every query copies a row into each of its windows, so λ Ω.
- every query alone, with fragments (equations 1 and 3): the sum of λ + E Ω over queries.
- shared (equation 4, for every first-level node by itself, as section IV-B composes it):
  λ at level 1, m E at level 2 for m weave groups, the sum of E_i Ω_i at level 3.

Two departures. A query with count(distinct) reads two nodes and pays for both, alone as well
as shared. Level 3 of the running system is incremental, so its true cost is below E Ω: the
figures compare plans and are no forecast of seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import gcd, lcm

from weft.algebra.plan import Fragments, SharedPlan, WeaveGroup
from weft.algebra.query import Query
from weft.algebra.window import EdgeClass, Window
from weft.optimizer.groupby.flat import distinct_node
from weft.optimizer.windows.slices import irreducible

ASSUMED_RATE = 1000.0
"""Rows per second where none was measured."""

MOST_EDGES = 20_000
"""Edges that are counted one by one before the bound is taken instead."""

SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class EdgeRate:
    """Fragments per second; not exact where it is an upper bound."""

    per_second: float
    exact: bool = True


def edge_rate(classes: Iterable[EdgeClass]) -> EdgeRate:
    """How many distinct edges the classes have per second.

    Counts the union over the least common multiple of the slides where it is small. Else the
    sum over classes, which counts common edges twice, capped by the rate of the base pane.

    >>> edge_rate([EdgeClass(4 * SECOND, 0), EdgeClass(6 * SECOND, 0)])
    EdgeRate(per_second=0.3333333333333333, exact=True)
    """
    kept = irreducible(classes)
    if not kept:
        return EdgeRate(0.0)
    period = lcm(*(edge.slide for edge in kept))
    if sum(period // edge.slide for edge in kept) <= MOST_EDGES:
        edges = {time for edge in kept for time in range(edge.residue, period, edge.slide)}
        return EdgeRate(len(edges) * SECOND / period)
    pane = kept[0].slide
    for edge in kept[1:]:
        pane = gcd(pane, edge.slide, edge.residue - kept[0].residue)
    total = sum(SECOND / edge.slide for edge in kept)
    return EdgeRate(min(total, SECOND / pane), exact=False)


def fragment_rate(fragments: Fragments) -> EdgeRate:
    """How many fragments level 1 makes per second, for every key."""
    if fragments.pane:
        return EdgeRate(SECOND / fragments.pane)
    return edge_rate(fragments.classes)


def window_rate(windows: Iterable[Window]) -> EdgeRate:
    """The edge rate of a set of windows."""
    return edge_rate(edge for window in set(windows) for edge in window.edge_classes)


@dataclass(frozen=True, slots=True)
class GroupCost:
    """A weave group at one of the nodes it reads: its edge rate and its overlap factor."""

    edge_rate: EdgeRate
    overlap: float

    @property
    def level3(self) -> float:
        return self.edge_rate.per_second * self.overlap


@dataclass(frozen=True)
class NodeCost:
    """Equation 4 for one first-level node."""

    rate: float
    fragments: EdgeRate
    groups: tuple[GroupCost, ...]

    @property
    def level1(self) -> float:
        return self.rate

    @property
    def level2(self) -> float:
        return len(self.groups) * self.fragments.per_second

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


def query_cost(query: Query, rate: float) -> float:
    """A query alone, by equation 1 for each node it would read."""
    distinct = {distinct_node(query, a) for a in query.aggregates if a.distinct}
    edges = window_rate([query.window]).per_second
    return (1 + len(distinct)) * (rate + edges * query.window.overlap)


def node_costs(plan: SharedPlan, rate: float) -> dict[str, NodeCost]:
    """The cost of every first-level node, by its id."""
    groups: dict[str, list[GroupCost]] = {node.id: [] for node in plan.nodes}
    for group in plan.groups:
        for node, readers in readers_by_node(plan, group).items():
            windows = [query.window for query in readers]
            overlap = sum(window.overlap for window in windows)
            groups[node].append(GroupCost(window_rate(windows), overlap))
    return {
        node.id: NodeCost(rate, fragment_rate(node.fragments), tuple(groups[node.id]))
        for node in plan.nodes
    }


def readers_by_node(plan: SharedPlan, group: WeaveGroup) -> dict[str, list[Query]]:
    """The nodes that a weave group reads, and which of its queries read each."""
    queries = [plan.query_by_id[name] for name in group.queries]
    found: dict[str, list[Query]] = {group.node: queries}
    for query in queries:
        for node in {distinct_node(query, a) for a in query.aggregates if a.distinct}:
            found.setdefault(node, []).append(query)
    return found


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
