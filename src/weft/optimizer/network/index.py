"""What the search for shared nodes asks of an index, and an index that answers by looking at all.

A *scope* names the ancestors whose rows a predicate set is about: the SVOA of selections, the two JVOAs
of joins. An index may leave out nodes that a probe implies (the system catalog bounds how many it
looks at); it never names one that the probe does not imply.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, NamedTuple, Protocol

from weft.algebra.network.plan import NetworkNode, NetworkPlan
from weft.algebra.predicates import PredicateSet
from weft.optimizer.network.topology import Topology


class Probe(NamedTuple):
    """Predicates on the rows of a scope."""

    scope: str
    predicates: PredicateSet


SEARCHED: Final = frozenset({"selection", "join"})
"""The kinds of nodes that are searched by their predicates."""


class Entry(NamedTuple):
    """A node other than a source, with its place."""

    node: NetworkNode
    topology: Topology

    @property
    def probe(self) -> Probe:
        """Under what a selection or join is searched. A union is searched by its parents."""
        if self.node.kind == "join":
            return Probe(join_scope(*self.topology.jvoas), self.topology.jvoa_predicates)
        return Probe(selection_scope(self.topology.svoa), self.topology.svoa_predicates)


def selection_scope(svoa: str) -> str:
    return svoa


def join_scope(left: str, right: str) -> str:
    return f"{left} {right}"


class NetworkIndex(Protocol):
    """The predicates and topology of a network, for look-ups."""

    def implied(self, probes: Sequence[Probe]) -> list[tuple[str, ...]]:
        """For every probe the nodes of its scope that have all rows that pass it, and maybe more."""
        ...

    def implying(self, probe: Probe) -> tuple[str, ...]:
        """Nodes of a probe's scope all of whose rows pass it."""
        ...

    def unions_of(self, parents: Collection[str]) -> tuple[str, ...]:
        """The unions all of whose parents are among these."""
        ...

    def changing(self) -> AbstractContextManager[Any]:
        """Look-ups and changes in the block are faster together than alone."""
        ...

    def add(self, entries: Iterable[Entry]) -> None: ...

    def remove(self, nodes: Collection[str]) -> None: ...

    def clear(self) -> None: ...

    def holds(self, plan: NetworkPlan) -> bool:
        """Whether the index is that of this plan."""
        ...

    def settle(self, plan: NetworkPlan) -> None:
        """The changes since the last call lead to this plan: record the rest of it."""
        ...


def fingerprint(plan: NetworkPlan) -> str:
    """A text that is equal for plans with the same network, whatever their version and the order of
    their queries. Within a checkpoint a query's id stands for its text, and so ids, parents and feeds
    stand for all predicates."""
    hashed = hashlib.blake2b(str(plan.next_id).encode(), digest_size=12)
    for node in plan.nodes:
        place = (node.id, node.kind, node.parents, node.relations, node.level, node.sequence)
        hashed.update(repr((place, node.columns)).encode())
    for feed in sorted(plan.feeds, key=lambda feed: feed.query):
        hashed.update(repr((feed.query, feed.node, feed.slots)).encode())
    return hashed.hexdigest()


class ScanIndex:
    """An index in memory that looks at every node of a scope: for small networks, and for tests."""

    def __init__(self) -> None:
        self._scopes: dict[str, dict[str, PredicateSet]] = {}
        self._scope_of: dict[str, str] = {}
        self._unions: dict[str, frozenset[str]] = {}
        self._held = fingerprint(NetworkPlan(0))

    def implied(self, probes: Sequence[Probe]) -> list[tuple[str, ...]]:
        return [
            tuple(
                node
                for node, predicates in self._scopes.get(probe.scope, {}).items()
                if probe.predicates.implies(predicates)
            )
            for probe in probes
        ]

    def implying(self, probe: Probe) -> tuple[str, ...]:
        return tuple(
            node
            for node, predicates in self._scopes.get(probe.scope, {}).items()
            if predicates.implies(probe.predicates)
        )

    def unions_of(self, parents: Collection[str]) -> tuple[str, ...]:
        wanted = set(parents)
        return tuple(node for node, read in self._unions.items() if read <= wanted)

    def changing(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def add(self, entries: Iterable[Entry]) -> None:
        self._held = ""
        for entry in entries:
            if entry.node.kind == "union":
                self._unions[entry.node.id] = frozenset(entry.node.parents)
            if entry.node.kind not in SEARCHED:
                continue
            scope, predicates = entry.probe
            self._scopes.setdefault(scope, {})[entry.node.id] = predicates
            self._scope_of[entry.node.id] = scope

    def remove(self, nodes: Collection[str]) -> None:
        self._held = ""
        for node in nodes:
            self._unions.pop(node, None)
            if node in self._scope_of:
                del self._scopes[self._scope_of.pop(node)][node]

    def clear(self) -> None:
        self._scopes.clear()
        self._scope_of.clear()
        self._unions.clear()
        self._held = ""

    def holds(self, plan: NetworkPlan) -> bool:
        return self._held == fingerprint(plan)

    def settle(self, plan: NetworkPlan) -> None:
        self._held = fingerprint(plan)
