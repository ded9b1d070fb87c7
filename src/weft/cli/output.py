"""What commands print: tables for people, plain lines for pipes, JSON for programs, one line for an
error.

A terminal gets tables with headings in bold (none with NO_COLOR). A pipe gets the same cells
separated by tabs, never cut, padded or wrapped.
"""

from __future__ import annotations

import base64
import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import typer
from rich.console import Console

from weft.errors import WeftError

_WIDTH_OF_FILES = 10_000
"""Wide enough that no cell of a table is cut or wrapped; a table takes what it needs of it."""
_VERBOSE = "WEFT_VERBOSE"


def _remember(wanted: bool) -> bool:
    if wanted:
        os.environ[_VERBOSE] = "1"
    return wanted


Verbose = Annotated[
    bool,
    typer.Option("--verbose", callback=_remember, help="Show Spark's log and tracebacks, too."),
]
"""The option of a command that starts Spark."""


def is_verbose() -> bool:
    """Whether the user wants to see logs and tracebacks; so says `--verbose`, or WEFT_VERBOSE."""
    return bool(os.environ.get(_VERBOSE))


def explained(error: Exception) -> str | None:
    """An error in a line for the user; None for one that only a traceback explains."""
    if is_verbose() and not isinstance(error, WeftError):
        return None
    if isinstance(error, WeftError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        place = f": {error.filename}" if error.filename else ""
        return f"[FILES] {error.strerror[0].lower()}{error.strerror[1:]}{place}"
    if "pyspark" not in sys.modules:
        return None
    from pyspark.errors import PySparkException

    if isinstance(error, PySparkException):
        hint = "; `weft doctor` says what to do" if "JAVA" in str(error) else ""
        return f"[SPARK] {first_line(error).rstrip('.')}{hint}"
    return None


def first_line(error: BaseException) -> str:
    """What an error of Spark says, without its plan and stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def fail(message: str) -> None:
    """Print an error and leave with code 1."""
    print(message, file=sys.stderr)
    raise typer.Exit(1)


def console(width_of_files: int = _WIDTH_OF_FILES) -> Console:
    """Standard output as rich sees it now (tests replace it)."""
    width = None if sys.stdout.isatty() else width_of_files
    return Console(file=sys.stdout, width=width, highlight=False)


def print_lines(rows: Iterable[Sequence[str]]) -> None:
    """Rows for programs: a line each, cells separated by tabs, whatever their length."""
    for cells in rows:
        print("\t".join(" ".join(cell.split()) for cell in cells))


def print_json(value: Any) -> None:
    """A value as JSON on standard output."""
    print(json.dumps(to_jsonable(value), indent=2, ensure_ascii=False))


def to_jsonable(value: Any) -> Any:
    """A value of a result as JSON can carry it without loss.

    Decimals become strings, times ISO 8601, bytes base64; JSON has no NaN or infinity, so
    these are strings, too.

    >>> to_jsonable({"d": Decimal("1.50"), "f": float("nan"), "b": b"ab"})
    {'d': '1.50', 'f': 'NaN', 'b': 'YWI='}
    """
    if isinstance(value, dict):
        return {str(key): to_jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_jsonable(item) for item in value]
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
