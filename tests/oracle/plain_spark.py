"""Runs one query on plain Spark Structured Streaming, micro-batch by micro-batch.

Each batch is one Parquet file, taken in order by `maxFilesPerTrigger=1`; an empty batch is
a file without rows. The stream's watermark is taken before any predicate, because the two
optimizer rules that would move filters below `withWatermark` are excluded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from .sparktypes import Type
from .values import Value

CATALYST = "org.apache.spark.sql.catalyst.optimizer"
PUSHING_RULES = (f"{CATALYST}.PushDownPredicates", f"{CATALYST}.PushPredicateThroughNonJoin")

#: Expressions interpreted instead of compiled: quicker for a handful of rows.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
#: Expressions compiled, as Spark does unless it is told otherwise.
COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}

ARROW_TYPES = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "double": pa.float64(),
    "float": pa.float32(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
#: Modification times decide the order of files; this is some moment in the past.
FIRST_MODIFIED = 1_600_000_000


class SparkFailure(Exception):
    """The stream stopped with an error; `error_class` is Spark's name of it, if any."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = re.findall(r"\[([A-Z][A-Z_]+(?:\.[A-Z_]+)*)\]", message)
        self.error_class = found[-1] if found else ""


@dataclass(frozen=True)
class Output:
    """What a run emitted: column names and types, and rows with their batch ids."""

    columns: list[tuple[str, str]]
    rows: list[tuple[int, tuple[Value, ...]]]
    batches: int


def arrow_schema(schema: Mapping[str, Type]) -> pa.Schema:
    """The Arrow schema of a stream's rows."""
    return pa.schema(
        (
            name,
            pa.decimal128(kind.precision, kind.scale)
            if kind.is_decimal
            else ARROW_TYPES[kind.name],
        )
        for name, kind in schema.items()
    )


def write_batches(
    directory: Path, schema: Mapping[str, Type], batches: Sequence[Sequence[Mapping[str, Value]]]
) -> None:
    """One Parquet file per batch, in order of name and of modification time."""
    directory.mkdir(parents=True)
    for position, batch in enumerate(batches):
        path = directory / f"batch-{position:05d}.parquet"
        pq.write_table(pa.Table.from_pylist(list(batch), schema=arrow_schema(schema)), path)
        os.utime(path, (FIRST_MODIFIED + position, FIRST_MODIFIED + position))


def ddl(schema: Mapping[str, Type]) -> str:
    """A schema as Spark reads it."""
    return ", ".join(f"`{name}` {kind}" for name, kind in schema.items())


def python_rows(table: pa.Table) -> list[tuple[Value, ...]]:
    """Rows with timestamps as microseconds and structs as tuples."""
    return list(zip(*(_values(column) for column in table.columns), strict=True))


def _values(column: pa.ChunkedArray | pa.Array) -> list[Value]:
    if pa.types.is_timestamp(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    if pa.types.is_struct(column.type):
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return list(zip(*(_values(field) for field in whole.flatten()), strict=True))
    return list(column.to_pylist())


def run(
    spark: SparkSession,
    text: str,
    schema: Mapping[str, Type],
    batches: Sequence[Sequence[Mapping[str, Value]]],
    delay_micros: int,
    *,
    directory: Path,
    stream: str = "s",
    time: str = "ts",
    ansi: bool = True,
    settings: Mapping[str, str] | None = None,
    tables: Mapping[str, tuple[str, Sequence[tuple[Value, ...]]]] | None = None,
) -> Output:
    """The output of `text` over the batches; `directory` must not exist yet. Expressions are compiled
    unless the settings say otherwise. `tables` are columns and rows by name.

    Raises `SparkFailure` if the stream stops with an error.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.optimizer.excludedRules", ",".join(PUSHING_RULES))
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    session.conf.set("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false")
    for name, value in {**COMPILED, **(settings or {})}.items():
        session.conf.set(name, value)
    write_batches(directory / "input", schema, batches)
    source = (
        session.readStream.schema(ddl(schema))
        .option("maxFilesPerTrigger", 1)
        .parquet(str(directory / "input"))
        .withWatermark(time, f"{delay_micros // 1_000} milliseconds")
    )
    source.createOrReplaceTempView(stream)
    for name, (columns, rows) in (tables or {}).items():
        session.createDataFrame(list(rows), columns).createOrReplaceTempView(name)
    result = session.sql(text)
    emitted: list[tuple[int, tuple[Value, ...]]] = []
    ids: list[int] = []

    def collect(batch: DataFrame, batch_id: int) -> None:
        ids.append(batch_id)
        emitted.extend((batch_id, row) for row in python_rows(batch.toArrow()))

    query = (
        result.writeStream.outputMode("append")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .foreachBatch(collect)
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise SparkFailure(str(error)) from None
    return Output(list(result.dtypes), emitted, len(ids))
