"""`weft bench`: a benchmark by name."""

from __future__ import annotations

from pathlib import Path

import typer


def bench(
    name: str = typer.Argument(..., metavar="NAME", help="windows"),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    only: list[str] = typer.Option([], metavar="PART", help="Only this part; may be repeated."),
    rows: int = typer.Option(48, metavar="M", min=4, help="Millions of rows in the stream."),
    flink: bool = typer.Option(True, help="Measure Flink, too, if it can be installed."),
    work: Path | None = typer.Option(None, metavar="DIR", help="Where to keep made data."),
) -> None:
    """Measure weft, its peers and the floor in one run, and print ratios."""
    if name != "windows":
        raise typer.BadParameter(f"there is no benchmark '{name}'; there is: windows")
    from weft.bench import windows

    unknown = set(only) - windows.PARTS.keys()
    if unknown:
        parts = ", ".join(windows.PARTS)
        raise typer.BadParameter(f"no part {', '.join(sorted(unknown))}; there are {parts}")
    windows.main(json=as_json, only=only or None, rows_millions=rows, flink=flink, work=work)
