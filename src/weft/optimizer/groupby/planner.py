"""From group-by sets, statistics and memory to an aggregate tree with an allocation.

One entry for all allocators of the Memory paper: the greedy search (`greedy_tree`) with the
allocator's price of a tree. `fptas` and `uniform` price by equations 1 and 2; `slc` plans as Zhang
et al. do, and its cost is that of its own tables (`slc`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from weft.errors import TreeError
from weft.optimizer.groupby.memory.forest import Forest
from weft.optimizer.groupby.memory.fptas import EPSILON, Reusable, fptas
from weft.optimizer.groupby.memory.ranking import Ranking
from weft.optimizer.groupby.memory.slc import slc_tree
from weft.optimizer.groupby.memory.tables import TableModel
from weft.optimizer.groupby.memory.tree_cost import tree_cost
from weft.optimizer.groupby.memory.uniform_allocation import uniform_allocation
from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, GroupBySet
from weft.optimizer.groupby.trees.greedy_tree import PricedTree, greedy_tree
from weft.optimizer.groupby.trees.statistics import Statistics, UniformStatistics

_UNLIMITED = 1e18
"""More memory than any tree needs; infinity has no products."""


@dataclass(frozen=True)
class PlannedTree:
    """A tree, the entries of its intermediates, and its predicted hash operations."""

    tree: AggregateTree
    allocation: Mapping[GroupBySet, float]
    during: float
    at_end: float

    @property
    def cost(self) -> float:
        return self.during + self.at_end


@dataclass(frozen=True)
class TreeOptions:
    """What only some allocators use."""

    epsilon: float
    model: TableModel | None


Planner = Callable[[Sequence[GroupBySet], Statistics, float, TreeOptions], PlannedTree]


def plan_tree(
    queries: Sequence[GroupBySet],
    statistics: Statistics,
    memory: float,
    allocator: str = "fptas",
    epsilon: float = EPSILON,
    model: TableModel | None = None,
) -> PlannedTree:
    """The aggregate tree of these queries; `model` is how `fptas` takes its tables, by default Lemma 6.1.

    >>> from weft.optimizer.groupby.trees.statistics import GroupStatistics
    >>> groups = {frozenset("abc"): 100, frozenset("ab"): 50, frozenset("bc"): 50}
    >>> plan_tree([frozenset("ab"), frozenset("bc")], GroupStatistics(10_000, groups), 100).tree
    <stream: [<a,b,c*: [<a,b>, <b,c>]>]>
    """
    if allocator not in ALLOCATORS:
        raise TreeError(
            "UNKNOWN_SETTING", name="allocator", value=allocator, known=", ".join(ALLOCATORS)
        )
    if not memory >= 0:
        raise TreeError("BAD_TREE", detail=f"the memory {memory:g} must not be negative")
    options = TreeOptions(epsilon, model)
    memory = min(memory, _UNLIMITED)
    return ALLOCATORS[allocator](queries, statistics, memory, options)


def _with_fptas(
    queries: Sequence[GroupBySet], statistics: Statistics, memory: float, options: TreeOptions
) -> PlannedTree:
    reuse = Reusable({})

    def price(tree: AggregateTree) -> PricedTree:
        forest = Forest.of(tree, statistics, options.model)
        allocated = fptas(forest, memory, options.epsilon, reuse=reuse)
        return PricedTree(tree, forest.allocation(allocated.entries), allocated.cost)

    ranking = Ranking(statistics, memory, options.model)
    return _planned(greedy_tree(queries, price, ranking), statistics, options.model)


def _with_uniform(
    queries: Sequence[GroupBySet], statistics: Statistics, memory: float, options: TreeOptions
) -> PlannedTree:
    flat = UniformStatistics(statistics)

    def price(tree: AggregateTree) -> PricedTree:
        forest = Forest.of(tree, flat)
        allocated = uniform_allocation(forest, memory)
        return PricedTree(tree, forest.allocation(allocated.entries), allocated.cost)

    return _planned(greedy_tree(queries, price, Ranking(flat, memory)), flat, None)


def _with_slc(
    queries: Sequence[GroupBySet], statistics: Statistics, memory: float, options: TreeOptions
) -> PlannedTree:
    planned, cost = slc_tree(queries, statistics, memory)
    return PlannedTree(planned.tree, planned.allocation, cost.during, cost.at_end)


def _planned(priced: PricedTree, statistics: Statistics, model: TableModel | None) -> PlannedTree:
    cost = tree_cost(priced.tree, priced.allocation, statistics, model)
    return PlannedTree(priced.tree, priced.allocation, cost.during, cost.at_end)


ALLOCATORS: dict[str, Planner] = {
    "fptas": _with_fptas,
    "uniform": _with_uniform,
    "slc": _with_slc,
}
