"""`weft bench`: a benchmark by name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import typer

NAMES = (
    "windows",
    "mixed",
    "rows",
    "plan",
    "quality",
    "calibrate",
    "statistics",
    "bounded",
    "network",
    "state",
    "aggjoin",
    "soak",
)


def bench(
    name: str = typer.Argument(..., metavar="NAME", help=", ".join(NAMES)),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    only: list[str] = typer.Option([], metavar="PART", help="Only this part; may be repeated."),
    rows: int = typer.Option(
        48, metavar="M", min=4, help="windows, mixed, rows: millions of rows."
    ),
    flink: bool = typer.Option(True, help="windows: measure Flink, too, if it can be installed."),
    tasks: int | None = typer.Option(
        None, metavar="N", min=1, help="mixed: tasks of Spark at a time; default: one per core."
    ),
    minutes: float = typer.Option(10.0, metavar="N", min=0.5, help="soak: how long to run."),
    work: Path | None = typer.Option(None, metavar="DIR", help="Where to keep data and plots."),
) -> None:
    """Measure weft, its peers and the floor in one run."""
    if name == "windows":
        from weft.bench import windows

        parts = _parts(only, windows.PARTS)
        windows.main(json=as_json, only=parts, rows_millions=rows, flink=flink, work=work)
    elif name == "rows":
        from weft.bench import rows as row_windows

        _parts(only, ())
        row_windows.main(json=as_json, rows_millions=rows, work=work)
    elif name == "mixed":
        from weft.bench import mixed

        parts = _parts(only, mixed.PARTS)
        mixed.main(json=as_json, only=parts, rows_millions=rows, work=work, tasks=tasks)
    elif name == "bounded":
        from weft.bench import bounded

        _parts(only, ())
        bounded.main(json=as_json)
    elif name == "network":
        from weft.bench.network import benchmark as network

        network.main(json=as_json, only=_parts(only, network.PARTS), work=work)
    elif name == "state":
        from weft.bench.state import steps as state

        state.main(json=as_json, only=_parts(only, state.PARTS), work=work)
    elif name == "aggjoin":
        from weft.bench.aggjoin import benchmark as aggjoin

        aggjoin.main(json=as_json, only=_parts(only, aggjoin.PARTS), work=work)
    elif name == "plan":
        from weft.bench import plan

        plan.main(json=as_json, only=_parts(only, plan.SETTINGS), work=work)
    elif name == "quality":
        from weft.bench import quality

        quality.main(json=as_json, only=_parts(only, quality.WORKLOADS))
    elif name == "calibrate":
        from weft.bench import calibrate

        _parts(only, ())
        calibrate.main(json=as_json)
    elif name == "statistics":
        from weft.bench import statistics

        _parts(only, ())
        statistics.main(json=as_json, work=work)
    elif name == "soak":
        from weft.bench.soak import benchmark

        _parts(only, ())
        benchmark.main(json=as_json, minutes=minutes, work=work)
    else:
        raise typer.BadParameter(
            f"there is no benchmark '{name}'; the benchmarks are {', '.join(NAMES)}"
        )


def _parts(only: Sequence[str], existing: Collection[str]) -> Sequence[str] | None:
    """The parts asked for, or None for all."""
    unknown = sorted(set(only) - set(existing))
    if unknown:
        parts = (
            f"the parts are {', '.join(existing)}" if existing else "this benchmark has no parts"
        )
        raise typer.BadParameter(f"there is no part {', '.join(unknown)}; {parts}")
    return only or None
