"""The command `weft run`."""

from __future__ import annotations

import typer

from weft.cli.completing import Folder
from weft.cli.output import Verbose
from weft.cli.stages import Stages

QUARANTINED_EXIT = 3


def run(
    folder: Folder,
    available_now: bool = typer.Option(False, help="Run what is there now, then end."),
    keep_going: bool = typer.Option(
        False, "--keep-going", help="Exit with 0 although queries are quarantined."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print a JSON object for every step."),
    verbose: Verbose = False,
) -> None:
    """Run the project, with live progress.

    Ctrl-C ends it after the step under way, a second one at once. The exit code is 3 if a query
    is quarantined: it failed on its data, and the others went on.
    """
    with Stages(quiet=as_json) as stages:
        stages.at("loading")
        from weft.cli.run.running import run_project

        quarantined = run_project(folder, stages, available_now=available_now, as_json=as_json)
    if quarantined and not keep_going:
        raise typer.Exit(QUARANTINED_EXIT)
