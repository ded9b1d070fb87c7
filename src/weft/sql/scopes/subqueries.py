"""Subqueries in conditions: `x IN (SELECT …)` and `EXISTS (SELECT …)`.

Each becomes a truth value of the row that it is asked of, as a column (`block.found`), so it may stand under
NOT and OR like any other condition. The value is NULL where SQL cannot know: of IN, if there is no equal
value but one that is NULL. Names inside may be those of the query around.

What a subquery over streams may stand under is decided later (`sql.joins.partners`). Declines subqueries
that group or aggregate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from weft.sql.fallback import Unshared
from weft.sql.reading.syntax import Exists, InSubquery
from weft.sql.scopes.block import Block, OptionalTables
from weft.sql.scopes.projection import Projection, aggregates
from weft.sql.scopes.rows import Rows
from weft.sql.scopes.unions import Visible
from weft.sql.typing.coercion import Typed
from weft.sql.typing.scalars import Typer

if TYPE_CHECKING:
    from weft.sql.scopes.sources import Sources


def mark(
    sources: Sources, visible: Mapping[str, Visible], node: InSubquery | Exists, outer: Rows
) -> Typed:
    """The truth value of a subquery that is asked of some rows."""
    words = "IN (SELECT …)" if isinstance(node, InSubquery) else "EXISTS (SELECT …)"
    if aggregates(node.query):
        reason = f"{words} with a subquery that groups or aggregates has no shared form"
        raise Unshared(reason, node.start)
    block = Block("mark")
    first = len(sources.read)
    with sources.within(block):
        rows = sources.rows(node.query, visible, outer)
        slots = range(first, len(sources.read))
        columns = Projection(rows).columns(node.query.items)
    compared = None
    if isinstance(node, InSubquery):
        if len(columns) != 1:
            detail = f"a subquery after IN has one column, not {len(columns)}"
            raise sources.source.error("INVALID_QUERY", node.start, detail=detail)
        compared = (_operand(node, outer), columns[0][0].value)
    tables = OptionalTables(slots, block, words, node.start, compared)
    sources.block.tables.append(tables)
    sources.marks[id(node)] = tables.found
    return tables.found


def _operand(node: InSubquery, rows: Rows) -> Typed:
    operand = Typer(rows, rows.ansi, opaque=True, exact=rows.exact).type(node.operand)
    if operand.type is None:
        rows.ask(operand.sql, node.operand)
        raise Unshared("IN (SELECT …) after a value that only Spark can compute", node.start)
    return operand
