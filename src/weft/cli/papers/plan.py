"""`weft plan`: window sharing alone, from a table of windows to groups and their cost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from weft.cli.output import console, print_json
from weft.cli.papers.rates import positive_rate
from weft.cli.papers.window_table import read_windows
from weft.optimizer.windows.cost import MODELS
from weft.optimizer.windows.grouping import Grouping
from weft.optimizer.windows.optimizers import OPTIMIZERS

_MOST_GROUPS_SHOWN = 40
_MOST_NAMES_SHOWN = 8


def plan(
    file: Path = typer.Argument(..., metavar="FILE.csv", help="Columns name, range, slide."),
    rate: str = typer.Option(..., metavar="R", help="Rows per unit of the table's time."),
    optimizer: str = typer.Option("best", metavar="NAME", help=", ".join(OPTIMIZERS)),
    model: str | None = typer.Option(
        None, metavar="MODEL", help="twoops or triops; else the one the optimizer was made for."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Decide which queries share fragments, and say what that costs."""
    rows = positive_rate(rate)
    if optimizer not in OPTIMIZERS:
        optimizers = ", ".join(OPTIMIZERS)
        raise typer.BadParameter(
            f"there is no optimizer '{optimizer}'; the optimizers are {optimizers}"
        )
    if model is not None and model not in MODELS:
        raise typer.BadParameter(f"there is no model '{model}'; the models are {', '.join(MODELS)}")
    workload = read_windows(file)
    started = time.perf_counter()
    grouping = OPTIMIZERS[optimizer](workload, rows, None if model is None else MODELS[model])
    cost = float(grouping.cost)
    seconds = time.perf_counter() - started
    if as_json:
        print_json(to_json(grouping, cost, seconds))
    else:
        _show(grouping, cost, seconds)


def to_json(grouping: Grouping, cost: float, seconds: float) -> dict[str, Any]:
    """The plan in the shape of DESIGN §1.4; `exact`, and for `best` its bound, are additions."""
    shown: dict[str, Any] = {
        "optimizer": grouping.optimizer,
        "model": grouping.model.name,
        "rate": float(grouping.rate),
        "cost": cost,
        "edge_rate": float(grouping.edge_rate),
        "groups": [
            {
                "queries": list(group.queries),
                "edge_rate": float(group.edge_rate),
                "overlap": float(group.overlap),
            }
            for group in grouping.groups
        ],
        "seconds": seconds,
        "exact": grouping.exact,
    }
    if not grouping.exact:
        shown["error"] = grouping.cost_error
        shown["edge_rate_error"] = grouping.edge_rate.error
        shown["confidence"] = grouping.confidence
    if grouping.lower_bound is not None:
        shown["lower_bound"] = grouping.lower_bound
        shown["gap"] = grouping.gap
    return shown


def _show(grouping: Grouping, cost: float, seconds: float) -> None:
    table = Table(title=_title(grouping, cost), title_justify="left")
    for heading in ("group", "queries", "edge rate", "overlap", "names"):
        table.add_column(heading, justify="left" if heading == "names" else "right")
    for number, group in enumerate(grouping.groups[:_MOST_GROUPS_SHOWN]):
        names = ", ".join(group.queries[:_MOST_NAMES_SHOWN])
        more = len(group.queries) - _MOST_NAMES_SHOWN
        table.add_row(
            str(number),
            str(len(group.queries)),
            f"{float(group.edge_rate):.6g}",
            f"{float(group.overlap):.6g}",
            names + (f" and {more} more" if more > 0 else ""),
        )
    out = console()
    out.print(table, markup=False)
    if len(grouping.groups) > _MOST_GROUPS_SHOWN:
        out.print(
            f"and {len(grouping.groups) - _MOST_GROUPS_SHOWN} more groups; --json has them all"
        )
    if not grouping.exact:
        out.print(
            f"Edge rates are estimated: the cost is within {grouping.cost_error:.2%} "
            f"at {grouping.confidence:.0%} confidence."
        )
    if grouping.gap is not None:
        least = f"{grouping.lower_bound:.6g}"
        out.print(
            "No grouping costs less."
            if grouping.gap == 0
            else f"No grouping costs less than {least}: this one is at most {grouping.gap:.1%} above."
        )
    out.print(f"planned in {seconds:.2f} s")


def _title(grouping: Grouping, cost: float) -> str:
    queries = grouping.workload.queries
    return (
        f"{grouping.optimizer}, {grouping.model.name}: {queries} queries in {len(grouping.groups)} groups, "
        f"cost {cost:.6g} at {float(grouping.rate):g} rows per unit of time"
    )
