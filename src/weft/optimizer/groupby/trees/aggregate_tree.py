"""Aggregate trees: which group-by set is computed from which.

The root is the stream; every other node is a set of attributes, computed from its parent, which has
all of them (Memory paper, section III-D). A node that a query asked for is a query node, any other
is an intermediate. Trees are values: a change gives a new tree that shares all branches it did not
touch, so that what was computed for a branch can be kept by the branch itself. Children are in the
order of their names, so equal trees are equal values.

Time: a change rebuilds the path to it, O(depth × degree).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakValueDictionary

GroupBySet = frozenset[str]
"""The attributes of a group-by."""

STREAM = ""
"""The name of the root."""

NO_ATTRIBUTES = "()"
"""The name of the group-by without attributes, the global aggregate."""


@lru_cache(maxsize=1 << 16)
def node_name(node: GroupBySet) -> str:
    """The attributes in alphabetical order.

    >>> node_name(frozenset({"b", "a"})), node_name(frozenset())
    ('a,b', '()')
    """
    return ",".join(sorted(node)) if node else NO_ATTRIBUTES


class Branch:
    """A node with all that is computed from it. Equal branches are one object, so comparing and looking one up is quick."""

    __slots__ = ("__weakref__", "asked", "children", "node")

    node: GroupBySet
    asked: bool
    children: tuple[Branch, ...]

    def __new__(cls, node: GroupBySet, asked: bool, children: Iterable[Branch] = ()) -> Branch:
        ordered = tuple(sorted(children, key=_name_of))
        key = node, asked, ordered
        interned = _BRANCHES.get(key)
        if interned is not None:
            return interned
        for child in ordered:
            if not child.node < node:
                raise ValueError(f"{node_name(child.node)} is not computed from {node_name(node)}")
        branch = super().__new__(cls)
        branch.node, branch.asked, branch.children = key
        _BRANCHES[key] = branch
        return branch

    def __repr__(self) -> str:
        inner = f": {list(self.children)}" if self.children else ""
        return f"<{node_name(self.node)}{'' if self.asked else '*'}{inner}>"

    def walk(self) -> Iterator[Branch]:
        """This branch and all below, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def to_json(self) -> dict[str, Any]:
        children = [child.to_json() for child in self.children]
        return {"node": node_name(self.node), "children": children}


def _name_of(branch: Branch) -> str:
    return node_name(branch.node)


_BRANCHES: WeakValueDictionary[tuple[GroupBySet, bool, tuple[Branch, ...]], Branch] = (
    WeakValueDictionary()
)


class AggregateTree:
    """The branches that are computed from the stream.

    >>> queries = [frozenset("ab"), frozenset("bc"), frozenset("cd")]
    >>> flat = AggregateTree.flat(queries)
    >>> tree = flat.merged(None, frozenset("abc"))
    >>> tree
    <stream: [<a,b,c*: [<a,b>, <b,c>]>, <c,d>]>
    >>> tree.without(frozenset("abc")) == flat
    True
    """

    __slots__ = ("__dict__", "children")

    def __init__(self, children: Iterable[Branch]) -> None:
        self.children = tuple(sorted(children, key=_name_of))

    @classmethod
    def flat(cls, queries: Iterable[GroupBySet]) -> AggregateTree:
        """Every query from the stream itself; equal queries are one node."""
        return cls(Branch(node, True) for node in set(queries))

    @classmethod
    def of(
        cls, queries: Iterable[GroupBySet], parents: Mapping[GroupBySet, GroupBySet | None]
    ) -> AggregateTree:
        """The tree in which every node has the given parent; None is the stream.

        >>> AggregateTree.of([frozenset("a")], {frozenset("a"): None})
        <stream: [<a>]>
        """
        asked = set(queries)
        below: dict[GroupBySet | None, list[GroupBySet]] = {}
        for node, parent in parents.items():
            below.setdefault(parent, []).append(node)

        def branch(node: GroupBySet) -> Branch:
            return Branch(node, node in asked, map(branch, below.get(node, ())))

        tree = cls(map(branch, below.get(None, ())))
        if asked - tree.nodes() or set(parents) - tree.nodes():
            raise ValueError("a node is not connected to the stream")
        return tree

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AggregateTree) and self.children == other.children

    def __hash__(self) -> int:
        return hash(self.children)

    def __repr__(self) -> str:
        return f"<stream: {list(self.children)}>"

    def walk(self) -> Iterator[tuple[GroupBySet | None, Branch]]:
        """Every branch with its parent's node, parents first."""

        waiting: list[tuple[GroupBySet | None, Branch]] = [
            (None, child) for child in self.children[::-1]
        ]
        while waiting:
            parent, branch = waiting.pop()
            yield parent, branch
            waiting.extend((branch.node, child) for child in branch.children[::-1])

    @cached_property
    def _branches(self) -> dict[GroupBySet, Branch]:
        return {branch.node: branch for _, branch in self.walk()}

    def nodes(self) -> set[GroupBySet]:
        return set(self._branches)

    def queries(self) -> tuple[GroupBySet, ...]:
        """The query nodes, by name."""
        return _by_name(branch.node for _, branch in self.walk() if branch.asked)

    def intermediates(self) -> tuple[GroupBySet, ...]:
        """The nodes that no query asked for, by name."""
        return _by_name(branch.node for _, branch in self.walk() if not branch.asked)

    def find(self, node: GroupBySet) -> Branch | None:
        """The branch of a node."""
        return self._branches.get(node)

    def merged(self, parent: GroupBySet | None, union: GroupBySet) -> AggregateTree:
        """With all children of `parent` that are subsets of `union` computed from `union`.

        The node of `union` becomes a child of `parent` unless the tree has it already.
        """
        children = self.children if parent is None else self._branch(parent).children
        moved = [child for child in children if child.node < union]
        kept = [child for child in children if not child.node < union]
        existing = self.find(union)
        if existing is None:
            return self._replaced(parent, [*kept, Branch(union, False, moved)])
        return self._replaced(parent, kept)._replaced(union, [*existing.children, *moved])

    def without(self, node: GroupBySet) -> AggregateTree:
        """With an intermediate gone, its children computed from its parent."""
        parent, branch = next(step for step in self.walk() if step[1].node == node)
        if branch.asked:
            raise ValueError(f"{node_name(node)} is a query")
        siblings = self.children if parent is None else self._branch(parent).children
        kept = [sibling for sibling in siblings if sibling is not branch]
        return self._replaced(parent, [*kept, *branch.children])

    def to_json(self) -> dict[str, Any]:
        return {"node": STREAM, "children": [child.to_json() for child in self.children]}

    def _branch(self, node: GroupBySet) -> Branch:
        branch = self.find(node)
        if branch is None:
            raise KeyError(node_name(node))
        return branch

    def _replaced(self, node: GroupBySet | None, children: Iterable[Branch]) -> AggregateTree:
        """With other children of one node."""
        if node is None:
            return AggregateTree(children)
        target, new = node, tuple(children)

        def rebuilt(branch: Branch) -> Branch:
            if branch.node == target:
                return Branch(branch.node, branch.asked, new)
            if not branch.node > target or not branch.children:
                return branch
            below = [rebuilt(child) for child in branch.children]
            if all(a is b for a, b in zip(below, branch.children)):
                return branch
            return Branch(branch.node, branch.asked, below)

        return AggregateTree(rebuilt(child) for child in self.children)


def _by_name(nodes: Iterable[GroupBySet]) -> tuple[GroupBySet, ...]:
    return tuple(sorted(nodes, key=node_name))
