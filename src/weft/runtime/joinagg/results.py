"""The results of aggregation joins at the instants of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.sources import source_of, time_of
from weft.algebra.query import StreamSchema
from weft.algebra.scalar import to_sql
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.operations import Array
from weft.kernel.failure import NeedsSpark, QueryFailure
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.instants import Due, first_filled
from weft.kernel.joinagg.panes import of_table
from weft.kernel.joinagg.showing import changes, full, key_columns, projected, shown_columns
from weft.kernel.joinagg.together import Member, Side, evaluated_together
from weft.kernel.windows.results import family_schema
from weft.runtime.frames import failure_of, frame_of
from weft.runtime.joinagg.joining import Kept, Ready, joined_together
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


@dataclass
class _Shown:
    """What a query has shown so far."""

    last: pa.Table | None
    rows: list[pa.Table] = field(default_factory=list)


@dataclass(frozen=True)
class _Planned:
    """A query with the instants that it shows in the step."""

    ready: Ready
    before: QueryResult
    started: int
    instants: Array


@dataclass(frozen=True)
class Evaluator:
    """Evaluates queries over the entries of their inputs."""

    spark: SparkSession
    schemas: Mapping[str, StreamSchema]
    tables: Mapping[str, pa.Table]
    kept: Kept
    ansi: bool

    def results(
        self, ready: Sequence[Ready], before: Mapping[str, QueryResult], since: int
    ) -> tuple[dict[str, QueryResult], dict[str, QueryFailure], int]:
        """The results of queries at the instants of a step, which begins after the time `since`; those that
        failed; and how many joins it took."""
        results: dict[str, QueryResult] = {}
        failures: dict[str, QueryFailure] = {}
        planned: dict[str, _Planned] = {}
        for one in ready:
            plan = self._planned(one, before[one.query.id], since)
            if plan is None:
                results[one.query.id] = before[one.query.id]
            else:
                planned[one.query.id] = plan
        groups = joined_together([plan.ready for plan in planned.values()], self.kept)
        for group in groups:
            self._evaluate([planned[one.query.id] for one in group], results, failures)
        return results, failures, len(groups)

    def _planned(self, one: Ready, before: QueryResult, since: int) -> _Planned | None:
        """None: no input had anything yet."""
        query = one.query
        due = Due(since, self.kept.watermark, query.step)
        entries = [
            self.kept.entries(use, one.begins[slot])
            for slot, use in enumerate(one.uses)
            if use is not None
        ]
        started = before.started
        if started is None:
            started = first_filled(entries, due.now)
        if started is None:
            return None
        instants = self._instants(query, entries, due, max(one.first, started), before)
        return _Planned(one, before, started, instants)

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

    def _evaluate(
        self,
        group: Sequence[_Planned],
        results: dict[str, QueryResult],
        failures: dict[str, QueryFailure],
    ) -> None:
        """One physical join."""
        sides = self._sides([plan.ready for plan in group])
        selections = zip(*(plan.ready.selections for plan in group), strict=True)
        mixed = [slot for slot, names in enumerate(selections) if len(set(names)) > 1]
        of_all = np.unique(np.concatenate([plan.instants for plan in group]))
        shown = {plan.ready.query.id: _Shown(plan.before.last) for plan in group}
        for place in range(0, len(of_all), _AT_ONCE):
            chosen = of_all[place : place + _AT_ONCE]
            running = [plan for plan in group if plan.ready.query.id not in failures]
            members = [self._member(plan, chosen, mixed) for plan in running]
            tables = evaluated_together(members, sides, chosen, ansi=self.ansi)
            for member, groups in zip(members, tables, strict=True):
                query = member.query
                try:
                    if isinstance(groups, QueryFailure):
                        raise groups
                    assert member.instants is not None
                    if len(member.instants):
                        self._show(query, groups, member.instants, shown[query.id])
                except QueryFailure as failure:
                    failures[query.id] = failure
        for plan in group:
            name = plan.ready.query.id
            if name not in failures:
                found = shown[name]
                count = len(plan.instants)
                results[name] = QueryResult(tuple(found.rows), found.last, plan.started, count)

    def _show(
        self, query: AggregationJoin, groups: pa.Table, instants: Array, shown: _Shown
    ) -> None:
        results = self._projected(query, groups)
        if query.changes:
            rows, shown.last = changes(query, shown.last, results, instants)
        else:
            rows = full(query, results)
        if rows.num_rows:
            shown.rows.append(_labelled(query, rows))

    def _member(self, plan: _Planned, chosen: Array, mixed: Sequence[int]) -> Member:
        """`mixed` are the inputs that queries of one join select differently."""
        query = plan.ready.query
        partials = []
        for aggregate in query.aggregates:
            of = None if aggregate.slot is None else query.inputs[aggregate.slot]
            schema = self.schemas[of.relation] if of is not None and of.window else None
            partials.append(aggregate.partials(time_of(schema)))
        selections = {
            slot: name
            for slot, name in enumerate(plan.ready.selections)
            if slot in mixed and name is not None
        }
        first, beyond = np.searchsorted(plan.instants, [chosen[0], chosen[-1] + 1])
        return Member(query, partials, selections, plan.instants[first:beyond])

    def _sides(self, group: Sequence[Ready]) -> list[Side]:
        """The inputs of a physical join."""
        lead, sides = group[0], []
        for slot, use in enumerate(lead.uses):
            source = source_of(lead.query, slot)
            if use is not None:
                uses = [used for one in group if (used := one.uses[slot]) is not None]
                entries = self.kept.of(uses, lead.begins[slot])
                sides.append(Side(entries, use.early, source.partials(use.stream)))
                continue
            rows = self.tables[source.relation]
            aggregates = (a for one in group for a in source_of(one.query, slot).aggregates)
            source = replace(source, aggregates=tuple(dict.fromkeys(aggregates)))
            entries = of_table(rows, row_columns(source, None), source)
            sides.append(Side(entries, lead.early[slot], source.partials(None), always=True))
        return sides

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
