"""Running an aggregate tree over one epoch: the results of its queries, and its counted hash
operations.

Nodes run parents first, each over what its parent passed on (`bounded_table` says why that is the
same as row by row). Hash operations of a node are the rows or partials put into its table, those
that arrive before the end of the epoch and those that a flush brings. The kernel knows no
optimizer: a tree is anything with branches, as `AggregateTree` is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weft.errors import TreeError
from weft.experiments.memory.bounded_table import Measures, Passed, Table, bounded, complete
from weft.experiments.memory.node_codes import Attribute, Integers, NodeCodes, node_codes

_MOST_ENTRIES = 2**62


class TreeBranch(Protocol):
    """A node, whether a query asked for it, and what is computed from it."""

    @property
    def node(self) -> frozenset[str]: ...

    @property
    def asked(self) -> bool: ...

    @property
    def children(self) -> Sequence[Any]: ...


class Tree(Protocol):
    """What is computed from the stream."""

    @property
    def children(self) -> Sequence[Any]: ...


@dataclass(frozen=True)
class Operations:
    """Hash operations at one node: inputs of its table."""

    during: int
    at_end: int
    evicted: int
    """Entries that left its table before the end of the epoch."""


@dataclass(frozen=True)
class Grouped:
    """The result of a query: codes of the keys by attribute, and measures by name."""

    keys: Mapping[str, Integers]
    measures: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class TreeRun:
    """One epoch."""

    results: Mapping[frozenset[str], Grouped]
    operations: Mapping[frozenset[str], Operations]

    @property
    def during(self) -> int:
        return sum(counted.during for counted in self.operations.values())

    @property
    def at_end(self) -> int:
        return sum(counted.at_end for counted in self.operations.values())

    @property
    def total(self) -> int:
        return self.during + self.at_end


def run_tree(
    tree: Tree,
    allocation: Mapping[frozenset[str], float],
    attributes: Mapping[str, Attribute],
    measures: Measures,
    table: Table = bounded,
    codes: dict[frozenset[str], NodeCodes] | None = None,
) -> TreeRun:
    """Run the tables of a tree over all rows.

    Entries are whole numbers: what is allocated is rounded down. `codes` keeps the groups of nodes below the stream, for
    other trees over the same rows.
    """
    codes_of = {} if codes is None else codes
    rows = len(measures.whole)
    results: dict[frozenset[str], Grouped] = {}
    operations: dict[frozenset[str], Operations] = {}
    stream = Passed(np.empty(0, np.int64), measures.whole, measures.real, rows)

    def visit(branch: TreeBranch, branch_codes: NodeCodes, came: Integers, given: Passed) -> None:
        held = allocation.get(branch.node, 0.0)
        if not held >= 0:
            raise TreeError("BAD_TREE", detail=f"{held} entries cannot be held")
        entries = math.floor(min(held, _MOST_ENTRIES))
        used = complete if branch.asked else table
        passed = used(came, given, measures, entries, max(len(branch_codes), 1))
        operations[branch.node] = Operations(given.during, len(came) - given.during, passed.during)
        if branch.asked:
            places = branch_codes.rows[passed.groups]
            keys = {name: attributes[name].codes[places] for name in sorted(branch.node)}
            results[branch.node] = Grouped(keys, measures.columns(passed.whole, passed.real))
        for child in branch.children:
            below = node_codes(child.node, attributes, branch_codes.rows, rows)
            visit(child, below, below.groups[passed.groups], passed)

    for child in tree.children:
        if child.node not in codes_of:
            codes_of[child.node] = node_codes(child.node, attributes, None, rows)
        visit(child, codes_of[child.node], codes_of[child.node].groups, stream)
    return TreeRun(results, operations)
