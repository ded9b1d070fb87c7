"""Algorithm 1 of the Memory paper under weft's own price, by the difference that a change makes.

The search is that of `greedy_tree`: from the flat tree, again and again the change that saves most,
merging siblings below their union or deleting an intermediate. Under the price of `arrange` a
change touches only the nodes that move and the one they move to, so that it is priced in time linear
in these, without making a tree.

How many groups a union has is the dearest question. A union saves at most what it would save if it had
no more groups than its largest child: candidates are asked in the order of this bound, and not
at all once it is below the best change found. Candidates are kept for every node until its children
change. Of more than eighty nodes that read the stream, neighbours by name are merged first.

Time per round: O(n²) unions of n siblings, O(n) tests for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, node_name

Attributes = frozenset[str]
THRESHOLD = 1e-3
MOST_SIBLINGS = 80
"""Nodes of which all pairs are tried; of more, only those that are near by name. Where more read the
stream, neighbours are merged first until this many are left:"""
_LEFT = 32
_Masked = tuple[Attributes, int]
_ROUNDS_PER_NODE = 8


@dataclass(frozen=True)
class Costs:
    """What the search needs to know: prices per second, and the fragments of nodes.

    `row` is for one pass over all rows of a second, `read` and `write` for one fragment, `node` for
    every node.
    `out` gives the fragments per second of a set, by how many times per second its fragments end.
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
    """Children of `parent` that are computed from `target`; or, of an intermediate, nothing more. Of
    a `bound`, `saves` is the most that it can save."""

    saves: float
    parent: Attributes | None
    target: Attributes
    moved: tuple[Attributes, ...]
    deletes: bool = False
    bound: bool = False


@dataclass
class _Search:
    costs: Costs
    asked: frozenset[Attributes]
    edges: dict[Attributes, float]
    parents: dict[Attributes, Attributes | None] = field(default_factory=dict)
    outs: dict[Attributes, float] = field(default_factory=dict)
    _known: dict[Attributes | None, list[_Change]] = field(default_factory=dict)
    """The candidates among the children of a node, until these change."""
    _masks: dict[Attributes, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places = {
            name: position for position, name in enumerate(sorted(frozenset().union(*self.asked)))
        }
        self.parents = dict.fromkeys(sorted(self.asked, key=node_name))
        self.outs = {node: self.costs.out(node, self.edges[node]) for node in self.parents}

    @property
    def total(self) -> float:
        written = sum(out * self.costs.write + self.costs.node for out in self.outs.values())
        return written + sum(self._read(parent) for parent in self.parents.values())

    @property
    def first(self) -> int:
        """How many nodes are computed from the stream."""
        return sum(parent is None for parent in self.parents.values())

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
        for parent, children in below.items():
            if parent not in self._known:
                self._known[parent] = list(self._changes(parent, children, below))
        candidates = [change for parent in below for change in self._known[parent]]
        best_change: _Change | None = None
        best_order, room = 0, self.costs.memory - self._held
        for order, change in sorted(enumerate(candidates), key=lambda numbered: -numbered[1].saves):
            if best_change is not None and change.saves < best_change.saves:
                break
            exact = self._exact(change, room) if change.bound else change
            if exact is None:
                continue
            if best_change is None or (-exact.saves, order) < (-best_change.saves, best_order):
                best_change, best_order = exact, order
        return best_change

    def _changes(
        self,
        parent: Attributes | None,
        children: Sequence[Attributes],
        below: dict[Attributes | None, list[Attributes]],
    ) -> Iterator[_Change]:
        masks = [(child, self._mask(child)) for child in children]
        seen = {None if parent is None else self._mask(parent)}
        few = len(masks) <= MOST_SIBLINGS
        for (one, first), (other, second) in combinations(masks, 2) if few else _near(masks):
            both = first | second
            if both in seen:
                continue
            seen.add(both)
            union = one | other
            tried = masks if few else [(one, first), (other, second)]
            moved = tuple(
                child
                for child, child_mask in tried
                if child_mask | both == both and child_mask != both
            )
            if union not in self.parents:
                yield self._new(parent, union, moved)
            elif self.parents[union] == parent:
                yield self._onto(parent, union, moved, len(below.get(union, ())))
        for node in children:
            if node not in self.asked:
                yield self._without(parent, node, tuple(below.get(node, ())))

    def _mask(self, node: Attributes) -> int:
        """The attributes as bits: subsets of these are found faster."""
        mask = self._masks.get(node)
        if mask is None:
            mask = self._masks[node] = sum(1 << self._places[name] for name in node)
        return mask

    def halve(self) -> bool:
        """Merge neighbours among the nodes that are computed from the stream, in the order of their
        names, where it saves; whether it did."""
        first = [node for node, parent in self.parents.items() if parent is None]
        room = self.costs.memory - self._held
        for one, other in zip(first[::2], first[1::2], strict=False):
            union = one | other
            if union in self.parents:
                continue
            change = self._exact(self._new(None, union, (one, other)), room)
            if change is not None and change.saves > 0:
                self.apply(change)
                room = self.costs.memory - self._held
        return self.first < len(first)

    def _new(
        self, parent: Attributes | None, union: Attributes, moved: tuple[Attributes, ...]
    ) -> _Change:
        """A new intermediate, with the most that it can save."""
        least = max(self.outs[node] for node in moved)
        return _Change(self._saved(parent, moved, least), parent, union, moved, bound=True)

    def _exact(self, change: _Change, room: float) -> _Change | None:
        """What a new intermediate does save, None if it does not fit into the memory."""
        if room < float("inf") and self.costs.groups(change.target) > room:
            return None
        edges = max(self.edges[node] for node in change.moved)
        out = self.costs.out(change.target, edges)
        saves = self._saved(change.parent, change.moved, out)
        return replace(change, saves=saves, bound=False)

    def _saved(self, parent: Attributes | None, moved: tuple[Attributes, ...], out: float) -> float:
        """What an intermediate saves, by its number of fragments: its children read it, not the parent."""
        read = self._read(parent)
        price = read + out * self.costs.write + self.costs.node
        return len(moved) * (read - out * self.costs.read) - price

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
        saves = -self._saved(parent, children, self.outs[node])
        return _Change(saves, parent, node, children, deletes=True)

    def apply(self, change: _Change) -> None:
        above = None if change.parent is None else self.parents[change.parent]
        for touched in (above, change.parent, change.target):
            self._known.pop(touched, None)
        if change.deletes:
            del self.parents[change.target], self.outs[change.target], self.edges[change.target]
            self.parents |= dict.fromkeys(change.moved, change.parent)
            return
        existing = {change.target} & self.parents.keys()
        edges = max(self.edges[node] for node in (*existing, *change.moved))
        self.edges[change.target] = edges
        self.outs[change.target] = self.costs.out(change.target, edges)
        self.parents[change.target] = change.parent
        self.parents |= dict.fromkeys(change.moved, change.target)


def _near(children: Sequence[_Masked]) -> Iterator[tuple[_Masked, _Masked]]:
    """As many pairs as the most siblings have, of children near each other."""
    reach = max(MOST_SIBLINGS**2 // 2 // len(children), 1)
    for position, one in enumerate(children):
        for other in children[position + 1 : position + 1 + reach]:
            yield one, other


def native_tree(edges: dict[Attributes, float], costs: Costs) -> AggregateTree:
    """The aggregate tree of group-by sets, given the edges per second of each.

    >>> sets = {frozenset("ab"): 1.0, frozenset("bc"): 1.0}
    >>> def out(node, edges):
    ...     return edges * 10.0 ** len(node)
    >>> native_tree(sets, Costs(1e6, 1.0, 1.0, 1.0, out, lambda node: 10.0 ** len(node), 1e9))
    <stream: [<a,b,c*: [<a,b>, <b,c>]>]>
    """
    search = _Search(costs, frozenset(edges), dict(edges))
    if search.first > MOST_SIBLINGS:
        while search.first > _LEFT and search.halve():
            pass
    for _ in range(_ROUNDS_PER_NODE * len(edges) + 1):
        change = search.best()
        if change is None or change.saves <= THRESHOLD * search.total:
            break
        search.apply(change)
    return AggregateTree.of(list(edges), search.parents)
