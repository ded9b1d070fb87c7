"""Shared plans: first-level nodes, weave groups, result shapes.

A plan is immutable and has a version. State files name the version that wrote them; a
snapshot of every version that state still needs lives in the checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from weft.algebra.partial import Partial
from weft.algebra.query import Query, StreamSchema
from weft.algebra.scalar import Expression
from weft.algebra.types import SqlType
from weft.algebra.window import EdgeClass

WORD_BITS = 62
"""Predicates per signature column: bits of a bigint that are safe in every arithmetic."""


@dataclass(frozen=True, slots=True)
class Fragments:
    """Where level 1 ends its fragments.

    Either the next time of any edge class (`classes`), or, when these are many, the end of
    a base pane of length `pane`, which divides every edge (`offset` is a common residue).
    """

    classes: tuple[EdgeClass, ...] = ()
    pane: int = 0
    offset: int = 0

    def refines(self, edge: EdgeClass) -> bool:
        """Whether every time of the class is an end of a fragment."""
        if self.pane:
            return EdgeClass(self.pane, self.offset).contains(edge)
        return any(own.contains(edge) for own in self.classes)

    def end_of(self, time: int) -> int:
        """The end of the fragment that holds a time.

        >>> Fragments(classes=(EdgeClass(10, 0), EdgeClass(4, 1))).end_of(5)
        9
        """
        if self.pane:
            return time + self.pane - (time - self.offset) % self.pane
        return min(time + own.slide - (time - own.residue) % own.slide for own in self.classes)


@dataclass(frozen=True, slots=True)
class Node:
    """A first-level node: one `groupBy(fragment end, signature, keys)` over the stream.

    `id` names the keys and so is the same in every version that groups by them. The first
    `group_keys` keys are the group; a node for count(distinct x) has x after them.
    """

    id: str
    keys: tuple[Expression, ...]
    group_keys: int
    predicates: tuple[Expression, ...]
    keeps_all_rows: bool
    partials: tuple[Partial, ...]
    fragments: Fragments

    @property
    def key_types(self) -> tuple[SqlType, ...]:
        return tuple(key.type for key in self.keys)

    @property
    def words(self) -> int:
        """How many signature columns the predicates need."""
        return -(-len(self.predicates) // WORD_BITS)


@dataclass(frozen=True, slots=True)
class WeaveGroup:
    """Queries that read the same fragments: one node, one predicate."""

    node: str
    predicate: str | None
    queries: tuple[str, ...]


@dataclass(frozen=True)
class SharedPlan:
    """All shared queries of one stream as one plan.

    `complete_from` gives for a query the first event time from which every row is in state
    that it can use; it emits only windows that start there or later.
    """

    version: int
    stream: StreamSchema
    queries: tuple[Query, ...]
    nodes: tuple[Node, ...]
    groups: tuple[WeaveGroup, ...]
    complete_from: dict[str, int]

    @cached_property
    def query_by_id(self) -> dict[str, Query]:
        return {query.id: query for query in self.queries}

    @cached_property
    def node_by_id(self) -> dict[str, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The stream's columns in use, event time first."""
        used = {self.stream.time}
        for query in self.queries:
            used |= query_columns(query)
        order = [field.name for field in self.stream.fields]
        return tuple(sorted(used, key=order.index))


def query_columns(query: Query) -> set[str]:
    """The stream's columns that a query reads, apart from the event time."""
    used: set[str] = set()
    expressions = [*query.keys, *(argument for a in query.aggregates for argument in a.arguments)]
    expressions += [a.filter for a in query.aggregates if a.filter is not None]
    if query.predicate is not None:
        expressions.append(query.predicate)
    for expression in expressions:
        used.update(expression.columns)
    return used


def node_id(keys: tuple[Expression, ...], group_keys: int) -> str:
    """The name of the node that groups by these keys."""
    from weft.algebra.codec import digest

    return "n_" + digest((tuple(key.sql for key in keys), group_keys))
