"""The network of nodes that computes many join queries.

A *source* node is a stream or table. A *selection* node holds the rows of its parent that pass a
predicate set, a *join* node the pairs of its parents' rows that pass one. A *semi-join* node has the rows of
its first parent that pass one with some row of its second parent, an *anti-join* node those that pass it
with none: it has a row when the row is *closed*, that is when no row that could match is still to come. A
*union* node has the rows of all its parents.

Every node has slots, one for each relation occurrence below it: the slots of a join or union are its first
parent's, then its second parent's, and so on. A row of a union has values in the slots of one parent only,
a row of a semi-join or anti-join in those of its first parent. Predicates and columns of a node are named by
its own slots, so they read the same from whichever ancestor they are evaluated. Only queries and unions
read unions, semi-joins and anti-joins.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

from weft.algebra.network.query import JoinInput
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.predicates import TRUE, PredicateSet
from weft.algebra.query import StreamSchema

NodeKind = Literal["source", "selection", "join", "semi-join", "anti-join", "union"]
PARTNER_KINDS: Final = frozenset({"semi-join", "anti-join"})
SEQUENCE_STEP: Final = 1000
"""The distance of a new node's sequence from its parent's: room for nodes in between."""


@dataclass(frozen=True, slots=True)
class NetworkNode:
    """A node of the network. `id` is never used again for another node."""

    id: str
    kind: NodeKind
    parents: tuple[str, ...]
    relations: tuple[str, ...]
    """The stream or table of every slot."""
    predicates: PredicateSet = TRUE
    """What is tested on the parents' rows (ARGUS: DPredSet)."""
    level: int = 0
    """How many joins and unions lie on the longest way from a source."""
    sequence: int = 0
    """Within a level, parents come before their children in this order."""
    columns: tuple[str, ...] = ()
    """The columns (`slot.column`) that its children or its queries read."""


@dataclass(frozen=True, slots=True)
class Feed:
    """Where a query takes its rows: a node, and the node's slot for every input of the query."""

    query: str
    node: str
    slots: tuple[int, ...]


@dataclass(frozen=True)
class NetworkPlan:
    """All join queries as one network. Nodes are in the order of (level, sequence)."""

    version: int
    streams: tuple[StreamSchema, ...] = ()
    """The streams that the queries read, and those with lookups under their own names. Other relations of
    the nodes are tables."""
    queries: tuple[NetworkQuery, ...] = ()
    nodes: tuple[NetworkNode, ...] = ()
    feeds: tuple[Feed, ...] = ()
    next_id: int = 0
    """The number of the next new node."""

    @property
    def complete_from(self) -> dict[str, int]:
        """No event time is special for a join query: it sees the rows since its registration."""
        return {}

    @cached_property
    def query_by_id(self) -> dict[str, NetworkQuery]:
        return {query.id: query for query in self.queries}

    @cached_property
    def node_by_id(self) -> dict[str, NetworkNode]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def looked_up(self) -> dict[str, JoinInput]:
        """The relations with lookups that the queries read, by their names in the network."""
        inputs = (entry for query in self.queries for entry in query.every_input)
        return {entry.source: entry for entry in inputs if entry.lookups}

    @cached_property
    def feed_by_query(self) -> dict[str, Feed]:
        return {feed.query: feed for feed in self.feeds}

    @cached_property
    def stream_by_name(self) -> dict[str, StreamSchema]:
        return {stream.name: stream for stream in self.streams}

    def without(self, names: Collection[str], version: int) -> NetworkPlan:
        """The same nodes for fewer queries."""
        return replace(
            self,
            version=version,
            queries=tuple(query for query in self.queries if query.id not in names),
            feeds=tuple(feed for feed in self.feeds if feed.query not in names),
        )

    def as_version(self, version: int, order: Sequence[str]) -> NetworkPlan:
        """The same network under another number, with its queries in this order."""
        queries = tuple(self.query_by_id[name] for name in order)
        return replace(self, version=version, queries=queries)


def ordered(nodes: Collection[NetworkNode]) -> tuple[NetworkNode, ...]:
    """The nodes in an order in which parents come before their children."""
    return tuple(sorted(nodes, key=lambda node: (node.level, node.sequence, node.id)))
