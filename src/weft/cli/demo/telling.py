"""How the demo prints."""

from __future__ import annotations

from pyspark.sql import DataFrame
from rich.table import Table

from weft.cli.output import console


def say(line: str) -> None:
    """A heading of the next part."""
    print(f"\n{line}", flush=True)


def indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())


def show_rows(title: str, frame: DataFrame, otherwise: str) -> None:
    """All rows of a small frame as a table."""
    rows = frame.collect()
    if not rows:
        print(f"   {title}: {otherwise}")
        return
    table = Table(box=None, pad_edge=False, title=f"   {title}", title_justify="left")
    table.add_column("  ")
    for column in frame.columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row("", *(str(value) for value in row))
    console().print(table)
