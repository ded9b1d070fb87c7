"""From Arrow to Spark, type by type; SQL over DataFrames; and what Spark says when it fails on rows.

Left to itself, Spark takes a timestamp without a zone for an instant in the session's time zone.
In weft it is a TIMESTAMP_NTZ: what a clock on the wall showed, the same in every zone. Every table
that becomes a DataFrame goes through here.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from weft.kernel.failure import QueryFailure


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """An Arrow table as a DataFrame of the same types."""
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    frame: DataFrame = spark.createDataFrame(table, schema)
    return frame


def over(text: Callable[..., str], *frames: DataFrame) -> DataFrame:
    """A query over DataFrames of one session, analysed as a whole. `text` gets a name for each of them."""
    names = [f"weft_{uuid.uuid4().hex}" for _ in frames]
    spark = frames[0].sparkSession
    for frame, name in zip(frames, names, strict=True):
        frame.createTempView(name)
    try:
        return spark.sql(text(*names))
    finally:
        for name in names:
            spark.catalog.dropTempView(name)


def failure_of(error: PySparkException) -> QueryFailure:
    """Spark's error as that of one query."""
    condition = error.getCondition() or "SPARK_ERROR"
    return QueryFailure(condition, str(error).split("\n", 1)[0].removeprefix(f"[{condition}] "))
