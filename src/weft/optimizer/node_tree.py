"""The nodes of a plan as an aggregate tree: which are computed from the stream, which from others.

From: the Memory paper, whose greedy search makes the tree (`native_tree`), and the TriOps paper,
section V-B, which puts windows on it. The attributes of a node are its keys and the attributes that
its predicates select by, so that predicates and group-bys are shared by one search.

Computing on Spark differs from the paper's hash tables in two ways. A native aggregation holds all
groups of an intermediate or none: it does not evict. And every node costs its output; a node that is
computed from the stream also costs a Spark job, which is expensive where micro-batches are small.
So the price here is in seconds per second of event time,

    first level   rate · row + job / step + out · write + node / step
    below         out(parent) · read + out · write + node / step

with out = E · g, E the fragments per second of a node and g its groups in a fragment. The allocators
of the paper may be asked for instead; then the tree is theirs, without the intermediates to which
they give less than their groups. Either way the intermediates hold at most `memory` groups.

Sound because a child's keys, signature and partials are functions of its parent's, and partials are
combined in any order. Time: that of the greedy search, O(n²) prices per change for n nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from weft.algebra.condition import selections_on
from weft.algebra.network.lookup import Lookup
from weft.algebra.nodes.selectors import determined
from weft.algebra.partial import QUANTILES, Partial
from weft.algebra.plan import Node, lookups_digest
from weft.algebra.query import Query
from weft.algebra.scalar import Expression
from weft.algebra.signature import Cut, Signature, cut_by, membership
from weft.algebra.window import Window
from weft.optimizer.edges.edges import edge_rate
from weft.optimizer.edges.slices import slices
from weft.optimizer.groupby.planner import plan_tree
from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, node_name
from weft.optimizer.groupby.trees.native_tree import Costs, native_tree
from weft.optimizer.predicates.index import bits_only, index

Attributes = frozenset[str]
SELECTED = "σ "
"""What the name of an attribute begins with that a node selects by but does not group by."""

NATIVE = "native"
UNLIMITED = float("inf")
SECOND = 1_000_000


@dataclass(frozen=True)
class Prices:
    """Seconds of work: per row of the stream, per fragment read and written, per job over the rows of
    a step, per node and step.

    Rounded from runs on two cores: 4 million rows without and with 100,000 groups, 600,000 rows with
    few groups, and inner nodes on the driver. Not calibrated; only their ratios matter.
    """

    row: float = 2e-7
    read: float = 4e-7
    write: float = 3e-6
    job: float = 0.3
    node: float = 0.015


class FragmentGroups:
    """How many groups attribute sets have in a fragment, in the form that planners ask."""

    def __init__(
        self,
        tuples: float,
        groups: Callable[[Attributes, float], float],
        classes: Mapping[str, int],
    ) -> None:
        self.tuples = tuples
        self._groups, self._classes = groups, classes
        self._counted: dict[tuple[Attributes, float], float] = {}

    def within(self, attributes: Attributes, rows: float) -> float:
        """The groups of a set among a number of rows."""
        asked = (attributes, rows)
        if asked not in self._counted:
            keys = frozenset(name for name in attributes if not name.startswith(SELECTED))
            groups = max(self._groups(keys, rows), 1.0)
            for name in attributes - keys:
                if not determined(name.removeprefix(SELECTED), keys):
                    groups *= self._classes.get(name, 2)
            self._counted[asked] = min(groups, max(rows, 1.0))
        return self._counted[asked]

    def groups(self, node: Attributes) -> float:
        return self.within(node, self.tuples)

    def alpha(self, node: Attributes) -> float:
        return 0.0

    def entry_size(self, node: Attributes) -> float:
        return 1.0


@dataclass(frozen=True)
class Arranging:
    """What the search knows: groups of keys among rows, the stream's rate and step, the budget."""

    groups: Callable[[Attributes, float], float]
    rate: float
    step: float
    memory: float = UNLIMITED
    allocator: str = NATIVE
    prices: Prices = Prices()

    def arranged(
        self, nodes: Sequence[Node], readers: Mapping[str, Sequence[Query]], indexed: bool = True
    ) -> tuple[Node, ...]:
        """The nodes with their parents, and the intermediates; parents before children. If
        predicates are not `indexed`, every one is a bit. Nodes with other lookups have other rows, and
        so a tree of their own; together the trees keep to the memory. Nodes with sketches of quantiles are computed
        from the stream: an intermediate would hold such a sketch, half a megabyte, for each of its many groups."""
        alone = [node for node in nodes if node.members or _has_quantiles(node)]
        by_lookups: dict[tuple[Lookup, ...], list[Node]] = {}
        for node in nodes:
            if not node.members and not _has_quantiles(node):
                by_lookups.setdefault(node.lookups, []).append(node)
        if all(len(shared) < 2 for shared in by_lookups.values()):
            return tuple(nodes)
        arranged: list[Node] = []
        memory = self.memory
        for shared in by_lookups.values():
            draft = _Draft(shared, readers, indexed)
            tree = replace(self, memory=memory).tree(draft)
            held = map(self._statistics(draft).groups, tree.intermediates())
            memory = max(memory - sum(held), 0.0)
            arranged += draft.built(tree)
        return (*alone, *arranged)

    def tree(self, draft: _Draft) -> AggregateTree:
        """The tree of the group-by sets."""
        asked = list(draft.nodes)
        statistics = self._statistics(draft)
        if self.allocator != NATIVE:
            memory = min(self.memory, len(asked) * statistics.tuples)
            planned = plan_tree(asked, statistics, memory, self.allocator)
            tree = planned.tree
            for node in tree.intermediates():
                if planned.allocation.get(node, 0.0) < statistics.groups(node):
                    tree = tree.without(node)
            return tree

        prices = self.prices
        costs = Costs(
            row=self.rate * prices.row + prices.job / self.step,
            read=prices.read,
            write=prices.write,
            node=prices.node / self.step,
            out=lambda node, edges: edges * statistics.within(node, self.rate / edges),
            groups=statistics.groups,
            memory=self.memory,
        )
        return native_tree({node: draft.edge_rate(node) for node in asked}, costs)

    def seconds(self, nodes: Sequence[Node]) -> float:
        """What the nodes of a plan cost, as they are arranged."""
        classes = {
            SELECTED + cut.attribute: len(set(cut.classes))
            for node in nodes
            for cut in node.signature.cuts
        }
        statistics = FragmentGroups(self.rate, self.groups, classes)
        outs: dict[str, float] = {}
        total = 0.0
        for node in nodes:
            edges = float(edge_rate(node.fragments.edge_classes).per(SECOND))
            out = edges * statistics.within(attributes(node), self.rate / edges)
            outs[node.id] = out
            into = self.rate * self.prices.row + self.prices.job / self.step
            if node.parent is not None:
                into = outs[node.parent] * self.prices.read
            total += into + out * self.prices.write + self.prices.node / self.step
        return total

    def _statistics(self, draft: _Draft) -> FragmentGroups:
        finest = max(draft.edge_rate(node) for node in draft.nodes)
        return FragmentGroups(self.rate / finest, self.groups, draft.classes)


class _Draft:
    """The nodes by their attributes, and what they need of a parent."""

    def __init__(
        self, nodes: Sequence[Node], readers: Mapping[str, Sequence[Query]], indexed: bool
    ) -> None:
        self._indexed = indexed
        self.nodes: dict[Attributes, list[Node]] = {}
        asked = {name for node in nodes for name in node.selectors}
        for node in nodes:
            self.nodes.setdefault(closure(node, asked), []).append(node)
        self._readers = readers
        self._rates: dict[Attributes, float] = {}

    @cached_property
    def classes(self) -> dict[str, int]:
        """How many values the attributes have that nodes select by."""
        counts: dict[str, int] = {}
        for node in (node for nodes in self.nodes.values() for node in nodes):
            for cut in node.signature.cuts:
                count = len(set(cut.classes))
                counts[SELECTED + cut.attribute] = max(
                    counts.get(SELECTED + cut.attribute, 2), count
                )
            for name in node.selectors:
                counts[SELECTED + name] = max(
                    counts.get(SELECTED + name, 2), len(node.signature.bits) + 1
                )
        return counts

    def edge_rate(self, node_set: Attributes) -> float:
        """The fragments per second of a group-by set."""
        if node_set not in self._rates:
            edges = {edge for window in self._windows(node_set) for edge in window.edge_classes}
            self._rates[node_set] = float(edge_rate(edges).per(SECOND))
        return self._rates[node_set]

    def _windows(self, node_set: Attributes) -> set[Window]:
        return {
            query.window
            for node in self.nodes.get(node_set, ())
            for query in self._readers[node.id]
        }

    def built(self, tree: AggregateTree) -> list[Node]:
        """The nodes of a tree, parents first."""
        built: list[Node] = []
        by_set: dict[Attributes, Node] = {}
        for parent, branch in tree.walk():
            below = [
                node
                for below_branch in branch.walk()
                for node in self.nodes.get(below_branch.node, ())
            ]
            windows = {
                w for below_branch in branch.walk() for w in self._windows(below_branch.node)
            }
            node, *others = self.nodes.get(branch.node, []) or [_intermediate(branch.node, below)]
            if len(below) > 1 or node.intermediate:
                node = _carrying(node, below, windows, self._indexed)
            above = None if parent is None else by_set[parent]
            node = below_parent(node, above)
            by_set[branch.node] = node
            built.append(node)
            built += [below_parent(other, node) for other in others]
        return built


def _has_quantiles(node: Node) -> bool:
    return any(partial.combine.name in QUANTILES for partial in node.partials)


def attributes(node: Node) -> Attributes:
    """The attributes of a node in the tree: keys, and what it selects by."""
    return frozenset({*(key.sql for key in node.keys), *(SELECTED + s for s in node.selectors)})


def closure(node: Node, asked: Collection[str]) -> Attributes:
    """The attributes of a node, and those of all that are asked for which its keys determine: so
    a node that needs them is below one that has the keys."""
    keys = {key.sql for key in node.keys}
    return attributes(node) | {SELECTED + name for name in asked if determined(name, keys)}


def _intermediate(node_set: Attributes, below: Sequence[Node]) -> Node:
    keys: dict[str, Expression] = {key.sql: key for node in below for key in node.keys}
    chosen = tuple(keys[name] for name in sorted(keys) if name in node_set)
    lookups = below[0].lookups
    return Node(
        id="i_" + _digest(node_name(node_set) + lookups_digest(lookups)),
        keys=chosen,
        group_keys=len(chosen),
        predicates=(),
        keeps_all_rows=False,
        partials=(),
        fragments=below[0].fragments,
        selectors=tuple(sorted(_selected_in(node_set))),
        intermediate=True,
        lookups=lookups,
    )


def _selected_in(node_set: Attributes) -> set[str]:
    asked = {name.removeprefix(SELECTED) for name in node_set if name.startswith(SELECTED)}
    return {name for name in asked if not determined(name, node_set)}


def _digest(text: str) -> str:
    from weft.algebra.codec import digest

    return digest(text)


def _carrying(
    node: Node, below: Sequence[Node], windows: Collection[Window], indexed: bool
) -> Node:
    """The node with all that the nodes below it need."""
    predicates = {predicate.sql: predicate for other in below for predicate in other.predicates}
    partials: dict[str, Partial] = {partial.name: partial for o in below for partial in o.partials}
    wanted = tuple(predicates.values())
    return replace(
        node,
        predicates=wanted,
        keeps_all_rows=any(other.keeps_all_rows for other in below),
        partials=tuple(partials.values()),
        fragments=slices(windows),
        signature=index(wanted, node.keys) if indexed else bits_only(wanted),
    )


def below_parent(node: Node, parent: Node | None) -> Node:
    """The node as it is computed from a parent: with the parent's cuts and bits."""
    if parent is None:
        return node
    cuts: dict[str, Cut] = {}
    bits: dict[str, None] = {}
    keys = {key.sql for key in node.keys}
    above = {key.sql for key in parent.keys}
    conditions = [p.condition for p in node.predicates if p.condition is not None]
    asked = selections_on(conditions)
    for predicate in node.predicates:
        decided = membership(predicate, parent.signature, parent.keys)
        assert decided is not None, "a parent decides the predicates of its children"
        for position, _ in decided.classes:
            chosen = parent.signature.cuts[position]
            cuts[chosen.attribute] = chosen
        if decided.bit is not None:
            bits[parent.signature.bits[decided.bit]] = None
        for _, selection in decided.keys:
            name = selection.attribute
            if name not in keys and name in above and name not in cuts:
                cuts[name] = cut_by(asked[name])
    return replace(node, parent=parent.id, signature=Signature(tuple(cuts.values()), tuple(bits)))
