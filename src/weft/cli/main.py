"""The application: all commands under one name."""

from __future__ import annotations

import typer

from weft import __version__
from weft.cli.bench import bench
from weft.cli.check import check
from weft.cli.demo import main as demo
from weft.cli.doctor import doctor
from weft.cli.explaining import explain
from weft.cli.init import init
from weft.cli.output import Commands
from weft.cli.papers.plan import plan
from weft.cli.papers.reproduce import reproduce
from weft.cli.papers.tree import tree
from weft.cli.project.registration import drop, list_queries, register
from weft.cli.results import results
from weft.cli.running import run

app = typer.Typer(
    cls=Commands,
    help="Many continuous SQL queries as one shared, exactly-once Spark stream.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"weft {__version__}")
        raise typer.Exit


@app.callback()
def weft(
    version: bool = typer.Option(
        False, "--version", is_eager=True, callback=_print_version, help="Print the version."
    ),
) -> None:
    """Many continuous SQL queries as one shared, exactly-once Spark stream."""


app.command()(init)
app.command()(check)
app.command()(register)
app.command()(drop)
app.command("list")(list_queries)
app.command()(explain)
app.command()(run)
app.command()(results)
app.command()(plan)
app.command()(tree)
app.command()(doctor)
app.command("demo")(demo)
app.command()(bench)
app.command()(reproduce)

if __name__ == "__main__":
    app()
