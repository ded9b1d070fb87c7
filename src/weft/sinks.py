"""Sinks: `weft.sinks.parquet("out")`, `memory()`, `console()`, `callback(f)`, `spark(format)`."""

from weft.runtime.sinks.sinks import callback, console, memory, parquet, route, spark, store

__all__ = ["callback", "console", "memory", "parquet", "route", "spark", "store"]
