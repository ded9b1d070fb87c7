"""Runs weft on drawn cases and collects what it emits, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.oracle.plain_spark import ddl, python_rows, write_batches
from tests.oracle.sparktypes import Type
from tests.oracle.values import Value

import weft
from weft.runtime.checkpoint.log import Entry
from weft.runtime.sinks.delivery import StepResults

Emitted = list[tuple[int, tuple[Value, ...]]]


@dataclass
class Recorder:
    """A sink that keeps every query's rows with the index of their step."""

    name: str = "recorder"
    rows: dict[str, Emitted] = field(default_factory=dict)
    types: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def write(self, results: StepResults) -> list[Entry]:
        for query, table in results.by_query():
            emitted = self.rows.setdefault(query.name, [])
            emitted.extend((results.batch, row) for row in python_rows(table))
        return []


@dataclass
class Outcome:
    """What a run gave: rows by query, and each query's status and error."""

    rows: dict[str, Emitted]
    status: dict[str, str]
    detail: dict[str, str]
    late: dict[str, int]
    columns: dict[str, list[tuple[str, str]]]


def session(
    spark: SparkSession, *, ansi: bool = True, spark_settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A session of its own, so that settings do not leak between tests."""
    own_session = spark.newSession()
    for key, value in (spark_settings or {}).items():
        own_session.conf.set(key, value)
    own_session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    own_session.conf.set("spark.sql.session.timeZone", "UTC")
    own_session.conf.set("spark.sql.shuffle.partitions", "1")
    return own_session


def run_weft(
    spark: SparkSession,
    queries: Mapping[str, str],
    schema: Mapping[str, Type],
    batches: Sequence[Sequence[Mapping[str, Value]]],
    delay: int,
    *,
    directory: Path,
    ansi: bool = True,
    spark_settings: Mapping[str, str] | None = None,
    **settings: Any,
) -> Outcome:
    """All queries over the batches, to the end; `directory` must not exist yet."""
    own_session = session(spark, ansi=ansi, spark_settings=spark_settings)
    write_batches(directory / "input", schema, batches)
    source = (
        own_session.readStream.schema(ddl(schema))
        .option("maxFilesPerTrigger", 1)
        .parquet(str(directory / "input"))
    )
    w = weft.Weft(own_session, directory / "checkpoint", **settings)
    w.add_stream("s", source, time="ts", watermark=f"{delay // 1000} milliseconds")
    with w.changes():
        for name, text in queries.items():
            w.register(name, text)
    recorder = Recorder()
    run = w.start(sink=recorder, availableNow=True)
    run.awaitTermination()
    handles = w.queries
    columns = {}
    for handle in handles:
        bound = w._registry.of(handle._record)
        if isinstance(bound, weft.algebra.query.Query):  # type: ignore[attr-defined]
            columns[handle.name] = [(c.name, c.type) for c in bound.columns]
    return Outcome(
        rows={name: recorder.rows.get(name, []) for name in queries},
        status={handle.name: handle.status for handle in handles},
        detail={handle.name: handle.detail for handle in handles},
        late={handle.name: handle.late_pairs for handle in handles},
        columns=columns,
    )
