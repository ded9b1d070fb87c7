"""A bound aggregation join on rows, without Spark: its expressions by DuckDB, the rest by `kernel/joinagg`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot

from weft.algebra.aggregate import Aggregate
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.partial import Partial
from weft.algebra.scalar import Expression, Scalar
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.column import column
from weft.kernel.columns.scalar import evaluate
from weft.kernel.joinagg.entries import Entries, entries_of
from weft.kernel.joinagg.evaluation import Side, evaluated

SECOND = 1_000_000
ORACLE = duckdb.connect(config={"threads": 1})
ORACLE.execute("SET TimeZone = 'UTC'")


def load(relation: str, types: Mapping[str, str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Make rows a table of DuckDB, with the second beside the event time `ts`, which is in seconds."""
    values = list(zip(*rows, strict=True)) or [()] * len(types)
    columns = dict(zip(types, map(list, values), strict=True))
    arrays: dict[str, pa.Array] = {}
    for name, type_ in types.items():
        if type_ == "timestamp":
            arrays["second"] = pa.array(columns[name], pa.int64())
            micros = [second * SECOND for second in columns[name]]
            arrays[name] = pa.array(micros, pa.timestamp("us"))
        else:
            arrays[name] = pa.array(columns[name], arrow_type(type_))
    ORACLE.register("loaded", pa.table(arrays))
    ORACLE.execute(f"CREATE OR REPLACE TABLE {relation} AS SELECT * FROM loaded")


def _size(relation: str) -> int:
    (count,) = ORACLE.execute(f"SELECT count(*) FROM {relation}").fetchall()[0]
    return int(count)


def computed(expression: Expression, relation: str) -> pa.Array:
    """The values of an expression on all rows of a relation."""
    (sql,) = sqlglot.transpile(expression.sql, read="spark", write="duckdb")
    found = ORACLE.sql(f"SELECT {sql} AS v FROM {relation} ORDER BY rowid").to_arrow_table()
    values = found.column("v").combine_chunks()
    if expression.type == "timestamp":
        values = values.cast(pa.timestamp("us", "UTC"))
    return values.cast(arrow_type(expression.type))


def lifted(aggregate: Aggregate, relation: str, count: int) -> list[list[Any]]:
    """The partials of an aggregate for every row by itself, in the order of `lift`."""
    passing = [True] * count
    if aggregate.filter is not None:
        passing = computed(aggregate.filter, relation).to_pylist()
    arguments = [computed(argument, relation).to_pylist() for argument in aggregate.arguments]
    values = arguments[0] if arguments else [1] * count
    if aggregate.function == "count":
        values = [
            None if any(part is None for part in row) else 1
            for row in zip(values, *arguments[1:], strict=True)
        ]
    values = [value if kept else None for value, kept in zip(values, passing, strict=True)]
    present = [int(value is not None) for value in values]
    if aggregate.function == "count":
        return [present]
    if aggregate.function in ("sum", "avg"):
        return [values, present]
    if aggregate.function == "stddev_pop":
        return [
            [
                {"n": n, "mean": None if v is None else float(v), "m2": 0.0 if n else None}
                for v, n in zip(values, present, strict=True)
            ]
        ]
    return [values]


def stored(partial: Partial, values: list[Any]) -> pa.Array:
    """Values in the form of a state file."""
    if partial.combine.name == "add":
        return pa.array([value or 0 for value in values], pa.int64())
    if partial.combine.name == "add_wide":
        halves = [{"high": (v or 0) >> 32, "low": (v or 0) & 0xFFFFFFFF} for v in values]
        return pa.array(halves, pa.struct([("high", pa.int64()), ("low", pa.int64())]))
    if partial.combine.name == "moments":
        parts = [("n", pa.int64()), ("mean", pa.float64()), ("m2", pa.float64())]
        return pa.array(values, pa.struct(parts))
    return pa.array(values, arrow_type(partial.type))


def entries(query: AggregationJoin, slot: int) -> tuple[Entries, list[Partial]]:
    """An input's rows as entries, each with the instants at which it counts."""
    entry = query.inputs[slot]
    count = _size(entry.relation)
    columns: dict[str, pa.Array] = {}
    partials: dict[str, Partial] = {}
    for joined in query.aggregates:
        if joined.slot == slot:
            of_aggregate = joined.partials("`ts`")
            parts = lifted(joined.aggregate, entry.relation, count)
            for partial, values in zip(of_aggregate, parts, strict=True):
                partials[partial.name] = partial
                columns[partial.name] = stored(partial, values)
    first, last = np.zeros(count, np.int64), np.zeros(count, np.int64)
    if entry.window is not None:
        pane = entry.window.pane(query.step)
        seconds = ORACLE.execute(f"SELECT second FROM {entry.relation} ORDER BY rowid").fetchall()
        for place, (second,) in enumerate(seconds):
            end = (second * SECOND // pane + 1) * pane
            first[place], last[place] = entry.window.instants(end, query.step)
    whole = entries_of(
        pa.table(columns or {"": pa.nulls(count)}),
        first,
        last,
        {a.name: column(computed(a.value, entry.relation)) for a in entry.attributes},
        np.ones(count, np.int64),
        list(partials.values()),
    )
    if entry.predicate is not None:
        passing = pc.fill_null(computed(entry.predicate, entry.relation), False)
        whole = whole.take(np.flatnonzero(passing.to_numpy(zero_copy_only=False)))
    return whole, list(partials.values())


def sides_of(query: AggregationJoin) -> list[Side]:
    """The inputs, all of them late."""
    sides = []
    for slot, entry in enumerate(query.inputs):
        kept, partials = entries(query, slot)
        sides.append(Side(kept, False, tuple(partials), entry.window is None))
    return sides


def groups_at(
    query: AggregationJoin, sides: Sequence[Side], instants: Sequence[int], time: str = "`ts`"
) -> pa.Table:
    """The groups at some seconds, before HAVING: `at`, `k0…`, `a0…`."""
    of_each = [entry.partials(time) for entry in query.aggregates]
    at = np.array(instants, np.int64) * SECOND
    return evaluated(query, sides, of_each, at, ansi=True, block=7)


def shown(query: AggregationJoin, groups: pa.Table) -> list[tuple[Any, ...]]:
    """The result rows of groups: those that pass HAVING, with the columns of the query."""

    def value(scalar: Scalar) -> list[Any]:
        def of_group(name: str) -> pa.Array:
            return groups.column(name).combine_chunks()

        values: list[Any] = evaluate(scalar, of_group, groups.num_rows, ansi=True).to_pylist()
        return values

    passing = [True] * groups.num_rows if query.having is None else value(query.having)
    columns = [value(column.value) for column in query.columns]
    return [tuple(row) for kept, *row in zip(passing, *columns, strict=True) if kept]
