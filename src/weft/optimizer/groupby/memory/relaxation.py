"""A lower bound on the cost of any allocation, and an allocation close to it.

What leaves a node is rounded to a grid from g on, in steps of the factor β or of δ_i, whichever is
larger. The fewest entries B(j, l) that turn the input of grid place j into the output of grid place
l are a table, and memory at price λ is a dynamic program over the forest:

    V_i(j) = min_l  λ·s_i·B_i(j, l) + W_i(l),      W_i(l) = h_i·output_l + Σ_children V_c(l).

Outputs are rounded **up** for an allocation: it costs no more than V says. The price is found by
bisection, since the memory of the minimum falls as λ rises. Outputs are rounded **down** for a
bound: an output between places l and l+1 takes at least B(j, l+1), and costs at least W(l), as V
rises with the input. Σ_tops V - λM is then a lower bound on every allocation that fits into M
(Lagrange), on the grid or not, for any λ.

Rounding up costs at most this (for `frontier`): take any allocation, with outputs o_i, and give
every node the same entries. Say the input of a node of level d (tops: 1) is at most β^(d-1)·(n + a)
on the grid, where it was n. Then at most β^(d-1)·(o + a) leave, since out(x·n) ≤ x·out(n) (Lemma
9.1) and out(n + a) ≤ out(n) + a; rounded up, at most β^d·(o + a + δ_i). So a is the sum of δ over
the node and those above it, and the cost is at most constant + β^depth·(Σ h·o + Σ δ_i·H_i), where
H_i counts all children in the subtree of i. The paper has factors alone; with them small nodes,
whose cost is nothing beside the stream's, have the longest grids.

Time: O(Σ grid_parent · grid_node) for each λ; space the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.groupby.memory.eviction import Floats
from weft.optimizer.groupby.memory.forest import TOP, Forest

Tables = dict[tuple[Any, ...], Floats]
"""Entries by table and source of a node, groups of its parent, and the steps of both grids."""

_CLOSE = 5e-3
_LEAST_PRICE = 1e-200


@dataclass(frozen=True)
class Grid:
    """Outputs of every node in steps, and the entries they need for every input."""

    forest: Forest
    factor: float
    """β."""
    summand: Floats
    """δ of every node."""
    outputs: tuple[Floats, ...]
    memory: tuple[Floats, ...]
    """Of each node, a table: place of the input, place of the output. Tops have one input."""

    @classmethod
    def within(cls, forest: Forest, error: float, tables: Tables | None = None) -> Grid:
        """A grid on which rounding up costs at most the factor 1 + error."""
        factor = 1 + _power_of_two(math.expm1(math.log1p(error) / 2 / forest.depth))
        return cls.of(forest, factor, error / 2 / (1 + error), tables)

    @classmethod
    def of(cls, forest: Forest, factor: float, share: float, tables: Tables | None = None) -> Grid:
        """Steps of a factor, or of what sums up to a share of the cost; `tables` are reused and added to."""
        tables = {} if tables is None else tables
        least = forest.constant + float(forest.children @ forest.groups)
        weights = forest.subtree_children
        summand = np.array(
            [_power_of_two(share * least / len(weights) / weight) for weight in weights]
        )
        outputs = tuple(
            _steps(float(groups), float(source), factor, float(step))
            for groups, source, step in zip(forest.groups, forest.source, summand)
        )
        memory: list[Floats] = []
        for number, parent in enumerate(forest.parent):
            source, table = float(forest.source[number]), forest.tables[number]
            above = (0.0, 0.0) if parent == TOP else (forest.groups[parent], summand[parent])
            key = table, source, factor, summand[number], *above
            if key not in tables:
                came = source if parent == TOP else outputs[parent][:, None]
                tables[key] = table.needed(outputs[number][None, :], came)
            memory.append(forest.size[number] * tables[key])
        return cls(forest, factor, summand, outputs, tuple(memory))


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
    """The cheapest choice that fits, at the price where it just fits, and a bound on all others."""

    bound: float
    priced: Priced
    entries: Floats


def relax(grid: Grid, memory: float, start: float | None = None) -> Relaxation:
    """The Lagrange relaxation for so much memory; `start` is a price that may be close."""
    free = price_memory(grid, 0.0)
    if free.used <= memory:
        return Relaxation(lower_bound(grid, memory, 0.0), free, free.entries)
    low, high = 0.0, start or _first_price(grid.forest, memory)
    fitting = price_memory(grid, high)
    while fitting.used > memory:
        low, high = high, high * (2 if start else 16)
        fitting = price_memory(grid, high)
    while low == 0.0:
        tried = price_memory(grid, high / 2)
        if tried.used > memory or high < _LEAST_PRICE:
            low = high / 2
        else:
            high, fitting = high / 2, tried
    while high - low > _CLOSE * high and fitting.used < memory:
        tried = price_memory(grid, middle := math.sqrt(low * high))
        if tried.used > memory:
            low = middle
        else:
            high, fitting = middle, tried
    bound = max(lower_bound(grid, memory, price) for price in (low, high))
    return Relaxation(bound, fitting, fitting.entries)


def lower_bound(grid: Grid, memory: float, price: float) -> float:
    """What every allocation costs at least: outputs are rounded down."""
    forest = grid.forest
    inside: list[Floats] = [np.empty(0)] * len(forest.nodes)
    for number in reversed(range(len(forest.nodes))):
        after = forest.children[number] * grid.outputs[number]
        for child in forest.below[number]:
            after = after + inside[child]
        spent = grid.memory[number]
        if len(after) > 1:
            spent, after = spent[:, 1:], after[:-1]
        inside[number] = (price * spent + after).min(axis=1)
    return forest.constant + float(sum(inside[top][0] for top in forest.tops)) - price * memory


def price_memory(grid: Grid, price: float) -> Priced:
    """The dynamic program at one price."""
    forest = grid.forest
    count = len(forest.nodes)
    inside: list[Floats] = [np.empty(0)] * count
    chosen: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * count
    for number in reversed(range(count)):
        after = forest.children[number] * grid.outputs[number]
        for child in forest.below[number]:
            after = after + inside[child]
        total = price * grid.memory[number] + after
        chosen[number] = total.argmin(axis=1)
        inside[number] = total[np.arange(len(total)), chosen[number]]
    entries, places = np.zeros(count), np.zeros(count, np.int64)
    for number, parent in enumerate(forest.parent):
        came = 0 if parent == TOP else places[parent]
        places[number] = chosen[number][came]
        entries[number] = grid.memory[number][came, places[number]] / forest.size[number]
    value = float(sum(inside[top][0] for top in forest.tops))
    return Priced(price, value, tuple(inside), tuple(chosen), entries, forest.used(entries))


def _steps(groups: float, source: float, factor: float, summand: float) -> Floats:
    """From `groups` to `source`: equal distances while they are the larger steps, then equal factors."""
    turn = min(max(summand / (factor - 1), groups), source)
    sums = groups + summand * np.arange(math.floor((turn - groups) / summand) + 1)
    count = max(0, math.ceil(math.log(source / sums[-1]) / math.log(factor) - 1e-9))
    grid: Floats = np.concatenate((sums, sums[-1] * np.power(factor, np.arange(1, count + 1))))
    grid[-1] = source if source > groups else groups
    return grid


def _power_of_two(number: float) -> float:
    """The largest one up to a number: few different steps, so that tables are met again."""
    return 2.0 ** math.floor(math.log2(number))


def _first_price(forest: Forest, memory: float) -> float:
    """About what an entry saves if all memory goes to one node."""
    most = float((forest.children * forest.source).sum())
    return max(most / max(memory, float(forest.size.min()) * 1e-6), 1e-300)
