"""Reads a query's results back, in its own columns."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.algebra.query import Query, quote
from weft.catalog.store import QueryRecord
from weft.errors import RunError
from weft.kernel.windows.program import family
from weft.kernel.windows.results import QUERY_COLUMN, output_names
from weft.runtime.api.registry import Registry
from weft.runtime.protocol.log import StreamLog
from weft.runtime.protocol.storage import Storage
from weft.runtime.run.fallback import fallback_results
from weft.runtime.sinks.sinks import MemorySink, ResultStore, Sink, destination, results_folder
from weft.sql.fallback import Fallback


class ResultReader:
    """Results of the queries of one checkpoint."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        registry: Registry,
        log: Callable[[str], StreamLog],
    ) -> None:
        self._spark, self._storage = spark, storage
        self._registry, self._log = registry, log

    def read(self, record: QueryRecord, sink: Sink) -> DataFrame:
        """A query's results so far, if its sink can give them back."""
        bound = self._registry.of(record)
        sink = destination(sink, record.name)
        if isinstance(sink, MemorySink):
            return self._memory_results(record, bound, sink)
        if not isinstance(sink, ResultStore):
            raise RunError("NO_RESULTS", name=record.name, sink=sink.name)
        if isinstance(bound, Fallback):
            frame = self._registry.fallback_frame(bound)
            return fallback_results(self._spark, self._storage, record.id, frame)
        if bound is None:
            raise RunError("QUERY_FAILED", query=record.name, detail=record.detail)
        return self._stored_results(bound)

    def _stored_results(self, query: Query) -> DataFrame:
        wanted = family(query.output_types)
        files = [
            f"{_spark_root(results_folder(self._storage, entry['root']))}/{entry['name']}"
            for entry in self._log(query.stream).result_files()
            if entry["family"] == wanted
        ]
        names = output_names(len(query.columns))
        types = [
            f"{name} {type_}" for name, type_ in zip(names[1:], query.output_types, strict=True)
        ]
        schema = ", ".join([f"{QUERY_COLUMN} string", *types])
        if files:
            rows = self._spark.read.schema(schema).parquet(*files)
        else:
            rows = self._spark.createDataFrame([], schema)
        chosen = rows.where(F.col(QUERY_COLUMN) == query.id)
        return chosen.select(
            *(
                F.col(c).alias(column.name)
                for c, column in zip(names[1:], query.columns, strict=True)
            )
        )

    def _memory_results(
        self, record: QueryRecord, bound: Query | Fallback | None, sink: MemorySink
    ) -> DataFrame:
        tables = sink.tables(record.id)
        if tables:
            return self._spark.createDataFrame(pa.concat_tables(tables))
        if isinstance(bound, Query):
            ddl = ", ".join(f"{quote(c.name)} {c.type}" for c in bound.columns)
            return self._spark.createDataFrame([], ddl)
        if bound is None:
            raise RunError("QUERY_FAILED", query=record.name, detail=record.detail)
        return self._spark.createDataFrame([], self._registry.fallback_frame(bound).schema)


def _spark_root(root: str) -> str:
    return root if "://" in root else f"file://{root}"
