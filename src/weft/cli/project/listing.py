"""`weft list`: the queries of a project, as the files and the catalog know them."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import Any

import typer

from weft.catalog.store import QueryRecord
from weft.cli.completing import Folder
from weft.cli.output import console, print_json, print_lines
from weft.cli.project.folder import load
from weft.cli.project.queries import QueryFile, read_queries, same_query
from weft.cli.project.recorded import Recorded, recorded
from weft.explain.axis import ROWS, TIME
from weft.runtime.planning.versions import ALWAYS

NEW, CHANGED, ORPHAN = "new", "changed", "orphan"
_NOTES = {
    NEW: "`weft run` will register it",
    CHANGED: "its file changed: `weft run` will register it anew",
    ORPHAN: "it has no file: `weft run` will drop it",
}
_HEADINGS = ("query", "status", "late pairs", "complete from", "file", "detail")
_GAP = "  "


def list_queries(
    folder: Folder,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show the queries and their status."""
    project = load(folder)
    files, problems = read_queries(project.queries)
    record = recorded(project)
    queries = described(files, record.live() if record is not None else [])
    if as_json:
        print_json(queries)
        return
    for problem in problems:
        print(problem, file=sys.stderr)
    if not queries:
        print("no query is registered")
        return
    counting = _counting_rows(record)
    rows = [_cells(query, query["name"] in counting) for query in queries]
    if sys.stdout.isatty():
        _print_for_people(rows, shutil.get_terminal_size().columns)
    else:
        print_lines((_HEADINGS, *rows))


def described(files: list[QueryFile], live: list[QueryRecord]) -> list[dict[str, Any]]:
    """Every query of the files and of the catalog; `status` says where the two differ."""
    by_name = {query.name: query for query in files}
    queries = []
    for record in live:
        file = by_name.pop(record.name, None)
        status, detail = record.status, record.detail
        if file is None:
            status, detail = ORPHAN, detail or _NOTES[ORPHAN]
        elif not same_query(file.sql, record.sql):
            status, detail = CHANGED, _NOTES[CHANGED]
        since = record.complete_from
        queries.append(
            {
                "name": record.name,
                "status": status,
                "file": file.file if file else None,
                "late_pairs": record.late,
                "complete_from": None if since is None or since == ALWAYS else since,
                "detail": detail,
                "sql": record.sql,
            }
        )
    queries += [
        {
            "name": file.name,
            "status": NEW,
            "file": file.file,
            "late_pairs": 0,
            "complete_from": None,
            "detail": _NOTES[NEW],
            "sql": file.sql,
        }
        for file in by_name.values()
    ]
    return queries


def _counting_rows(record: Recorded | None) -> set[str]:
    """The queries over windows of rows, for which row numbers stand where others have times."""
    plans = record.plans() if record is not None else []
    return {query.name for plan in plans for query in plan.queries if query.counts_rows}


def _cells(query: dict[str, Any], counts_rows: bool) -> tuple[str, ...]:
    since = query["complete_from"]
    point = ROWS.point if counts_rows else TIME.point
    return (
        query["name"],
        query["status"],
        f"{query['late_pairs']:,}",
        "–" if since is None else point(since),
        query["file"] or "–",
        query["detail"],
    )


def _print_for_people(rows: list[tuple[str, ...]], width: int) -> None:
    """Aligned columns, each detail in lines of its own below its query. The file is left out where
    there is no room for it."""
    columns = list(zip(*[_HEADINGS, *rows], strict=True))[:-1]
    widths = [max(map(len, column)) for column in columns]
    if sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        widths.pop()
    out = console()
    for row, (*cells, detail) in enumerate((_HEADINGS, *rows)):
        aligned = [
            cell.rjust(size) if number == 2 else cell.ljust(size)
            for number, (cell, size) in enumerate(zip(cells, widths, strict=False))
        ]
        line = _GAP.join(aligned).rstrip()
        out.print(line, style="bold" if row == 0 else None, markup=False, soft_wrap=True)
        if row and detail:
            for part in textwrap.wrap(detail, max(width - 4, 20)):
                out.print(f"    {part}", markup=False, soft_wrap=True)
