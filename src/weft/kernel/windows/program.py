"""A shared plan made ready for the kernel: what to keep open, what to compute for each group.

A *pool* is what the kernel keeps of a node's open fragments for the groups that read them alike:
as fine as the node wrote them, or coarser as level 2 makes them, once for every predicate of these
groups (a *member* of the pool). A group reads the pool of its node, and those of retired nodes that
its queries read before.

Queries of a group with equal aggregates and equal output form a shape; all their due windows
are computed together, so that the work per batch grows with windows and shapes, not queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from weft.algebra.aggregate import Aggregate
from weft.algebra.codec import digest
from weft.algebra.nodes.reads import (
    alike,
    distinct_keys,
    distinct_node,
    one_of_each,
    partials,
    partials_read,
    presence,
)
from weft.algebra.partial import SKETCHES, Partial
from weft.algebra.plan import Fragments, SharedPlan, base_of, pool_name
from weft.algebra.query import Query
from weft.algebra.scalar import Expression, Scalar, is_native
from weft.algebra.types import SqlType
from weft.kernel.fragments.members import Members, SignatureIndexes
from weft.kernel.windows.due import WindowSet


@dataclass(frozen=True)
class DistinctCount:
    """Where a count(distinct x) is computed: its pools, and the partial that counts x."""

    pools: tuple[str, ...]
    presence: Partial


@dataclass(frozen=True)
class Shape:
    """Queries of a group with the same aggregates and output."""

    aggregates: tuple[Aggregate, ...]
    inputs: tuple[tuple[Partial, ...] | DistinctCount, ...]
    having: Scalar | None
    outputs: tuple[Scalar, ...]
    types: tuple[SqlType, ...]
    key_types: tuple[SqlType, ...]
    queries: tuple[Query, ...]

    @property
    def bounds(self) -> SqlType:
        """The type of a window's start and end: one plan has windows of time, or of rows."""
        return self.queries[0].bounds

    @property
    def publishes(self) -> bool:
        """Whether its rows are partials for followers, and not results."""
        return self.queries[0].publishes

    @property
    def family(self) -> str:
        return published_family(self.types) if self.publishes else family(self.types)

    @property
    def native(self) -> bool:
        """Whether HAVING and projection need no Spark."""
        scalars = [*self.outputs] if self.having is None else [self.having, *self.outputs]
        return all(is_native(scalar) for scalar in scalars)


@dataclass(frozen=True)
class Pool:
    """Open fragments of a node, as they are or as the coarse `fragments` of a group."""

    name: str
    node: str
    fragments: Fragments | None
    queries: tuple[Query, ...]
    partials: frozenset[str]
    members: Members
    """The predicates of the queries."""

    @cached_property
    def indexes(self) -> SignatureIndexes:
        return SignatureIndexes(self.members)

    @cached_property
    def windows(self) -> WindowSet:
        return WindowSet(query.window for query in self.queries)


@dataclass(frozen=True)
class GroupProgram:
    """Weave groups that read the same pools: the shapes that are computed from them."""

    node: str
    pools: tuple[str, ...]
    members: Members
    indexes: SignatureIndexes
    several: bool
    """Whether any of the pools, those of distinct values and of retired nodes included, has rows of
    more than one member."""
    shapes: tuple[Shape, ...]

    @cached_property
    def member_of(self) -> dict[str, int]:
        """The member of each query."""
        places = {_text(predicate): number for number, predicate in self.members}
        return {
            query.id: places[_text(query.predicate)]
            for shape in self.shapes
            for query in shape.queries
        }


@dataclass(frozen=True)
class Program:
    """The kernel's form of a plan."""

    plan: SharedPlan
    groups: tuple[GroupProgram, ...]
    pools: Mapping[str, Pool]
    readers: Mapping[str, tuple[Query, ...]]
    """The queries that read each node, retired ones included."""

    def only(self, groups: Iterable[int]) -> Program:
        """The program of some groups, by their places, with the pools that they read."""
        chosen = tuple(self.groups[place] for place in groups)
        names = {name for group in chosen for name in _pools_of(group.pools, group.shapes)}
        pools = {name: pool for name, pool in self.pools.items() if name in names}
        return replace(self, groups=chosen, pools=pools)

    @cached_property
    def windows(self) -> Mapping[str, WindowSet]:
        """The windows that read each node, of nodes that have readers."""
        return {
            node: WindowSet(query.window for query in queries)
            for node, queries in self.readers.items()
            if queries
        }

    def families(self) -> dict[str, tuple[SqlType, ...]]:
        return {shape.family: shape.types for group in self.groups for shape in group.shapes}


SKETCHED = "#sketches"
PUBLISHED_FAMILY = "p_"
"""How families begin whose rows are published to followers, and given to no sink."""


def family(types: Iterable[SqlType]) -> str:
    """The name of the result family of queries with these output types."""
    return "f_" + digest(tuple(types))


def published_family(types: Iterable[SqlType]) -> str:
    """The name for queries with these output types whose rows are published."""
    return PUBLISHED_FAMILY + digest(tuple(types))


def compile_program(plan: SharedPlan) -> Program:
    """The program of a plan."""
    pools = _Pools(plan)
    together: dict[tuple[str, Fragments | None, tuple[str, ...]], list[Query]] = {}
    for group in plan.groups:
        for name in group.queries:
            query = plan.query_by_id[name]
            sources = pools.of(query, group.node, group.fragments)
            together.setdefault((group.node, group.fragments, sources), []).append(query)
    shapes = {reading: _shapes(queries, reading[1], pools) for reading, queries in together.items()}
    built = pools.built()
    groups = tuple(
        GroupProgram(
            node,
            sources,
            built[sources[0]].members,
            built[sources[0]].indexes,
            any(len(built[name].members) > 1 for name in _pools_of(sources, group_shapes)),
            group_shapes,
        )
        for (node, _, sources), group_shapes in shapes.items()
    )
    readers: dict[str, tuple[Query, ...]] = {
        node.id: () for node in plan.nodes if not node.intermediate
    }
    readers |= {old.node.id: () for old in plan.retired}
    for pool in built.values():
        present = {query.id for query in readers[pool.node]}
        readers[pool.node] += tuple(query for query in pool.queries if query.id not in present)
    return Program(plan, groups, built, readers)


def _pools_of(sources: tuple[str, ...], shapes: tuple[Shape, ...]) -> set[str]:
    """All pools that shapes are computed from."""
    distinct = (
        name
        for shape in shapes
        for inputs in shape.inputs
        if isinstance(inputs, DistinctCount)
        for name in inputs.pools
    )
    return {*sources, *distinct}


def _text(predicate: Expression | None) -> str | None:
    return None if predicate is None else predicate.sql


class _Pools:
    """Collects the pools that queries read, with what they need of them."""

    def __init__(self, plan: SharedPlan) -> None:
        self.plan = plan
        self._places: dict[str, tuple[str, Fragments | None]] = {}
        self._readers: dict[str, dict[str, Query]] = {}
        self._with_sketches: dict[tuple[int, ...], bool] = {}
        self._names: dict[tuple[str, Fragments | None], str] = {}
        self._retired: dict[tuple[str, str], list[str]] = {}
        for old in plan.retired:
            for name in old.queries:
                self._retired.setdefault((name, old.node.base), []).append(old.node.id)

    def of(self, query: Query, node: str, fragments: Fragments | None) -> tuple[str, ...]:
        """The pools in which a query finds its rows by the keys of a node."""
        places = [(node, fragments)]
        places += [(old, None) for old in self._retired.get((query.id, base_of(node)), ())]
        names = []
        for reading in places:
            if reading not in self._names:
                self._names[reading] = pool_name(*reading)
            name = self._names[reading] + (SKETCHED if self._sketched(query) else "")
            self._places[name] = reading
            self._readers.setdefault(name, {})[query.id] = query
            names.append(name)
        return tuple(names)

    def _sketched(self, query: Query) -> bool:
        """Whether a query needs sketches. They are expensive to combine, so queries that need them
        have pools of their own, and the predicates of all others do not combine sketches."""
        key = alike(query)
        if key not in self._with_sketches:
            carried = (
                partial
                for aggregate in query.aggregates
                if not aggregate.distinct
                for partial in partials(query, aggregate, self.plan.stream)
            )
            sketched = any(partial.combine.name in SKETCHES for partial in carried)
            self._with_sketches[key] = sketched
        return self._with_sketches[key]

    def built(self) -> dict[str, Pool]:
        """The pools. All number their members alike, so that a query has one place in all of
        the pools that it reads."""
        numbers: dict[str, dict[str | None, int]] = {}
        for names in self._together():
            number_of: dict[str | None, int] = {}
            for name in names:
                for query in self._readers[name].values():
                    number_of.setdefault(_text(query.predicate), len(number_of))
            numbers |= dict.fromkeys(names, number_of)
        return {name: self._pool(name, numbers[name]) for name in self._places}

    def _together(self) -> list[list[str]]:
        """The pools that have a query in common, directly or through other pools."""
        owner: dict[str, str] = {}
        sets: dict[str, list[str]] = {}
        for name, readers in self._readers.items():
            joined = [name]
            for root in {owner[query] for query in readers if query in owner}:
                joined += sets.pop(root)
            sets[name] = joined
            for pool in joined:
                owner |= dict.fromkeys(self._readers[pool], name)
        return list(sets.values())

    def _pool(self, name: str, numbers: dict[str | None, int]) -> Pool:
        node, fragments = self._places[name]
        queries = tuple(self._readers[name].values())
        predicates = {_text(query.predicate): query.predicate for query in queries}
        members = tuple((numbers[text], predicate) for text, predicate in predicates.items())
        needed = {
            partial.name
            for query in one_of_each(queries)
            for partial in partials_read(query, base_of(node), self.plan.stream)
        }
        return Pool(name, node, fragments, queries, frozenset(needed), members)


def _shapes(queries: list[Query], fragments: Fragments | None, pools: _Pools) -> tuple[Shape, ...]:
    members: dict[object, list[Query]] = {}
    inputs: dict[object, tuple[tuple[Partial, ...] | DistinctCount, ...]] = {}
    members_of_parts: dict[tuple[object, ...], list[Query]] = {}
    for query in queries:
        parts = (*alike(query), id(query.having), id(query.columns), query.publishes)
        same_parts = members_of_parts.get(parts)
        if same_parts is not None and not any(a.distinct for a in query.aggregates):
            same_parts.append(query)
            continue
        own_inputs = tuple(
            _inputs(query, aggregate, fragments, pools) for aggregate in query.aggregates
        )
        outputs = tuple(column.value for column in query.columns)
        key = (query.aggregates, query.having, outputs, own_inputs, query.publishes)
        members_of_parts[parts] = members.setdefault(key, [])
        members[key].append(query)
        inputs[key] = own_inputs
    return tuple(_shape(of_shape, inputs[key]) for key, of_shape in members.items())


def _shape(queries: list[Query], inputs: tuple[tuple[Partial, ...] | DistinctCount, ...]) -> Shape:
    first = queries[0]
    return Shape(
        aggregates=first.aggregates,
        inputs=inputs,
        having=first.having,
        outputs=tuple(column.value for column in first.columns),
        types=first.output_types,
        key_types=tuple(key.type for key in first.keys),
        queries=tuple(queries),
    )


def _inputs(
    query: Query, aggregate: Aggregate, fragments: Fragments | None, pools: _Pools
) -> tuple[Partial, ...] | DistinctCount:
    if not aggregate.distinct:
        return partials(query, aggregate, pools.plan.stream)
    keys = distinct_keys(query, aggregate)
    node = pools.plan.node_of(query, distinct_node(query, aggregate), keys)
    distinct_pools = pools.of(query, node, fragments)
    return DistinctCount(distinct_pools, presence(query, aggregate, pools.plan.stream))
