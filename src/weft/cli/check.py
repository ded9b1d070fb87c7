"""`weft check`: everything is parsed, opened and bound; all errors are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from weft.catalog.store import FALLBACK
from weft.cli.completing import Folder
from weft.cli.output import Verbose, print_json
from weft.cli.project.folder import Project, load
from weft.cli.project.opening import draft_weft
from weft.cli.project.problems import InvalidProject, Problem
from weft.cli.project.queries import QueryFile, read_queries
from weft.cli.project.session import watched_session
from weft.errors import WeftError
from weft.explain.wording import counted
from weft.runtime.api.weft import Weft


@dataclass
class Verdict:
    """What a check found. `fallbacks` says for each query that runs alone why, what to write
    instead, and what it costs; `warnings` what should be known of a query that is shared."""

    problems: list[Problem] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    fallbacks: dict[str, str] = field(default_factory=dict)
    warnings: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": not self.problems,
            "errors": [problem.to_json() for problem in self.problems],
            "shared": self.shared,
            "fallbacks": [
                {"query": query, "reason": detail} for query, detail in self.fallbacks.items()
            ],
            "warnings": [
                {"query": query, "warning": detail} for query, detail in self.warnings.items()
            ],
        }


def check(
    folder: Folder,
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    verbose: Verbose = False,
) -> None:
    """Parse and bind everything, and print all errors.

    Each error has its place. Exit code 1 if there are any; nothing is changed.
    """
    verdict = verdict_of(folder)
    if as_json:
        print_json(verdict.to_json())
    else:
        for problem in verdict.problems:
            print(problem)
        if not verdict.problems:
            shared, alone = len(verdict.shared), len(verdict.fallbacks)
            print(
                f"{folder}: {shared} {'query is' if shared == 1 else 'queries are'} shared", end=""
            )
            print(f", {alone} {'runs' if alone == 1 else 'run'} alone" if alone else "")
            for query, detail in verdict.fallbacks.items():
                print(f"  {query} runs alone: {detail}")
            for query, detail in verdict.warnings.items():
                print(f"  {query}: {detail}")
    if verdict.problems:
        raise typer.Exit(1)


def verdict_of(folder: Path) -> Verdict:
    """Check a project without changing anything in it."""
    try:
        project = load(folder)
    except InvalidProject as error:
        _, others = read_queries(folder / "queries")
        return Verdict([*error.problems, *others])
    queries, problems = read_queries(project.queries)
    stage = f"checking {counted(len(queries), 'query', 'queries')}"
    try:
        with watched_session(project, stage) as spark, draft_weft(spark, project) as weft:
            verdict = bind_all(weft, queries)
    except InvalidProject as error:
        verdict = Verdict(list(error.problems))
    verdict.problems = sorted(
        [*problems, *verdict.problems], key=lambda p: (p.file, p.line or 0, p.column or 0)
    )
    return verdict


def bind_all(weft: Weft, queries: Sequence[QueryFile]) -> Verdict:
    """Register every query that can be; the others are problems."""
    verdict = Verdict()
    for query in queries:
        try:
            handle = weft.register(query.name, query.sql, emit=query.emit, backfill=query.backfill)
        except WeftError as error:
            verdict.problems.append(query.problem(error))
            continue
        if handle.status == FALLBACK:
            verdict.fallbacks[query.name] = handle.detail
        else:
            verdict.shared.append(query.name)
            if handle.detail:
                verdict.warnings[query.name] = handle.detail
    return verdict


def require_queries(project: Project) -> list[QueryFile]:
    """The project's queries; raises `InvalidProject` if files are wrong in themselves."""
    queries, problems = read_queries(project.queries)
    if problems:
        raise InvalidProject(problems)
    return queries
