"""Sinks: `weft.sinks.parquet("out")`, `memory()`, `console()`, `callback(f)`, `spark(format)`.

| sink | delivery | readable by results() |
|---|---|---|
| store, parquet | exactly once | yes |
| memory | exactly once within a process | yes, the latest rows |
| console, callback, spark | at least once | no |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from weft.runtime.sinks.callback import CallbackSink
from weft.runtime.sinks.console import ConsoleSink
from weft.runtime.sinks.delivery import Sink
from weft.runtime.sinks.memory import ROWS_KEPT, MemorySink
from weft.runtime.sinks.routes import RouteSink
from weft.runtime.sinks.spark import SparkSink
from weft.runtime.sinks.store import ResultStore

__all__ = ["callback", "console", "memory", "parquet", "route", "spark", "store"]


def store() -> ResultStore:
    """The result store inside the checkpoint (the default)."""
    return ResultStore()


def parquet(path: str) -> ResultStore:
    """Result files under a folder of your own."""
    return ResultStore(path)


def memory(rows: int = ROWS_KEPT) -> MemorySink:
    """Results in this process: the latest steps, as many as have at most `rows` rows."""
    return MemorySink(rows)


def console(rows: int = 5) -> ConsoleSink:
    """The first rows of every query and batch on standard output."""
    return ConsoleSink(rows)


def callback(function: Callable[[str, pa.Table, int], Any]) -> CallbackSink:
    """`function(query name, Arrow table, batch id)` for every query and batch."""
    return CallbackSink(function)


def spark(format: str, *, mode: str = "append", **options: Any) -> SparkSink:
    """Any Spark sink format, e.g. `spark("json", path="out/{query}")`."""
    return SparkSink(format, mode=mode, **options)


def route(routes: Mapping[str, Sink], default: Sink | None = None) -> RouteSink:
    """Single queries to sinks of their own."""
    return RouteSink(routes, default or ResultStore())
