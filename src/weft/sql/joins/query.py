"""Binds a filter or a join: inputs, predicates, result columns.

Refused: inputs that no condition connects (unless CROSS JOIN says that this is meant), more than fifteen
inputs, tables alone. Unshared: conditions that may raise, result columns of nested types. Tables that are
looked up for the rows of an input are no inputs of their own (`lookups`), and streams that a row must have a
match in, or none, are the query's partner (`partners`).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.algebra.network.query import JoinQuery
from weft.algebra.predicates.slots import renamed_by
from weft.algebra.query import OutputColumn
from weft.algebra.scalar import Opaque
from weft.algebra.types import is_ordered
from weft.sql.fallback import Unshared
from weft.sql.joins.bound import bound_block
from weft.sql.joins.conditions import with_names
from weft.sql.joins.connected import check_connected
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
        query.partner,
    )


def joined_inputs(sources: Sources, rows: Rows) -> Folded:
    """The inputs that FROM joins, and the conditions of FROM and WHERE."""
    _check_streams(sources, range(len(sources.read)))
    block = bound_block(sources, rows)
    _check_streams(sources, block.members)
    check_connected(sources, block)
    return folded(sources, block)


def _columns(leaf: Leaf, rows: Rows, sources: Sources) -> tuple[OutputColumn, ...]:
    columns: list[OutputColumn] = []
    taken: set[str] = set()
    selected = Projection(rows, named=not leaf.names).columns(leaf.select.items)
    sources.compare(leaf, [column for column, _ in selected])
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


def _check_streams(sources: Sources, slots: Sequence[int]) -> None:
    """Raises if some inputs are all tables."""
    if not sources.reads_stream(slots):
        first = sources.read[slots[0]]
        sources.inputs.stream(sources.source, first.relation, first.at)
