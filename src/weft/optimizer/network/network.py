"""A network under construction: nodes are added and released, columns follow what is read.

A plan is immutable; this is what many changes are made on before it is frozen to a plan once.

Columns are minimal (ARGUS, section 5.3). A node counts how many of its children and queries read each
of its columns. The first reader of a column makes the node read it from its parents, and so on up to
the sources: chained projection enrichment. The last reader takes it away again.

Order (section 4.2): a join or union is one level above its highest parent, a selection comes
SEQUENCE_STEP after its parent on the same level. A selection between two nodes gets the mean of both;
where there is no room, the lower one moves down with all its selections.

Time: opening and freezing look at every node once; a change costs what it touches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from weft.algebra.network.plan import (
    PARTNER_KINDS,
    SEQUENCE_STEP,
    Feed,
    NetworkNode,
    NetworkPlan,
    ordered,
)
from weft.algebra.network.query import PartnerKind
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.predicates import OrPredicate, PredicateSet
from weft.algebra.predicates.slots import column_name, moved_name, plain_name, slot_of
from weft.algebra.query import StreamSchema
from weft.optimizer.network.estimate import Estimate, size
from weft.optimizer.network.index import Entry, NetworkIndex
from weft.optimizer.network.topology import Topology, equality_keys, topology


def number_of(node: str) -> int:
    """The number in a node's id: nodes are numbered in the order of their making."""
    return int(node[1:])


class Network:
    """Nodes, feeds and queries that can be changed. Holds what the index holds at every moment."""

    def __init__(self, plan: NetworkPlan, index: NetworkIndex, estimate: Estimate) -> None:
        self.index = index
        self.estimate = estimate
        self.first_new = plan.next_id
        """Nodes from this number on are new: they have no history yet."""
        self._version = plan.version
        self._next_id = plan.next_id
        self._streams = dict(plan.stream_by_name)
        self._queries = dict(plan.query_by_id)
        self._feeds = dict(plan.feed_by_query)
        self._nodes: dict[str, NetworkNode] = {}
        self._places: dict[str, Topology] = {}
        self._sources: dict[str, str] = {}
        self._children: dict[str, set[str]] = {}
        self._fed: Counter[str] = Counter()
        self._reads: dict[str, Counter[str]] = {}
        self._sizes: dict[str, float] = {}
        self._joins: dict[tuple[str, str, frozenset[OrPredicate]], dict[str, None]] = {}
        self._changed: set[str] = set()
        self._left: dict[str, None] = {}
        """Nodes that a child was taken from: perhaps nobody needs them any more."""
        for node in plan.nodes:
            self._attach(node)
        for feed in plan.feeds:
            self._fed[feed.node] += 1
            self._read(feed.node, self._outputs(feed))
        # A plan may have lost queries without its columns.
        self._changed = {node.id for node in plan.nodes if node.columns != self._columns(node.id)}

    @property
    def entries(self) -> Iterator[Entry]:
        """All nodes that can be searched."""
        for node in self._nodes.values():
            if node.kind != "source":
                yield Entry(node, self._places[node.id])

    def node(self, node: str) -> NetworkNode:
        return self._nodes[node]

    def place(self, node: str) -> Topology:
        return self._places[node]

    def children(self, node: str) -> frozenset[str]:
        return frozenset(self._children[node])

    def is_new(self, node: str) -> bool:
        """Whether a node was made since the network was opened."""
        return number_of(node) >= self.first_new

    def size(self, node: str) -> float:
        """The estimated rows of a node."""
        if node not in self._sizes:
            there = self._nodes[node]
            if there.kind == "union":
                self._sizes[node] = sum(map(self.size, there.parents))
            elif there.kind in PARTNER_KINDS:
                self._sizes[node] = self.size(there.parents[0])
            else:
                holds = self._places[node].holds
                self._sizes[node] = size(self.estimate, there.relations, holds)
        return self._sizes[node]

    def source(self, relation: str) -> str:
        """The node of a stream or table, made where there is none."""
        if relation not in self._sources:
            self._attach(NetworkNode(self._new_id(), "source", (), (relation,)))
        return self._sources[relation]

    def add_selection(self, parent: str, predicates: PredicateSet) -> str:
        above = self._nodes[parent]
        return self._add(
            NetworkNode(
                self._new_id(),
                "selection",
                (parent,),
                above.relations,
                predicates,
                above.level,
                above.sequence + SEQUENCE_STEP,
            )
        )

    def add_join(self, left: str, right: str, predicates: PredicateSet) -> str:
        one, other = self._nodes[left], self._nodes[right]
        return self._add(
            NetworkNode(
                self._new_id(),
                "join",
                (left, right),
                one.relations + other.relations,
                predicates,
                1 + max(one.level, other.level),
            )
        )

    def partner_of(
        self, kind: PartnerKind, left: str, right: str, predicates: PredicateSet
    ) -> str | None:
        """The semi-join or anti-join of two nodes, if there is one. They are few enough to be found among
        the children of a node."""
        for child in sorted(self._children[left], key=number_of):
            there = self._nodes[child]
            if (there.kind, there.parents, there.predicates) == (kind, (left, right), predicates):
                return child
        return None

    def add_partner(
        self, kind: PartnerKind, left: str, right: str, predicates: PredicateSet
    ) -> str:
        one, other = self._nodes[left], self._nodes[right]
        return self._add(
            NetworkNode(
                self._new_id(),
                kind,
                (left, right),
                one.relations + other.relations,
                predicates,
                1 + max(one.level, other.level),
            )
        )

    def add_union(self, parents: Sequence[str]) -> str:
        above = [self._nodes[parent] for parent in parents]
        return self._add(
            NetworkNode(
                self._new_id(),
                "union",
                tuple(parents),
                tuple(relation for parent in above for relation in parent.relations),
                level=1 + max(parent.level for parent in above),
            )
        )

    def feed(self, query: NetworkQuery, node: str, slots: tuple[int, ...]) -> None:
        """The query's rows are those of a node."""
        feed = Feed(query.id, node, slots)
        self._queries[query.id] = query
        self._feeds[query.id] = feed
        self._fed[node] += 1
        self._read(node, self._outputs(feed))

    def drop(self, query: str) -> None:
        """Without a query, and without the nodes that only it needed."""
        feed = self._feeds[query]
        self._unread(feed.node, self._outputs(feed))
        del self._feeds[query], self._queries[query]
        self._fed[feed.node] -= 1
        self.release(feed.node)

    def release(self, node: str) -> None:
        """Remove a node if nobody needs it, then its parents if nobody else needs them."""
        if node not in self._nodes or self._fed[node] or self._children[node]:
            return
        gone = self._nodes[node]
        for parent, names in self._parent_reads(gone, gone.predicates.names):
            self._unread(parent, names)
        self._detach(gone)
        for parent in dict.fromkeys(gone.parents):
            self.release(parent)

    def siblings(self, left: str, right: str, keys: frozenset[OrPredicate]) -> list[str]:
        """The joins whose JVOAs are these two and that find their candidates by these keys."""
        return list(self._joins.get((left, right, keys), ()))

    def become_selection(self, node: str, parent: str, predicates: PredicateSet) -> None:
        """Take a node's rows from a selection on another parent. They must be the same rows. All nodes
        below it come from other ancestors then, so they are looked up in other places. The parents of
        before stay until `release_left`: the query that is being added may be about to use them."""
        old = self._nodes[node]
        columns = self._columns(node)
        moved = replace(old, kind="selection", parents=(parent,), predicates=predicates)
        for names in (predicates.names, columns):
            for above, wanted in self._parent_reads(moved, names):
                self._read(above, wanted)
        for names in (old.predicates.names, columns):
            for above, unwanted in self._parent_reads(old, names):
                self._unread(above, unwanted)
        for above in old.parents:
            self._children[above].discard(node)
        self._children[parent].add(node)
        self._nodes[node] = moved
        self._changed.add(node)
        self._make_room(parent, node)
        below = self._below(node)
        for name in below:
            if (old if name == node else self._nodes[name]).kind == "join":
                del self._joins[self._join_kind(name)][name]
        self.index.remove(below)
        for name in below:
            self._locate(self._nodes[name])
        self.index.add(Entry(self._nodes[name], self._places[name]) for name in below)
        self._left.update(dict.fromkeys(old.parents))

    def release_left(self) -> None:
        """Remove nodes that lost a child and that nobody needs."""
        for node in self._left:
            self.release(node)
        self._left.clear()

    def _make_room(self, parent: str, child: str) -> None:
        """Let a selection come after its parent: in the middle between the parent's parent and the
        selection if there is room, else by moving the selection down with all selections below it."""
        upper, lower = self._nodes[parent], self._nodes[child]
        if lower.sequence > upper.sequence:
            return
        if upper.kind == "selection":
            first = self._nodes[upper.parents[0]].sequence
            middle = -(-(first + lower.sequence) // 2)
            if first < middle < lower.sequence:
                self._nodes[parent] = replace(upper, sequence=middle)
                return
        self._nodes[child] = replace(lower, sequence=upper.sequence + SEQUENCE_STEP)
        for below in self._children[child]:
            if self._nodes[below].kind == "selection":
                self._make_room(child, below)

    def _below(self, node: str) -> list[str]:
        """A node and all that take rows from it, parents first."""
        found = {node}
        waiting = [node]
        while waiting:
            for child in self._children[waiting.pop()]:
                if child not in found:
                    found.add(child)
                    waiting.append(child)
        return [below.id for below in ordered([self._nodes[name] for name in found])]

    def release_unused(self) -> None:
        """Remove what a plan has kept for queries that it lost (`NetworkPlan.without`)."""
        for node in reversed(list(self._nodes)):
            self.release(node)

    def put_streams(self, streams: Iterable[StreamSchema]) -> None:
        self._streams.update({stream.name: stream for stream in streams})

    def put_looked_up(self, queries: Iterable[NetworkQuery]) -> None:
        """Streams with lookups are streams under names of their own."""
        for query in queries:
            for entry in query.every_input:
                if entry.lookups and entry.relation in self._streams:
                    base = self._streams[entry.relation]
                    self._streams[entry.source] = replace(base, name=entry.source)

    def frozen(self) -> NetworkPlan:
        """The network as a plan, one version after the plan before."""
        for changed in self._changed & self._nodes.keys():
            self._nodes[changed] = replace(self._nodes[changed], columns=self._columns(changed))
        self._changed.clear()
        self._version += 1
        self.first_new = self._next_id
        registered = {name for query in self._queries.values() for name in query.relations}
        read = registered | self._sources.keys()
        return NetworkPlan(
            self._version,
            tuple(stream for name, stream in self._streams.items() if name in read),
            tuple(self._queries.values()),
            ordered(self._nodes.values()),
            tuple(self._feeds.values()),
            self._next_id,
        )

    def _columns(self, node: str) -> tuple[str, ...]:
        return tuple(sorted(name for name, readers in self._reads[node].items() if readers))

    def _new_id(self) -> str:
        self._next_id += 1
        return f"n{self._next_id - 1}"

    def _add(self, node: NetworkNode) -> str:
        self._attach(node)
        self.index.add([Entry(node, self._places[node.id])])
        return node.id

    def _attach(self, node: NetworkNode) -> None:
        """Take up a node whose parents are there."""
        self._nodes[node.id] = node
        self._locate(node)
        self._children[node.id] = set()
        self._reads[node.id] = Counter()
        self._changed.add(node.id)
        if node.kind == "source":
            self._sources[node.relations[0]] = node.id
        for parent in node.parents:
            self._children[parent].add(node.id)
        for parent, names in self._parent_reads(node, node.predicates.names):
            self._read(parent, names)

    def _locate(self, node: NetworkNode) -> None:
        """Compute from which ancestors a node's rows come."""
        above = [self._places[parent] for parent in node.parents]
        left_slots = len(self._nodes[node.parents[0]].relations) if node.parents else 0
        self._places[node.id] = topology(node, above, left_slots)
        self._sizes.pop(node.id, None)
        if node.kind == "join":
            self._joins.setdefault(self._join_kind(node.id), {})[node.id] = None

    def _join_kind(self, join: str) -> tuple[str, str, frozenset[OrPredicate]]:
        """What a join has in common with its siblings."""
        place = self._places[join]
        left, right = place.jvoas
        slots = len(self._nodes[left].relations)
        return left, right, equality_keys(place.jvoa_predicates, slots)

    def _detach(self, node: NetworkNode) -> None:
        if node.kind == "source":
            del self._sources[node.relations[0]]
        else:
            self.index.remove([node.id])
        if node.kind == "join":
            del self._joins[self._join_kind(node.id)][node.id]
        for parent in node.parents:
            self._children[parent].discard(node.id)
        for by_node in (self._nodes, self._places, self._children, self._reads, self._fed):
            by_node.pop(node.id, None)
        self._sizes.pop(node.id, None)

    def _outputs(self, feed: Feed) -> set[str]:
        """The columns of a feed's node that its query puts out."""
        slots = dict(enumerate(feed.slots))
        return {moved_name(name, slots) for name in self._queries[feed.query].output_names}

    def _read(self, node: str, names: Collection[str]) -> None:
        """Someone reads these columns of a node, which may not have them yet."""
        reads = self._reads[node]
        first = [name for name in names if not reads[name]]
        reads.update(names)
        if first:
            self._changed.add(node)
            for parent, wanted in self._parent_reads(self._nodes[node], first):
                self._read(parent, wanted)

    def _unread(self, node: str, names: Collection[str]) -> None:
        reads = self._reads[node]
        reads.subtract(names)
        last = [name for name in names if not reads[name]]
        if last:
            self._changed.add(node)
            for parent, unwanted in self._parent_reads(self._nodes[node], last):
                self._unread(parent, unwanted)

    def _parent_reads(
        self, node: NetworkNode, names: Collection[str]
    ) -> list[tuple[str, list[str]]]:
        """Columns of a node as columns of its parents."""
        if node.kind == "source" or not names:
            return []
        if node.kind == "selection":
            return [(node.parents[0], list(names))]
        reads: list[tuple[str, list[str]]] = []
        first = 0
        for parent in node.parents:
            beyond = first + len(self._nodes[parent].relations)
            wanted = [
                column_name(slot_of(name) - first, plain_name(name))
                for name in names
                if first <= slot_of(name) < beyond
            ]
            reads.append((parent, wanted))
            first = beyond
        return reads
