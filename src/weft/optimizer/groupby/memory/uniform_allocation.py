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
        self.groups = [float(each) for each in forest.groups]
        self.full = [float(each) for each in forest.groups * forest.size]
        self.children = [float(each) for each in forest.children]
        self.source = [float(each) for each in forest.source]
        self.size = [float(each) for each in forest.size]
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

    def _branch(self, place: int, states: list[int], used: float, part: bool) -> None:
        if used > self.memory or self.bounds >= _MOST_BOUNDS:
            return
        if place == len(states):
            self._leaf(states, used)
            return
        self.bounds += 1
        if self._bound(states) >= self.cost * (1 - _SAME):
            return
        for state in (_FULL, _EMPTY) if part else (_FULL, _PART, _EMPTY):
            states[place] = state
            more = self.full[place] if state == _FULL else 0.0
            self._branch(place + 1, states, used + more, part or state == _PART)
        states[place] = _FREE

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
        for place, parent in enumerate(self.forest.parent):
            came = self.source[place] if parent == TOP else out[parent]
            groups = min(self.groups[place], came)
            held = min(entries[place], groups)
            out.append(held + came * (1 - held / groups))
            total += self.children[place] * out[place]
        return total

    def _bound(self, states: list[int]) -> float:
        found = self._priced(states, self.price)
        return self.forest.constant + found.value - self.price * self.memory

    def _priced(self, states: list[int], price: float) -> _Choice:
        """The least of cost + price·memory over all choices that are left."""
        known: dict[tuple[int, float], _Choice] = {}

        def least(place: int, came: float) -> _Choice:
            if (place, came) not in known:
                options = []
                if states[place] != _FULL:
                    options.append(after(place, came, _Choice(0.0, 0.0, ())))
                if states[place] != _EMPTY:
                    spent = self.full[place]
                    own = _Choice(price * spent, spent, (place,))
                    options.append(after(place, min(self.groups[place], came), own))
                known[place, came] = min(options)
            return known[place, came]

        def after(place: int, out: float, own: _Choice) -> _Choice:
            below = [least(child, out) for child in self.forest.below[place]]
            return own.plus(_Choice(self.children[place] * out, 0.0, ()), *below)

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
            found = self._priced(states, middle)
            tried[middle] = found.value - middle * self.memory
            if found.used > self.memory:
                low = middle
            else:
                high = middle
                self._fill(found)
        return max(tried, key=lambda price: tried[price])

    def _fill(self, found: _Choice) -> None:
        """The full nodes of a choice, and what is left to any other one."""
        states = [_EMPTY] * len(self.groups)
        for place in found.full:
            states[place] = _FULL
        for place, state in enumerate(states):
            if state == _EMPTY:
                states[place] = _PART
                self._leaf(states, found.used)
                states[place] = _EMPTY


class _Choice(NamedTuple):
    """Cost and priced memory, memory, and the nodes that are full."""

    value: float
    used: float
    full: tuple[int, ...]

    def plus(self, *others: _Choice) -> _Choice:
        every = (self, *others)
        full = tuple(place for each in every for place in each.full)
        return _Choice(sum(each.value for each in every), sum(each.used for each in every), full)
