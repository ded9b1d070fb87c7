"""HAVING and projection by Spark, for what the kernel's own scalars do not cover."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from weft.algebra.scalar import to_sql
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.failure import QueryFailure
from weft.kernel.windows.program import Shape
from weft.kernel.windows.results import QUERY_COLUMN, output_names
from weft.runtime.frames import failure_of, frame_of
from weft.runtime.quiet import quiet_sql_errors


def project(
    spark: SparkSession, shape: Shape, raw: pa.Table
) -> tuple[pa.Table, dict[str, QueryFailure]]:
    """The finished rows of a shape, and the queries that fail on their own rows."""
    try:
        return _project(spark, shape, raw), {}
    except PySparkException as error:
        if len(shape.queries) == 1:
            return _empty(shape), {shape.queries[0].id: failure_of(error)}
    tables, failures = [], {}
    for query in shape.queries:
        own = raw.filter(pa.compute.equal(raw.column(QUERY_COLUMN), query.id))
        try:
            tables.append(_project(spark, shape, own))
        except PySparkException as error:
            failures[query.id] = failure_of(error)
    return pa.concat_tables(tables) if tables else _empty(shape), failures


@quiet_sql_errors()
def _project(spark: SparkSession, shape: Shape, raw: pa.Table) -> pa.Table:
    frame = frame_of(spark, raw).withColumn(
        "window", F.expr("named_struct('start', window_start, 'end', window_end)")
    )
    if shape.having is not None:
        frame = frame.where(F.expr(to_sql(shape.having)))
    names = output_names(len(shape.outputs))
    outputs = [F.expr(to_sql(output)) for output in shape.outputs]
    columns = [column.alias(name) for column, name in zip(outputs, names[1:], strict=True)]
    projected = frame.select(F.col(QUERY_COLUMN), *columns).toArrow()
    fields = [projected.column(QUERY_COLUMN)]
    fields += [
        projected.column(name).cast(arrow_type(type_))
        for name, type_ in zip(names[1:], shape.types, strict=True)
    ]
    return pa.table(fields, names=names)


def _empty(shape: Shape) -> pa.Table:
    from weft.kernel.windows.results import family_schema

    return family_schema(shape.types).empty_table()
