"""Binds a windowed aggregate: window, lookups in tables, keys, predicate, aggregates, outputs.

The result is free of the text's spelling: queries that differ in case, spacing, quoting, qualification,
in subqueries that only rename, or in names of equal aggregates have equal keys, predicates and
aggregates.
"""

from __future__ import annotations

from dataclasses import replace

from weft.algebra import numbered
from weft.algebra.network.lookup import Lookup
from weft.algebra.plan import query_columns
from weft.algebra.query import OutputColumn, Query, StreamSchema, quote
from weft.algebra.scalar import Expression
from weft.algebra.types import BIGINT, TIMESTAMP, is_key
from weft.algebra.window import Window
from weft.sql.fallback import Unshared
from weft.sql.grouping.keys import group_node
from weft.sql.grouping.outputs import Outputs
from weft.sql.reading.syntax import (
    BracketWindow,
    FieldAccess,
    FromPart,
    Function,
    Join,
    Select,
)
from weft.sql.scopes.names import output_name
from weft.sql.scopes.projection import first_aggregate
from weft.sql.scopes.rows import Rows, where
from weft.sql.scopes.sources import Sources
from weft.sql.windowed.tables import looked_up
from weft.sql.windowed.times import WindowTime
from weft.sql.windowed.windows import bracket_window, window_of


class ReadsJoin(Unshared):
    """The query reads more than one stream: it may be one over a derived stream."""


def windowed_query(name: str, query_id: str, select: Select, sources: Sources) -> Query:
    """The bound form of a SELECT over one stream that groups by a window."""
    rows, stream, predicate = selected_rows(select, sources)
    bracket = _bracket(select.source, sources)
    lookups: tuple[Lookup, ...] = ()
    if sources.exact is not None:
        if bracket is not None and bracket.rows:
            raise Unshared("a window of rows beside tables has no shared form", bracket.at)
        found = looked_up(sources, rows, stream)
        rows, lookups, predicate = found.rows, found.lookups, found.predicate
        if predicate is not None and predicate.sql == "true":
            predicate = None
    query = grouped(name, query_id, select, rows, stream.name, bracket)
    query = replace(query, predicate=predicate, lookups=lookups)
    problem = numbered.problem(stream, query_columns(query)) if query.counts_rows else None
    if problem is not None and bracket is not None:
        raise rows.source.error("UNSUPPORTED", bracket.at, detail=problem)
    return query


def selected_rows(select: Select, sources: Sources) -> tuple[Rows, StreamSchema, Expression | None]:
    """The rows that a SELECT reads, their stream, and the condition of WHERE where no table is read: it does not
    depend on what is selected or grouped."""
    rows = sources.rows(select, {})
    stream = _only_stream(sources)
    rows.time = stream.time
    if sources.exact is not None:
        return rows, stream, None
    predicate = where([(condition.rows, condition.node) for condition in sources.conditions])
    return rows, stream, None if predicate is not None and predicate.sql == "true" else predicate


def grouped(
    name: str,
    query_id: str,
    select: Select,
    rows: Rows,
    stream: str,
    bracket: BracketWindow | None = None,
) -> Query:
    """Window, keys, aggregates and outputs of a SELECT, over all rows of a stream."""
    if select.distinct_at is not None:
        raise Unshared(
            "SELECT DISTINCT with aggregates has no shared form",
            select.distinct_at,
            "GROUP BY the columns and a window instead",
        )
    window, keys = _grouping(select, bracket, rows)
    counts_rows = bracket is not None and bracket.rows
    outputs = Outputs(rows, keys, WindowTime(rows, window, counts_rows))
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
    return Query(
        query_id,
        name,
        rows.source.text,
        numbered.numbered_name(stream) if counts_rows else stream,
        window,
        keys,
        None,
        tuple(outputs.aggregates),
        having,
        tuple(columns),
        BIGINT if counts_rows else TIMESTAMP,
    )


def _only_stream(sources: Sources) -> StreamSchema:
    """The stream that the query reads, beside tables at most."""
    read = [entry for entry in sources.read if sources.inputs.find_table(entry.relation) is None]
    first, *others = read or sources.read[:1]
    if others:
        reason = "a windowed aggregate over a join of streams has no shared form"
        raise ReadsJoin(reason, others[0].at)
    return sources.inputs.stream(sources.source, first.relation, first.at)


def _bracket(part: FromPart, sources: Sources) -> BracketWindow | None:
    """The window in brackets, which stands behind the stream."""
    if isinstance(part, Join):
        left, right = _bracket(part.left, sources), _bracket(part.right, sources)
        if left is not None and right is not None:
            raise sources.source.error("SEVERAL_WINDOWS", right.at)
        return left or right
    if part.bracket is not None and sources.inputs.find_table(part.name) is not None:
        detail = f"'{part.name}' is a table, and has no windows"
        raise sources.source.error("BAD_WINDOW", part.bracket.at, detail=detail)
    return part.bracket


def _grouping(
    select: Select, bracket: BracketWindow | None, rows: Rows
) -> tuple[Window, tuple[Expression, ...]]:
    windows: list[tuple[Window, int]] = []
    if bracket is not None:
        windows.append((bracket_window(bracket), bracket.at))
    keys: dict[str, Expression] = {}
    for written in select.group:
        node = group_node(written, select, rows)
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
        if window != windows[0][0] or bracket is not None:
            raise rows.source.error("SEVERAL_WINDOWS", at)
    if not windows:
        raise _no_window(select, rows, keys)
    return windows[0][0], tuple(keys.values())


def _no_window(select: Select, rows: Rows, keys: dict[str, Expression]) -> Exception:
    """Why a query without a window is an error, or is left to Spark."""
    if quote(rows.time) in keys:
        return Unshared(
            "grouping by the event time itself has no shared form",
            advice=f"group by window({rows.time}, …)",
        )
    for root in select.roots():
        aggregate = first_aggregate(root)
        if aggregate is not None or select.group:
            at = select.group_at if select.group_at is not None else root.start
            if select.group_at is None and aggregate is not None:
                at = aggregate.start
            example = f"window({rows.time}, '1 minute')"
            return rows.source.error("NO_WINDOW", at, detail=f"add {example}")
    return rows.source.error("NO_WINDOW", 0, detail=f"add window({rows.time}, '1 minute')")
