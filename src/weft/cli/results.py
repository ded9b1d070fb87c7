"""`weft results`: a query's results, read from the files that commits name."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import typer
from rich.table import Table

from weft.algebra.query import Query
from weft.catalog.store import QUARANTINED, REJECTED
from weft.cli.completing import Folder, query_names
from weft.cli.output import console, print_json, to_jsonable
from weft.cli.project.folder import Project, load
from weft.cli.project.opening import open_weft, readable_sink
from weft.cli.project.queries import read_queries
from weft.cli.project.recorded import recorded
from weft.cli.project.session import defaults, session
from weft.errors import CatalogError, RunError
from weft.kernel.windows.program import family
from weft.kernel.windows.results import QUERY_COLUMN, output_names
from weft.runtime.protocol.log import StreamLog
from weft.runtime.protocol.storage import Storage
from weft.runtime.sinks.sinks import results_folder

_SHOWN, _TRIES = 20, 3


def results(
    folder: Folder,
    query: str = typer.Argument(
        ..., metavar="QUERY", help="The query's name.", autocompletion=query_names
    ),
    limit: int | None = typer.Option(
        None, min=0, metavar="N", help="The last N rows; 0 is all. [20; with --json all]"
    ),
    as_json: bool = typer.Option(False, "--json", help="Print a JSON array of rows."),
) -> None:
    """Show a query's results, the latest last."""
    project = load(folder)
    table = read_results(project, query)
    wanted = limit if limit is not None else 0 if as_json else _SHOWN
    shown = table.slice(max(0, table.num_rows - wanted)) if wanted else table
    if as_json:
        print_json(shown.to_pylist())
        return
    zone = ZoneInfo({**defaults(), **project.spark}["spark.sql.session.timeZone"])
    console().print(_render(shown, zone))
    rest = f"the last {shown.num_rows:,} of " if shown.num_rows < table.num_rows else ""
    print(f"{rest}{table.num_rows:,} {'row' if table.num_rows == 1 else 'rows'}")


def read_results(project: Project, name: str) -> pa.Table:
    """All results of a query in its own columns, in the order of its batches."""
    record = recorded(project)
    live = record.live() if record is not None else []
    found = next((each for each in live if each.name == name), None)
    if record is None or found is None:
        files, _ = read_queries(project.queries)
        if any(file.name == name for file in files):
            raise RunError("QUERY_FAILED", query=name, detail="it has not run yet: see `weft run`")
        known = ", ".join(sorted(each.name for each in live)) or "none"
        raise CatalogError("UNKNOWN_QUERY", name=name, known=known)
    elsewhere = readable_sink(project, name)
    if elsewhere is not None:
        raise RunError("NO_RESULTS", name=name, sink=elsewhere)
    bound = record.bound(found)
    if bound is not None:
        return _stored(*bound)
    if found.status in (QUARANTINED, REJECTED):
        raise RunError("QUERY_FAILED", query=name, detail=found.detail)
    with session(project.name, project.spark) as spark:
        return open_weft(spark, project).results(name).toArrow()


def _stored(log: StreamLog, query: Query) -> pa.Table:
    """The query's rows; a run beside us may merge files away while we read, so try again."""
    for attempt in range(_TRIES):
        try:
            return _read(log, query)
        except FileNotFoundError:
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("unreachable")


def _read(log: StreamLog, query: Query) -> pa.Table:
    wanted = family(query.output_types)
    columns = output_names(len(query.columns))
    parts = []
    for entry in log.result_files():
        if entry["family"] == wanted:
            rows = Storage(results_folder(log.storage, entry["root"])).read_table(
                entry["name"], columns
            )
            parts.append(rows.filter(pc.equal(rows.column(QUERY_COLUMN), query.id)))
    names = [column.name for column in query.columns]
    if not parts:
        return pa.table({name: pa.array([]) for name in names})
    rows = pa.concat_tables(parts).drop_columns([QUERY_COLUMN])
    return rows.select(columns[1:]).rename_columns(names)


def _render(rows: pa.Table, zone: ZoneInfo) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for field in rows.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        number = number or pa.types.is_decimal(field.type)
        table.add_column(field.name, justify="right" if number else "left", no_wrap=True)
    for row in rows.to_pylist():
        table.add_row(*(_cell(value, zone) for value in row.values()))
    return table


def _cell(value: Any, zone: ZoneInfo) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, dict):
        return " – ".join(_cell(item, zone) for item in value.values())
    if hasattr(value, "astimezone") and value.tzinfo is not None:
        return str(value.astimezone(zone).replace(tzinfo=None))
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.2f}"
    if isinstance(value, bool):
        return str(value).lower()
    return str(to_jsonable(value))
