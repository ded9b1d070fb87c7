"""Reads a query's results back, in its own columns."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import Query, quote
from weft.catalog.store import QueryRecord
from weft.errors import RunError
from weft.kernel.windows.program import family
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.fallbacks.log import FallbackLog
from weft.runtime.frames import frame_of
from weft.runtime.joinagg.engine import LOG as AGGREGATIONS_LOG
from weft.runtime.network.engine import LOG as NETWORK_LOG
from weft.runtime.queries.registry import Bound, Registry
from weft.runtime.sinks.delivery import Sink
from weft.runtime.sinks.memory import MemorySink
from weft.runtime.sinks.reading import QueryResults, read_steadily
from weft.runtime.sinks.routes import destination
from weft.runtime.sinks.store import ResultStore
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
            return read_steadily(lambda: self._fallback_results(record, bound))
        if bound is None:
            raise RunError("QUERY_FAILED", query=record.name, detail=record.detail)
        return read_steadily(lambda: self._stored_results(bound))

    def _stored_results(self, query: Query | NetworkQuery | AggregationJoin) -> DataFrame:
        wanted = family(query.output_types)
        log = self._log(_log_of(query))
        files = [entry for entry in log.result_files() if entry["family"] == wanted]
        schema = self._spark.createDataFrame([], _ddl(query)).schema
        return QueryResults(query.id, self._storage, files).frame(self._spark, schema)

    def _fallback_results(self, record: QueryRecord, bound: Fallback) -> DataFrame:
        log = FallbackLog(self._storage, record.id)
        stored = log.schema()
        schema = (
            StructType.fromJson(stored) if stored else self._registry.fallback_frame(bound).schema
        )
        files = log.result_files()
        return QueryResults(record.id, self._storage, files).frame(self._spark, schema)

    def _memory_results(
        self, record: QueryRecord, bound: Bound | None, sink: MemorySink
    ) -> DataFrame:
        tables = sink.tables(record.id)
        if tables:
            return frame_of(self._spark, pa.concat_tables(tables))
        if isinstance(bound, Query | NetworkQuery | AggregationJoin):
            return self._spark.createDataFrame([], _ddl(bound))
        if bound is None:
            raise RunError("QUERY_FAILED", query=record.name, detail=record.detail)
        return self._spark.createDataFrame([], self._registry.fallback_frame(bound).schema)


def _log_of(query: Query | NetworkQuery | AggregationJoin) -> str:
    """The log whose commits name a query's results."""
    if isinstance(query, AggregationJoin):
        return AGGREGATIONS_LOG
    return NETWORK_LOG if isinstance(query, NetworkQuery) else query.stream


def _ddl(query: Query | NetworkQuery | AggregationJoin) -> str:
    """A query's columns as Spark reads a schema."""
    return ", ".join(f"{quote(column.name)} {column.type}" for column in query.columns)
