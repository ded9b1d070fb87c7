"""`weft register`, `drop` and `list`: the queries, also of a project that is running.

`register` writes `queries/NAME.sql` and the catalog, `drop` removes both. A process that runs
the project takes either up at its next micro-batch. Spark is started only where the catalog
does not know the streams yet, or where only Spark can judge the query.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from weft.algebra.query import Field, Query
from weft.catalog.store import QueryRecord, check_name
from weft.cli.output import console, print_json
from weft.cli.project.folder import Project, load
from weft.cli.project.opening import open_weft
from weft.cli.project.queries import QueryFile, read_queries, remove_query, same_query, write_query
from weft.cli.project.recorded import Recorded, recorded
from weft.cli.project.session import session
from weft.errors import CatalogError, ProjectError
from weft.explain.axis import ROWS, TIME
from weft.runtime.planning.versions import ALWAYS
from weft.sql import bind, statements

NEW, CHANGED, ORPHAN = "new", "changed", "orphan"
_NOTES = {
    NEW: "`weft run` will register it",
    CHANGED: "its file changed: `weft run` will register it anew",
    ORPHAN: "it has no file: `weft run` will drop it",
}


def register(
    folder: Path = typer.Argument(..., metavar="DIR", help="A project folder."),
    name: str = typer.Argument(..., metavar="NAME", help="The query's name."),
    file: str = typer.Argument(..., metavar="FILE.sql", help="Its SQL; - is standard input."),
) -> None:
    """Add a query, also to a project that another process is running."""
    project = load(folder)
    check_name(name, "query")
    sql = _one_statement(file, name)
    known, _ = read_queries(project.queries)
    own = next((query for query in known if query.name == name), None)
    if own is not None and not _is_same_file(own.path, file):
        raise CatalogError("DUPLICATE_NAME", query=name, kind=f"query in {own.file}", name=name)
    record = recorded(project)
    if record is not None and any(live.name == name for live in record.live()):
        raise CatalogError("DUPLICATE_NAME", query=name, kind="query", name=name)
    if record is not None and _bound_without_spark(record, project, name, sql):
        with _written(project, name, sql, own):
            record.catalog.add_query(name, sql)
    else:
        with session(project.name, project.spark) as spark:
            weft = open_weft(spark, project)
            with _written(project, name, sql, own):
                weft.register(name, sql)
    print(f"registered {name}")


def drop(
    folder: Path = typer.Argument(..., metavar="DIR", help="A project folder."),
    name: str = typer.Argument(..., metavar="NAME", help="The query's name."),
) -> None:
    """Remove a query and its file, also from a project that another process is running."""
    project = load(folder)
    known, _ = read_queries(project.queries)
    own = next((query for query in known if query.name == name), None)
    record = recorded(project)
    live = record.live() if record is not None else []
    if record is not None and any(each.name == name for each in live):
        record.catalog.drop_query(name)
    elif own is None:
        names = sorted({query.name for query in known} | {each.name for each in live})
        raise CatalogError("UNKNOWN_QUERY", name=name, known=", ".join(names) or "none")
    if own is not None:
        remove_query(own)
    print(f"dropped {name}")


def list_queries(
    folder: Path = typer.Argument(..., metavar="DIR", help="A project folder."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show the queries and their status."""
    project = load(folder)
    known, _ = read_queries(project.queries)
    record = recorded(project)
    rows = _rows(known, record.live() if record is not None else [])
    if as_json:
        print_json(rows)
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("query", "status", "file", "late", "complete from", "detail"):
        table.add_column(heading, justify="right" if heading == "late" else "left")
    counting = _counting_rows(record)
    for row in rows:
        since = row["complete_from"]
        point = ROWS.point if row["name"] in counting else TIME.point
        table.add_row(
            row["name"],
            row["status"],
            row["file"] or "–",
            f"{row['late']:,}",
            "–" if since is None else point(since),
            row["detail"],
        )
    console().print(table if rows else "no query is registered")


def _counting_rows(record: Recorded | None) -> set[str]:
    """The queries over windows of rows, for which row numbers stand where others have times."""
    commits = record.commits() if record is not None else ()
    plans = (log.plan(last.plan_version) for log, last in commits)
    return {query.name for plan in plans for query in plan.queries if query.counts_rows}


def _rows(files: list[QueryFile], live: list[QueryRecord]) -> list[dict[str, Any]]:
    by_name = {query.name: query for query in files}
    rows = []
    for record in live:
        file = by_name.pop(record.name, None)
        status, detail = record.status, record.detail
        if file is None:
            status, detail = ORPHAN, detail or _NOTES[ORPHAN]
        elif not same_query(file.sql, record.sql):
            status, detail = CHANGED, _NOTES[CHANGED]
        since = record.complete_from
        rows.append(
            {
                "name": record.name,
                "status": status,
                "file": file.file if file else None,
                "late": record.late,
                "complete_from": None if since is None or since == ALWAYS else since,
                "detail": detail,
                "sql": record.sql,
            }
        )
    rows += [
        {
            "name": file.name,
            "status": NEW,
            "file": file.file,
            "late": 0,
            "complete_from": None,
            "detail": _NOTES[NEW],
            "sql": file.sql,
        }
        for file in by_name.values()
    ]
    return rows


def _one_statement(file: str, name: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError("PROJECT", detail=f"cannot read {file}: {error}") from None
    found = list(statements(text))
    if len(found) != 1:
        detail = f"{file} holds {len(found)} queries; register takes a file with one"
        raise ProjectError("PROJECT", query=name, detail=detail)
    if found[0].name not in (None, name):
        detail = f"{file} holds the query '{found[0].name}'"
        raise ProjectError("PROJECT", query=name, detail=detail)
    return found[0].sql if found[0].name else text


def _is_same_file(path: Path, file: str) -> bool:
    return file != "-" and os.path.exists(file) and path.samefile(file)


class _AskSparkError(Exception):
    """Only Spark can tell."""


class _NoSpark:
    """An analyzer that knows nothing: what it is asked needs a session."""

    def types(self, fields: tuple[Field, ...], expressions: tuple[str, ...]) -> Any:
        raise _AskSparkError

    def output_names(self, fields: tuple[Field, ...], expressions: tuple[str, ...]) -> Any:
        raise _AskSparkError


def _bound_without_spark(record: Recorded, project: Project, name: str, sql: str) -> bool:
    """Whether the query is surely shared; raises if it is surely wrong."""
    schemas = record.schemas()
    if not {stream.name for stream in project.streams} <= schemas.keys():
        return False
    tables = [table.name for table in project.tables]
    try:
        bound = bind(
            name, sql, schemas, _NoSpark(), query_id=name, ansi=_ansi(project), tables=tables
        )
    except _AskSparkError:
        return False
    return isinstance(bound, Query)


def _ansi(project: Project) -> bool:
    default = os.environ.get("SPARK_ANSI_SQL_MODE", "true")
    return project.spark.get("spark.sql.ansi.enabled", default).lower() == "true"


@contextmanager
def _written(project: Project, name: str, sql: str, own: QueryFile | None) -> Iterator[None]:
    """The query's file, gone again if the block fails.

    The file comes first: a process that starts in between finds it and keeps the query.
    """
    path = None if own is not None else write_query(project.queries, name, sql)
    try:
        yield
    except BaseException:
        if path is not None:
            path.unlink(missing_ok=True)
        raise
