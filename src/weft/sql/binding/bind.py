"""Binds a query: as a windowed aggregate, as filters and joins, as an aggregation join, or as a query that Spark
runs alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import ParamSpec, TypeVar

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import Field, Query, StreamSchema
from weft.errors import SqlError
from weft.sql.binding.alone import fallback
from weft.sql.binding.safety import Guard
from weft.sql.fallback import Fallback, Unshared
from weft.sql.joinagg.query import aggregation_join
from weft.sql.joinagg.windows import has_windows
from weft.sql.reading.relations import references
from weft.sql.reading.select import parse
from weft.sql.reading.source import Source, read
from weft.sql.reading.syntax import (
    Name,
    QueryExpression,
    Relation,
    Select,
    relations,
    walk,
)
from weft.sql.scopes.inputs import Inputs
from weft.sql.scopes.projection import aggregates
from weft.sql.scopes.sources import Sources
from weft.sql.scopes.unions import Choices
from weft.sql.sets.query import network_query
from weft.sql.typing.analyzer import Analyzer, Remembering, remembering
from weft.sql.typing.exact import Exact
from weft.sql.windowed.derived import derived_query, may_be_derived
from weft.sql.windowed.query import windowed_query

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
    tables: Mapping[str, tuple[Field, ...]] | Collection[str] = (),
    guard: Guard | None = None,
    time_zone: str | None = None,
    emit: str | None = None,
) -> Query | NetworkQuery | AggregationJoin | Fallback:
    """The bound query, or why weft cannot share it.

    `ansi`, `double_quoted_names` and `time_zone` are the session's settings; without its time zone,
    Spark evaluates what depends on it. `tables` are columns by the tables'
    names; joins with tables of which only the names are given are not shared. `guard` refuses unsafe
    queries that would run alone, None allows them. `emit` is for aggregation joins: `full` (as without it), or
    `changes`. Raises `SqlError` with the query's name, line and
    column for what is certainly an error.
    """
    inputs = Inputs(streams, tables)
    try:
        source = read(sql, double_quoted_names)
        try:
            query = _shallow(parse, source)
        except Unshared as unshared:
            return fallback(name, source, unshared, inputs, guard)
        asked = remembering(analyzer, ansi)
        _check_clauses(query, source, emit)

        def opened(choices: Choices) -> Sources:
            exact = Exact(time_zone)
            return Sources(source, inputs, asked, ansi, exact, choices=choices)

        try:
            if has_windows(query):
                plain = Sources(source, inputs, asked, ansi, windows=True)
                precise = Sources(source, inputs, asked, ansi, Exact(time_zone), windows=True)
                changes = emit == "changes"
                return _shallow(aggregation_join, name, query_id, query, plain, precise, changes)
            if isinstance(query, Select) and aggregates(query):
                exact = (
                    Exact(time_zone, overflow_raises=True) if _names_table(source, inputs) else None
                )
                sources = Sources(source, inputs, asked, ansi, exact)
                try:
                    return _shallow(windowed_query, name, query_id, query, sources)
                except Unshared as unshared:
                    if not may_be_derived(query, inputs, unshared):
                        raise
                _refuse_ranges(query, source)
                sources = Sources(source, inputs, asked, ansi, Exact(time_zone))
                return _shallow(derived_query, name, query_id, query, sources)
            return _shallow(network_query, name, query_id, query, opened)
        except Unshared as unshared:
            if isinstance(query, Select):
                _check_names(query, source, inputs, asked, ansi)
            return fallback(name, source, unshared, inputs, guard)
    except SqlError as error:
        raise error.in_query(name) from None


def _names_table(source: Source, inputs: Inputs) -> bool:
    """Whether the text reads a table, as far as names tell."""
    if not inputs.tables:
        return False
    return any(inputs.find_table(reference.name) is not None for reference in references(source))


def _check_clauses(query: QueryExpression, source: Source, emit: str | None) -> None:
    """Raises if what belongs to one kind of query is said of another."""
    if emit not in (None, "full", "changes"):
        raise source.error("BAD_EMIT", 0, detail=f"it cannot be {emit!r}")
    if has_windows(query):
        return
    if emit is not None:
        raise source.error("BAD_EMIT", 0, detail="this query is none, so leave it out")
    if query.instants is not None:
        detail = (
            "EVERY says how often an aggregation join is evaluated, and no input has a window such as "
            "[WINDOW 1 HOUR]; the slide of other windows stands in window(…) or behind SLIDE"
        )
        raise source.error("BAD_EVERY", query.instants.at, detail=detail)
    if not (isinstance(query, Select) and aggregates(query)):
        _refuse_ranges(query, source)


def _refuse_ranges(query: QueryExpression, source: Source) -> None:
    """Raises if a query has the window of an aggregate over one stream, and is none."""
    for relation in relations(query):
        if relation.bracket is not None:
            detail = (
                "[RANGE …] is the window of an aggregate over one stream; in a join that aggregates give "
                "every stream a window such as [WINDOW 1 HOUR], else write conditions on event times"
            )
            raise source.error("BAD_WINDOW", relation.bracket.at, detail=detail)


def _shallow(step: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """What the step gives; expressions too deep to walk are left to Spark."""
    try:
        return step(*arguments, **options)
    except RecursionError:
        raise Unshared("an expression is nested too deeply for weft") from None


def _check_names(
    select: Select, source: Source, inputs: Inputs, analyzer: Remembering, ansi: bool
) -> None:
    """Raises if an unshared query over one stream has a name that nothing in it can mean."""
    relation = select.source
    if not isinstance(relation, Relation) or relation.query is not None or select.definitions:
        return
    try:
        rows = Sources(source, inputs, analyzer, ansi).rows(select, {})
    except Unshared:
        return
    aliases = {item.alias.lower() for item in select.items if item.alias is not None}
    for root in select.roots():
        for node in walk(root):
            if isinstance(node, Name) and rows.find(node) is None:
                first = node.parts[0].lower()
                if first not in aliases and first not in ("window", "session_window"):
                    raise rows.unknown(node)
