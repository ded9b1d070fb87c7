"""`weft bench quality`: how far greedy merging and local search are from the optimum.

Random sets of windows, small enough for the exact search over all partitions (`exact_partition`);
sets whose optimum is one group or all apart say nothing and are left out. `search` is the local
search alone, from the greedy groups: `best` itself is exact for sets of this size.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from weft.algebra.window import Window
from weft.optimizer.edges.workload import Windowed, Workload
from weft.optimizer.windows.search.exact_partition import exact_partition
from weft.optimizer.windows.search.local_search import LocalSearch
from weft.optimizer.windows.search.merge_sequence import MergeSequence
from weft.optimizer.windows.search.search_rates import SearchRates

Draw = Callable[[random.Random, int], list[Window]]
_WORK_PER_SET = 1000
_ROUNDING = 1e-9


def multiples(low: int, high: int) -> Draw:
    """Ranges of 1 to 50 slides."""
    return lambda choose, count: [
        Window(slide * choose.randint(1, 50), slide)
        for slide in choose.sample(range(low, high + 1), count)
    ]


def general(low: int, high: int) -> Draw:
    """Ranges that are not multiples of their slides."""
    return lambda choose, count: [
        Window(choose.randint(slide, 50 * slide), slide)
        for slide in choose.sample(range(low, high + 1), count)
    ]


WORKLOADS: dict[str, Draw] = {
    "multiples, slides 2 to 60": multiples(2, 60),
    "multiples, slides 10 to 1000": multiples(10, 1000),
    "any ranges, slides 2 to 60": general(2, 60),
    "any ranges, slides 10 to 1000": general(10, 1000),
}


def excesses(draw: Draw, sets: int, cases: int, seed: int = 0) -> dict[str, list[float]]:
    """By how much greedy and search cost more than the optimum, relatively, case by case."""
    choose = random.Random(seed)
    excess: dict[str, list[float]] = {"greedy": [], "search": []}
    while len(excess["greedy"]) < cases:
        windows = draw(choose, sets)
        workload = Workload.of(Windowed(str(i), window) for i, window in enumerate(windows))
        if len(workload.edge_sets) != sets:
            continue
        rates = SearchRates(workload)
        triops = choose.random() < 0.5
        price = float(workload.edge_rate) if triops else 10 ** choose.uniform(-1, 2)
        optimum = exact_partition(rates, price, 1.0, 0.0)
        if not 1 < len(optimum) < sets:
            continue
        least = _cost(rates, price, optimum)
        greedy = MergeSequence(rates, 1.0, 0.0).cut(price)
        search = LocalSearch(rates, price, 1.0, 0.0, rates.common())
        search.start(greedy)
        search.iterate(_WORK_PER_SET * sets)
        excess["greedy"].append(_cost(rates, price, greedy) / least - 1)
        excess["search"].append(_cost(rates, price, search.groups) / least - 1)
    return excess


def _cost(rates: SearchRates, price: float, groups: Sequence[Sequence[int]]) -> float:
    return sum(
        price + rates.union(group) * float(rates.overlaps[list(group)].sum()) for group in groups
    )


@dataclass(frozen=True)
class Quality:
    """How often one of them is optimal, and how far above it is on average and at worst."""

    windows: str
    who: str
    cases: int
    optimal: float
    mean_excess: float
    worst_excess: float


def qualities(only: Sequence[str] | None = None, sets: int = 9, cases: int = 60) -> list[Quality]:
    """Both of them on every kind of windows."""
    measured = []
    for name, draw in WORKLOADS.items():
        if only is not None and name not in only:
            continue
        for who, above in excesses(draw, sets, cases).items():
            optimal = sum(excess <= _ROUNDING for excess in above) / len(above)
            mean = sum(above) / len(above)
            measured.append(Quality(name, who, len(above), optimal, mean, max(above)))
    return measured


def main(json: bool = False, only: Sequence[str] | None = None) -> None:
    """What the command does."""
    measured = qualities(only)
    console = Console()
    if json:
        console.print_json(data=[asdict(quality) for quality in measured])
        return
    table = Table(title="weft bench quality: nine edge sets against the optimum")
    for heading in ("windows", "", "cases", "optimal", "above on average", "worst"):
        table.add_column(heading)
    for quality in measured:
        figures = (
            f"{quality.optimal:.0%}",
            f"{quality.mean_excess:.2%}",
            f"{quality.worst_excess:.1%}",
        )
        table.add_row(quality.windows, quality.who, str(quality.cases), *figures)
    console.print(table)
