"""Binds a filter or a join: inputs, predicates, result columns.

Refused: inputs that no condition connects (unless CROSS JOIN says that this is meant), more than fifteen
inputs, tables alone. Unshared: conditions that may raise, result columns of nested types. Tables that are
looked up for the rows of an input are no inputs of their own (`lookups`).
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.algebra.network.query import JoinQuery
from weft.algebra.predicates.slots import renamed_by
from weft.algebra.query import OutputColumn
from weft.algebra.scalar import Opaque
from weft.algebra.types import is_ordered
from weft.sql.fallback import Unshared
from weft.sql.joins.bound import BoundBlock, BoundOptional, bound_block
from weft.sql.joins.conditions import with_names
from weft.sql.joins.evaluation import needs_spark
from weft.sql.joins.lookups import Folded, folded
from weft.sql.reading.syntax import SyntaxNode
from weft.sql.scopes.projection import Projection
from weft.sql.scopes.rows import Rows
from weft.sql.scopes.scope import Column
from weft.sql.scopes.sources import Sources
from weft.sql.scopes.unions import Leaf


def join_query(name: str, query_id: str, leaf: Leaf, sources: Sources) -> JoinQuery:
    """The bound form of a SELECT without aggregates."""
    rows = sources.rows(leaf.select, leaf.visible)
    columns = _columns(leaf, rows, sources)
    query = joined_inputs(sources, rows)
    return JoinQuery(
        query_id,
        name,
        sources.source.text,
        query.inputs,
        query.predicates,
        tuple(
            OutputColumn(column.name, column.type, renamed_by(column.value, query.rename))
            for column in columns
        ),
        leaf.distinct_in is not None,
    )


def joined_inputs(sources: Sources, rows: Rows) -> Folded:
    """The inputs that FROM joins, and the conditions of FROM and WHERE."""
    _check_streams(sources)
    block = bound_block(sources, rows)
    _check_connected(sources, block)
    return folded(sources, block)


def _columns(leaf: Leaf, rows: Rows, sources: Sources) -> tuple[OutputColumn, ...]:
    columns: list[OutputColumn] = []
    taken: set[str] = set()
    selected = Projection(rows, named=not leaf.names).columns(leaf.select.items)
    shaped = leaf.shaped([column for column, _ in selected], rows.exact)
    sources.shown = frozenset(column.value.sql for column in shaped)
    for column, (_, node) in zip(shaped, selected, strict=True):
        if column.name.lower() in taken:
            detail = f"two result columns are called '{column.name}'; give one of them an alias"
            raise rows.source.error("DUPLICATE_COLUMN", node.start, detail=detail)
        taken.add(column.name.lower())
        columns.append(_output(column, node))
    return tuple(columns)


def _output(column: Column, node: SyntaxNode) -> OutputColumn:
    """A result column. Spark evaluates it where the kernel cannot, and where it may raise, on the rows
    of the result alone."""
    if not is_ordered(column.type):
        raise Unshared(f"a result column of type {column.type} has no shared form", node.start)
    value = column.value.scalar
    if value is None or column.value.can_raise or needs_spark(value):
        value = Opaque(column.value.sql, (), column.type)
    return OutputColumn(column.name, column.type, with_names(value, column.reads, node))


def _check_streams(sources: Sources) -> None:
    """Raises if all inputs are tables."""
    if not any(sources.inputs.find_stream(entry.relation) for entry in sources.read):
        first = sources.read[0]
        sources.inputs.stream(sources.source, first.relation, first.at)


def _check_connected(sources: Sources, block: BoundBlock) -> None:
    """Raises if the inputs fall into parts that no condition connects. What a subquery in a condition
    reads belongs to the rows that it is asked of."""
    if block.predicates.never:
        return
    edges = [predicate.slots for predicate in block.predicates.predicates if predicate.slots]
    edges += [frozenset(pair) for pair in sources.crossed]
    for tables in _all_optional(block):
        if tables.kind == "mark" or tables.block.predicates.never:
            edges.append(tables.block.slots | {block.members[0]})
        edges += [predicate.slots for predicate in tables.block.predicates.predicates]
    part_of = list(range(len(sources.read)))
    for first, *others in (sorted(edge) for edge in edges if edge):
        for other in others:
            kept, gone = part_of[first], part_of[other]
            part_of = [kept if part == gone else part for part in part_of]
    for slot, entry in enumerate(sources.read):
        if part_of[slot] != part_of[0]:
            left = [entry.alias for entry, part in zip(sources.read, part_of) if part == part_of[0]]
            raise sources.source.error(
                "CARTESIAN", entry.at, left=", ".join(left), right=entry.alias
            )


def _all_optional(block: BoundBlock) -> Iterator[BoundOptional]:
    for tables in block.optional:
        yield tables
        yield from _all_optional(tables.block)
