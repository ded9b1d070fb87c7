"""The paper's algorithms as its text has them: exact fractions, edges counted one by one, every pair looked at."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from tests.optimizer.windows.brute_force import edge_rate, overlap

from weft.algebra.window import Window

Tree = list[int]
Nodes = list[list[Tree]]


class Oracle:
    """Costs of equation 1."""

    def __init__(self, windows: Sequence[Window], rate: int, nodes: int) -> None:
        self.windows, self.rate, self.count = windows, rate, nodes
        self._known: dict[tuple[int, ...], Fraction] = {}

    def tree(self, tree: Sequence[int]) -> Fraction:
        key = tuple(sorted(tree))
        if key not in self._known:
            chosen = [self.windows[query] for query in key]
            # A range has the edges of its remainder, which has far fewer instances to walk through.
            short = [Window(w.range % w.slide or w.slide, w.slide, w.start) for w in chosen]
            self._known[key] = self.rate + edge_rate(short) * overlap(chosen)
        return self._known[key]

    def node(self, trees: Sequence[Tree]) -> Fraction:
        return sum((self.tree(tree) for tree in trees), Fraction(0))

    def lowest(self, nodes: Nodes) -> int:
        return min(range(self.count), key=lambda number: self.node(nodes[number]))

    def expensive_first(self, trees: Sequence[Tree]) -> list[Tree]:
        return sorted(trees, key=lambda tree: -self.tree(tree))

    def single(self) -> list[Tree]:
        return [[query] for query in range(len(self.windows))]

    def to_lowest(self, category: str, trees: Sequence[Tree] | None = None) -> Nodes:
        nodes: Nodes = [[] for _ in range(self.count)]
        for tree in self.expensive_first(trees or self.single()):
            node = nodes[self.lowest(nodes)]
            if category == "g" or not node:
                node.append(tree)
            elif category == "w":
                node[0] += tree
            else:
                cheapest = min(node, key=self.tree)
                if self.tree(cheapest + tree) - self.tree(cheapest) <= self.tree(tree):
                    cheapest += tree
                else:
                    node.append(tree)
        return nodes

    def to_nodes(self, category: str) -> Nodes:
        trees = self.single()
        while len(trees) > self.count:
            pairs = [(i, j) for i in range(len(trees)) for j in range(i + 1, len(trees))]
            reductions = [
                self.tree(trees[i]) + self.tree(trees[j]) - self.tree(trees[i] + trees[j])
                for i, j in pairs
            ]
            best = max(range(len(pairs)), key=lambda place: reductions[place])
            if reductions[best] <= 0 and category == "wg":
                break
            i, j = pairs[best]
            trees[i] = trees[i] + trees.pop(j)
        return self.to_lowest("g", trees)

    def inserted(self, category: str, seed: int) -> Nodes:
        first = np.random.default_rng(seed).permutation(len(self.windows))[: self.count].tolist()
        nodes: Nodes = [[] for _ in range(self.count)]
        for number, query in enumerate(first):
            nodes[number].append([query])
        for query in range(len(self.windows)):
            if query in first:
                continue
            options = [
                (self.node(node) + self.tree([*tree, query]) - self.tree(tree), number, place)
                for number, node in enumerate(nodes)
                for place, tree in enumerate(node)
            ]
            _, number, place = min(options)
            tree = nodes[number][place]
            woven = self.tree([*tree, query]) - self.tree(tree)
            if category == "wg" and self.tree([query]) < woven:
                nodes[self.lowest(nodes)].append([query])
            else:
                tree.append(query)
        return nodes
