"""Results to any format that Spark can write."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.runtime.checkpoint.commits import Entry
from weft.runtime.frames import frame_of
from weft.runtime.sinks.delivery import StepResults

BATCH, QUERY, SEQUENCE = TAGS = "weft_batch", "weft_query", "weft_seq"
"""The columns, or the headers of a Kafka message, that tell one delivery from another."""
HEADERS = "headers"


class SparkSink:
    """Any format Spark can write: one append per query and batch.

    Rows carry `weft_batch`, `weft_query` and `weft_seq` to deduplicate by; a Kafka message has
    them as headers. An option with `{query}` in it is filled with the query's name; without it
    all queries with the same columns go to the same place.
    """

    def __init__(self, format: str, *, mode: str = "append", **options: Any) -> None:
        self._format, self._mode, self._options = format, mode, options
        self.name = f"spark({format!r})"

    def write(self, results: StepResults) -> list[Entry]:
        for query, table in results.by_query():
            tagged = frame_of(results.spark, with_tags(table, results.batch, query.name))
            frame = with_headers(tagged) if self._format == "kafka" else tagged
            options = {
                key: value.replace("{query}", query.name) if isinstance(value, str) else value
                for key, value in self._options.items()
            }
            frame.write.format(self._format).mode(self._mode).options(**options).save()
        return []


def with_tags(table: pa.Table, batch: int, query: str) -> pa.Table:
    """A query's rows of a batch, each with its batch, its query and its number.

    >>> with_tags(pa.table({"n": [7, 8]}), 3, "hot").to_pylist()[1]
    {'n': 8, 'weft_batch': 3, 'weft_query': 'hot', 'weft_seq': 1}
    """
    count = table.num_rows
    tagged = table.append_column(BATCH, pa.repeat(pa.scalar(batch, pa.int64()), count))
    tagged = tagged.append_column(QUERY, pa.repeat(query, count))
    return tagged.append_column(SEQUENCE, pa.array(range(count), pa.int64()))


def with_headers(frame: DataFrame) -> DataFrame:
    """Tagged rows for Kafka, which takes no columns but its own: the tags become headers, behind
    those that the query gives."""
    tags = F.array(
        *(
            F.struct(
                F.lit(tag).alias("key"), F.col(tag).cast("string").cast("binary").alias("value")
            )
            for tag in TAGS
        )
    )
    if HEADERS in frame.columns:
        tags = F.concat(
            F.coalesce(F.col(HEADERS), F.array().cast(frame.schema[HEADERS].dataType)), tags
        )
    return frame.withColumn(HEADERS, tags).drop(*TAGS)
