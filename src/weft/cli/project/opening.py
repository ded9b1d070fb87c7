"""From a project to a `Weft` with its streams, tables and sink."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from weft import sinks
from weft.cli.output import first_line
from weft.cli.project.folder import DeclaredRelation, Project, absolute
from weft.cli.project.problems import InvalidProject, Problem
from weft.errors import WeftError
from weft.runtime.api.weft import Weft
from weft.runtime.sinks.delivery import Sink

FORMATS = ("csv", "json", "orc", "parquet", "rate", "socket", "text", "xml")
"""The formats that Spark reads without further packages."""
_UNKNOWN_FORMAT = ("DATA_SOURCE_NOT_FOUND", "ClassNotFoundException")


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
        except (WeftError, PySparkException, Py4JError) as error:
            problems.append(_problem(project, error, "streams", stream))
    for table in project.tables:
        try:
            weft.add_table(table.name, _open_table(spark, table))
        except (WeftError, PySparkException, Py4JError) as error:
            problems.append(_problem(project, error, "tables", table))
    if problems:
        raise InvalidProject(problems)


def _open_stream(spark: SparkSession, stream: DeclaredRelation) -> DataFrame:
    reader = spark.readStream.format(stream.format).options(**stream.options)
    if stream.schema:
        reader = reader.schema(stream.schema)
    frame = reader.load(stream.path) if stream.path else reader.load()
    return frame.selectExpr(*stream.select) if stream.select else frame


def _open_table(spark: SparkSession, table: DeclaredRelation) -> DataFrame:
    reader = spark.read.format(table.format).options(**table.options)
    if table.schema:
        reader = reader.schema(table.schema)
    return reader.load(table.path) if table.path else reader.load()


def _problem(
    project: Project,
    error: WeftError | PySparkException | Py4JError,
    kind: str,
    relation: DeclaredRelation,
) -> Problem:
    """What is wrong with a stream or a table, at its place in `weft.yaml`."""
    if isinstance(error, WeftError):
        line, column = project.located.place((kind, relation.name))
        return Problem("weft.yaml", line, column, error.error_class, error.message)
    cannot = f"Spark cannot open '{relation.name}'"
    if any(sign in str(error) for sign in _UNKNOWN_FORMAT):
        detail = f"{cannot}: {_unknown_format(relation.format)}"
        return project.problem(detail, kind, relation.name, "format")
    return project.problem(f"{cannot}: {_reason(error)}", kind, relation.name)


def _unknown_format(format: str) -> str:
    similar = difflib.get_close_matches(format, FORMATS, n=1)
    guess = f" (did you mean '{similar[0]}'?)" if similar else ""
    return (
        f"there is no format '{format}'{guess}. Spark comes with {', '.join(FORMATS)}; others, "
        "such as kafka, need their package: see spark.jars.packages"
    )


def _reason(error: PySparkException | Py4JError) -> str:
    """What Spark or Java says. The first line of py4j's own errors only names the call."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, Py4JError) and len(lines) > 1:
        return lines[1].lstrip(": ")
    return first_line(error)


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
