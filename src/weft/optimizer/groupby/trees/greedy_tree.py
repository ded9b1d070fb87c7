"""A cheap aggregate tree by local changes: Algorithm 1 of the Memory paper.

Starts with the flat tree and applies, again and again, the change that lowers the cost most: two
siblings A, B and all siblings inside A ∪ B are computed from A ∪ B, or an intermediate is deleted.
Stops when no change lowers the cost by the share `threshold`. So the result never costs more than
the flat tree.

What the paper leaves open: A ∪ B may be in the tree already, as a query, a sibling or elsewhere;
then nothing is added and the siblings move below it. Pairs with the same union are one change. An
intermediate that got no entries passes everything on, so deleting it saves all that comes in: such
nodes are deleted at once, without a threshold. Ties go to the change that comes first by name, so
equal input gives equal trees.

Prices are the caller's: `price` allocates memory and says what a tree costs, by any model. It may
be expensive, so `rank` (an estimate of the price) orders the changes, and only the `tries` best are
priced, until one is an improvement. Without `rank` every change is priced, as in the paper.

Time: O(nodes²) changes in each of at most O(queries) useful rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, Branch, GroupBySet, node_name

THRESHOLD = 1e-3
TRIES = 3
_ROUNDS_PER_QUERY = 8


@dataclass(frozen=True)
class PricedTree:
    """A tree with the entries of its intermediates, and what it costs."""

    tree: AggregateTree
    allocation: Mapping[GroupBySet, float]
    cost: float


Price = Callable[[AggregateTree], PricedTree]
Rank = Callable[[AggregateTree], float]


def greedy_tree(
    queries: Iterable[GroupBySet],
    price: Price,
    rank: Rank | None = None,
    threshold: float = THRESHOLD,
    tries: int = TRIES,
) -> PricedTree:
    """The tree that no single change makes cheaper by `threshold`."""
    asked = sorted(set(queries), key=node_name)
    best = price(AggregateTree.flat(asked))
    for _ in range(_ROUNDS_PER_QUERY * len(asked) + 1):
        goal = best.cost * (1 - threshold)
        better = _improvement(best, price, rank, tries)
        if better is None or better.cost > goal:
            break
        best = _useful(better, price)
    return best


def _improvement(
    current: PricedTree, price: Price, rank: Rank | None, tries: int
) -> PricedTree | None:
    """The cheapest change; with ranks, the cheapest of the few that look best."""
    trees = changes(current.tree)
    if rank is None:
        return min((price(tree) for tree in trees), key=lambda priced: priced.cost, default=None)
    ranked = sorted(((rank(tree), number, tree) for number, tree in enumerate(trees)))[:tries]
    best: PricedTree | None = None
    for estimate, _, tree in ranked:
        if best is not None and estimate >= best.cost:
            break
        priced = price(tree)
        if best is None or priced.cost < best.cost:
            best = priced
    return best


def changes(tree: AggregateTree) -> Iterator[AggregateTree]:
    """All trees that one merge or one deletion away, each once."""
    yield from _merges(tree, None, tree.children)
    for _, branch in tree.walk():
        if branch.children:
            yield from _merges(tree, branch.node, branch.children)
    for node in tree.intermediates():
        yield tree.without(node)


def _merges(
    tree: AggregateTree, parent: GroupBySet | None, children: tuple[Branch, ...]
) -> Iterator[AggregateTree]:
    unions = {one.node | other.node for one, other in combinations(children, 2)} - {parent}
    for union in sorted(unions, key=node_name):
        yield tree.merged(parent, union)


def _useful(priced: PricedTree, price: Price) -> PricedTree:
    """Without intermediates that have no entries, as long as that is cheaper."""
    while idle := [n for n in priced.tree.intermediates() if not priced.allocation.get(n, 0.0)]:
        tree = priced.tree
        for node in idle:
            tree = tree.without(node)
        smaller = price(tree)
        if smaller.cost >= priced.cost:
            break
        priced = smaller
    return priced
