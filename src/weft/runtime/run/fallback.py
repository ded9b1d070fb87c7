"""Queries that weft does not share: each its own plain streaming query.

Its results are written per batch, overwriting what an earlier attempt at the batch left, so
they too are exactly once; `results(name)` reads the batches that Spark has committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from weft.catalog.store import QueryRecord
from weft.kernel.windows.results import output_names
from weft.runtime.protocol.step import answering_spark
from weft.runtime.protocol.storage import Storage
from weft.runtime.sinks.sinks import ResultStore, Sink, StepResults, destination


@dataclass(frozen=True)
class _Column:
    name: str


@dataclass(frozen=True)
class _FallbackQuery:
    id: str
    name: str
    columns: tuple[_Column, ...]


class FallbackRun:
    """One plain streaming query."""

    def __init__(self, record: QueryRecord, frame: DataFrame, storage: Storage, sink: Sink) -> None:
        self.record = record
        self._frame, self._storage = frame, storage
        self._sink = destination(sink, record.name)

    def start(self, trigger: dict[str, Any]) -> StreamingQuery:
        folder = fallback_folder(self.record.id)
        writer = self._frame.writeStream.foreachBatch(self._write).outputMode("append")
        writer = writer.option("checkpointLocation", self._storage.spark_path(f"{folder}/spark"))
        started: StreamingQuery = writer.trigger(**trigger).start()
        return started

    def _write(self, rows: DataFrame, batch: int) -> None:
        with answering_spark():
            if isinstance(self._sink, ResultStore):
                folder = f"{fallback_folder(self.record.id)}/results/batch={batch}"
                rows.write.mode("overwrite").parquet(self._storage.spark_path(folder))
            else:
                self._deliver(rows, batch)

    def _deliver(self, rows: DataFrame, batch: int) -> None:
        table = rows.toArrow()
        names = tuple(_Column(name) for name in table.column_names)
        ids = pa.repeat(self.record.id, table.num_rows)
        columns = [ids, *table.columns]
        family = pa.table(columns, names=output_names(len(names)))
        query = _FallbackQuery(self.record.id, self.record.name, names)
        results = StepResults(
            stream=self.record.id,
            step=str(batch),
            batch=batch,
            attempt="",
            families={"fallback": family} if table.num_rows else {},
            queries={self.record.id: query},
            spark=rows.sparkSession,
        )
        self._sink.write(results)


def fallback_folder(query_id: str) -> str:
    return f"fallback/{query_id.replace('@', '-')}"


def fallback_results(
    spark: SparkSession, storage: Storage, query_id: str, frame: DataFrame
) -> DataFrame:
    """The results of a query in batches that Spark has committed."""
    folder = fallback_folder(query_id)
    done = {name for name in storage.names(f"{folder}/spark/commits") if name.isdigit()}
    names = [
        name
        for name in storage.names(f"{folder}/results")
        if name.removeprefix("batch=") in done or _below(name, done)
    ]
    schema = frame.schema
    if not names:
        return spark.createDataFrame([], schema)
    paths = [storage.spark_path(f"{folder}/results/{name}") for name in names]
    return spark.read.schema(schema).parquet(*paths)


def _below(name: str, done: set[str]) -> bool:
    """Spark deletes the marks of old commits: a batch below the last one is committed."""
    return bool(done) and int(name.removeprefix("batch=")) < max(map(int, done))
