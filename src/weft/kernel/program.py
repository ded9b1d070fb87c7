"""A shared plan made ready for the kernel: what to compute for each weave group.

Queries of a group with equal aggregates and equal output form a shape; all their due windows
are computed together, so that the work per batch grows with windows and shapes, not queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.algebra.aggregate import Aggregate
from weft.algebra.codec import digest
from weft.algebra.partial import Partial
from weft.algebra.plan import SharedPlan
from weft.algebra.query import Query, StreamSchema
from weft.algebra.scalar import Scalar, is_native
from weft.algebra.types import SqlType
from weft.optimizer.groupby.flat import distinct_node, nodes_of
from weft.optimizer.share import partials, presence


@dataclass(frozen=True)
class DistinctCount:
    """Where a count(distinct x) is computed: its node, and the partial that counts x."""

    node: str
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
    def family(self) -> str:
        return family(self.types)

    @property
    def native(self) -> bool:
        """Whether HAVING and projection need no Spark."""
        scalars = [*self.outputs] if self.having is None else [self.having, *self.outputs]
        return all(is_native(scalar) for scalar in scalars)


@dataclass(frozen=True)
class GroupProgram:
    """A weave group: the fragments it reads and the shapes it computes."""

    node: str
    predicate: str | None
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Program:
    """The kernel's form of a plan."""

    plan: SharedPlan
    groups: tuple[GroupProgram, ...]
    readers: dict[str, tuple[Query, ...]]
    """The queries that read each node."""

    def families(self) -> dict[str, tuple[SqlType, ...]]:
        return {shape.family: shape.types for group in self.groups for shape in group.shapes}


def family(types: Iterable[SqlType]) -> str:
    """The name of the result family of queries with these output types."""
    return "f_" + digest(tuple(types))


def compile_program(plan: SharedPlan) -> Program:
    """The program of a plan."""
    groups = []
    for group in plan.groups:
        members: dict[object, list[Query]] = {}
        for name in group.queries:
            query = plan.query_by_id[name]
            outputs = tuple(column.value for column in query.columns)
            members.setdefault((query.aggregates, query.having, outputs), []).append(query)
        shapes = tuple(_shape(queries, plan.stream) for queries in members.values())
        groups.append(GroupProgram(group.node, group.predicate, shapes))
    readers: dict[str, tuple[Query, ...]] = {node.id: () for node in plan.nodes}
    for query in plan.queries:
        for node in nodes_of(query):
            readers[node] += (query,)
    return Program(plan, tuple(groups), readers)


def _shape(queries: list[Query], stream: StreamSchema) -> Shape:
    first = queries[0]
    return Shape(
        aggregates=first.aggregates,
        inputs=tuple(_inputs(first, aggregate, stream) for aggregate in first.aggregates),
        having=first.having,
        outputs=tuple(column.value for column in first.columns),
        types=first.output_types,
        key_types=tuple(key.type for key in first.keys),
        queries=tuple(queries),
    )


def _inputs(
    query: Query, aggregate: Aggregate, stream: StreamSchema
) -> tuple[Partial, ...] | DistinctCount:
    if aggregate.distinct:
        node = distinct_node(query, aggregate)
        return DistinctCount(node, presence(query, aggregate, stream))
    return partials(query, aggregate, stream)
