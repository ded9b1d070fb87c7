"""`weft results`: a query's results, read from the files that commits name, without Spark."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import typer
from rich.table import Table

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import Query
from weft.catalog.store import QUARANTINED, REJECTED, QueryRecord
from weft.cli.completing import Folder, query_names
from weft.cli.output import console, print_json, print_lines, to_jsonable
from weft.cli.project.folder import Project, load
from weft.cli.project.opening import readable_sink
from weft.cli.project.queries import read_queries
from weft.cli.project.recorded import Recorded, recorded
from weft.cli.project.session import defaults
from weft.cli.project.unaided import bound_unaided
from weft.errors import CatalogError, RunError, WeftError
from weft.kernel.windows.program import family
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.fallbacks.log import FallbackLog
from weft.runtime.network.engine import LOG as NETWORK_LOG
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
    """Show a query's results, the latest last.

    A query that failed shows the results from before, and its error on standard error.
    """
    project = load(folder)
    table = read_results(project, query)
    wanted = limit if limit is not None else 0 if as_json else _SHOWN
    shown = table.slice(max(0, table.num_rows - wanted)) if wanted else table
    if as_json:
        print_json(shown.to_pylist())
        return
    zone = ZoneInfo({**defaults(), **project.spark}["spark.sql.session.timeZone"])
    cells = [[_cell(value, zone) for value in row.values()] for row in shown.to_pylist()]
    on_terminal = sys.stdout.isatty()
    if on_terminal:
        console().print(_for_people(shown.schema, cells))
    else:
        print_lines([shown.column_names, *cells])
    rest = f"the last {shown.num_rows:,} of " if shown.num_rows < table.num_rows else ""
    count = f"{rest}{table.num_rows:,} {'row' if table.num_rows == 1 else 'rows'}"
    print(count, file=sys.stdout if on_terminal else sys.stderr)


def read_results(project: Project, name: str) -> pa.Table:
    """All results of a query in its own columns, in the order of its batches. The error of a query that
    failed is printed; it is raised if there are no results."""
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
    table = _stored(record, registered)
    if registered.status in (QUARANTINED, REJECTED):
        error = RunError("QUERY_FAILED", query=name, detail=registered.detail)
        if not table.num_rows:
            raise error
        print(error, file=sys.stderr)
    return table


def _stored(record: Recorded, registered: QueryRecord) -> pa.Table:
    """What the result store holds of a query, without columns before its first micro-batch."""
    plain = FallbackLog(record.storage, registered.id)
    if plain.schema() is not None:
        return read_steadily(lambda: _plain(plain))
    bound = record.bound(registered) or _bound_anew(record, registered)
    return pa.table({}) if bound is None else read_steadily(lambda: _shared(*bound))


def _bound_anew(
    record: Recorded, registered: QueryRecord
) -> tuple[StreamLog, Query | NetworkQuery] | None:
    """A shared query that failed so long ago that no plan holds it; None if only Spark can tell."""
    name, sql = registered.name, registered.sql
    try:
        query = bound_unaided(record, record.project, name, sql, query_id=registered.id)
    except WeftError:  # it is rejected, and its record says why
        return None
    if query is None:
        return None
    return record.log(NETWORK_LOG if isinstance(query, NetworkQuery) else query.stream), query


def _shared(log: StreamLog, query: Query | NetworkQuery | AggregationJoin) -> pa.Table:
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


def _for_people(schema: pa.Schema, rows: list[list[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for field in schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        number = number or pa.types.is_decimal(field.type)
        table.add_column(field.name, justify="right" if number else "left", no_wrap=True)
    for cells in rows:
        table.add_row(*cells)
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
