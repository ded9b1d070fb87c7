"""`weft resume`: brings back a query that was quarantined or rejected.

It only changes the catalog: a process that runs the project takes the query up at its next
micro-batch, and `weft run` does so when it starts.
"""

from __future__ import annotations

import typer

from weft.catalog.store import QueryRecord
from weft.cli.completing import Folder, query_names
from weft.cli.project.folder import Project, load
from weft.cli.project.queries import read_queries
from weft.cli.project.recorded import Recorded, recorded
from weft.cli.project.unaided import bound_unaided, detail_of
from weft.errors import CatalogError, WeftError


def resume(
    folder: Folder,
    name: str = typer.Argument(
        ..., metavar="NAME", help="The query's name.", autocompletion=query_names
    ),
) -> None:
    """Bring back a query that was quarantined or rejected.

    Also of a project that another process is running.
    """
    project = load(folder)
    record = recorded(project)
    if record is None:
        files, _ = read_queries(project.queries)
        if any(file.name == name for file in files):
            raise CatalogError("NOTHING_TO_RESUME", name=name, status="new")
        known = ", ".join(sorted(file.name for file in files)) or "none"
        raise CatalogError("UNKNOWN_QUERY", name=name, known=known)
    resumed = record.catalog.resume(name)
    detail = _detail(record, project, resumed)
    if detail:
        record.catalog.set_status(resumed.change, resumed.status, detail)
    print(f"resumed {name}")


def _detail(record: Recorded, project: Project, resumed: QueryRecord) -> str:
    """What was said of the query when it was registered, as far as it is known without Spark."""
    try:
        bound = bound_unaided(
            record, project, resumed.name, resumed.sql, query_id=resumed.id, emit=resumed.emit
        )
    except WeftError:  # whoever runs the project rejects it
        return ""
    return "" if bound is None else detail_of(bound, record.schemas())
