"""Algorithm 1 of the Memory paper under weft's own price, by the difference that a change makes.

The search is that of `greedy_tree`: from the flat tree, again and again the change that saves most,
merging siblings below their union or deleting an intermediate. Under the price of `arrange` a
change touches only the nodes that move and the one they move to, so that it is priced in time linear
in these, without making a tree. A union whose price cannot pay even if it had no more groups than
its largest child is not looked up at all.

Time per round: O(n²) unions of n siblings, O(n) tests for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from weft.optimizer.groupby.aggregate_tree import AggregateTree, node_name

Attributes = frozenset[str]
THRESHOLD = 1e-3
_ROUNDS_PER_NODE = 8


@dataclass(frozen=True)
class Costs:
    """What the search needs to know: prices per second, and the fragments of nodes.

    `row` is for one pass over all rows of a second, `read` and `write` for one fragment, `node` for every node.
    `out` gives the fragments per second of a set whose fragments end at so many edges per second.
    """

    row: float
    read: float
    write: float
    node: float
    out: Callable[[Attributes, float], float]
    groups: Callable[[Attributes], float]
    memory: float


@dataclass(frozen=True)
class _Change:
    """Children of `parent` that are computed from `target`; or, of an intermediate, nothing more."""

    saves: float
    parent: Attributes | None
    target: Attributes
    moved: tuple[Attributes, ...]
    deletes: bool = False


@dataclass
class _Search:
    costs: Costs
    asked: frozenset[Attributes]
    edges: dict[Attributes, float]
    parents: dict[Attributes, Attributes | None] = field(default_factory=dict)
    outs: dict[Attributes, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parents = dict.fromkeys(sorted(self.asked, key=node_name))
        self.outs = {node: self.costs.out(node, self.edges[node]) for node in self.parents}

    @property
    def total(self) -> float:
        own = sum(out * self.costs.write + self.costs.node for out in self.outs.values())
        return own + sum(self._read(parent) for parent in self.parents.values())

    @property
    def _held(self) -> float:
        return sum(self.costs.groups(node) for node in self.parents if node not in self.asked)

    def _read(self, parent: Attributes | None) -> float:
        """What it costs to compute one node from another."""
        return self.costs.row if parent is None else self.outs[parent] * self.costs.read

    def best(self) -> _Change | None:
        """The change that saves most; the first by name among equals."""
        below: dict[Attributes | None, list[Attributes]] = {}
        for node, parent in self.parents.items():
            below.setdefault(parent, []).append(node)
        found: _Change | None = None
        held = self._held
        for parent, children in below.items():
            for change in self._changes(parent, children, below, held):
                if found is None or change.saves > found.saves:
                    found = change
        return found

    def _changes(
        self,
        parent: Attributes | None,
        children: Sequence[Attributes],
        below: dict[Attributes | None, list[Attributes]],
        held: float,
    ) -> Iterator[_Change]:
        seen: set[Attributes] = set()
        for one, other in combinations(children, 2):
            union = one | other
            if union == parent or union in seen:
                continue
            seen.add(union)
            moved = tuple(child for child in children if child < union)
            if union not in self.parents:
                yield from self._new(parent, union, moved, held)
            elif self.parents[union] == parent:
                yield self._onto(parent, union, moved, len(below.get(union, ())))
        for node in children:
            if node not in self.asked:
                yield self._without(parent, node, tuple(below.get(node, ())))

    def _new(
        self,
        parent: Attributes | None,
        union: Attributes,
        moved: tuple[Attributes, ...],
        held: float,
    ) -> Iterator[_Change]:
        read = self._read(parent)

        def saves(out: float) -> float:
            made = read + out * self.costs.write + self.costs.node
            return len(moved) * (read - out * self.costs.read) - made

        if saves(max(self.outs[node] for node in moved)) <= 0:
            return
        if held + self.costs.groups(union) > self.costs.memory:
            return
        edges = max(self.edges[node] for node in moved)
        yield _Change(saves(self.costs.out(union, edges)), parent, union, moved)

    def _onto(
        self, parent: Attributes | None, target: Attributes, moved: tuple[Attributes, ...], had: int
    ) -> _Change:
        edges = max(self.edges[node] for node in (target, *moved))
        out, before = self.costs.out(target, edges), self.outs[target]
        grows = (out - before) * (self.costs.write + had * self.costs.read)
        saved = len(moved) * (self._read(parent) - out * self.costs.read)
        return _Change(saved - grows, parent, target, moved)

    def _without(
        self, parent: Attributes | None, node: Attributes, children: tuple[Attributes, ...]
    ) -> _Change:
        read, out = self._read(parent), self.outs[node]
        made = read + out * self.costs.write + self.costs.node
        saves = made - len(children) * (read - out * self.costs.read)
        return _Change(saves, parent, node, children, deletes=True)

    def apply(self, change: _Change) -> None:
        if change.deletes:
            del self.parents[change.target], self.outs[change.target], self.edges[change.target]
            self.parents |= dict.fromkeys(change.moved, change.parent)
            return
        known = {change.target} & self.parents.keys()
        edges = max(self.edges[node] for node in (*known, *change.moved))
        self.edges[change.target] = edges
        self.outs[change.target] = self.costs.out(change.target, edges)
        self.parents[change.target] = change.parent
        self.parents |= dict.fromkeys(change.moved, change.target)


def native_tree(edges: dict[Attributes, float], costs: Costs) -> AggregateTree:
    """The aggregate tree of group-by sets, given the edges per second of each.

    >>> sets = {frozenset("ab"): 1.0, frozenset("bc"): 1.0}
    >>> def out(node, edges):
    ...     return edges * 10.0 ** len(node)
    >>> native_tree(sets, Costs(1e6, 1.0, 1.0, 1.0, out, lambda node: 10.0 ** len(node), 1e9))
    <stream: [<a,b,c*: [<a,b>, <b,c>]>]>
    """
    search = _Search(costs, frozenset(edges), dict(edges))
    for _ in range(_ROUNDS_PER_NODE * len(edges) + 1):
        change = search.best()
        if change is None or change.saves <= THRESHOLD * search.total:
            break
        search.apply(change)
    return AggregateTree.of(list(edges), search.parents)
