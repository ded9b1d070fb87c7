"""`weft register` and `drop`: queries come and go, also in a project that is running.

`register` writes `queries/NAME.sql` and the catalog, `drop` removes both. A process that runs
the project takes either up at its next micro-batch. Spark is started only where the catalog
does not know the streams yet, or where only Spark can judge the query.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from weft.algebra.network.sets import backfilled
from weft.catalog.store import ACTIVE, QueryRecord, check_name
from weft.cli.completing import Folder, query_names
from weft.cli.output import Verbose
from weft.cli.project.folder import Project, load
from weft.cli.project.opening import open_weft
from weft.cli.project.queries import (
    QueryFile,
    backfill_of,
    emit_of,
    read_queries,
    remove_query,
    same_query,
    with_backfill,
    with_emit,
    write_query,
)
from weft.cli.project.recorded import recorded
from weft.cli.project.session import watched_session
from weft.cli.project.unaided import bound_unaided, detail_of
from weft.errors import CatalogError, ProjectError
from weft.runtime.api.handle import QueryHandle
from weft.sql import statements


def register(
    folder: Folder,
    name: str = typer.Argument(..., metavar="NAME", help="The query's name."),
    file: str = typer.Argument(..., metavar="FILE.sql", help="Its SQL; - is standard input."),
    emit: str | None = typer.Option(
        None, metavar="KIND", help="What an aggregation join emits: full or changes."
    ),
    backfill: bool = typer.Option(
        False, "--backfill", help="A filter or join: also see the rows that history holds."
    ),
    verbose: Verbose = False,
) -> None:
    """Add a query, also to a project that another process is running."""
    project = load(folder)
    check_name(name, "query")
    sql = with_backfill(with_emit(_one_statement(file, name), emit), backfill)
    emit, backfill = emit_of(sql), backfill_of(sql)
    files, _ = read_queries(project.queries)
    existing = next((query for query in files if query.name == name), None)
    if existing is not None and not _is_same_file(existing.path, file):
        raise CatalogError(
            "DUPLICATE_NAME", query=name, kind=f"query in {existing.file}", name=name
        )
    record = recorded(project)
    if record is not None and any(live.name == name for live in record.live()):
        raise CatalogError("DUPLICATE_NAME", query=name, kind="query", name=name)
    bound = None
    if record is not None:
        bound = bound_unaided(record, project, name, sql, query_id=name, emit=emit)
        if bound is not None and backfill:
            bound = backfilled(bound)
    if record is not None and bound is not None:
        detail = detail_of(bound, record.schemas())
        with _written(project, name, sql, existing, record.live):
            record.catalog.add_query(name, sql, ACTIVE, detail, backfill=backfill)
    else:
        with (
            watched_session(project, f"registering {name}") as spark,
            open_weft(spark, project) as weft,
            _written(project, name, sql, existing, lambda: weft.queries),
        ):
            detail = weft.register(name, sql, emit=emit, backfill=backfill).detail
    print(f"registered {name}")
    if detail:
        print(f"{name}: {detail}", file=sys.stderr)


def drop(
    folder: Folder,
    name: str = typer.Argument(
        ..., metavar="NAME", help="The query's name.", autocompletion=query_names
    ),
) -> None:
    """Remove a query and its file.

    Also from a project that another process is running.
    """
    project = load(folder)
    files, _ = read_queries(project.queries)
    existing = next((query for query in files if query.name == name), None)
    record = recorded(project)
    live = record.live() if record is not None else []
    if record is not None and any(query.name == name for query in live):
        record.catalog.drop_query(name)
    elif existing is None:
        names = sorted({query.name for query in files} | {query.name for query in live})
        raise CatalogError("UNKNOWN_QUERY", name=name, known=", ".join(names) or "none")
    if existing is not None:
        remove_query(existing)
    print(f"dropped {name}")


def _one_statement(file: str, name: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError("PROJECT", detail=f"cannot read {file}: {error}") from None
    parts = list(statements(text))
    if len(parts) != 1:
        detail = f"{file} holds {len(parts)} queries; register takes a file with one"
        raise ProjectError("PROJECT", query=name, detail=detail)
    if parts[0].name not in (None, name):
        detail = f"{file} holds the query '{parts[0].name}'"
        raise ProjectError("PROJECT", query=name, detail=detail)
    return parts[0].sql if parts[0].name else text


def _is_same_file(path: Path, file: str) -> bool:
    return file != "-" and os.path.exists(file) and path.samefile(file)


@contextmanager
def _written(
    project: Project,
    name: str,
    sql: str,
    existing: QueryFile | None,
    live: Callable[[], Sequence[QueryRecord | QueryHandle]],
) -> Iterator[None]:
    """The query's file, gone again if the block fails.

    The file comes first, and only one process can create it: the others are refused before they
    change anything. A process that begins to run the project in between finds the file and
    registers the query itself; then the name is taken by the same query, and all is well.
    """
    path = None if existing is not None else write_query(project.queries, name, sql)
    try:
        yield
    except BaseException as error:
        if path is not None:
            if _is_taken(error) and _holds(live(), name, sql):
                return
            path.unlink(missing_ok=True)
        raise


def _is_taken(error: BaseException) -> bool:
    return isinstance(error, CatalogError) and error.error_class == "DUPLICATE_NAME"


def _holds(live: Sequence[QueryRecord | QueryHandle], name: str, sql: str) -> bool:
    """Whether the same query is registered under the name."""
    return any(query.name == name and same_query(query.sql, sql) for query in live)
