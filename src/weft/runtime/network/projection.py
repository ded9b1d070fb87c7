"""From the kernel's matches to result families.

A query whose output the kernel can compute arrives finished. Of the others the kernel gives the rows that
match, and Spark computes the output columns on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.algebra.frozen import FrozenMapping
from weft.algebra.network.query import JoinQuery
from weft.algebra.scalar import quoted_sql
from weft.algebra.types import SqlType
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.failure import QueryFailure
from weft.kernel.network import Outcome, Program
from weft.kernel.network.distinct import Emitted, fresh
from weft.kernel.network.state import emitted_table
from weft.kernel.windows.program import family
from weft.kernel.windows.results import family_schema
from weft.runtime.frames import failure_of, frame_of
from weft.runtime.quiet import quiet_sql_errors


@dataclass(frozen=True)
class Finished:
    """The results of a step by family, the rows of derived streams by name, what DISTINCT queries have
    shown, and the queries that fail on their own rows."""

    families: Mapping[str, Sequence[pa.Table]]
    derived: Mapping[str, Sequence[pa.Table]]
    shown: Mapping[str, pa.Table]
    emitted: Mapping[str, Emitted]
    failures: Mapping[str, QueryFailure]


def finished(spark: SparkSession, compiled: Program, outcome: Outcome) -> Finished:
    """Project what the kernel could not."""
    families: dict[str, list[pa.Table]] = {}
    derived: dict[str, list[pa.Table]] = {}
    failures: dict[str, QueryFailure] = {}
    shown, emitted = dict(outcome.shown), dict(outcome.state.emitted)

    def add(query: JoinQuery, rows: pa.Table) -> None:
        if rows.num_rows and query.members:
            derived.setdefault(query.name, []).append(typed(query, rows))
        elif rows.num_rows:
            families.setdefault(family(query.output_types), []).append(labelled(query, rows))

    for name, rows in outcome.results.items():
        add(compiled.outputs[name].query, rows)
    for name, rows in outcome.raw.items():
        query, memory = compiled.outputs[name].query, compiled.outputs[name].memory
        try:
            projected = projected_by_spark(spark, query, rows)
        except PySparkException as error:
            failures[query.id] = failure_of(error)
            continue
        if memory is not None:
            before = emitted.get(memory, Emitted())
            projected, emitted[memory], hashes = fresh(before, projected)
            if hashes:
                tables = [shown[memory]] if memory in shown else []
                shown[memory] = pa.concat_tables([*tables, emitted_table(hashes)])
        add(query, projected)
    return Finished(families, derived, shown, FrozenMapping(emitted), failures)


@quiet_sql_errors()
def projected_by_spark(spark: SparkSession, query: JoinQuery, rows: pa.Table) -> pa.Table:
    """The output columns of a query, of rows that the kernel left to Spark."""
    outputs = [
        F.expr(quoted_sql(column.value)).alias(f"c{index}")
        for index, column in enumerate(query.columns)
    ]
    return frame_of(spark, rows).select(*outputs).toArrow()


def typed(query: JoinQuery, rows: pa.Table) -> pa.Table:
    """The rows as they are published, in the columns of their query."""
    columns = _cast(rows, query.output_types)
    return pa.table(columns, names=[column.name for column in query.columns])


def labelled(query: JoinQuery, rows: pa.Table) -> pa.Table:
    """The rows as their result family stores them."""
    names = pa.repeat(pa.scalar(query.id, pa.string()), rows.num_rows)
    columns = [names, *_cast(rows, query.output_types)]
    return pa.table(columns, schema=family_schema(query.output_types))


def _cast(rows: pa.Table, types: Sequence[SqlType]) -> list[pa.ChunkedArray]:
    """The columns in these types. Most have them, and hundreds of queries show a few rows each."""
    wanted = map(arrow_type, types)
    return [
        column if column.type == type_ else column.cast(type_)
        for column, type_ in zip(rows.columns, wanted, strict=True)
    ]
