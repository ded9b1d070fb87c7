"""Aggregation sets as windowed aggregates of their streams (AggJoin, definition 3 and rule 1).

The aggregation set of an early input is grouped by the attributes that the join, the groups and later conditions read, and has
count(*) and the partials of the query's aggregates on this input. Its panes are a windowed aggregate with tumbling windows,
hidden in the stream's shared plan: it shares fragments, signatures and the aggregate tree with all other queries there.
Its rows are partials, published to the follower that joins them. Equal sets of several queries have the same id, so they are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.algebra import codec
from weft.algebra.aggregate import Aggregate, lift
from weft.algebra.joinagg.query import AggregationInput, AggregationJoin
from weft.algebra.partial import Partial
from weft.algebra.query import OutputColumn, Query, StreamSchema
from weft.algebra.scalar import Ref
from weft.algebra.types import TIMESTAMP, SqlType
from weft.algebra.window import Window

PANE_END: Final = "end"
"""The column with the end of the pane."""
COUNT: Final = Aggregate("count", (), "bigint")


def aggregates_of(query: AggregationJoin, slot: int) -> tuple[Aggregate, ...]:
    """The aggregates on one input, each once."""
    return tuple(dict.fromkeys(a.aggregate for a in query.aggregates if a.slot == slot))


def aggregation_set(query: AggregationJoin, slot: int, stream: StreamSchema) -> Query:
    """The hidden query whose published rows are the panes of an input's aggregation set."""
    entry = query.inputs[slot]
    assert entry.window is not None, "a table has no panes"
    pane = entry.window.pane(query.step)
    aggregates = (COUNT, *aggregates_of(query, slot))
    set_id = f"#{codec.digest((entry.relation, pane, entry.attributes, entry.predicate, aggregates), 16)}"
    return Query(
        id=set_id,
        name=set_id,
        sql=_text(entry, pane),
        stream=entry.relation,
        window=Window(pane, pane),
        keys=tuple(attribute.value for attribute in entry.attributes),
        predicate=entry.predicate,
        aggregates=aggregates,
        having=None,
        columns=_columns(entry, aggregates, stream),
        publishes=True,
    )


def _text(entry: AggregationInput, pane: int) -> str:
    keys = ", ".join(attribute.name for attribute in entry.attributes)
    return f"aggregation set of {entry.relation} by ({keys}), panes of {pane / 1e6:g} s"


def _columns(
    entry: AggregationInput, aggregates: Sequence[Aggregate], stream: StreamSchema
) -> tuple[OutputColumn, ...]:
    end = OutputColumn(PANE_END, TIMESTAMP, Ref("window_end", TIMESTAMP))
    keys = [
        OutputColumn(attribute.name, attribute.value.type, Ref(f"k{i}", attribute.value.type))
        for i, attribute in enumerate(entry.attributes)
    ]
    values = [
        OutputColumn(f"a{i}", type_, Ref(f"a{i}", type_))
        for i, aggregate in enumerate(aggregates)
        for type_ in [published_type(lift(aggregate, stream.time_micros, None))]
    ]
    return (end, *keys, *values)


def published_type(partials: Sequence[Partial]) -> SqlType:
    """The type of an aggregate's partials in the rows of a query that is published."""
    return f"struct<{','.join(f'p{i}:{p.packed_type}' for i, p in enumerate(partials))}>"
