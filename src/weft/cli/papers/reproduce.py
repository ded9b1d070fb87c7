"""`weft reproduce`: a paper's experiment, with its claims beside our figures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from weft.cli.output import console, fail, print_json, to_jsonable

if TYPE_CHECKING:
    from weft.experiments.reproduction import Paper, Progress, Reproduction

_PIXELS_PER_INCH = 144
_WIDTH_OF_FILES = 200
_LINES = 20
"""How many lines of progress there are where standard error is not a terminal."""


def reproduce(
    what: str = typer.Argument(..., metavar="PAPER[/FIGURE]", help="triops, triops/fig10, …"),
    out: Path | None = typer.Option(
        None, metavar="DIR", help="Where plots and data go; out/PAPER by default."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the data as JSON."),
    quick: bool = typer.Option(False, help="Few and small settings, to see that it works."),
) -> None:
    """Run a paper's experiment.

    It gives data, plots, and the paper's claims beside our figures.
    """
    name, paper, figures = _chosen(what)
    folder = out or Path("out") / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"cannot write to {folder}: {error.strerror}")
    with _progress() as progress:
        folders = [folder] if paper.keeps_parts else []
        reproduction = paper.run(figures, quick, progress, *folders)
    _write(reproduction, paper, folder)
    if as_json:
        print_json(reproduction.to_json())
    else:
        _show(reproduction, folder)


def _chosen(what: str) -> tuple[str, Paper, tuple[str, ...]]:
    from weft.experiments.papers import PAPERS

    name, slash, figure = what.partition("/")
    if name not in PAPERS:
        raise typer.BadParameter(f"there is no paper '{name}'; the papers are {', '.join(PAPERS)}")
    paper = PAPERS[name]
    if not slash:
        return name, paper, paper.default
    if figure not in paper.figures:
        figures = ", ".join(f"{name}/{known_figure}" for known_figure in paper.figures)
        raise typer.BadParameter(f"{name} has no figure '{figure}'; its figures are {figures}")
    return name, paper, (figure,)


def _write(reproduction: Reproduction, paper: Paper, folder: Path) -> None:
    for figure, data in reproduction.figures.items():
        chart = paper.figures[figure].chart(data)
        chart.save(folder / f"{figure}.svg")
        chart.save(folder / f"{figure}.png", ppi=_PIXELS_PER_INCH)
        (folder / f"{figure}.json").write_text(json.dumps(to_jsonable(data)) + "\n")
    (folder / "claims.md").write_text(reproduction.report())


def _show(reproduction: Reproduction, folder: Path) -> None:
    table = Table(title=reproduction.title, title_justify="left", show_lines=True)
    for heading in ("claim", "paper", "ours", "verdict", "why"):
        table.add_column(heading)
    for claim in reproduction.claims:
        table.add_row(claim.claim, claim.paper, claim.ours, claim.verdict, claim.reason)
    shown = console(_WIDTH_OF_FILES)
    shown.print(table, markup=False)
    shown.print(f"plots, data and every guess: {folder}", markup=False)


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar on a terminal, some lines elsewhere; both on standard error."""
    if not sys.stderr.isatty():
        yield _print_progress
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def advance(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield advance


def _print_progress(done: int, total: int, what: str) -> None:
    if done == total or done % max(1, total // _LINES) == 0:
        print(f"{done} of {total}: {what}", file=sys.stderr, flush=True)
