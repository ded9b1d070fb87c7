"""A quick estimate of what a tree costs with its memory well allocated, to order changes of a tree.

The Lagrange relaxation of `relaxation` on coarse grids: a few numbers of entries for each node
instead of all outputs, inputs interpolated, and prices of memory from one fixed list. V of a
branch, for every price and input, depends on nothing outside the branch, so it is computed once and
kept by the branch: a change of a tree costs the branches on the path to it. The estimate is no
bound; it is only ever used to choose which trees are priced.

Time: prices × inputs × entries for each new branch, one addition for each branch below the stream.
"""

from __future__ import annotations

import numpy as np

from weft.optimizer.groupby.memory.eviction import Floats
from weft.optimizer.groupby.memory.tables import TableModel, zipf_tables
from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, Branch
from weft.optimizer.groupby.trees.statistics import Statistics

_INPUTS = 16
_ENTRIES = 18
_LEAST_SHARE = 1e-4
_SHARES = np.concatenate(([0.0], np.geomspace(_LEAST_SHARE, 1.0, _ENTRIES - 1)))
_PRICES = 28
_PRICE_STEP = 2.0


class Ranking:
    """Estimates for trees over the same statistics and memory."""

    def __init__(
        self, statistics: Statistics, memory: float, model: TableModel | None = None
    ) -> None:
        self._model = model or zipf_tables(statistics)
        self._statistics = statistics
        self._memory = memory
        self._prices = _price_list(statistics.tuples, memory)
        self._from_stream: dict[Branch, Floats] = {}
        self._by_input: dict[Branch, tuple[Floats, Floats]] = {}

    def __call__(self, tree: AggregateTree) -> float:
        """What a tree costs, roughly."""
        tuples = self._statistics.tuples
        value = -self._prices * self._memory
        for child in tree.children:
            if child.children:
                if child not in self._from_stream:
                    self._from_stream[child] = self._value(child, np.array([tuples]))[:, 0]
                value = value + self._from_stream[child]
        return tuples * len(tree.children) + float(value.max())

    def _value(self, branch: Branch, inputs: Floats) -> Floats:
        """The least of cost and priced memory below a branch: a row for each price."""
        groups = min(self._statistics.groups(branch.node), self._statistics.tuples)
        if branch.asked:
            return self._after(branch, np.minimum(groups, inputs))
        entries = _SHARES * groups
        out = self._model(branch.node).leaving(entries[:, None], inputs)
        after = self._after(branch, out.ravel()).reshape(len(self._prices), *out.shape)
        memory = self._prices[:, None] * (entries * self._statistics.entry_size(branch.node))
        return np.asarray((after + memory[:, :, None]).min(axis=1))

    def _after(self, branch: Branch, out: Floats) -> Floats:
        """What the entries that leave a branch cost."""
        total = np.broadcast_to(len(branch.children) * out, (len(self._prices), len(out)))
        for child in branch.children:
            if child.children:
                total = total + _interpolated(*self._table(child), out)
        return total

    def _table(self, branch: Branch) -> tuple[Floats, Floats]:
        """V of a branch at some inputs."""
        if branch not in self._by_input:
            tuples = self._statistics.tuples
            least = min(self._statistics.groups(branch.node), tuples)
            inputs = np.geomspace(max(least, tuples * 1e-12), tuples, _INPUTS)
            self._by_input[branch] = inputs, self._value(branch, inputs)
        return self._by_input[branch]


def _interpolated(inputs: Floats, values: Floats, at: Floats) -> Floats:
    """Every row at the same places, linear between inputs."""
    left = np.clip(np.searchsorted(inputs, at) - 1, 0, len(inputs) - 2)
    width = inputs[left + 1] - inputs[left]
    weight = np.where(width > 0, (at - inputs[left]) / np.where(width > 0, width, 1), 0.0)
    weight = np.clip(weight, 0.0, 1.0)
    interpolated: Floats = values[:, left] * (1 - weight) + values[:, left + 1] * weight
    return interpolated


def _price_list(tuples: float, memory: float) -> Floats:
    """Nothing, and prices around that of memory which is worth the stream."""
    middle = max(tuples, 1.0) / max(memory, 1.0)
    powers = np.arange(_PRICES) - _PRICES // 2
    return np.concatenate(([0.0], middle * _PRICE_STEP**powers))
