"""Aggregation sets as windowed aggregates of their streams (AggJoin, definition 3 and rule 1).

The aggregation set of an early input is grouped by the attributes that the join, the groups and later conditions read, and has
count(*) and the partials of the query's aggregates on this input. Its panes are a windowed aggregate with tumbling windows,
hidden in the stream's shared plan: it shares fragments, signatures and the aggregate tree with all other queries there.
Its rows are partials, published to the follower that joins them. Equal sets of several queries have the same id, so they are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.algebra.aggregate import Aggregate, lift
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sources import SIGNATURE, Source, source_of
from weft.algebra.partial import Partial
from weft.algebra.query import OutputColumn, Query, StreamSchema
from weft.algebra.scalar import Ref
from weft.algebra.types import TIMESTAMP, SqlType
from weft.algebra.window import Window

PANES: Final = "panes"
"""The name of the publication of panes."""
PANE_END: Final = "end"
"""The column with the end of the pane."""
COUNT: Final = Aggregate("count", (), "bigint")


def aggregates_of(query: AggregationJoin, slot: int) -> tuple[Aggregate, ...]:
    """The aggregates on one input, each once."""
    return source_of(query, slot).aggregates


def aggregation_set(query: AggregationJoin, slot: int, stream: StreamSchema) -> Query:
    """The hidden query whose published rows are the panes of an input's aggregation set."""
    return set_of(source_of(query, slot), stream)


def set_of(source: Source, stream: StreamSchema) -> Query:
    """The hidden query whose published rows are the panes of a source."""
    assert source.pane, "a table has no panes"
    aggregates = (COUNT, *source.aggregates)
    return Query(
        id=source.id,
        name=f"{_text(source)} {source.id}",
        sql=_text(source),
        stream=source.relation,
        window=Window(source.pane, source.pane),
        keys=tuple(attribute.value for attribute in source.keys),
        predicate=source.predicate,
        aggregates=aggregates,
        having=None,
        columns=_columns(source, aggregates, stream),
        publishes=True,
    )


def signatures(query: Query) -> frozenset[str]:
    """The key that is a signature, as Spark SQL, if the query is a set that has one."""
    names = [column.name for column in query.columns[1:]]
    keys = zip(query.keys, names, strict=False)
    return frozenset(key.sql for key, name in keys if query.publishes and name == SIGNATURE)


def _text(source: Source) -> str:
    keys = ", ".join(attribute.text for attribute in source.attributes)
    of = f", of {len(source.selections)} selections" if source.selections else ""
    return f"aggregation set of {source.relation} by ({keys}){of}, panes of {source.pane / 1e6:g} s"


def _columns(
    source: Source, aggregates: Sequence[Aggregate], stream: StreamSchema
) -> tuple[OutputColumn, ...]:
    end = OutputColumn(PANE_END, TIMESTAMP, Ref("window_end", TIMESTAMP))
    keys = [
        OutputColumn(attribute.name, attribute.value.type, Ref(f"k{i}", attribute.value.type))
        for i, attribute in enumerate(source.keys)
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
