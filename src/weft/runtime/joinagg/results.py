"""The results of aggregation joins at the instants of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.sources import source_of, time_of
from weft.algebra.partial import Partial
from weft.algebra.query import StreamSchema
from weft.algebra.scalar import to_sql
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.operations import Array
from weft.kernel.failure import NeedsSpark, QueryFailure
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.evaluation import Side, evaluated
from weft.kernel.joinagg.instants import Due, first_filled
from weft.kernel.joinagg.panes import of_table
from weft.kernel.joinagg.showing import changes, full, key_columns, projected, shown_columns
from weft.kernel.windows.results import family_schema
from weft.runtime.frames import failure_of, frame_of
from weft.runtime.quiet import quiet_sql_errors

_AT_ONCE = 256
"""Instants that are evaluated together."""


@dataclass(frozen=True)
class QueryResult:
    """What a query shows in a step, the result at its last instant if it emits changes, and the first instant at
    which any of its inputs had something."""

    rows: tuple[pa.Table, ...] = ()
    last: pa.Table | None = None
    started: int | None = None
    instants: int = 0


@dataclass(frozen=True)
class Evaluator:
    """Evaluates queries over the entries of their inputs."""

    spark: SparkSession
    schemas: Mapping[str, StreamSchema]
    tables: Mapping[str, pa.Table]
    ansi: bool

    def result(
        self,
        query: AggregationJoin,
        early: Sequence[bool],
        streams: Mapping[int, Entries],
        due: Due,
        first: int,
        before: QueryResult,
    ) -> QueryResult:
        """The result at the instants of a step, from the instant `first` on. `streams` are the entries of its
        streams by slot."""
        started = before.started
        if started is None:
            started = first_filled(list(streams.values()), due.now)
        if started is None:
            return before
        instants = self._instants(query, list(streams.values()), due, max(first, started), before)
        sides, partials = self._sides(query, early, streams)
        shown: list[pa.Table] = []
        last = before.last
        for place in range(0, len(instants), _AT_ONCE):
            chosen = instants[place : place + _AT_ONCE]
            groups = evaluated(query, sides, partials, chosen, ansi=self.ansi)
            results = self._projected(query, groups)
            if query.changes:
                rows, last = changes(query, last, results, chosen)
            else:
                rows = full(query, results)
            if rows.num_rows:
                shown.append(_labelled(query, rows))
        return QueryResult(tuple(shown), last, started, len(instants))

    def _instants(
        self,
        query: AggregationJoin,
        sides: Sequence[Entries],
        due: Due,
        first: int,
        before: QueryResult,
    ) -> Array:
        if query.changes:
            nothing_shown = before.last is None and not query.keys
            shown = nothing_shown or (before.last is not None and before.last.num_rows > 0)
            return due.changing(sides, first, shown=shown)
        return due.filled(sides, first) if query.keys else due.every(first)

    def _sides(
        self, query: AggregationJoin, early: Sequence[bool], streams: Mapping[int, Entries]
    ) -> tuple[list[Side], list[tuple[Partial, ...]]]:
        sides = []
        for slot, entry in enumerate(query.inputs):
            source = source_of(query, slot)
            stream = self.schemas[entry.relation] if entry.window is not None else None
            entries = streams.get(slot)
            if entries is None:
                rows = self.tables[entry.relation]
                entries = of_table(rows, row_columns(source, None), source)
            is_table = entry.window is None
            sides.append(Side(entries, early[slot], source.partials(stream), is_table))
        lifted = []
        for aggregate in query.aggregates:
            of = None if aggregate.slot is None else query.inputs[aggregate.slot]
            schema = self.schemas[of.relation] if of is not None and of.window else None
            lifted.append(aggregate.partials(time_of(schema)))
        return sides, lifted

    def _projected(self, query: AggregationJoin, groups: pa.Table) -> pa.Table:
        try:
            return projected(query, groups, ansi=self.ansi)
        except NeedsSpark:
            return self._projected_by_spark(query, groups)

    @quiet_sql_errors()
    def _projected_by_spark(self, query: AggregationJoin, groups: pa.Table) -> pa.Table:
        frame = frame_of(self.spark, groups)
        try:
            if query.having is not None:
                frame = frame.where(F.expr(to_sql(query.having)))
            outputs = [
                F.expr(to_sql(value)).alias(f"c{place}")
                for place, value in enumerate(shown_columns(query))
            ]
            made = frame.select(*key_columns(query), *outputs).toArrow()
        except PySparkException as error:
            failure = failure_of(error)
            raise QueryFailure(failure.error_class, failure.message, (query.id,)) from error
        columns = {
            name: made.column(name).cast(groups.schema.field(name).type)
            for name in key_columns(query)
        }
        for place in range(len(outputs)):
            type_ = arrow_type(query.columns[place].type)
            columns[f"c{place}"] = made.column(f"c{place}").cast(type_)
        return pa.table(columns)


def _labelled(query: AggregationJoin, rows: pa.Table) -> pa.Table:
    """The rows as their result family stores them."""
    columns = [pa.repeat(pa.scalar(query.id, pa.string()), rows.num_rows)]
    columns += [
        values.cast(arrow_type(type_))
        for values, type_ in zip(rows.columns, query.output_types, strict=True)
    ]
    return pa.table(columns, schema=family_schema(query.output_types))
