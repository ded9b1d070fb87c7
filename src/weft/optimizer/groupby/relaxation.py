"""A lower bound on the cost of any allocation, and an allocation close to it.

What leaves a node is rounded up to the grid g·β^l. Then the fewest entries B(j, l) that turn the input of
grid place j into the output of grid place l are a table, and memory at price λ is a dynamic program over
the forest:

    V_i(j) = min_l  λ·s_i·B_i(j, l) + W_i(l),      W_i(l) = h_i·g_i·β^l + Σ_children V_c(l).

L(λ) = Σ_tops V - λM is a lower bound on the cost of every allocation *of the grid* that fits into M
(Lagrange); it is concave in λ, and the best λ is found by bisection, since the memory that the minimum
uses falls as λ rises. The grid itself costs at most a factor β for each level: let an allocation have
outputs o_i; take for a node of level d (tops: 1) the grid place above β^(d-1)·o_i, which is at most
β^d·o_i. Its input is at most β^(d-1) times what it was, so with the same entries at most β^(d-1)·o_i leave
(Lemma 9.1), and no more entries are needed than before. So L / β^depth is a lower bound on the cost of any
allocation.

Time: O(Σ grid_parent · grid_node) for each λ; space the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.groupby.eviction import Floats, needed
from weft.optimizer.groupby.forest import TOP, Forest

Tables = dict[tuple[float, float, float, float, float], Floats]
"""Entries by groups, skew and source of a node, groups of its parent, and step."""

_PRICES = 48
_CLOSE = 1e-3


@dataclass(frozen=True)
class Grid:
    """Outputs of every node in steps of β, and the entries they need for every input."""

    forest: Forest
    step: float
    outputs: tuple[Floats, ...]
    memory: tuple[Floats, ...]
    """Of each node, a table: place of the input, place of the output. Tops have one input."""

    @classmethod
    def of(cls, forest: Forest, step: float, known: Tables | None = None) -> Grid:
        """The grid of a forest; tables of equal nodes below equal parents are taken from `known`."""
        known = {} if known is None else known
        outputs = tuple(
            _steps(groups, source, step) for groups, source in zip(forest.groups, forest.source)
        )
        memory: list[Floats] = []
        for place, parent in enumerate(forest.parent):
            own = (
                float(forest.groups[place]),
                float(forest.alpha[place]),
                float(forest.source[place]),
            )
            above = 0.0 if parent == TOP else float(forest.groups[parent])
            if (key := (*own, above, step)) not in known:
                came = own[2] if parent == TOP else outputs[parent][:, None]
                known[key] = needed(outputs[place][None, :], own[0], own[1], came)
            memory.append(forest.size[place] * known[key])
        return cls(forest, step, outputs, tuple(memory))


@dataclass(frozen=True)
class Priced:
    """The cheapest choice when memory costs `price`."""

    price: float
    value: float
    """Cost and memory times price, without the constant part of the cost."""
    inside: tuple[Floats, ...]
    """V of every node, for each place of its input."""
    chosen: tuple[NDArray[np.int64], ...]
    entries: Floats
    used: float


@dataclass(frozen=True)
class Relaxation:
    """The best lower bound that was found, and the best choice that fits."""

    bound: float
    """No allocation of the grid costs less."""
    priced: Priced
    """At the price of that bound."""
    entries: Floats


def relax(grid: Grid, memory: float) -> Relaxation:
    """The Lagrange bound for so much memory."""
    forest = grid.forest
    free = price_memory(grid, 0.0)
    if free.used <= memory:
        return Relaxation(forest.constant + free.value, free, free.entries)
    low, high = 0.0, _first_price(forest, memory)
    fitting = price_memory(grid, high)
    while fitting.used > memory:
        low, high = high, high * 16
        fitting = price_memory(grid, high)
    best = max((free, fitting), key=lambda each: each.value - each.price * memory)
    for _ in range(_PRICES):
        if high - low <= _CLOSE * high and low > 0:
            break
        middle = math.sqrt(low * high) if low > 0 else high / 16
        tried = price_memory(grid, middle)
        best = max((best, tried), key=lambda each: each.value - each.price * memory)
        if tried.used > memory:
            low = middle
        else:
            high, fitting = middle, tried
            if fitting.used == memory:
                break
    return Relaxation(forest.constant + best.value - best.price * memory, best, fitting.entries)


def price_memory(grid: Grid, price: float) -> Priced:
    """The dynamic program at one price."""
    forest = grid.forest
    count = len(forest.nodes)
    inside: list[Floats] = [np.empty(0)] * count
    chosen: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * count
    for place in reversed(range(count)):
        after = forest.children[place] * grid.outputs[place]
        for child in forest.below[place]:
            after = after + inside[child]
        total = price * grid.memory[place] + after
        chosen[place] = total.argmin(axis=1)
        inside[place] = total[np.arange(len(total)), chosen[place]]
    entries, places = np.zeros(count), np.zeros(count, np.int64)
    for place, parent in enumerate(forest.parent):
        came = 0 if parent == TOP else places[parent]
        places[place] = chosen[place][came]
        entries[place] = grid.memory[place][came, places[place]] / forest.size[place]
    value = float(sum(inside[top][0] for top in forest.tops))
    return Priced(price, value, tuple(inside), tuple(chosen), entries, forest.used(entries))


def _steps(groups: float, source: float, step: float) -> Floats:
    count = max(0, math.ceil(math.log(source / groups) / math.log(step) - 1e-9))
    grid: Floats = groups * np.power(step, np.arange(count + 1), dtype=np.float64)
    grid[-1] = source if count else groups
    return grid


def _first_price(forest: Forest, memory: float) -> float:
    """About what an entry saves if all memory goes to one node."""
    most = float((forest.children * forest.source).sum())
    return max(most / max(memory, float(forest.size.min()) * 1e-6), 1e-300)
