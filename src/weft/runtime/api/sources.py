"""Streams and tables as the user gave them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from weft.algebra.query import Field, StreamSchema, quote
from weft.errors import CatalogError
from weft.sql.reading.intervals import IntervalProblem, interval_micros
from weft.sql.reading.source import SYMBOL, read

_WATERMARK = "spark.watermarkDelayMs"


@dataclass(frozen=True)
class StreamSource:
    """A streaming DataFrame with its event time."""

    schema: StreamSchema
    frame: DataFrame
    has_watermark: bool

    def watermarked(self) -> DataFrame:
        """The frame with its watermark, as plain Spark would run it."""
        if self.has_watermark:
            return self.frame
        delay = f"{self.schema.delay // 1000} milliseconds"
        return self.frame.withWatermark(self.schema.time, delay)


def source(name: str, frame: DataFrame, time: str | None, watermark: str | None) -> StreamSource:
    """Check a streaming DataFrame and its event time; both are inferred from a watermark."""
    if not frame.isStreaming:
        raise CatalogError("STREAM_NOT_STREAMING", name=name)
    marked = [f for f in frame.schema.fields if _WATERMARK in (f.metadata or {})]
    if time is None:
        if len(marked) != 1:
            detail = "name it with time=, or call withWatermark on the DataFrame"
            raise CatalogError("TIME_COLUMN", name=name, detail=detail)
        time = marked[0].name
    found = [f for f in frame.schema.fields if f.name.lower() == time.lower()]
    if not found:
        known = ", ".join(frame.columns)
        detail = f"there is no column '{time}'; columns: {known}"
        raise CatalogError("TIME_COLUMN", name=name, detail=detail)
    column = found[0]
    type_ = column.dataType.simpleString()
    if type_ != "timestamp":
        raise CatalogError("TIME_COLUMN", name=name, detail=f"'{column.name}' is {type_}")
    own = column in marked
    if watermark is not None:
        delay = _delay(name, watermark)
    elif own:
        delay = int(column.metadata[_WATERMARK]) * 1000
    else:
        raise CatalogError("WATERMARK", name=name, detail="give watermark=, such as '10 seconds'")
    fields = tuple(Field(f.name, f.dataType.simpleString()) for f in frame.schema.fields)
    lowered = [f.name.lower() for f in fields]
    if len(set(lowered)) != len(lowered):
        raise CatalogError("TIME_COLUMN", name=name, detail="two columns have one name")
    same = own and watermark is None
    return StreamSource(StreamSchema(name, fields, column.name, delay), frame, same)


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
    sql: str,
    sources: Mapping[str, StreamSource],
    tables: Mapping[str, object],
) -> DataFrame:
    """A query over streams and tables under their own names, without touching the catalog.

    Names are given by common table expressions over views with names of their own, which
    are gone when the query is analysed. In parentheses the query may have some of its own.
    """
    views: dict[str, str] = {}
    frames: dict[str, DataFrame] = {n: s.watermarked() for n, s in sources.items()}
    frames |= {name: table for name, table in tables.items() if isinstance(table, DataFrame)}
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
