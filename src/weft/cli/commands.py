"""The application: all commands under one name, each loaded when it is called.

All commands end the same way: an error is one line on standard error, exit code 1; wrong usage is
exit code 2; Ctrl-C is exit code 130.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from weft import __version__
from weft.cli.main import INTERRUPTED
from weft.cli.output import explained, fail

COMMANDS = {
    "init": "weft.cli.init:init",
    "check": "weft.cli.check:check",
    "register": "weft.cli.project.registration:register",
    "drop": "weft.cli.project.registration:drop",
    "resume": "weft.cli.resume:resume",
    "list": "weft.cli.project.listing:list_queries",
    "explain": "weft.cli.explaining:explain",
    "run": "weft.cli.run.command:run",
    "results": "weft.cli.results:results",
    "plan": "weft.cli.papers.plan:plan",
    "place": "weft.cli.papers.place:place",
    "tree": "weft.cli.papers.tree:tree",
    "qep": "weft.cli.papers.qep:qep",
    "doctor": "weft.cli.machine.doctor:doctor",
    "package": "weft.cli.machine.package:package",
    "demo": "weft.cli.demo.command:main",
    "bench": "weft.cli.bench:bench",
    "reproduce": "weft.cli.papers.reproduce:reproduce",
}
"""The commands in the order of `weft --help`: module and function."""


class Commands(TyperGroup):
    """The commands by name. One is imported when it is called or described."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module, function = COMMANDS[cmd_name].split(":")
        single = typer.Typer(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
        )
        single.command(cmd_name)(getattr(import_module(module), function))
        return typer.main.get_command(single)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise  # as in `weft results DIR NAME | head`: typer ends quietly
        except Exception as error:
            message = explained(error)
            if message is None:
                raise
            fail(message)


app = typer.Typer(
    cls=Commands,
    help="Many continuous SQL queries as one shared, exactly-once Spark stream.",
    no_args_is_help=True,
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
