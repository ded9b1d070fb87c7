"""The results of aggregation joins at the instants of a step."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.scalar import to_sql
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.operations import Array
from weft.kernel.failure import NeedsSpark, QueryFailure
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.instants import Due, first_filled
from weft.kernel.joinagg.showing import changes, full, key_columns, projected, shown_columns
from weft.kernel.windows.results import family_schema
from weft.runtime.frames import failure_of, frame_of
from weft.runtime.joinagg.joins.joining import Ready
from weft.runtime.joinagg.joins.physical import Group, Joins
from weft.runtime.quiet import quiet_sql_errors


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
    """Evaluates queries at the instants of a step. `spans`: by query, after which time and up to which one they are."""

    spark: SparkSession
    joins: Joins
    spans: Mapping[str, tuple[int, int]]
    ansi: bool

    def results(
        self, ready: Sequence[Ready], before: Mapping[str, QueryResult]
    ) -> tuple[dict[str, QueryResult], dict[str, QueryFailure], int]:
        """The results of queries, those that failed, and how many joins it took."""
        results: dict[str, QueryResult] = {}
        failures: dict[str, QueryFailure] = {}
        planned: dict[str, _Planned] = {}
        known: dict[Hashable, Entries] = {}
        for one in ready:
            plan = self._planned(one, before[one.query.id], known)
            if plan is None:
                results[one.query.id] = before[one.query.id]
            else:
                planned[one.query.id] = plan
        groups = [
            Group(tuple(together), tuple(planned[one.query.id].instants for one in together))
            for together in self.joins.together([plan.ready for plan in planned.values()])
        ]
        shown = {name: _Shown(plan.before.last) for name, plan in planned.items()}
        for group, chunk, tables in self.joins.results(groups):
            for one, instants, groups_of in zip(group.ready, group.shown, tables, strict=True):
                query = one.query
                inside = instants[(instants >= chunk[0]) & (instants <= chunk[-1])]
                if query.id in failures or not len(inside):
                    continue
                try:
                    if isinstance(groups_of, QueryFailure):
                        raise groups_of
                    self._show(query, groups_of, inside, shown[query.id])
                except QueryFailure as failure:
                    failures[query.id] = failure
        for name, plan in planned.items():
            rows, last = shown[name].rows, shown[name].last
            results[name] = QueryResult(tuple(rows), last, plan.started, len(plan.instants))
        return results, failures, sum(bool(group.chunks) for group in groups)

    def _planned(
        self, one: Ready, before: QueryResult, known: dict[Hashable, Entries]
    ) -> _Planned | None:
        """None: no input had anything yet. `known` are the entries of inputs that several queries have."""
        query = one.query
        due = Due(*self.spans[query.id], query.step)

        def entries_of(slots: Iterable[int]) -> Iterator[Entries]:
            for slot in slots:
                use, begin = one.uses[slot], one.begins[slot]
                if use is None:
                    continue
                name = (use.key, use.selection, use.window, query.step, begin)
                if name not in known:
                    known[name] = self.joins.entries(use, begin)
                yield known[name]

        every = range(len(one.uses))
        started = before.started
        if started is None:
            started = first_filled([*entries_of(every)], due.now)
        if started is None:
            return None
        matched = self.joins.matched(one)
        if matched is None:
            entries = [*entries_of(every)]
        else:
            entries = [matched, *entries_of(slot for slot in every if slot not in one.matched)]
        instants = _instants(query, entries, due, max(one.first, started), before)
        return _Planned(one, before, started, instants)

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


def _instants(
    query: AggregationJoin, sides: Sequence[Entries], due: Due, first: int, before: QueryResult
) -> Array:
    if not query.keys and (not query.changes or query.having is not None):
        # HAVING may choose the one row where nothing is joined.
        return due.every(first)
    if query.changes:
        nothing_shown = before.last is None and not query.keys
        shown = nothing_shown or (before.last is not None and before.last.num_rows > 0)
        return due.changing(sides, first, shown=shown)
    return due.filled(sides, first)


def _labelled(query: AggregationJoin, rows: pa.Table) -> pa.Table:
    """The rows as their result family stores them."""
    columns = [pa.repeat(pa.scalar(query.id, pa.string()), rows.num_rows)]
    columns += [
        values.cast(arrow_type(type_))
        for values, type_ in zip(rows.columns, query.output_types, strict=True)
    ]
    return pa.table(columns, schema=family_schema(query.output_types))
