"""`weft plan`: window sharing alone, from a table of windows to groups and their cost."""

from __future__ import annotations

import time
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from weft.cli.output import console, print_json
from weft.cli.papers.window_table import read_windows
from weft.optimizer.windows.cost import MODELS
from weft.optimizer.windows.grouping import Grouping
from weft.optimizer.windows.optimizers import OPTIMIZERS

_MOST_MAGNITUDE = 18
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
    rows = _rate(rate)
    if optimizer not in OPTIMIZERS:
        known = ", ".join(OPTIMIZERS)
        raise typer.BadParameter(f"no optimizer '{optimizer}'; there are {known}")
    if model is not None and model not in MODELS:
        raise typer.BadParameter(f"no model '{model}'; there are {', '.join(MODELS)}")
    workload = read_windows(file)
    started = time.perf_counter()
    found = OPTIMIZERS[optimizer](workload, rows, None if model is None else MODELS[model])
    cost = float(found.cost)
    seconds = time.perf_counter() - started
    if as_json:
        print_json(to_json(found, cost, seconds))
    else:
        _show(found, cost, seconds)


def to_json(found: Grouping, cost: float, seconds: float) -> dict[str, Any]:
    """The plan in the shape of DESIGN §1.4; `exact`, and for `best` its bound, are additions."""
    shown: dict[str, Any] = {
        "optimizer": found.optimizer,
        "model": found.model.name,
        "rate": float(found.rate),
        "cost": cost,
        "edge_rate": float(found.edge_rate),
        "groups": [
            {
                "queries": list(group.queries),
                "edge_rate": float(group.edge_rate),
                "overlap": float(group.overlap),
            }
            for group in found.groups
        ],
        "seconds": seconds,
        "exact": found.exact,
    }
    if not found.exact:
        shown["error"] = found.cost_error
        shown["edge_rate_error"] = found.edge_rate.error
        shown["confidence"] = found.confidence
    if found.lower_bound is not None:
        shown["lower_bound"] = found.lower_bound
        shown["gap"] = found.gap
    return shown


def _show(found: Grouping, cost: float, seconds: float) -> None:
    table = Table(title=_title(found, cost), title_justify="left")
    for heading in ("group", "queries", "edge rate", "overlap", "names"):
        table.add_column(heading, justify="left" if heading == "names" else "right")
    for number, group in enumerate(found.groups[:_MOST_GROUPS_SHOWN]):
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
    if len(found.groups) > _MOST_GROUPS_SHOWN:
        out.print(f"and {len(found.groups) - _MOST_GROUPS_SHOWN} more groups; --json has them all")
    if not found.exact:
        out.print(
            f"Edge rates are estimated: the cost is within {found.cost_error:.2%} "
            f"at {found.confidence:.0%} confidence."
        )
    if found.gap is not None:
        least = f"{found.lower_bound:.6g}"
        out.print(
            "No grouping costs less."
            if found.gap == 0
            else f"No grouping costs less than {least}: this one is at most {found.gap:.1%} above."
        )
    out.print(f"planned in {seconds:.2f} s")


def _title(found: Grouping, cost: float) -> str:
    queries = found.workload.queries
    return (
        f"{found.optimizer}, {found.model.name}: {queries} queries in {len(found.groups)} groups, "
        f"cost {cost:.6g} at {float(found.rate):g} rows per unit of time"
    )


def _rate(text: str) -> Fraction:
    try:
        rate = Decimal(text)
    except InvalidOperation:
        raise typer.BadParameter(f"'{text}' is not a rate", param_hint="--rate") from None
    if not rate.is_finite():
        raise typer.BadParameter(f"'{text}' is not a rate", param_hint="--rate")
    if rate <= 0:
        raise typer.BadParameter(f"the rate {text} must be positive", param_hint="--rate")
    if abs(rate.adjusted()) > _MOST_MAGNITUDE:
        detail = f"the rate {text} is not between 1e-{_MOST_MAGNITUDE} and 1e{_MOST_MAGNITUDE}"
        raise typer.BadParameter(detail, param_hint="--rate")
    return Fraction(rate)
