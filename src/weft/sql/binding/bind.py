"""Binds a query: its names to the stream's columns, its expressions to types.

The result is free of the text's spelling: queries that differ in case, spacing, quoting,
qualification or in names of equal aggregates have equal keys, predicates and aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import ParamSpec, TypeVar

from weft.algebra import numbered
from weft.algebra.plan import query_columns
from weft.algebra.query import OutputColumn, Query, StreamSchema
from weft.algebra.scalar import Expression
from weft.algebra.types import BIGINT, BOOLEAN, TIMESTAMP, is_key
from weft.algebra.window import Window
from weft.errors import SqlError
from weft.sql.binding.alone import fallback
from weft.sql.binding.analyzer import Analyzer, remembering
from weft.sql.binding.coercion import number
from weft.sql.binding.inputs import Inputs
from weft.sql.binding.names import output_name
from weft.sql.binding.outputs import Outputs
from weft.sql.binding.rows import Rows, columns_of
from weft.sql.binding.safety import Guard
from weft.sql.binding.windows import bracket_window, window_of
from weft.sql.fallback import Fallback, Unshared
from weft.sql.reading.functions import AGGREGATES, UNSHARED_AGGREGATES
from weft.sql.reading.select import parse
from weft.sql.reading.source import read
from weft.sql.reading.syntax import FieldAccess, Function, Name, Number, Select, SyntaxNode, walk

P = ParamSpec("P")
T = TypeVar("T")


def bind(
    name: str,
    sql: str,
    streams: Mapping[str, StreamSchema],
    analyzer: Analyzer,
    *,
    query_id: str,
    ansi: bool = True,
    double_quoted_names: bool = False,
    tables: Collection[str] = (),
    guard: Guard | None = None,
) -> Query | Fallback:
    """The bound query, or why weft cannot share it.

    `ansi` and `double_quoted_names` are the session's settings; `guard` refuses unsafe queries
    that would run alone, None allows them. Raises `SqlError` with the query's name, line and
    column for what is certainly an error.
    """
    inputs = Inputs(streams, tables)
    try:
        source = read(sql, double_quoted_names)
        try:
            select = _shallow(parse, source)
        except Unshared as unshared:
            return fallback(name, source, unshared, inputs, guard)
        schema = inputs.stream(source, select.relation.name, select.relation.at)
        qualifier = (select.relation.alias or schema.name).lower()
        rows = Rows(source, schema, qualifier, remembering(analyzer, ansi), ansi)
        try:
            return _shallow(_query, name, query_id, select, rows)
        except Unshared as unshared:
            _check_names(select, rows)
            return fallback(name, source, unshared, inputs, guard)
    except SqlError as error:
        raise error.in_query(name) from None


def _shallow(step: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """What the step gives; expressions too deep to walk are left to Spark."""
    try:
        return step(*arguments, **options)
    except RecursionError:
        raise Unshared("an expression is nested too deeply for weft") from None


def _query(name: str, query_id: str, select: Select, rows: Rows) -> Query:
    window, keys = _grouping(select, rows)
    predicate = None
    if select.where is not None:
        predicate = rows.condition(select.where, "in WHERE")
        if predicate.type != BOOLEAN:
            raise rows.source.error(
                "TYPE_MISMATCH",
                select.where.start,
                detail=f"WHERE needs a boolean, not {predicate.type}",
            )
        if predicate.sql == "true":
            predicate = None
    counts_rows = select.bracket is not None and select.bracket.rows
    outputs = Outputs(rows, window, keys, counts_rows)
    columns: list[OutputColumn] = []
    taken: set[str] = set()
    for item in select.items:
        value, type_ = outputs.select(item.node, item.alias)
        label = output_name(item, outputs)
        if label.lower() in taken:
            raise rows.source.error(
                "DUPLICATE_COLUMN",
                item.node.start,
                detail=f"two result columns are called '{label}'; give one of them an alias",
            )
        taken.add(label.lower())
        columns.append(OutputColumn(label, type_, value))
    having = None if select.having is None else outputs.having(select.having)
    query = Query(
        query_id,
        name,
        rows.source.text,
        numbered.numbered_name(rows.stream.name) if counts_rows else rows.stream.name,
        window,
        keys,
        predicate,
        tuple(outputs.aggregates),
        having,
        tuple(columns),
        BIGINT if counts_rows else TIMESTAMP,
    )
    problem = numbered.problem(rows.stream, query_columns(query)) if counts_rows else None
    if problem is not None and select.bracket is not None:
        raise rows.source.error("UNSUPPORTED", select.bracket.at, detail=problem)
    return query


def _grouping(select: Select, rows: Rows) -> tuple[Window, tuple[Expression, ...]]:
    windows: list[tuple[Window, int]] = []
    if select.bracket is not None:
        windows.append((bracket_window(select.bracket), select.bracket.at))
    keys: dict[str, Expression] = {}
    for written in select.group:
        node = _group_node(written, select, rows)
        if isinstance(node, Function) and node.name == "window":
            windows.append((window_of(node, rows), written.start))
            continue
        if isinstance(node, FieldAccess) and isinstance(node.base, Function):
            if node.base.name == "window":
                raise Unshared(
                    "grouping by a bound of the window has no shared form",
                    node.start,
                    f"GROUP BY window(…), and select window.{node.name}",
                )
        key = rows.expression(node, "in GROUP BY")
        if not is_key(key.type):
            raise Unshared(f"grouping by a {key.type} has no shared form", written.start)
        keys.setdefault(key.sql, key)
    for window, at in windows[1:]:
        if window != windows[0][0] or select.bracket is not None:
            raise rows.source.error("SEVERAL_WINDOWS", at)
    if not windows:
        raise _no_window(select, rows, keys)
    return windows[0][0], tuple(keys.values())


def _group_node(node: SyntaxNode, select: Select, rows: Rows) -> SyntaxNode:
    """The expression that an ordinal or an alias in GROUP BY stands for."""
    if isinstance(node, Number):
        _, position = number(node.text)
        if not isinstance(position, int) or isinstance(position, bool):
            return node
        if not 1 <= position <= len(select.items):
            detail = f"GROUP BY {position}, but the select list has {len(select.items)} columns"
            raise rows.source.error("INVALID_QUERY", node.start, detail=detail)
        item = select.items[position - 1].node
        if _first_aggregate(item) is not None:
            detail = f"GROUP BY {position} is an aggregate"
            raise rows.source.error("INVALID_QUERY", node.start, detail=detail)
        return item
    if isinstance(node, Name) and rows.find(node) is None and len(node.parts) == 1:
        alias = node.parts[0].lower()
        for candidate in select.items:
            if candidate.alias is not None and candidate.alias.lower() == alias:
                return candidate.node
    return node


def _first_aggregate(node: SyntaxNode) -> Function | None:
    for part in walk(node):
        if isinstance(part, Function):
            if part.name in AGGREGATES or part.name in UNSHARED_AGGREGATES:
                return part
    return None


def _no_window(select: Select, rows: Rows, keys: dict[str, Expression]) -> Exception:
    """Why a query without a window is an error, or is left to Spark."""
    time = columns_of(rows.stream)[rows.stream.time.lower()][1].sql
    if time in keys:
        return Unshared(
            "grouping by the event time itself has no shared form",
            advice=f"group by window({rows.stream.time}, …)",
        )
    for root in select.roots():
        aggregate = _first_aggregate(root)
        if aggregate is not None or select.group:
            at = select.group_at if select.group_at is not None else root.start
            if select.group_at is None and aggregate is not None:
                at = aggregate.start
            example = f"window({rows.stream.time}, '1 minute')"
            return rows.source.error("NO_WINDOW", at, detail=f"add {example}")
    return Unshared("a query without aggregates has nothing to share")


def _check_names(select: Select, rows: Rows) -> None:
    """Raises if an unshared query has a name that nothing in it can mean."""
    aliases = {item.alias.lower() for item in select.items if item.alias is not None}
    for root in select.roots():
        for node in walk(root):
            if isinstance(node, Name) and rows.find(node) is None:
                first = node.parts[0].lower()
                if first not in aliases and first not in ("window", "session_window"):
                    raise rows.unknown(node)
