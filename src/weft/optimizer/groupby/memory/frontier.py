"""The least memory for every cost: the tables of Algorithm 2 of the Memory paper, with its sums
mended.

For a subtree and the size of its input, the table holds pairs (cost, memory) of which none is
beaten in both. Tables are put together from below: those of siblings by adding all pairs, that of a
node by choosing its output and adding its own cost and memory. After each step a table is
*thinned*: of all pairs whose costs lie between two powers of γ, only that of least memory is kept.

The paper's MinSumChildren adds the exponents k' and k - k' of powers of β, which multiplies costs
where they must be added. Here costs themselves are added, and rounding comes after: a pair that is
dropped is replaced by one of no more memory and at most γ times the cost. A pair of a leaf is
thinned at most `thinnings` times on its way to the root (siblings are added pairwise, so a node of
m children thins log₂ m times, and once more for itself), so the result costs at most γ^thinnings
times the optimum of the grid.

Pairs that cannot be part of anything cheaper than `limit` are left out before. With the price λ of
the relaxation, V_i(j) is the least of cost + λ·memory below, and `outside` the least of it
elsewhere, so a pair is useless if pair + outside - λM > limit. Whatever is lost so costs more than
`limit`, which the caller has.

Time: O(nodes · grid · (grid + log m) · table²) at worst, tables having O(log(cost range) / log γ)
pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.groupby.memory.eviction import Floats
from weft.optimizer.groupby.memory.forest import TOP, Forest
from weft.optimizer.groupby.memory.relaxation import Grid, Priced

_SLACK = 1e-9


@dataclass(frozen=True)
class _Table:
    """Pairs by rising cost and falling memory, and the entries of all nodes of the subtree."""

    cost: Floats
    memory: Floats
    entries: Floats
    """A row for each pair, a column for each node of the forest."""


def thinnings(forest: Forest) -> int:
    """How often a pair may be thinned between a leaf and the root."""
    count = len(forest.nodes)
    below = [0] * count
    for number in reversed(range(count)):
        children = forest.below[number]
        deepest = max((below[child] for child in children), default=0)
        below[number] = deepest + _rounds(len(children)) + 1
    return max((below[top] for top in forest.tops), default=0) + _rounds(len(forest.tops))


def least_cost(
    grid: Grid, memory: float, thinning: float, priced: Priced, limit: float
) -> Floats | None:
    """The entries of the cheapest pair that fits, or None if all that fit cost more than `limit`."""
    forest, price = grid.forest, priced.price
    allowed = limit - forest.constant + price * memory + _SLACK * abs(limit)
    outside, reach = _elsewhere(grid, priced)
    tables: dict[tuple[int, int], _Table] = {}
    for number in reversed(range(len(forest.nodes))):
        after: dict[int, _Table] = {}
        for column in range(len(grid.outputs[number])):
            parts = [tables.pop((child, column), None) for child in forest.below[number]]
            floors = [float(priced.inside[child][column]) for child in forest.below[number]]
            left = allowed - float(reach[number][column])
            joined = _joined(parts, floors, len(forest.nodes), thinning, price, left)
            if joined is not None:
                after[column] = joined
        for row in range(len(grid.memory[number])):
            left = allowed - float(outside[number][row])
            pairs = [_with_own(table, grid, number, row, column) for column, table in after.items()]
            table = _within(_stacked(pairs), price, left) if pairs else None
            if table is not None:
                tables[number, row] = _thinned(table, thinning)
    parts = [tables.pop((top, 0), None) for top in forest.tops]
    floors = [float(priced.inside[top][0]) for top in forest.tops]
    whole = _joined(parts, floors, len(forest.nodes), thinning, price, allowed)
    if whole is None or not (whole.memory <= memory).any():
        return None
    cheapest = np.flatnonzero(whole.memory <= memory)[0]
    entries: Floats = whole.entries[cheapest]
    return entries


def _elsewhere(grid: Grid, priced: Priced) -> tuple[list[Floats], list[Floats]]:
    """The least of cost + λ·memory of all but a subtree by its input, and of all but what is below a
    node by its output."""
    forest = grid.forest
    outside: list[Floats] = []
    reach: list[Floats] = []
    for number, parent in enumerate(forest.parent):
        if parent == TOP:
            outside.append(priced.value - priced.inside[number])
        else:
            siblings = [child for child in forest.below[parent] if child != number]
            rest = [priced.inside[child] for child in siblings]
            outside.append(reach[parent] + np.sum(rest, axis=0) if rest else reach[parent])
        spent = outside[number][:, None] + priced.price * grid.memory[number]
        reach.append(spent.min(axis=0) + forest.children[number] * grid.outputs[number])
    return outside, reach


def _joined(
    parts: Sequence[_Table | None],
    floors: Sequence[float],
    nodes: int,
    thinning: float,
    price: float,
    allowed: float,
) -> _Table | None:
    """All sums of one pair of each part, added two parts at a time."""
    tables = [part for part in parts if part is not None]
    if len(tables) < len(parts) or sum(floors) > allowed:
        return None
    if not tables:
        return _Table(np.zeros(1), np.zeros(1), np.zeros((1, nodes)))
    lows, everything = list(floors), sum(floors)
    while len(tables) > 1:
        merged, merged_lows = [], []
        for a, b in zip(range(0, len(tables) - 1, 2), range(1, len(tables), 2)):
            low = lows[a] + lows[b]
            sums = _within(_sums(tables[a], tables[b]), price, allowed - (everything - low))
            if sums is None:
                return None
            merged.append(_thinned(sums, thinning))
            merged_lows.append(low)
        if len(tables) % 2:
            merged.append(tables[-1])
            merged_lows.append(lows[-1])
        tables, lows = merged, merged_lows
    return tables[0]


def _sums(one: _Table, other: _Table) -> _Table:
    entries = one.entries[:, None, :] + other.entries[None, :, :]
    return _Table(
        (one.cost[:, None] + other.cost).ravel(),
        (one.memory[:, None] + other.memory).ravel(),
        entries.reshape(-1, entries.shape[2]),
    )


def _with_own(table: _Table, grid: Grid, number: int, row: int, column: int) -> _Table:
    """With the cost and the memory of the node itself."""
    forest = grid.forest
    spent = float(grid.memory[number][row, column])
    entries = table.entries.copy()
    entries[:, number] = spent / forest.size[number]
    cost = forest.children[number] * grid.outputs[number][column]
    return _Table(table.cost + cost, table.memory + spent, entries)


def _stacked(tables: Sequence[_Table]) -> _Table:
    return _Table(
        np.concatenate([table.cost for table in tables]),
        np.concatenate([table.memory for table in tables]),
        np.concatenate([table.entries for table in tables]),
    )


def _within(table: _Table, price: float, allowed: float) -> _Table | None:
    keep = table.cost + price * table.memory <= allowed
    return _taken(table, np.flatnonzero(keep)) if keep.any() else None


def _thinned(table: _Table, thinning: float) -> _Table:
    """The pair of least memory between two powers of `thinning`, where none cheaper has as little."""
    bucket = np.floor(np.log(table.cost) / np.log(thinning))
    order = np.lexsort((table.cost, table.memory, bucket))
    first = np.concatenate(([True], bucket[order][1:] != bucket[order][:-1]))
    kept = order[first]
    less = np.minimum.accumulate(table.memory[kept])
    useful = np.concatenate(([True], table.memory[kept][1:] < less[:-1]))
    return _taken(table, kept[useful])


def _taken(table: _Table, places: NDArray[np.intp]) -> _Table:
    return _Table(table.cost[places], table.memory[places], table.entries[places])


def _rounds(parts: int) -> int:
    return max(parts - 1, 0).bit_length()
