"""`weft results`: a query's results, read from the files that commits name, without Spark."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import typer
from rich.table import Table

from weft.algebra.query import Query
from weft.catalog.store import QUARANTINED, REJECTED
from weft.cli.completing import Folder, query_names
from weft.cli.output import console, print_json, to_jsonable
from weft.cli.project.folder import Project, load
from weft.cli.project.opening import readable_sink
from weft.cli.project.queries import read_queries
from weft.cli.project.recorded import recorded
from weft.cli.project.session import defaults
from weft.errors import CatalogError, RunError
from weft.kernel.windows.program import family
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.fallbacks.log import FallbackLog
from weft.runtime.sinks.reading import QueryResults, read_steadily

_SHOWN = 20
_UNITS = ("day", "hour", "minute", "second")
_INTERVALS = {f"interval {unit}" for unit in _UNITS} | {
    f"interval {first} to {last}" for first in _UNITS for last in _UNITS
}
"""The types that Spark stores as microseconds."""


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
    registered = next((query for query in live if query.name == name), None)
    if record is None or registered is None:
        files, _ = read_queries(project.queries)
        if any(file.name == name for file in files):
            raise RunError("QUERY_FAILED", query=name, detail="it has not run yet: see `weft run`")
        names = ", ".join(sorted(query.name for query in live)) or "none"
        raise CatalogError("UNKNOWN_QUERY", name=name, known=names)
    elsewhere = readable_sink(project, name)
    if elsewhere is not None:
        raise RunError("NO_RESULTS", name=name, sink=elsewhere)
    bound = record.bound(registered)
    if bound is not None:
        return read_steadily(lambda: _shared(*bound))
    plain = FallbackLog(record.storage, registered.id)
    if plain.schema() is not None:
        return read_steadily(lambda: _plain(plain))
    if registered.status in (QUARANTINED, REJECTED):
        raise RunError("QUERY_FAILED", query=name, detail=registered.detail)
    return pa.table({})


def _shared(log: StreamLog, query: Query) -> pa.Table:
    wanted = family(query.output_types)
    files = [entry for entry in log.result_files() if entry["family"] == wanted]
    names = [column.name for column in query.columns]
    return QueryResults(query.id, log.storage, files).table(names)


def _plain(log: FallbackLog) -> pa.Table:
    """The results of a fallback; its columns are described as Spark does it."""
    fields = (log.schema() or {})["fields"]
    names = [field["name"] for field in fields]
    table = QueryResults(log.query_id, log.storage, log.result_files()).table(names)
    for position, field in enumerate(fields):
        if str(field["type"]) in _INTERVALS and table.num_rows:
            column = table.column(position).cast(pa.duration("us"))
            table = table.set_column(position, field["name"], column)
    return table


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
    if isinstance(value, datetime):
        return str(value.astimezone(zone).replace(tzinfo=None) if value.tzinfo else value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.2f}"
    if isinstance(value, bool):
        return str(value).lower()
    return str(to_jsonable(value))
