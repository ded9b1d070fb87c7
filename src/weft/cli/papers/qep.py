"""`weft qep`: what every early and late plan of an aggregation join costs, and the choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from weft.cli.output import console, print_json
from weft.cli.papers.qep_input import QepInput, read_qep_input
from weft.optimizer.joinagg.choice import MOST_PRICED, Choice, choose
from weft.optimizer.joinagg.plans import Plan, plan_name

_MOST_PLANS_SHOWN = 40


def qep(
    file: Path = typer.Argument(
        ..., metavar="FILE.json", help="Streams, join, buckets and constants."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Decide which inputs of a join are aggregated before it."""
    problem = read_qep_input(file)
    choice = choose(problem.costs)
    if as_json:
        print_json(to_json(choice))
    else:
        _show(choice, problem)


def to_json(choice: Choice) -> dict[str, Any]:
    """The plans in the shape of DESIGN §1.4; `note` is there only if not all plans were priced."""
    shown: dict[str, Any] = {
        "plans": [{"early": list(priced.plan), "cost": priced.cost} for priced in choice.priced],
        "best": list(choice.best.plan),
    }
    return shown if choice.complete else shown | {"note": _note(choice)}


def _note(choice: Choice) -> str:
    streams = len(choice.best.plan)
    certain = "no plan is cheaper" if choice.exact else "a cheaper plan may exist"
    return (
        f"{streams} streams have {1 << streams:,} plans; beyond {MOST_PRICED} streams they are not "
        f"all priced: the greedy search chose, and {certain}"
    )


def _show(choice: Choice, problem: QepInput) -> None:
    cheapest = choice.best.cost
    title = f"{problem.join} join of {len(choice.best.plan)} streams"
    table = Table(title=title, title_justify="left")
    for heading in ("plan", "early", "cost", "of the best"):
        table.add_column(heading, justify="left" if heading in ("plan", "early") else "right")
    ranked = sorted(choice.priced, key=lambda priced: priced.cost)
    for priced in ranked[:_MOST_PLANS_SHOWN]:
        table.add_row(
            plan_name(priced.plan),
            _early(priced.plan),
            _number(priced.cost),
            f"{priced.cost / cheapest:.3g}×",
        )
    out = console()
    out.print(table, markup=False)
    if len(ranked) > _MOST_PLANS_SHOWN:
        out.print(f"and {len(ranked) - _MOST_PLANS_SHOWN} more plans; --json has them all")
    best = f"{plan_name(choice.best.plan)} costs least: {_number(cheapest)} per unit of time"
    out.print(best, markup=False)
    if not choice.complete:
        out.print(_note(choice), markup=False)


def _early(plan: Plan) -> str:
    """The streams that are aggregated early, counted from 1 as the paper does."""
    numbers = [f"S{number}" for number, early in enumerate(plan, start=1) if early]
    return ", ".join(numbers) or "none"


def _number(cost: float) -> str:
    return f"{cost:,.0f}" if cost >= 1000 else f"{cost:.4g}"
