"""The cheapest allocation where all groups are equally frequent: Theorem 3 of the Memory paper.

With f = 1 - b/g (Lemma 7.1) the cost is linear in the memory of each node, and the product of two
memories has no negative factor. Moving memory between two nodes that are neither empty nor full is
then concave in what is moved, so one of the two directions costs no more: some optimum gives every
node nothing or all, but at most one. All memory is used, up to that of all groups, since more never
costs more.

The theorem says nothing of *which* nodes are full. Here all choices are searched, with a bound: for
a price λ of memory, cost + λ·memory is multilinear, so its least value is at a choice of nothing or
all, which a dynamic program finds (the input of a node is that of the stream, of a query or of a
full node above). Choices whose bound is above the best known cost are cut. λ is the one of the best
bound. Where costs tie, whatever is found first stays; the cost is the same.

Empty nodes pass everything on, and a tree without them is cheaper. `greedy_tree` deletes them, as
the paper does; this module allocates the tree it is given, and is optimal for it with empty nodes,
too.

Time: O(nodes·depth) for each bound; exponentially many of them at worst, a few dozen in practice.
After `_MOST_BOUNDS` the best known allocation is returned, with the bound that it has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.optimizer.groupby.memory.forest import TOP, Forest
from weft.optimizer.groupby.memory.fptas import Allocated

_MOST_BOUNDS = 20_000
_PRICES = 60
_SAME = 1e-12

_FREE, _EMPTY, _FULL, _PART = 0, 1, 2, 3


def uniform_allocation(forest: Forest, memory: float) -> Allocated:
    """The cheapest allocation; the forest's skews are ignored."""
    return _Search(forest, memory).run()


class _Search:
    def __init__(self, forest: Forest, memory: float) -> None:
        self.forest = forest
        self.memory = memory
        self.groups = [float(number) for number in forest.groups]
        self.full = [float(number) for number in forest.groups * forest.size]
        self.children = [float(number) for number in forest.children]
        self.source = [float(number) for number in forest.source]
        self.size = [float(number) for number in forest.size]
        self.bounds = 0
        self.best = np.zeros(len(forest.nodes))
        self.cost = self._cost(self.best.tolist())

    def run(self) -> Allocated:
        count = len(self.groups)
        if sum(self.full) <= self.memory:
            entries = self.forest.groups.copy()
            cost = self._cost(entries.tolist())
            return Allocated(entries, cost, cost)
        states = [_FREE] * count
        self.price = self._best_price(states)
        bound = self._bound(states)
        self._branch(0, states, 0.0, False)
        exact = self.bounds < _MOST_BOUNDS
        return Allocated(self.best, self.cost, self.cost if exact else bound)

    def _branch(self, node: int, states: list[int], used: float, part: bool) -> None:
        if used > self.memory or self.bounds >= _MOST_BOUNDS:
            return
        if node == len(states):
            self._leaf(states, used)
            return
        self.bounds += 1
        if self._bound(states) >= self.cost * (1 - _SAME):
            return
        for state in (_FULL, _EMPTY) if part else (_FULL, _PART, _EMPTY):
            states[node] = state
            more = self.full[node] if state == _FULL else 0.0
            self._branch(node + 1, states, used + more, part or state == _PART)
        states[node] = _FREE

    def _leaf(self, states: list[int], used: float) -> None:
        entries = [g if state == _FULL else 0.0 for state, g in zip(states, self.groups)]
        if _PART in states:
            part = states.index(_PART)
            entries[part] = min(self.groups[part], (self.memory - used) / self.size[part])
        cost = self._cost(entries)
        if cost < self.cost:
            self.best, self.cost = np.array(entries), cost

    def _cost(self, entries: list[float]) -> float:
        out: list[float] = []
        total = self.forest.constant
        for node, parent in enumerate(self.forest.parent):
            came = self.source[node] if parent == TOP else out[parent]
            groups = min(self.groups[node], came)
            held = min(entries[node], groups)
            out.append(held + came * (1 - held / groups))
            total += self.children[node] * out[node]
        return total

    def _bound(self, states: list[int]) -> float:
        choice = self._priced(states, self.price)
        return self.forest.constant + choice.value - self.price * self.memory

    def _priced(self, states: list[int], price: float) -> _Choice:
        """The least of cost + price·memory over all choices that are left."""
        choices: dict[tuple[int, float], _Choice] = {}

        def least(node: int, came: float) -> _Choice:
            if (node, came) not in choices:
                options = []
                if states[node] != _FULL:
                    options.append(after(node, came, _Choice(0.0, 0.0, ())))
                if states[node] != _EMPTY:
                    spent = self.full[node]
                    first = _Choice(price * spent, spent, (node,))
                    options.append(after(node, min(self.groups[node], came), first))
                choices[node, came] = min(options)
            return choices[node, came]

        def after(node: int, out: float, first: _Choice) -> _Choice:
            below = [least(child, out) for child in self.forest.below[node]]
            return first.plus(_Choice(self.children[node] * out, 0.0, ()), *below)

        nothing = _Choice(0.0, 0.0, ())
        return nothing.plus(*(least(top, self.source[top]) for top in self.forest.tops))

    def _best_price(self, states: list[int]) -> float:
        """The price of the best bound; allocations close to it are tried on the way."""
        low, high = 0.0, 1.0
        while self._priced(states, high).used > self.memory:
            low, high = high, high * 8
        tried = {}
        for _ in range(_PRICES):
            middle = (low + high) / 2
            choice = self._priced(states, middle)
            tried[middle] = choice.value - middle * self.memory
            if choice.used > self.memory:
                low = middle
            else:
                high = middle
                self._fill(choice)
        return max(tried, key=lambda price: tried[price])

    def _fill(self, choice: _Choice) -> None:
        """The full nodes of a choice, and what is left to any other one."""
        states = [_EMPTY] * len(self.groups)
        for node in choice.full:
            states[node] = _FULL
        for node, state in enumerate(states):
            if state == _EMPTY:
                states[node] = _PART
                self._leaf(states, choice.used)
                states[node] = _EMPTY


class _Choice(NamedTuple):
    """Cost and priced memory, memory, and the nodes that are full."""

    value: float
    used: float
    full: tuple[int, ...]

    def plus(self, *others: _Choice) -> _Choice:
        every = (self, *others)
        full = tuple(node for choice in every for node in choice.full)
        return _Choice(
            sum(choice.value for choice in every), sum(choice.used for choice in every), full
        )
