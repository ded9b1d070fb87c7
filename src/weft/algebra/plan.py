"""Shared plans: first-level nodes, weave groups, result shapes.

A plan is immutable and has a version. State files name the version that wrote them; a
snapshot of every version that state still needs lives in the checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from weft.algebra.frozen import FrozenMapping
from weft.algebra.network.lookup import Lookup, columns_read, tables_of
from weft.algebra.nodes.selectors import selectors
from weft.algebra.partial import Partial
from weft.algebra.query import Query, StreamSchema
from weft.algebra.scalar import Expression
from weft.algebra.signature import NO_SIGNATURE, Signature
from weft.algebra.types import SqlType
from weft.algebra.window import EdgeClass


@dataclass(frozen=True, slots=True)
class Fragments:
    """Where level 1 ends its fragments.

    Either the next time of any edge class (`classes`), or, when these are many, the end of
    a base pane of length `pane`, which divides every edge (`offset` is a common residue).
    """

    classes: tuple[EdgeClass, ...] = ()
    pane: int = 0
    offset: int = 0

    @property
    def edge_classes(self) -> tuple[EdgeClass, ...]:
        """The classes whose times are the ends: those given, or that of the pane."""
        return (EdgeClass(self.pane, self.offset),) if self.pane else self.classes

    def refines(self, edge: EdgeClass) -> bool:
        """Whether every time of the class is an end of a fragment."""
        return any(end.contains(edge) for end in self.edge_classes)

    @property
    def digest(self) -> str:
        from weft.algebra.codec import digest

        return digest(self)

    def end_of(self, time: int) -> int:
        """The end of the fragment that holds a time.

        >>> Fragments(classes=(EdgeClass(10, 0), EdgeClass(4, 1))).end_of(5)
        9
        """
        return min(time + e.slide - (time - e.residue) % e.slide for e in self.edge_classes)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the aggregate tree: one `groupBy(fragment end, signature, keys)`.

    Over the stream's rows at the first level, else over the fragments of its `parent`. `id` names
    the keys and `selectors`, the attributes that its predicates select by, and so is the same in
    every version that has such a node. Its rows are those of the stream after its `lookups`, which the id
    names, too. The first `group_keys` keys are the group; a node for count(distinct x) has x after them. A node with `members` is for these queries only (TwoOps: one
    sub-aggregation per weave group), and its id names them as well.

    An `intermediate` is read by no query, only by other nodes; its fragments live for one step.
    """

    id: str
    keys: tuple[Expression, ...]
    group_keys: int
    predicates: tuple[Expression, ...]
    keeps_all_rows: bool
    partials: tuple[Partial, ...]
    fragments: Fragments
    members: tuple[str, ...] = ()
    selectors: tuple[str, ...] = ()
    signature: Signature = NO_SIGNATURE
    parent: str | None = None
    intermediate: bool = False
    lookups: tuple[Lookup, ...] = ()

    @property
    def base(self) -> str:
        """What the ids of all nodes with these keys have in common."""
        return base_of(self.id)

    @property
    def key_types(self) -> tuple[SqlType, ...]:
        return tuple(key.type for key in self.keys)


@dataclass(frozen=True, slots=True)
class WeaveGroup:
    """Queries that read the same shards of the same fragments of a node.

    `fragments` are the group's coarse fragments, which level 2 makes of the node's (the
    group-mapping table of the TriOps paper is the list of these); None: the node's own.
    """

    node: str
    predicate: str | None
    queries: tuple[str, ...]
    fragments: Fragments | None = None


def pool_name(node: str, fragments: Fragments | None) -> str:
    """The name of a node's open fragments as some groups read them: as they are, or coarser."""
    return node if fragments is None else f"{node}/{fragments.digest}"


@dataclass(frozen=True, slots=True)
class Retired:
    """A node that is written no more, and the queries whose open windows still read it."""

    node: Node
    queries: tuple[str, ...]


PASS_NAMES = ("predicates", "windows", "groupby")
"""The passes of the optimizer in their order (`optimizer.gtweave.PASSES`); each can be switched off."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the weave groups were chosen: the optimizer, its cost model, and what they knew.

    `rate` is in rows per second of event time, `keys` in groups per fragment, `step` in seconds
    of event time per micro-batch: measured, or assumed before anything is.
    """

    optimizer: str = "shared"
    model: str = "calibrated"
    rate: float = 1000.0
    keys: float = 100.0
    step: float = 10.0
    measured: bool = False
    passes: tuple[str, ...] = PASS_NAMES
    """The passes that run, or, in a plan, those that have run."""
    allocator: str = "native"
    memory_budget: int | None = None
    """Groups per fragment that all intermediates together may hold; None is no bound."""


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
    complete_from: Mapping[str, int]
    retired: tuple[Retired, ...] = ()
    sharing: Sharing = Sharing()

    def __post_init__(self) -> None:
        if not isinstance(self.complete_from, FrozenMapping):
            object.__setattr__(self, "complete_from", FrozenMapping(self.complete_from))

    @cached_property
    def query_by_id(self) -> dict[str, Query]:
        return {query.id: query for query in self.queries}

    @cached_property
    def node_by_id(self) -> dict[str, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {query.id: position for position, query in enumerate(self.queries)}

    def position_of(self, query: Query) -> int:
        """The position of a query among the plan's queries."""
        return self._positions[query.id]

    @cached_property
    def _member_nodes(self) -> dict[tuple[str, str], str]:
        return {(node.base, name): node.id for node in self.nodes for name in node.members}

    @cached_property
    def kept_reads(self) -> dict[tuple[int, ...], tuple[Query, frozenset[str]]]:
        """The nodes that queries read, as far as somebody has asked (`algebra.nodes.reads.nodes_read`)."""
        return {}

    @property
    def has_member_nodes(self) -> bool:
        """Whether some nodes are for some queries only."""
        return bool(self._member_nodes)

    def node_of(self, query: Query, base: str, keys: tuple[Expression, ...]) -> str:
        """The id of the node that holds a query's rows by the keys that `base` names."""
        member_node = self._member_nodes.get((base, query.id))
        if member_node is not None:
            return member_node
        if "predicates" not in self.sharing.passes:
            return base
        return base + selected(selectors(query.predicate, keys))

    def without(self, names: Collection[str], version: int) -> SharedPlan:
        """The same nodes for fewer queries: what they have computed serves the others on."""
        groups = [
            replace(group, queries=tuple(name for name in group.queries if name not in names))
            for group in self.groups
        ]
        retired = [
            replace(old, queries=tuple(name for name in old.queries if name not in names))
            for old in self.retired
        ]
        return replace(
            self,
            version=version,
            queries=tuple(query for query in self.queries if query.id not in names),
            groups=tuple(group for group in groups if group.queries),
            complete_from={k: v for k, v in self.complete_from.items() if k not in names},
            retired=tuple(old for old in retired if old.queries),
        )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The stream's columns in use, event time first."""
        used = {self.stream.time}.union(*columns_by_query(self.queries))
        order = [field.name for field in self.stream.fields]
        return tuple(sorted(used, key=order.index))

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The tables that queries look up rows in."""
        lookups = {id(query.lookups): query for query in self.queries if query.lookups}
        return tuple(sorted({table for query in lookups.values() for table in query_tables(query)}))


def query_columns(query: Query) -> set[str]:
    """The stream's columns that a query reads, apart from the event time."""
    used: set[str] = set()
    expressions = [*query.keys, *(argument for a in query.aggregates for argument in a.arguments)]
    expressions += [a.filter for a in query.aggregates if a.filter is not None]
    if query.predicate is not None:
        expressions.append(query.predicate)
    for expression in expressions:
        used.update(expression.columns)
    if not query.lookups:
        return used
    every_column = columns_read(query.stream, query.lookups, used)
    return {column for relation, column in every_column if relation == query.stream}


def columns_by_query(queries: Iterable[Query]) -> Iterator[set[str]]:
    """`query_columns` of each, computed once for queries that consist of the same objects."""
    kept: dict[tuple[int, ...], set[str]] = {}
    for query in queries:
        parts = (id(query.keys), id(query.predicate), id(query.aggregates), id(query.lookups))
        if parts not in kept:
            kept[parts] = query_columns(query)
        yield kept[parts]


def query_tables(query: Query) -> tuple[str, ...]:
    """The tables that a query looks up rows in, each once."""
    return tuple(dict.fromkeys(tables_of(query.lookups)))


def node_id(keys: tuple[Expression, ...], group_keys: int, lookups: tuple[Lookup, ...] = ()) -> str:
    """The name of the node that groups rows with these lookups by these keys."""
    named: tuple[Hashable, ...] = (tuple(key.sql for key in keys), group_keys)
    return "n_" + _digest((*named, lookups_digest(lookups)) if lookups else named)


def lookups_digest(lookups: tuple[Lookup, ...]) -> str:
    """A short name of lookups, for the ids of nodes; empty if there are none."""
    return _digest(lookups) if lookups else ""


_SUFFIX = re.compile(r"[/.~#]")


def selected(attributes: tuple[str, ...]) -> str:
    """How a node's id names its selectors."""
    return f"~{_digest(attributes)}" if attributes else ""


def member_id(name: str, members: tuple[str, ...]) -> str:
    """The name of a node for some queries only, or for all of them if none are named."""
    return f"{name}.{_digest(members)}" if members else name


@lru_cache(maxsize=4096)
def _digest(value: Hashable) -> str:
    """A digest that is asked for again and again while a plan is drawn and checked."""
    from weft.algebra.codec import digest

    return digest(value)


def base_of(node: str) -> str:
    """The part of a node's or a pool's name that stands for its keys.

    >>> base_of("n_12~78.34"), base_of("n_12"), base_of("n_12/56#sketches")
    ('n_12', 'n_12', 'n_12')
    """
    return _SUFFIX.split(node, maxsplit=1)[0]
