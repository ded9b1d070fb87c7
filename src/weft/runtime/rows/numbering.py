"""Numbers for the rows of a stream, in native Spark.

Rows are numbered from 0 on, in the order of event time, then of the stream's orderable columns in
schema order, with NULL first. A row gets its number when the watermark has passed it; until then it is
*pending*. Every row that a later step numbers is at or after the watermark of the earlier steps. So the
order of numbers is the order of rows, whatever the micro-batches. Rows that are equal in all orderable
columns are interchangeable; they get their numbers in one step.

    batch ─▶ published: rows at or after the watermark before the batch (`publication`)
    published files ─▶ rows before the watermark, sorted ─▶ ordered files ─▶ number = file + row index

A published file is retained until the watermark has passed its last row. Rows are not copied, except
that many small files are replaced by few. One global sort by Spark writes the due rows as files whose
names are in the order of the rows. The row counts in their footers give each file its first number, and
Spark's row index gives the position in the file. So all readers of a step see the same numbers.

Time per row: one write when it is published, one sort and one write when it is numbered.
Space: the rows within the stream's delay, and those of the last batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    LongType,
    SpatialType,
    StructField,
    StructType,
    VariantType,
)

from weft.algebra.numbered import PENDING_TIME
from weft.algebra.query import NUMBER, StreamSchema, quote
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.protocol.publishing import described

MOST_FILES = 64
"""How many files may hold waiting rows before they are replaced by few."""

PENDING, NUMBERED = "pending", "numbered"


@dataclass(frozen=True)
class Numbering:
    """Gives numbers to the rows of one stream."""

    log: StreamLog
    source: StreamSchema
    row: StructType
    """The stream's columns that files can hold."""
    cores: int

    def compacted(
        self, spark: SparkSession, files: Sequence[Entry], now: int, folder: str
    ) -> list[Entry]:
        """Write the rows at or after `now`, which still wait, into few files."""
        waiting = self._pending(spark, files).where(F.col(quote(PENDING_TIME)) >= F.lit(now))
        target = f"{self.log.folder(PENDING)}/{folder}"
        waiting.coalesce(self.cores).write.parquet(self.log.storage.spark_path(target))
        return described(self.log, target, "rows", PENDING_TIME)

    def number(
        self,
        spark: SparkSession,
        files: Sequence[Entry],
        since: int,
        now: int,
        first: int,
        columns: Sequence[str],
        folder: str,
    ) -> tuple[DataFrame | None, int]:
        """The pending rows with since ≤ event time < now and their numbers, and how many they are."""
        due = [entry for entry in files if entry["first"] < now and entry["last"] >= since]
        if not due or since >= now:
            return None, 0
        at = F.col(quote(PENDING_TIME))
        rows = self._pending(spark, due).where((at >= F.lit(since)) & (at < F.lit(now)))
        schema = StructType([field for field in self.row if field.name in columns])
        ordered = rows.orderBy(*self._order()).select(*_columns(schema), at)
        target = f"{self.log.folder(NUMBERED)}/{folder}"
        ordered.write.parquet(self.log.storage.spark_path(target))
        counts = {name: self._metadata(name).num_rows for name in self._files(target)}
        total = sum(counts.values())
        if not total:
            return None, 0
        starts = dict(zip(counts, accumulate(counts.values(), initial=first)))
        schema = schema.add(PENDING_TIME, LongType())
        starts = {name: start for name, start in starts.items() if counts[name]}
        return self._numbered(spark, schema, starts), total

    def _numbered(
        self, spark: SparkSession, schema: StructType, starts: Mapping[str, int]
    ) -> DataFrame:
        """The rows of ordered files, numbered from each file's first number on."""
        paths = [self.log.storage.spark_path(name) for name in starts]
        literals = [F.lit(part) for name, start in starts.items() for part in (_base(name), start)]
        start = F.create_map(*literals)[F.col("_metadata.file_name")]
        number = (start + F.col("_metadata.row_index")).cast("bigint")
        frame = spark.read.schema(schema).parquet(*paths)
        return frame.select(number.alias(NUMBER), *_columns(schema))

    def _order(self) -> list[Column]:
        ties = [field.name for field in self.row if is_orderable(field.dataType)]
        names = [PENDING_TIME, *(name for name in ties if name != self.source.time)]
        return [F.col(quote(name)).asc_nulls_first() for name in names]

    def _pending(self, spark: SparkSession, files: Sequence[Entry]) -> DataFrame:
        schema = StructType([*self.row.fields, StructField(PENDING_TIME, LongType())])
        paths = [self.log.storage.spark_path(entry["name"]) for entry in files]
        return spark.read.schema(schema).parquet(*paths)

    def _files(self, folder: str) -> list[str]:
        """The files of a folder in the order of their names, which is that of Spark's partitions."""
        names = self.log.storage.names(folder)
        return [f"{folder}/{name}" for name in names if name.endswith(".parquet")]

    def remove_numbered(self) -> None:
        """Delete the ordered files, which only one step uses."""
        self.log.storage.delete(self.log.folder(NUMBERED))

    def remove_compacted(self, kept: Sequence[Entry]) -> None:
        """Delete files that replaced many small ones, except those that are still in use."""
        folder = self.log.folder(PENDING)
        in_use = {entry["name"].rsplit("/", 2)[1] for entry in kept}
        for name in self.log.storage.names(folder):
            if name not in in_use:
                self.log.storage.delete(f"{folder}/{name}")

    def _metadata(self, name: str) -> pq.FileMetaData:
        storage = self.log.storage
        return pq.ParquetFile(storage.path(name), filesystem=storage.filesystem).metadata


def is_orderable(type_: DataType) -> bool:
    """Whether Spark can sort by a type."""
    if isinstance(type_, ArrayType):
        return is_orderable(type_.elementType)
    if isinstance(type_, StructType):
        return all(is_orderable(field.dataType) for field in type_)
    return isinstance(type_, AtomicType) and not isinstance(type_, (VariantType, SpatialType))


def _columns(schema: StructType) -> list[Column]:
    return [F.col(quote(field.name)) for field in schema]


def _base(name: str) -> str:
    return name.rsplit("/", 1)[1]
