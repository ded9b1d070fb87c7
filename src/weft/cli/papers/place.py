"""`weft place`: placement alone, from a table of windows to trees on nodes and their costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from weft.cli.output import console, print_json
from weft.cli.papers.rates import positive_rate
from weft.cli.papers.window_table import read_windows
from weft.optimizer.placement.balanced import BALANCE, balanced
from weft.optimizer.placement.demand import MOST_NODES, Demand, wrong_weight
from weft.optimizer.placement.optimizers import OPTIMIZERS, load_compiled
from weft.optimizer.placement.placement import Placement

_MOST_NODES_SHOWN = 40
_MOST_NAMES_SHOWN = 6


def place(
    file: Path = typer.Argument(..., metavar="FILE.csv", help="Columns name, range, slide."),
    rate: str = typer.Option(..., metavar="R", help="Rows per unit of the table's time."),
    nodes: int = typer.Option(..., metavar="N", help="How many nodes (lanes) there are."),
    optimizer: str = typer.Option("balanced", metavar="NAME", help=", ".join(OPTIMIZERS)),
    weights: str | None = typer.Option(
        None, metavar="W,W,…", help="The nodes' capacities; equal by default."
    ),
    balance: float | None = typer.Option(
        None, metavar="B", help=f"Of balanced: 0 total cost, 1 max cost; {BALANCE} by default."
    ),
    preprocess: bool = typer.Option(
        False, "--preprocess", help="Merge queries with equal edges first."
    ),
    seed: int = typer.Option(1, metavar="S", help="Of random choices."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Decide which node runs which queries, and say what that costs."""
    rows = float(positive_rate(rate))
    if not 0 < nodes <= MOST_NODES:
        wanted = "positive" if nodes <= 0 else f"at most {MOST_NODES:,}"
        raise typer.BadParameter(
            f"the number of nodes {nodes} must be {wanted}", param_hint="--nodes"
        )
    capacities = None if weights is None else _weights(weights, nodes)
    if optimizer not in OPTIMIZERS:
        optimizers = ", ".join(OPTIMIZERS)
        raise typer.BadParameter(
            f"there is no optimizer '{optimizer}'; the optimizers are {optimizers}"
        )
    if seed < 0:
        raise typer.BadParameter(f"the seed {seed} must not be negative", param_hint="--seed")
    if balance is not None:
        _check_balance(balance, optimizer)
    workload = read_windows(file)
    if not optimizer.startswith("g-"):
        load_compiled()
    started = time.perf_counter()
    demand = Demand.of(workload, rows, capacities or nodes, preprocess)
    if balance is None:
        plan = OPTIMIZERS[optimizer](demand, seed)
    else:
        plan = balanced(demand, seed, balance)
    costs = plan.total_cost, plan.max_cost
    seconds = time.perf_counter() - started
    if as_json:
        print_json(to_json(plan, costs, seconds, capacities))
    else:
        _show(plan, seconds)


def to_json(
    plan: Placement,
    costs: tuple[float, float],
    seconds: float,
    weights: Sequence[float] | None = None,
) -> dict[str, Any]:
    """The placement in the shape of DESIGN §1.4; with weights, each node has its own as an addition."""
    nodes: list[dict[str, Any]] = [
        {"cost": cost, "trees": trees}
        for cost, trees in zip(plan.node_costs.tolist(), plan.trees())
    ]
    if weights is not None:
        for node, weight in zip(nodes, weights):
            node["weight"] = weight
    return {
        "optimizer": plan.optimizer,
        "rate": plan.rate,
        "total_cost": costs[0],
        "max_cost": costs[1],
        "nodes": nodes,
        "seconds": seconds,
    }


def _show(plan: Placement, seconds: float) -> None:
    title = (
        f"{plan.optimizer}: {plan.workload.queries} queries in {len(plan.node_of)} trees on "
        f"{len(plan.weights)} nodes, total cost {plan.total_cost:.6g}, max cost {plan.max_cost:.6g} "
        f"at {plan.rate:g} rows per unit of time"
    )
    weighted = bool((plan.weights != 1).any())
    table = Table(title=title, title_justify="left")
    for heading in ("node", *(("weight", "load") if weighted else ()), "cost", "trees", "queries"):
        table.add_column(heading, justify="left" if heading == "queries" else "right")
    listed = zip(plan.weights.tolist(), plan.loads.tolist(), plan.node_costs.tolist(), plan.trees())
    for number, (weight, load, cost, trees) in enumerate(listed):
        if number == _MOST_NODES_SHOWN:
            break
        table.add_row(
            str(number),
            *((f"{weight:g}", f"{load:.6g}") if weighted else ()),
            f"{cost:.6g}",
            str(len(trees)),
            "; ".join(_names(tree) for tree in trees),
        )
    out = console()
    out.print(table, markup=False)
    if len(plan.weights) > _MOST_NODES_SHOWN:
        out.print(f"and {len(plan.weights) - _MOST_NODES_SHOWN} more nodes; --json has them all")
    empty = int((plan.node_costs == 0).sum())
    if empty:
        out.print(f"{empty} of {len(plan.weights)} nodes have nothing to do")
    out.print(f"placed in {seconds:.2f} s")


def _names(tree: Sequence[str]) -> str:
    more = len(tree) - _MOST_NAMES_SHOWN
    return ", ".join(tree[:_MOST_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _weights(text: str, nodes: int) -> list[float]:
    weights: list[float] = []
    for number, part in enumerate(text.split(","), 1):
        try:
            weight = float(part)
        except ValueError:
            detail = f"the weight '{part.strip()}' of node {number} is not a number"
            raise typer.BadParameter(detail, param_hint="--weights") from None
        wrong = wrong_weight(weight)
        if wrong:
            detail = f"the weight {part.strip()} of node {number} {wrong}"
            raise typer.BadParameter(detail, param_hint="--weights")
        weights.append(weight)
    if len(weights) != nodes:
        detail = f"there are {len(weights)} weights for {nodes} nodes"
        raise typer.BadParameter(detail, param_hint="--weights")
    return weights


def _check_balance(balance: float, optimizer: str) -> None:
    if optimizer != "balanced":
        detail = f"only balanced has a balance, not {optimizer}"
        raise typer.BadParameter(detail, param_hint="--balance")
    if not 0 <= balance <= 1:
        detail = f"the balance {balance:g} must be between 0 (total cost) and 1 (max cost)"
        raise typer.BadParameter(detail, param_hint="--balance")
