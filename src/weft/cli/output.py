"""What commands print: tables for people, JSON for programs, one line for an error."""

from __future__ import annotations

import base64
import json
import math
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import typer
from pyspark.errors import PySparkException
from rich.console import Console
from typer.core import TyperGroup

from weft.errors import WeftError

_WIDTH_OF_FILES = 200


class Commands(TyperGroup):
    """All commands end the same way: an error is one line on standard error, exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except WeftError as error:
            fail(str(error))
        except PySparkException as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            hint = "; `weft doctor` says what to do" if "JAVA" in str(error) else ""
            first = lines[0].rstrip(".") if lines else type(error).__name__
            fail(f"[SPARK] {first}{hint}")


def fail(message: str) -> None:
    """Print an error and leave with code 1."""
    print(message, file=sys.stderr)
    raise typer.Exit(1)


def console() -> Console:
    """Standard output as rich sees it now (tests replace it)."""
    width = None if sys.stdout.isatty() else _WIDTH_OF_FILES
    return Console(file=sys.stdout, width=width, highlight=False)


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
