"""Late inputs that the query network joins, as a query of the network.

A late plan joins the rows of the windows anew at every instant. Where few rows match it costs less to find each match once, when the last
of its rows comes: the network does that, beside all join queries with the same equality keys, and publishes the matches.

Which rows count in windows must not depend on it. The network admits a row by its own watermark, an aggregation join by the pane that the row
lies in. A row above its stream's watermark (*on time*) is admitted by both: only these are joined here. Matches with other rows, of which there
are few, the aggregation join finds by itself (`runtime/joinagg/matches`).

Bounds. Rows i and j count together only at an instant at which both are in their windows: t_i >= at - L_i and t_j < at. So t_j - t_i < L_i, for
sliding and tumbling windows; landmark windows have no bound, and are joined at instants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from weft.algebra.condition import Bound, Values
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.row_lifts import RowColumn, row_columns
from weft.algebra.joinagg.sources import source_of
from weft.algebra.network.bits import bit_of
from weft.algebra.network.query import BEFORE, JoinInput, JoinQuery
from weft.algebra.predicates import Linear, LiteralPredicate, OrPredicate, predicate_set
from weft.algebra.predicates.predicate_set import all_of, any_of
from weft.algebra.predicates.slots import column_name, renamed
from weft.algebra.query import OutputColumn, StreamSchema
from weft.algebra.scalar import Expression, Opaque, Ref, quote
from weft.algebra.types import BOOLEAN, TIMESTAMP

PUBLISHED_MATCHES: Final = "matches"
"""What the names of published matches end with."""
PASSED: Final = "passed"
"""The part of the network's commits that says how far matches go: by stream `watermarks`, `missed` and `events`, and by query `unseen`."""
TIME: Final = "#time"
_SIGN: Final = "&"
"""No name that users give begins so."""


def matches_id(query_id: str, slots: Sequence[int]) -> str:
    """The id of the network's query for the matches of some inputs of an aggregation join. Another plan may have others: these are another query.

    >>> matches_id("bids@12", (0, 2))
    '&0.2&bids@12'
    """
    return f"{_SIGN}{'.'.join(map(str, slots))}{_SIGN}{query_id}"


def is_matches(query_id: str) -> bool:
    """Whether an id is that of a query for matches."""
    return query_id.startswith(_SIGN)


def aggregation_of(query_id: str) -> str:
    """The aggregation join that matches are for."""
    return query_id.split(_SIGN, 2)[2]


def matching(
    query: AggregationJoin, slots: Sequence[int], streams: Mapping[str, StreamSchema]
) -> JoinQuery:
    """The rows of some inputs that match and are on time, with what the query needs of each: columns `slot/name`, and the event time.
    The conditions between these inputs read plain columns."""
    places = {slot: place for place, slot in enumerate(slots)}
    conditions = list(query.predicates.within(set(slots)).moved(places).predicates)
    columns: list[OutputColumn] = []
    computed: dict[str, Opaque] = {}
    for slot, place in places.items():
        entry, source = query.inputs[slot], source_of(query, slot)
        stream = streams[entry.relation]
        names = row_columns(source, stream)
        time = Ref(column_name(place, stream.time), TIMESTAMP)
        conditions += _on_time(stream, place)
        if entry.predicate is not None:
            conditions += predicate_set(_moved(entry.predicate, place)).predicates
        columns.append(OutputColumn(f"{slot}/{TIME}", TIMESTAMP, time))
        for made in {made.name: made for made in (*names.attributes, *names.partials)}.values():
            value = _value(made, source.columns, place)
            if isinstance(value, Opaque) and value.names:
                name = column_name(place, bit_of(value).name)
                computed[name] = value
                value = Ref(name, made.type)
            columns.append(OutputColumn(f"{slot}/{made.name}", made.type, value))
    conditions += _bounds(query, places, streams)
    query_id = matches_id(query.id, slots)
    return JoinQuery(
        query_id,
        f"@{query_id}-{PUBLISHED_MATCHES}",
        "",
        tuple(JoinInput(query.inputs[s].relation, query.inputs[s].alias) for s in slots),
        all_of(conditions),
        tuple(columns),
        members=(query_id,),
        title=f"matches of {query.name}",
        computed=tuple(computed.items()),
    )


def _on_time(stream: StreamSchema, place: int) -> Sequence[OrPredicate]:
    sql = f"({quote(BEFORE)} < {stream.time_micros})"
    names = tuple(sorted((BEFORE, stream.time)))
    return predicate_set(_moved(Expression(sql, BOOLEAN, names), place)).predicates


def _value(made: RowColumn, columns: frozenset[str], place: int) -> Ref | Opaque:
    """A value of an input's rows: one of its columns, or what Spark computes of them."""
    plain = next((name for name in columns if made.sql == quote(name)), None)
    if plain is not None:
        return Ref(column_name(place, plain), made.type)
    return _moved(Expression(made.sql, made.type, tuple(sorted(columns))), place)


def _moved(expression: Expression, place: int) -> Opaque:
    """An expression over a relation's columns as one over `place.column`."""
    text = Opaque(expression.sql, expression.columns, expression.type)
    moved = renamed(text, {name: column_name(place, name) for name in expression.columns})
    assert isinstance(moved, Opaque)
    return moved


def _bounds(
    query: AggregationJoin, places: Mapping[int, int], streams: Mapping[str, StreamSchema]
) -> Iterator[OrPredicate]:
    times = {
        column_name(place, streams[query.inputs[slot].relation].time): _length(query, slot)
        for slot, place in places.items()
    }
    for (one, of_one), (other, of_other) in combinations(sorted(times.items()), 2):
        subject = Linear(((1, Ref(one, TIMESTAMP)), (-1, Ref(other, TIMESTAMP))))
        apart = Values(((Bound(1 - of_one), Bound(of_other)),))
        yield any_of([LiteralPredicate(subject, apart)])


def _length(query: AggregationJoin, slot: int) -> int:
    window = query.inputs[slot].window
    if window is None or not window.length:
        raise ValueError(f"input {slot} of {query.name} has no window with an end")
    return window.length
