"""`weft explain`: the shared plan of what `weft run` runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import typer

from weft.catalog.store import ACTIVE, FALLBACK, QUARANTINED, QueryRecord
from weft.cli.check import bind_all, require_queries
from weft.cli.completing import Folder, query_names
from weft.cli.output import Verbose, print_json
from weft.cli.project.folder import Project, load
from weft.cli.project.opening import draft_weft
from weft.cli.project.problems import InvalidProject
from weft.cli.project.queries import QueryFile, same_query
from weft.cli.project.recorded import Recorded, recorded
from weft.cli.project.session import watched_session
from weft.errors import CatalogError, ProjectError
from weft.explain import Explanation, FallbackNote
from weft.explain import explain as explain_plans
from weft.explain.wording import counted
from weft.optimizer.weaving import MODEL_NAMES, check_sharing
from weft.optimizer.windows.optimizers import OPTIMIZERS
from weft.runtime.planning.replanning import measured_sharing
from weft.runtime.settings import Settings


def explain(
    folder: Folder,
    query: str | None = typer.Option(
        None,
        "--query",
        "-q",
        metavar="NAME",
        help="One query's part.",
        autocompletion=query_names,
    ),
    rate: float | None = typer.Option(
        None, metavar="R", min=0.001, help="Rows per second to assume."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    svg: Path | None = typer.Option(None, metavar="FILE", help="Write a drawing."),
    analyze: bool = typer.Option(False, help="Show what the last run counted, beside it."),
    optimizer: str | None = typer.Option(
        None, metavar="NAME", help="Who would choose the weave groups: " + ", ".join(OPTIMIZERS)
    ),
    model: str | None = typer.Option(
        None, metavar="NAME", help="By which cost: " + ", ".join(MODEL_NAMES)
    ),
    verbose: Verbose = False,
) -> None:
    """Show the shared plan: who shares what, cost and savings."""
    project = load(folder)
    asked = {"optimizer": optimizer, "model": model}
    chosen = {name: value for name, value in asked.items() if value is not None}
    if chosen and analyze:
        raise typer.BadParameter(
            "--analyze shows the plan that ran, --optimizer and --model another"
        )
    if chosen:
        project = replace(project, settings={**project.settings, **chosen})
        settings = Settings(**project.settings)
        check_sharing(measured_sharing(settings, None))
    files = require_queries(project)
    if query is not None and all(file.name != query for file in files):
        names = ", ".join(sorted(file.name for file in files)) or "none"
        raise CatalogError("UNKNOWN_QUERY", name=query, known=names)
    record = recorded(project)
    if analyze:
        explanation = _analyzed(record, project)
    else:
        ran = None if chosen else _snapshot(record, project, files)
        explanation = ran or _drafted(project, files, record)
    shown = explain_plans(explanation.plans, explanation.fallbacks, query, rate=rate)
    shown = shown.with_measured(explanation.measured)
    shown = shown.with_network(explanation.network, explanation.network_measured)
    shown = shown.with_aggregations(explanation.aggregations, explanation.aggregations_measured)
    shown = shown.with_lanes(explanation.lanes, explanation.network_lanes)
    if record is not None:
        shown = shown.with_statistics(record.statistics())
    if svg is not None:
        svg.write_text(shown.to_svg(), encoding="utf-8")
    if as_json:
        print_json(shown.to_json())
    elif svg is not None:
        print(f"wrote {svg}")
    else:
        print(shown)
        for failed in _quarantined(record):
            print(f"{failed.name} is quarantined and in no plan: {failed.detail}")


def _analyzed(record: Recorded | None, project: Project) -> Explanation:
    """The plan that ran last, and what it counted."""
    plans = record.plans() if record is not None else []
    if record is None or not plans:
        detail = f"'{project.name}' has not run yet: there is nothing to analyze"
        raise ProjectError("PROJECT", detail=detail)
    notes = [
        FallbackNote(query.name, _only_stream(project), query.detail)
        for query in record.live()
        if query.status == FALLBACK
    ]
    plans = [plan for plan in plans if plan.queries]
    explanation = explain_plans(plans, notes).with_measured(record.measured())
    explanation = explanation.with_network(record.network(), record.network_measured())
    return explanation.with_aggregations(record.aggregations(), record.aggregations_measured())


def _snapshot(
    record: Recorded | None, project: Project, files: list[QueryFile]
) -> Explanation | None:
    """The last plan, if it is the one that the files ask for."""
    if record is None:
        return None
    live = {query.name: query for query in record.live()}
    wanted = {file.name: file.sql for file in files}
    if live.keys() != wanted.keys():
        return None
    if not all(same_query(query.sql, wanted[name]) for name, query in live.items()):
        return None
    plans, network = record.plans(), record.network()
    planned = {query.id for plan in plans for query in plan.queries}
    planned |= {query.id for query in network.queries} if network is not None else set()
    if planned != {query.id for query in live.values() if query.status == ACTIVE}:
        return None
    fallbacks = [query for query in live.values() if query.status == FALLBACK]
    if fallbacks and len(project.streams) > 1:
        return None
    notes = [FallbackNote(query.name, _only_stream(project), query.detail) for query in fallbacks]
    shared = [plan for plan in plans if plan.queries]
    explanation = explain_plans(shared, notes, network=network)
    return explanation.with_lanes(*record.lanes())


def _drafted(project: Project, files: list[QueryFile], record: Recorded | None) -> Explanation:
    """The plan of the files, bound now; nothing in the checkpoint changes."""
    broken = {query.name: query.sql for query in _quarantined(record)}
    healthy = [
        file
        for file in files
        if file.name not in broken or not same_query(file.sql, broken[file.name])
    ]
    stage = f"planning {counted(len(healthy), 'query', 'queries')}"
    with watched_session(project, stage) as spark, draft_weft(spark, project) as weft:
        verdict = bind_all(weft, healthy)
        if verdict.problems:
            raise InvalidProject(verdict.problems)
        return weft.explain()


def _quarantined(record: Recorded | None) -> list[QueryRecord]:
    live = record.live() if record is not None else []
    return [query for query in live if query.status == QUARANTINED]


def _only_stream(project: Project) -> str:
    names = [stream.name for stream in project.streams]
    return names[0] if len(names) == 1 else "its stream"
