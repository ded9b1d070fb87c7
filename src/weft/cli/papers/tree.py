"""`weft tree`: an aggregate tree and the memory of its intermediates, from group-by sets alone."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.tree import Tree

from weft.cli.output import console, print_json
from weft.cli.papers.tree_input import TreeInput, read_tree_input
from weft.optimizer.groupby.memory.fptas import EPSILON
from weft.optimizer.groupby.planner import ALLOCATORS, PlannedTree, plan_tree
from weft.optimizer.groupby.trees.aggregate_tree import Branch, node_name

_MOST_EPSILON = 1.0
_LEAST_EPSILON = 1e-3


def tree(
    file: Path = typer.Argument(..., metavar="FILE.json", help="Tuples, queries, groups, alpha."),
    memory: str = typer.Option(..., metavar="M", help="What all intermediates may hold."),
    allocator: str = typer.Option("fptas", metavar="NAME", help=", ".join(ALLOCATORS)),
    epsilon: float = typer.Option(
        EPSILON, metavar="E", help="fptas: at most 1 + E times the cheapest allocation."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Decide which group-by is computed from which, in what memory."""
    available = _memory(memory)
    if allocator not in ALLOCATORS:
        allocators = ", ".join(ALLOCATORS)
        raise typer.BadParameter(
            f"there is no allocator '{allocator}'; the allocators are {allocators}"
        )
    if not _LEAST_EPSILON <= epsilon <= _MOST_EPSILON:
        detail = f"{epsilon:g} is not between {_LEAST_EPSILON:g} and {_MOST_EPSILON:g}"
        raise typer.BadParameter(detail, param_hint="--epsilon")
    problem = read_tree_input(file)
    started = time.perf_counter()
    planned = plan_tree(problem.queries, problem.statistics, available, allocator, epsilon)
    seconds = time.perf_counter() - started
    if as_json:
        print_json(to_json(planned, seconds))
    else:
        _show(planned, problem, available, allocator, seconds)


def to_json(planned: PlannedTree, seconds: float) -> dict[str, Any]:
    """The tree in the shape of DESIGN §1.4; `during` and `at_end` are additions."""
    return {
        "cost": planned.cost,
        "tree": planned.tree.to_json(),
        "allocation": {
            node_name(node): _whole(planned.allocation.get(node, 0.0))
            for node in planned.tree.intermediates()
        },
        "seconds": seconds,
        "during": planned.during,
        "at_end": planned.at_end,
    }


def _show(
    planned: PlannedTree, problem: TreeInput, memory: float, allocator: str, seconds: float
) -> None:
    out = console()
    shown = Tree(f"stream, {problem.statistics.tuples:,.0f} tuples")
    _grow(shown, planned.tree.children)
    out.print(shown, markup=False)
    table = Table(title="memory of the intermediates", title_justify="left")
    for heading in ("node", "entries", "groups", "memory"):
        table.add_column(heading, justify="left" if heading == "node" else "right")
    for node in planned.tree.intermediates():
        entries = planned.allocation.get(node, 0.0)
        table.add_row(
            node_name(node),
            f"{entries:,.0f}",
            f"{problem.statistics.groups(node):,.0f}",
            f"{entries * problem.statistics.entry_size(node):,.0f}",
        )
    if planned.tree.intermediates():
        out.print(table, markup=False)
    flat = problem.statistics.tuples * len(set(problem.queries))
    out.print(
        f"{allocator}, memory {memory:,.0f}: {planned.cost:,.0f} hash operations, "
        f"{planned.during:,.0f} during the epoch and {planned.at_end:,.0f} at its end; "
        f"{flat:,.0f} without intermediates"
    )
    out.print(f"planned in {seconds:.2f} s")


def _grow(shown: Tree, branches: Sequence[Branch]) -> None:
    for branch in branches:
        name = (
            node_name(branch.node) if branch.asked else f"{node_name(branch.node)} (intermediate)"
        )
        _grow(shown.add(name), branch.children)


def _whole(number: float) -> float | int:
    """Without a fraction where there is none."""
    return int(number) if number == math.floor(number) else number


def _memory(text: str) -> float:
    try:
        memory = float(text)
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a number", param_hint="--memory") from None
    if not math.isfinite(memory):
        raise typer.BadParameter(f"'{text}' is not a number", param_hint="--memory")
    if memory < 0:
        raise typer.BadParameter(f"the memory {text} is negative", param_hint="--memory")
    return memory
