"""Streams and tables as the user gave them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from weft.algebra.query import Field, StreamSchema, quote
from weft.errors import CatalogError
from weft.runtime.level1.signatures import own_name
from weft.sql.fallback import Fallback
from weft.sql.reading.intervals import IntervalProblem, interval_micros
from weft.sql.reading.source import SYMBOL, read

_WATERMARK = "spark.watermarkDelayMs"


@dataclass(frozen=True)
class StreamSource:
    """A streaming DataFrame with its event time."""

    schema: StreamSchema
    frame: DataFrame
    has_watermark: bool

    @property
    def delay(self) -> str:
        """The delay of the watermark, as Spark takes it."""
        return f"{self.schema.delay // 1000} milliseconds"

    def watermarked(self) -> DataFrame:
        """The frame with its watermark, as plain Spark would run it."""
        if self.has_watermark:
            return self.frame
        return self.frame.withWatermark(self.schema.time, self.delay)


def source(name: str, frame: DataFrame, time: str | None, watermark: str | None) -> StreamSource:
    """Check a streaming DataFrame and its event time; both are inferred from a watermark."""
    if not frame.isStreaming:
        raise CatalogError("STREAM_NOT_STREAMING", name=name)
    check_columns(name, frame)
    marked = [f for f in frame.schema.fields if _WATERMARK in (f.metadata or {})]
    if time is None:
        if len(marked) != 1:
            detail = "name it with time=, or call withWatermark on the DataFrame"
            raise CatalogError("TIME_COLUMN", name=name, detail=detail)
        time = marked[0].name
    named = [f for f in frame.schema.fields if f.name.lower() == time.lower()]
    if not named:
        columns = ", ".join(frame.columns)
        detail = f"there is no column '{time}'; columns: {columns}"
        raise CatalogError("TIME_COLUMN", name=name, detail=detail)
    column = named[0]
    type_ = column.dataType.simpleString()
    if type_ != "timestamp":
        raise CatalogError("TIME_COLUMN", name=name, detail=f"'{column.name}' is {type_}")
    is_marked = column in marked
    if watermark is not None:
        delay = _delay(name, watermark)
    elif is_marked:
        delay = int(column.metadata[_WATERMARK]) * 1000
    else:
        raise CatalogError("WATERMARK", name=name, detail="give watermark=, such as '10 seconds'")
    fields = tuple(Field(f.name, f.dataType.simpleString()) for f in frame.schema.fields)
    same = is_marked and watermark is None
    return StreamSource(StreamSchema(name, fields, column.name, delay), frame, same)


def check_columns(name: str, frame: DataFrame, kind: str = "stream") -> None:
    """Refuses names that differ in case only, and those that weft uses itself."""
    prefix = own_name("")
    by_lower_case: dict[str, str] = {}
    for column in frame.columns:
        if column.lower().startswith(prefix):
            raise CatalogError("RESERVED_COLUMN", name=name, reserved=column, prefix=prefix)
        earlier = by_lower_case.get(column.lower())
        if earlier is not None:
            detail = f"{kind} '{name}' has columns '{earlier}' and '{column}'"
            detail += "; weft's names do not depend on case, so rename one of them"
            raise CatalogError("DUPLICATE_COLUMN", detail=detail)
        by_lower_case[column.lower()] = column


def _delay(name: str, watermark: str) -> int:
    try:
        delay = interval_micros(watermark)
    except IntervalProblem as problem:
        raise CatalogError("WATERMARK", name=name, detail=str(problem)) from None
    if delay < 0:
        raise CatalogError("WATERMARK", name=name, detail=f"'{watermark}' is negative")
    return delay // 1000 * 1000


def fallback_frame(
    spark: SparkSession,
    query: Fallback,
    sources: Mapping[str, StreamSource],
    tables: Mapping[str, object],
) -> DataFrame:
    """A query that runs alone, over the streams and tables that it names."""
    frames = {name: sources[name].watermarked() for name in query.streams}
    for name in query.tables:
        table = tables[name]
        if isinstance(table, DataFrame):
            frames[name] = table
    return frame_over(spark, query.sql, frames)


def frame_over(spark: SparkSession, sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """A query over frames under their names, without touching the user's catalog.

    Each name is a common table expression over a view with a name of its own, which is gone when
    the query is analysed. The query stands in parentheses, so that it may have WITH itself. `frames`
    must hold only what the query reads: a stream that is defined and not read freezes the watermark.
    """
    views: dict[str, str] = {}
    try:
        for name, frame in frames.items():
            view = views[name] = f"weft_{uuid.uuid4().hex}"
            frame.createTempView(view)
        parts = [f"{quote(name)} AS (SELECT * FROM {view})" for name, view in views.items()]
        return spark.sql(f"WITH {', '.join(parts)} ({_without_end(sql)}\n)")
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)


def _without_end(sql: str) -> str:
    """The statement without what ends it: semicolons, and comments behind them."""
    tokens = read(sql).tokens[:-1]
    last = max((t.stop for t in tokens if t.kind != SYMBOL or t.upper != ";"), default=0)
    return sql[:last]
