"""A network as people look at it: sources by their names, selections S1, S2, …, joins J1, J2, …, semi-joins
E1, E2, … (EXISTS), anti-joins N1, N2, … (NOT EXISTS), unions U1, U2, …, and the queries that each of them
serves. Text, JSON and SVG are all written from a `NetworkView`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, islice
from math import prod

from weft.algebra.network.bounds import warning
from weft.algebra.network.plan import PARTNER_KINDS, NetworkNode, NetworkPlan
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import quote
from weft.explain.network.conditions import slot_names
from weft.explain.network.lookups import Lookups, Shown, lookup_lines, of_relations
from weft.explain.network.savings import Savings, physical_joins, savings
from weft.optimizer.network.estimate import HeuristicEstimate

_PREFIX = {"selection": "S", "join": "J", "semi-join": "E", "anti-join": "A", "union": "U"}
_LIKE_LABEL = re.compile(r"[SJEAU]\d+")
"""Relations with such names are quoted, to tell them from nodes."""


@dataclass(frozen=True)
class NodeMeasured:
    """What a run counted for a node."""

    rows: int | None = None
    """The rows that it has had so far."""
    history_rows: int = 0
    history_bytes: int = 0


@dataclass(frozen=True)
class NetworkMeasured:
    """What the network's last commit counted. `watermark` is in microseconds."""

    steps: int
    rows: int
    """The rows that it has consumed."""
    results: int
    late_rows: int
    watermark: int
    nodes: Mapping[str, NodeMeasured] = field(default_factory=dict)
    """By the id of the node."""
    seconds: float | None = None
    where: str = "driver"
    """Where the joins of its last step ran: driver or lanes."""
    lane_weights: tuple[float, ...] = ()
    lane_seconds: tuple[float, ...] = ()
    """What each lane took, in all steps that ran in lanes."""

    @property
    def history_rows(self) -> int:
        return sum(node.history_rows for node in self.nodes.values())

    @property
    def history_bytes(self) -> int:
        return sum(node.history_bytes for node in self.nodes.values())


@dataclass(frozen=True)
class NetworkNodeView:
    """A node under its label."""

    label: str
    node: NetworkNode
    parents: tuple[str, ...]
    """The labels of its parents."""
    children: tuple[str, ...]
    slots: tuple[str, ...]
    """What its slots are called."""
    shown: Shown
    """How its columns are called."""
    lookups: Lookups
    """Of a source: what its rows get from tables."""
    feeds: tuple[str, ...]
    """The queries that take their rows here."""
    readers: tuple[str, ...]
    """The queries that need it: those that it feeds, and those of the nodes below it."""
    relation: str = ""
    """Of a source: the stream or table whose rows it has."""
    is_stream: bool = False
    physical: int | None = None
    """The number of its physical join."""
    measured: NodeMeasured | None = None

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """What is tested on its parents' rows. Columns of a single relation need no prefix."""
        names = self.slots if len(self.slots) > 1 else ("",)
        return tuple(self.shown.conditions(self.node.predicates, names))

    @property
    def lookup_lines(self) -> list[tuple[str, str]]:
        """What its lookups do, and where."""
        return lookup_lines(self.lookups)

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        if self.node.kind == "source":
            kind = "stream" if self.is_stream else "table"
            return f"{kind} {self.relation} with lookups" if self.lookups else kind
        if self.node.kind == "selection":
            return f"selection of {self.parents[0]}"
        return f"{self.node.kind} of {', '.join(self.parents[:-1])} and {self.parents[-1]}"


@dataclass(frozen=True)
class NetworkView:
    """All that EXPLAIN shows of a network."""

    plan: NetworkPlan
    nodes: tuple[NetworkNodeView, ...]
    savings: Savings
    measured: NetworkMeasured | None = None
    lanes: tuple[float, ...] = ()
    """The weights of the lanes, if joins run in lanes."""

    @cached_property
    def node_by_label(self) -> dict[str, NetworkNodeView]:
        return {node.label: node for node in self.nodes}

    @cached_property
    def label_by_id(self) -> dict[str, str]:
        return {node.node.id: node.label for node in self.nodes}

    @cached_property
    def warnings(self) -> dict[str, str]:
        """By the name of a query, what its user should know: above all, histories without end."""
        streams = self.plan.stream_by_name
        texts = {query.name: warning(query, streams) for query in self.plan.queries}
        return {name: text for name, text in texts.items() if text}

    def estimated_rows(self, node: NetworkNodeView) -> float:
        """The rows of a node for 1000 rows of each relation, by its conditions and its parents'."""
        return self._estimates[node.node.id]

    @property
    def lane_rows(self) -> list[float]:
        """For each lane the rows that its joins will give for 1000 rows of each relation. Every lane has a share of all
        keys, by its weight."""
        joins = (node for node in self.nodes if len(node.parents) > 1)
        rows = sum(self.estimated_rows(node) for node in joins if node.node.kind != "union")
        return [rows * weight / sum(self.lanes) for weight in self.lanes]

    @cached_property
    def _estimates(self) -> dict[str, float]:
        estimate = HeuristicEstimate()
        rows: dict[str, float] = {}
        for node in self.plan.nodes:
            pairs = prod((rows[parent] for parent in node.parents), start=1.0)
            if node.kind == "source":
                pairs = estimate.rows(node.relations[0])
            elif node.kind == "union":
                pairs = sum(rows[parent] for parent in node.parents)
            if node.kind in PARTNER_KINDS:
                rows[node.id] = rows[node.parents[0]]
            else:
                rows[node.id] = pairs * estimate.selectivity(node.relations, node.predicates)
        return rows

    def find(self, name: str) -> NetworkQuery | None:
        """A query by its name."""
        return next((query for query in self.plan.queries if query.name == name), None)

    def path(self, query: NetworkQuery) -> list[NetworkNodeView]:
        """The nodes that a query needs, parents first. Conditions are in the query's own aliases."""
        feed = self.plan.feed_by_query[query.id]
        of_partners: dict[str, dict[str, None]] = {}
        for branch in query.branches:
            for entry in branch.partner.inputs if branch.partner is not None else ():
                of_partners.setdefault(entry.source, {})[entry.alias] = None
        relations = self.plan.node_by_id[feed.node].relations
        aliases = ["|".join(of_partners.get(relation, ())) for relation in relations]
        for number, slot in enumerate(feed.slots):
            aliases[slot] = query.inputs[number].alias
        names: dict[str, tuple[str, ...]] = {}
        self._name_slots(feed.node, tuple(aliases), names)
        return [
            replace(view, slots=names[view.node.id]) for view in self.nodes if view.node.id in names
        ]

    def _name_slots(
        self, node_id: str, aliases: tuple[str, ...], names: dict[str, tuple[str, ...]]
    ) -> None:
        """Put the names of the slots of a node and of those above it into `names`. A node that a
        query reads several times has its slots named by all of its aliases."""
        before = names.get(node_id)
        if before is None:
            names[node_id] = aliases
        else:
            names[node_id] = tuple(
                first if second in first.split("|") else f"{first}|{second}"
                for first, second in zip(before, aliases, strict=True)
            )
        node, first_slot = self.plan.node_by_id[node_id], 0
        for parent in node.parents:
            count = len(self.plan.node_by_id[parent].relations)
            self._name_slots(parent, aliases[first_slot : first_slot + count], names)
            first_slot += count


def _source_label(plan: NetworkPlan, relation: str, taken: Collection[str]) -> str:
    """A relation's name; with the tables that its rows are looked up in, and a number if there are
    several such relations."""
    entry = plan.looked_up.get(relation)
    if entry is None:
        return quote(relation) if _LIKE_LABEL.fullmatch(relation) else relation
    tables = dict.fromkeys(lookup.table for lookup in entry.lookups)
    label = "+".join([entry.relation, *tables])
    numbered = (f"{label}_{number}" for number in count(2))
    return next(name for name in (label, *islice(numbered, len(taken))) if name not in taken)


def network_view(
    plan: NetworkPlan, measured: NetworkMeasured | None = None, lanes: Sequence[float] = ()
) -> NetworkView:
    """Label the nodes of a plan and find out whom they serve."""
    labels = _labels(plan)
    children: dict[str, list[str]] = {node.id: [] for node in plan.nodes}
    for node in plan.nodes:
        for parent in dict.fromkeys(node.parents):
            children[parent].append(node.id)
    order = {query.id: number for number, query in enumerate(plan.queries)}
    feeds: dict[str, list[str]] = {node.id: [] for node in plan.nodes}
    for feed in plan.feeds:
        feeds[feed.node].append(feed.query)
    readers: dict[str, set[str]] = {}
    for node in reversed(plan.nodes):
        below = (readers[child] for child in children[node.id])
        readers[node.id] = set(feeds[node.id]).union(*below)
    physical = physical_joins(plan)
    streams = plan.stream_by_name

    def names_of(ids: Sequence[str] | set[str]) -> tuple[str, ...]:
        return tuple(
            plan.query_by_id[query].shown_name for query in sorted(ids, key=order.__getitem__)
        )

    views = []
    for node in plan.nodes:
        shown = of_relations(plan, node.relations)
        views.append(
            NetworkNodeView(
                label=labels[node.id],
                node=node,
                parents=tuple(labels[parent] for parent in node.parents),
                children=tuple(labels[child] for child in children[node.id]),
                slots=slot_names([_registered(plan, relation) for relation in node.relations]),
                shown=shown,
                lookups=shown.lookups[0] if node.kind == "source" else (),
                feeds=names_of(feeds[node.id]),
                readers=names_of(readers[node.id]),
                relation=_registered(plan, node.relations[0]) if node.kind == "source" else "",
                is_stream=node.kind == "source" and node.relations[0] in streams,
                physical=physical.get(node.id),
                measured=measured.nodes.get(node.id) if measured else None,
            )
        )
    if not lanes and measured is not None and measured.where == "lanes":
        lanes = measured.lane_weights
    return NetworkView(plan, tuple(views), savings(plan), measured, tuple(lanes))


def _registered(plan: NetworkPlan, relation: str) -> str:
    """The stream or table of a relation that may have lookups."""
    entry = plan.looked_up.get(relation)
    return relation if entry is None else entry.relation


def _labels(plan: NetworkPlan) -> dict[str, str]:
    labels: dict[str, str] = {}
    counts = dict.fromkeys(_PREFIX, 0)
    for node in plan.nodes:
        if node.kind == "source":
            labels[node.id] = _source_label(plan, node.relations[0], labels.values())
        else:
            counts[node.kind] += 1
            labels[node.id] = f"{_PREFIX[node.kind]}{counts[node.kind]}"
    return labels
