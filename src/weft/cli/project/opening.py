"""From a project to a `Weft` with its streams, tables and sink."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from weft import sinks
from weft.cli.project.folder import Project, Relation, absolute
from weft.cli.project.problems import InvalidProject, Problem
from weft.errors import WeftError
from weft.runtime.api.weft import Weft
from weft.runtime.sinks.sinks import Sink


def open_weft(spark: SparkSession, project: Project) -> Weft:
    """The project's own `Weft`, on its checkpoint."""
    weft = Weft(
        spark,
        project.checkpoint,
        catalog=project.catalog,
        project=project.name,
        **project.settings,
    )
    add_relations(weft, spark, project)
    return weft


@contextmanager
def draft_weft(spark: SparkSession, project: Project) -> Iterator[Weft]:
    """A `Weft` like the project's on a checkpoint that is thrown away, to try things on."""
    with tempfile.TemporaryDirectory(prefix="weft-draft-") as folder:
        weft = Weft(spark, Path(folder) / "checkpoint", **project.settings)
        add_relations(weft, spark, project)
        yield weft


def add_relations(weft: Weft, spark: SparkSession, project: Project) -> None:
    """Add all streams and tables; raises `InvalidProject` with all that cannot be opened."""
    problems: list[Problem] = []
    for stream in project.streams:
        try:
            weft.add_stream(stream.name, _open_stream(spark, stream), stream.time, stream.watermark)
        except (WeftError, PySparkException) as error:
            problems.append(_problem(project, error, "streams", stream.name))
    for table in project.tables:
        try:
            weft.add_table(table.name, _open_table(spark, table))
        except (WeftError, PySparkException) as error:
            problems.append(_problem(project, error, "tables", table.name))
    if problems:
        raise InvalidProject(problems)


def _open_stream(spark: SparkSession, stream: Relation) -> DataFrame:
    reader = spark.readStream.format(stream.format).options(**stream.options)
    if stream.schema:
        reader = reader.schema(stream.schema)
    frame = reader.load(stream.path) if stream.path else reader.load()
    return frame.selectExpr(*stream.select) if stream.select else frame


def _open_table(spark: SparkSession, table: Relation) -> DataFrame:
    reader = spark.read.format(table.format).options(**table.options)
    if table.schema:
        reader = reader.schema(table.schema)
    return reader.load(table.path) if table.path else reader.load()


def _problem(
    project: Project, error: WeftError | PySparkException, kind: str, name: str
) -> Problem:
    if isinstance(error, WeftError):
        line, column = project.located.place((kind, name))
        return Problem("weft.yaml", line, column, error.error_class, error.message)
    return project.problem(f"Spark cannot open '{name}': {first_line(error)}", kind, name)


def first_line(error: BaseException) -> str:
    """What an error of Spark says, without its stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def sink_of(project: Project) -> Sink:
    """The sink that `weft.yaml` names, with routes for single queries."""
    default = _sink(project, project.sink)
    if not project.routes:
        return default
    routes = {query: _sink(project, described) for query, described in project.routes.items()}
    return sinks.route(routes, default)


def readable_sink(project: Project, query: str) -> str | None:
    """None if `weft results` can read a query's results back, else where they went."""
    described = project.routes.get(query, project.sink)
    if described == "store" or (isinstance(described, dict) and "parquet" in described):
        return None
    return "console" if described == "console" else f"spark({described['spark']!r})"


def _sink(project: Project, described: Any) -> Sink:
    if described == "store":
        return sinks.store()
    if described == "console":
        return sinks.console()
    if "parquet" in described:
        return sinks.parquet(absolute(project.folder, described["parquet"]))
    options = dict(described.get("options") or {})
    if isinstance(options.get("path"), str):
        options["path"] = absolute(project.folder, options["path"])
    return sinks.spark(described["spark"], mode=described.get("mode", "append"), **options)
