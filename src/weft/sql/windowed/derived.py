"""Binds a windowed aggregate over a join of streams: the join as a derived stream, the aggregate over it.

FROM and WHERE become inputs and conditions as for a join without aggregates (`sql.joins`); group keys and
aggregates are bound over the columns of the inputs, `slot.column`. Then the inputs are brought into an
order that does not depend on how the query writes them, so that queries over the same join have the same
derived stream.

Declines what a join declines; a window over anything but the event time of one of the streams; a join of
one stream with tables; and streams whose event times no condition bounds, in either direction: no window
of them could be closed, or called complete (`weft.algebra.network.derived`).
"""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from dataclasses import replace

from weft.algebra.network.derived import DerivedQuery, DerivedStream, canonical_order
from weft.algebra.plan import query_columns
from weft.algebra.predicates.slots import Rename, column_name, moved_name, renamed, slot_of
from weft.algebra.query import Field, Query, quote
from weft.algebra.scalar import Expression, Opaque
from weft.algebra.types import BOOLEAN, is_ordered
from weft.sql.fallback import Unshared
from weft.sql.grouping.keys import group_node
from weft.sql.joins.lookups import Folded
from weft.sql.joins.query import joined_inputs
from weft.sql.reading.syntax import FromPart, Function, Join, Name, Select, SyntaxNode
from weft.sql.scopes.inputs import Inputs
from weft.sql.scopes.rows import Rows
from weft.sql.scopes.sources import Sources
from weft.sql.windowed.query import ReadsJoin, grouped


def may_be_derived(select: Select, inputs: Inputs, unshared: Unshared) -> bool:
    """Whether a query that does not read one stream alone may be one over a join of streams."""
    return isinstance(unshared, ReadsJoin) or _streams(select.source, inputs) > 1


def _streams(part: FromPart, inputs: Inputs) -> int:
    if isinstance(part, Join):
        return _streams(part.left, inputs) + _streams(part.right, inputs)
    return int(part.query is None and inputs.find_stream(part.name) is not None)


def derived_query(name: str, query_id: str, select: Select, sources: Sources) -> DerivedQuery:
    """The bound form of a SELECT over a join of streams that groups by a window."""
    rows = sources.rows(select, {})
    times = {
        quote(column_name(slot, time))
        for slot, entry in enumerate(sources.read)
        if (time := _event_time(sources.inputs, entry.relation))
    }
    if len(times) < 2:
        at = sources.read[-1].at
        raise Unshared(
            "a windowed aggregate over a join of fewer than two streams has no shared form", at
        )
    # Spark evaluates what the aggregates read, so the rules of exact arithmetic do not matter here.
    values = Rows(sources.source, rows.scope, sources.analyzer, sources.ansi)
    values.time = _window_time(select, values, times)
    query = grouped(name, query_id, select, values, "")
    joined = joined_inputs(sources, rows)
    if joined.partner is not None:
        raise Unshared("a windowed aggregate over rows with or without a match in a stream")
    stream, rename = _canonical(sources.inputs, joined, values.time)
    if stream.unbounded is not None:
        raise Unshared(
            "a windowed aggregate over a join without bounds on event times",
            advice=f"add a bound such as {stream.unbounded}",
        )
    fields = _fields(sources, query_columns(query) | {values.time}, rename)
    query = replace(_renamed(query, rename), stream=stream.name)
    values_of = {part.name: getattr(query, part.name) for part in dataclass_fields(query)}
    return DerivedQuery(**values_of, derived=stream, fields=fields)


def _event_time(inputs: Inputs, relation: str) -> str:
    """The column of a stream's event time; empty for tables."""
    stream = inputs.find_stream(relation)
    return stream.time if stream is not None else ""


def _window_time(select: Select, rows: Rows, times: set[str]) -> str:
    """The event time that the query's window is over, as `slot.column`."""
    found: list[str] = []
    for written in select.group:
        node = group_node(written, select, rows)
        if isinstance(node, Function) and node.name == "window" and node.arguments:
            found.append(_event_time_in(node.arguments[0], rows, times))
            if found[-1] != found[0]:
                raise rows.source.error("SEVERAL_WINDOWS", written.start)
    if not found:
        raise Unshared(
            "an aggregate over a join needs a window of event time to have a shared form"
        )
    return found[0]


def _event_time_in(node: SyntaxNode, rows: Rows, times: set[str]) -> str:
    meaning = rows.find(node) if isinstance(node, Name) else None
    if meaning is not None and not meaning.path and meaning.column.value.sql in times:
        return meaning.column.reads[0]
    raise Unshared("a window over something else than a stream's event time", node.start)


def _canonical(inputs: Inputs, joined: Folded, time: str) -> tuple[DerivedStream, Rename]:
    """The derived stream of a join, and the names of its columns."""
    slot = slot_of(joined.rename(time))
    order = canonical_order(joined.inputs, joined.predicates, slot)
    ordered = sorted(enumerate(joined.inputs), key=lambda pair: order[pair[0]])
    stream = DerivedStream(
        tuple(entry for _, entry in ordered),
        joined.predicates.moved(order),
        tuple(_event_time(inputs, entry.relation) for _, entry in ordered),
        order[slot],
    )
    return stream, lambda name: stream.column(moved_name(joined.rename(name), order))


def _fields(sources: Sources, names: set[str], rename: Rename) -> tuple[Field, ...]:
    """The columns that the query reads, under the names that the derived stream has for them."""
    types = {base.name: base.type for base in sources.base}
    fields: list[Field] = []
    for name in sorted(names, key=rename):
        type_ = types.get(name, BOOLEAN)  # whether a table had a match
        if not is_ordered(type_):
            raise Unshared(f"a join with a column of type {type_} has no shared form")
        fields.append(Field(rename(name), type_))
    return tuple(fields)


def _renamed(query: Query, rename: Rename) -> Query:
    """The same keys and aggregates over columns of other names."""
    return replace(
        query,
        keys=tuple(_renamed_in(key, rename) for key in query.keys),
        aggregates=tuple(
            replace(
                aggregate,
                arguments=tuple(_renamed_in(argument, rename) for argument in aggregate.arguments),
                filter=aggregate.filter and _renamed_in(aggregate.filter, rename),
            )
            for aggregate in query.aggregates
        ),
    )


def _renamed_in(expression: Expression, rename: Rename) -> Expression:
    names = {name: rename(name) for name in expression.columns}
    value = renamed(Opaque(expression.sql, expression.columns, expression.type), names)
    assert isinstance(value, Opaque)
    return replace(expression, sql=value.sql, columns=value.names)
