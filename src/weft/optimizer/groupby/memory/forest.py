"""The memory allocation problem of an aggregate tree, as arrays.

Only intermediates are allocated. A query node passes on its groups whatever comes in, so what is
below it is a problem of its own that shares only the memory; together these problems are a forest
of intermediates. Each top of it has a fixed input: the tuples of the stream, or the groups of the
query above it.

Cost of an allocation: `constant` (what the stream and the queries pass on) + Σ children·out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weft.optimizer.groupby.memory.eviction import Eviction, Floats
from weft.optimizer.groupby.memory.tables import BoundedTable, TableModel, ZipfTable, zipf_tables
from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, Branch, GroupBySet
from weft.optimizer.groupby.trees.statistics import Statistics

TOP = -1


@dataclass(frozen=True)
class Forest:
    """Intermediates, parents before children."""

    nodes: tuple[GroupBySet, ...]
    parent: tuple[int, ...]
    below: tuple[tuple[int, ...], ...]
    """The intermediates that are computed from each."""
    source: Floats
    """The input of the top that each stands under: the most that can come in."""
    children: Floats
    groups: Floats
    tables: tuple[BoundedTable, ...]
    size: Floats
    constant: float

    @classmethod
    def of(
        cls, tree: AggregateTree, statistics: Statistics, model: TableModel | None = None
    ) -> Forest:
        """The intermediates of a tree; tables behave as Lemma 6.1 says unless a model is given."""
        table = model or zipf_tables(statistics)
        nodes: list[GroupBySet] = []
        parents: list[int] = []
        sources: list[float] = []
        degrees: list[int] = []
        constant = 0.0

        def visit(branches: tuple[Branch, ...], parent: int, source: float) -> None:
            nonlocal constant
            for branch in branches:
                if not branch.children:
                    continue
                if branch.asked:
                    groups = min(statistics.groups(branch.node), source)
                    constant += groups * len(branch.children)
                    visit(branch.children, TOP, groups)
                else:
                    number = len(nodes)
                    nodes.append(branch.node)
                    parents.append(parent)
                    sources.append(source)
                    degrees.append(len(branch.children))
                    visit(branch.children, number, source)

        constant += statistics.tuples * len(tree.children)
        visit(tree.children, TOP, statistics.tuples)
        below: list[list[int]] = [[] for _ in nodes]
        for number, parent in enumerate(parents):
            if parent != TOP:
                below[parent].append(number)
        source = np.array(sources, np.float64)
        tables = tuple(table(node) for node in nodes)
        return cls(
            nodes=tuple(nodes),
            parent=tuple(parents),
            below=tuple(map(tuple, below)),
            source=source,
            children=np.array(degrees, np.float64),
            groups=np.minimum([table.groups for table in tables], source),
            tables=tables,
            size=np.array([statistics.entry_size(node) for node in nodes], np.float64),
            constant=constant,
        )

    @cached_property
    def subtree_children(self) -> Floats:
        """All children of all intermediates from each on down."""
        counts = self.children.copy()
        for number in reversed(range(len(self.nodes))):
            if self.parent[number] != TOP:
                counts[self.parent[number]] += counts[number]
        return counts

    @property
    def tops(self) -> tuple[int, ...]:
        return tuple(number for number, parent in enumerate(self.parent) if parent == TOP)

    @property
    def depth(self) -> int:
        """How many intermediates the longest path has."""
        depths: list[int] = []
        for parent in self.parent:
            depths.append(1 if parent == TOP else depths[parent] + 1)
        return max(depths, default=0)

    @cached_property
    def zipf(self) -> tuple[Eviction, Floats] | None:
        """The model and the skews, if all tables have the same model."""
        models = {table.eviction for table in self.tables if isinstance(table, ZipfTable)}
        skews = [table.alpha for table in self.tables if isinstance(table, ZipfTable)]
        if len(models) != 1 or len(skews) < len(self.tables):
            return None
        return models.pop(), np.array(skews)

    def lines(self, entries: Floats) -> tuple[list[float], list[float]]:
        """What leaves every node, by what comes in: intercepts and slopes."""
        if self.zipf is not None:
            eviction, alpha = self.zipf
            rates: list[float] = eviction.evicted(entries, self.groups, alpha).tolist()
            return np.minimum(entries, self.groups).tolist(), rates
        lines = [table.line(float(held)) for table, held in zip(self.tables, entries)]
        return [line[0] for line in lines], [line[1] for line in lines]

    def inputs(self, entries: Floats) -> tuple[Floats, Floats]:
        """What comes into every node, and what leaves it."""
        intercepts, slopes = self.lines(entries)
        groups = self.groups.tolist()
        incoming: list[float] = []
        out: list[float] = []
        for number, parent in enumerate(self.parent):
            came = float(self.source[number]) if parent == TOP else out[parent]
            left = intercepts[number] + slopes[number] * came
            incoming.append(came)
            out.append(min(came, max(min(groups[number], came), left)))
        return np.array(incoming), np.array(out)

    def cost(self, entries: Floats) -> float:
        """The hash operations of an epoch."""
        return self.constant + float(self.children @ self.inputs(entries)[1])

    def used(self, entries: Floats) -> float:
        """The memory that entries take."""
        return float(self.size @ entries)

    def allocation(self, entries: Floats) -> dict[GroupBySet, float]:
        return {node: float(count) for node, count in zip(self.nodes, entries)}
