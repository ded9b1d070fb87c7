"""Spark's own rules for streaming queries, applied to a query before it runs.

Many queries that Spark analyses it refuses only when they start as a stream: ORDER BY, DISTINCT
without a watermark, outer joins of streams without a range condition. So a query that runs alone is
started once over empty streams of the same columns and watermarks, into a sink that writes nothing,
and stopped at once: Spark checks its rules before it reads anything. Stand-ins have no operators of
their own: what the user's DataFrame did before `add_stream` is not checked again.

Measured on two busy cores: 0.1 seconds a query, 0.03 for one that is refused; each text is asked
once for the same columns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.runtime.queries.sources import StreamSource, frame_over
from weft.sql.fallback import Fallback

_MOST_REMEMBERED = 1000


class StreamingRules:
    """Asks Spark whether queries may run as streams, each once."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._accepted: set[tuple[object, ...]] = set()

    def check(
        self, query: Fallback, sources: Mapping[str, StreamSource], tables: Mapping[str, object]
    ) -> None:
        """Raises Spark's objection to the query as a stream, if it has one."""
        schemas = tuple(sources[name].schema for name in query.streams)
        shapes = tuple(
            table.schema.json()
            for name in query.tables
            if isinstance(table := tables[name], DataFrame)
        )
        asked = (query.sql, schemas, shapes)
        if asked in self._accepted:
            return
        frames = {name: self._stream(sources[name]) for name in query.streams}
        for name in query.tables:
            table = tables[name]
            if isinstance(table, DataFrame):
                frames[name] = self._spark.createDataFrame([], table.schema)
        self._start_and_stop(frame_over(self._spark, query.sql, frames))
        if len(self._accepted) >= _MOST_REMEMBERED:
            self._accepted.clear()
        self._accepted.add(asked)

    def _stream(self, source: StreamSource) -> DataFrame:
        """An empty stream with the columns and the watermark of a source."""
        ticks = self._spark.readStream.format("rate").load()
        fields = source.frame.schema.fields
        empty = ticks.select(*[F.lit(None).cast(f.dataType).alias(f.name) for f in fields])
        return empty.withWatermark(source.schema.time, source.delay)

    def _start_and_stop(self, frame: DataFrame) -> None:
        with tempfile.TemporaryDirectory(
            prefix="weft-check-", ignore_cleanup_errors=True
        ) as folder:
            writer = frame.writeStream.format("noop").outputMode("append")
            writer = writer.option("checkpointLocation", f"file://{folder}")
            writer.trigger(availableNow=True).start().stop()
