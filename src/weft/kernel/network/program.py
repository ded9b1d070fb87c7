"""A network as the kernel runs it: physical nodes, compiled once for a version of the plan.

A *physical node* is a source, or one physical join: all join nodes of the same two physical inputs on
the same keys, whose candidates are searched once. Its *members* are the logical nodes on its rows:
the source or the join nodes (`roots`), and the selections above them (`families`). A member is a set of
positions among the physical node's rows; a row that no query and no further join wants is dropped at
once.

An *input* is one side of a physical join: the rows of a physical node that belong to at least one of its
`members`, which are the parents of the join nodes. Bit k of a row says that it belongs to member k.

Semi-joins are compiled as joins are, and so are anti-joins, each with others of their kind. Their rows are
rows of the left input (`partners`), and no join reads them. A row of the right input must be there until all
rows of the left input that it may match are closed.

The id of a physical join is a digest of its inputs and keys: the same join has the same id in every
version of the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from weft.algebra import codec
from weft.algebra.network.lookup import tables_of
from weft.algebra.network.plan import NetworkNode, NetworkPlan
from weft.algebra.predicates import Linear, OrPredicate, PredicateSet
from weft.algebra.predicates.predicate_set import all_of
from weft.algebra.predicates.slots import column_name, plain_name, slot_of
from weft.algebra.predicates.subject import subject_names
from weft.algebra.predicates.time_bounds import time_bounds
from weft.algebra.types import TIMESTAMP
from weft.kernel.failure import NeedsSpark, QueryFailure
from weft.kernel.network.conditions import Compiler, Conditions, Family
from weft.kernel.network.conditions.subjects import readable
from weft.kernel.network.joins.expiry import Bounds, Lifetime, lifetime, partner_lifetime
from weft.kernel.network.joins.keys import (
    Key,
    KeySide,
    best_range,
    equalities,
    equality_key,
    range_key,
    range_subjects,
)
from weft.kernel.network.lookups.compiled import CompiledLookup, compiled
from weft.kernel.network.output import Output, Projection, feed_outputs
from weft.kernel.network.rows import STEP, TIME

JoinKind = Literal["join", "semi-join", "anti-join"]


@dataclass(frozen=True, slots=True)
class Input:
    """One side of a physical join."""

    join: str
    left: bool
    source: str
    """The physical node whose rows come in."""
    members: tuple[str, ...]
    key: KeySide
    lifetime: Lifetime
    waits_for: frozenset[str]
    """The tables of the other side: until they are here, no row expires."""
    keeps_all: bool = False
    """Whether it has rows whose key is NULL, too, though they match nothing."""

    @property
    def id(self) -> tuple[str, bool]:
        return self.join, self.left


@dataclass(frozen=True, slots=True)
class JoinMember:
    """A logical join: the bits of its parents, and what is tested beyond the keys."""

    node: str
    left_bit: int
    right_bit: int
    tests: tuple[int, ...]
    closing: Lifetime
    """When a row of the left input is closed: no row that it could match is still to come."""


@dataclass(frozen=True, slots=True)
class PhysicalJoin:
    """How a physical node's rows are found: pairs of rows, or rows of the left input."""

    left: Input
    right: Input
    left_slots: int
    key: Key
    key_tests: tuple[int, ...]
    members: tuple[JoinMember, ...]
    kind: JoinKind = "join"


@dataclass(frozen=True)
class PhysicalNode:
    """A source or physical join, and all logical nodes on its rows."""

    id: str
    relations: tuple[str, ...]
    base: str
    """Of a source: the stream or table whose rows it has. Empty for joins."""
    lookups: tuple[CompiledLookup, ...]
    """Of a source: what its rows get from tables."""
    tables: frozenset[str]
    """The tables whose contents its rows depend on."""
    join: PhysicalJoin | None
    conditions: Conditions
    """The tests of its members, on its rows."""
    candidate_conditions: Conditions
    """Of a join: the tests of keys and join nodes, on candidates."""
    roots: tuple[str, ...]
    """The source nodes or join nodes."""
    families: tuple[Family, ...]
    """The selections above them, those of a parent before those of its children."""
    inputs: tuple[Input, ...]
    """The sides of other joins that its rows come into."""
    stored: tuple[str, ...]
    """The columns of its rows that these joins, and what follows them, read."""
    shown: tuple[tuple[Projection, tuple[tuple[str, str], ...]], ...]
    """By projection, the outputs that show rows of this node, and the members they take them from."""


@dataclass(frozen=True)
class Program:
    """A plan, compiled. Physical nodes are in an order in which inputs come first."""

    version: int
    nodes: tuple[PhysicalNode, ...]
    outputs: Mapping[str, Output]
    """What queries show, by the outputs' names."""
    streams: frozenset[str]
    fed: Mapping[str, tuple[str, ...]]
    """For each logical node the ids of the queries that get rows from it."""
    unions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The union nodes with their parents, parents first."""
    node_by_id: Mapping[str, PhysicalNode] = field(default_factory=dict)

    def inputs_of(self, relation: str) -> list[Input]:
        """The sides of joins that rows of a stream or table come into, with lookups or without."""
        return [entry for node in self.nodes if node.base == relation for entry in node.inputs]

    def bases(self, node: PhysicalNode) -> tuple[str, ...]:
        """The stream or table of every slot of a node."""
        return tuple(self.node_by_id[relation].base for relation in node.relations)

    def late_rows(self, late: Mapping[str, int]) -> int:
        """How many rows of streams joins did not admit; `late` is by source."""
        of_streams: dict[str, int] = {}
        for source, count in late.items():
            base = self.node_by_id[source].base
            of_streams[base] = max(count, of_streams.get(base, 0))
        return sum(of_streams.values())

    def span(self, relation: str) -> int | None:
        """How far behind the watermark files must have the rows of a stream, in microseconds; None: all."""
        bounds = [0]
        sources = [node for node in self.nodes if node.base == relation]
        for needed in (needed for node in sources for needed in self.stored_lifetimes(node)):
            if needed.unbounded:
                return None
            bounds += [min(c for _, c in pairs) for pairs in needed.alternatives]
        return max(bounds)

    def stored_lifetimes(self, node: PhysicalNode) -> list[Lifetime]:
        """How long files must have the rows of a node: as long as joins need them in memory, and as long as
        rows of joins are needed that depend on tables. If a table changes, these are computed again."""
        lifetimes: list[Lifetime] = []
        for entry in node.inputs:
            lifetimes.append(entry.lifetime)
            above = self.node_by_id[entry.join]
            if above.tables:
                first = 0 if entry.left else len(above.relations) - len(node.relations)
                slots = range(first, first + len(node.relations))
                lifetimes += [one.within(slots) for one in self.stored_lifetimes(above)]
        return lifetimes


def program(plan: NetworkPlan, *, merged: bool = True) -> Program:
    """The compiled form of a plan. Raises `QueryFailure` if the kernel cannot evaluate a condition.

    Not `merged`: every join node is a physical join of its own, as in ARGUS. For comparisons.
    """
    return _Compilation(plan, merged).program()


@dataclass
class _Draft:
    """A physical node while it is compiled."""

    id: str
    relations: tuple[str, ...]
    roots: list[str] = field(default_factory=list)
    joins: list[NetworkNode] = field(default_factory=list)
    selections: list[NetworkNode] = field(default_factory=list)
    left: str = ""
    right: str = ""
    left_slots: int = 0
    key: Key | None = None
    kind: JoinKind = "join"


class _Compilation:
    def __init__(self, plan: NetworkPlan, merged: bool) -> None:
        self._plan, self._merged = plan, merged
        self._fed = _fed(plan)
        self._drafts: dict[str, _Draft] = {}
        self._physical: dict[str, str] = {}
        """The physical node of every logical one."""
        self._times: dict[str, PredicateSet] = {}
        """What is known of a logical node's rows about differences of times, over its slots."""
        self._outputs = {
            output.name: output for feed in plan.feeds for output in feed_outputs(plan, feed)
        }

    def program(self) -> Program:
        for node in self._plan.nodes:
            if self._fed[node.id]:
                self._add(node)
        inputs = self._inputs()
        stored = self._stored()
        outputs: dict[str, list[Output]] = {draft.id: [] for draft in self._drafts.values()}
        for output in self._outputs.values():
            outputs[self._physical[output.node]].append(output)
        nodes = tuple(
            self._node(draft, inputs, stored[draft.id], outputs[draft.id])
            for draft in self._drafts.values()
        )
        return Program(
            self._plan.version,
            nodes,
            self._outputs,
            frozenset(self._plan.stream_by_name),
            self._fed,
            tuple((node.id, node.parents) for node in self._plan.nodes if node.kind == "union"),
            {node.id: node for node in nodes},
        )

    def _add(self, node: NetworkNode) -> None:
        if node.kind == "source":
            relation = node.relations[0]
            draft = self._drafts.setdefault(relation, _Draft(relation, (relation,)))
            self._physical[node.id] = relation
            draft.roots.append(node.id)
        elif node.kind == "selection":
            physical = self._physical[node.parents[0]]
            self._physical[node.id] = physical
            self._drafts[physical].selections.append(node)
        elif node.kind != "union":
            self._add_join(node, node.kind)

    def _add_join(self, node: NetworkNode, kind: JoinKind) -> None:
        left, right = (self._physical[parent] for parent in node.parents)
        left_slots = len(self._plan.node_by_id[node.parents[0]].relations)
        right_slots = len(node.relations) - left_slots
        literals = equalities(node.predicates, left_slots)
        ranges = {} if literals else range_subjects(node.predicates, left_slots)
        chosen = best_range(ranges)
        text = [literal.sql for literal in literals] or ([chosen.sql] if chosen else [])
        if not self._merged:
            text.append(node.id)
        id_ = f"{kind}-{codec.digest([left, right, left_slots, right_slots, text], 16)}"
        draft = self._drafts.get(id_)
        if draft is None:
            draft = _Draft(
                id_, node.relations, left=left, right=right, left_slots=left_slots, kind=kind
            )
            self._drafts[id_] = draft
        if chosen is not None:
            sets = [range_subjects(join.predicates, left_slots)[chosen] for join in draft.joins]
            draft.key = range_key(chosen, [*sets, ranges[chosen]], left_slots)
        elif draft.key is None:
            try:
                draft.key = equality_key(literals, left_slots)
            except NeedsSpark as reason:
                raise self._unreadable(node, reason) from reason
        draft.joins.append(node)
        draft.roots.append(node.id)
        self._physical[node.id] = id_

    def _times_of(self, node_id: str) -> PredicateSet:
        """The node's own conditions on differences of times, and its parents'."""
        if node_id not in self._times:
            node = self._plan.node_by_id[node_id]
            conditions = list(_about_times(node.predicates))
            first = 0
            for parent in node.parents:
                slots = len(self._plan.node_by_id[parent].relations)
                places = {slot: slot + first for slot in range(slots)}
                conditions += self._times_of(parent).moved(places).predicates
                first += slots
            self._times[node_id] = all_of(conditions)
        return self._times[node_id]

    def _unreadable(self, node: NetworkNode, reason: NeedsSpark) -> QueryFailure:
        message = f"only Spark can evaluate {reason}, which reads several relations"
        return QueryFailure("NEEDS_SPARK", message, self._fed[node.id])

    def _inputs(self) -> dict[str, list[Input]]:
        """The inputs of all joins, by the physical node that they read."""
        inputs: dict[str, list[Input]] = {draft.id: [] for draft in self._drafts.values()}
        for draft in self._drafts.values():
            if draft.joins:
                for left in (True, False):
                    entry = self._input(draft, left)
                    inputs[entry.source].append(entry)
        return inputs

    def _input(self, draft: _Draft, left: bool) -> Input:
        assert draft.key is not None
        slots = range(len(draft.relations))
        sides = slots[: draft.left_slots], slots[draft.left_slots :]
        mine, theirs = sides if left else sides[::-1]
        streams = self._plan.stream_by_name
        bounds = [self._bounds(join) for join in draft.joins]
        of_streams = (
            [slot for slot in mine if draft.relations[slot] in streams],
            [slot for slot in theirs if draft.relations[slot] in streams],
            mine[0],
        )
        is_partner = draft.kind != "join" and not left
        return Input(
            draft.id,
            left,
            draft.left if left else draft.right,
            tuple(dict.fromkeys(join.parents[not left] for join in draft.joins)),
            draft.key.left if left else draft.key.right,
            (partner_lifetime if is_partner else lifetime)(bounds, *of_streams),
            frozenset(draft.relations[slot] for slot in theirs) - streams.keys(),
            keeps_all=draft.kind == "anti-join" and left,
        )

    def _closing(self, draft: _Draft, node: NetworkNode) -> Lifetime:
        """When rows of the left parent of a join node can match nothing that is still to come."""
        streams = self._plan.stream_by_name
        slots = [slot for slot, name in enumerate(draft.relations) if name in streams]
        left = [slot for slot in slots if slot < draft.left_slots]
        return lifetime([self._bounds(node)], left, slots[len(left) :], 0)

    def _bounds(self, node: NetworkNode) -> Bounds:
        streams = self._plan.stream_by_name
        times = {
            slot: streams[relation].time
            for slot, relation in enumerate(node.relations)
            if relation in streams
        }
        return time_bounds(self._times_of(node.id), times)

    def _stored(self) -> dict[str, set[str]]:
        """For every physical node the columns of its rows that the joins after it, and what follows
        them, read."""
        stored: dict[str, set[str]] = {draft.id: set() for draft in self._drafts.values()}
        shown: dict[str, set[str]] = {draft.id: set() for draft in self._drafts.values()}
        for output in self._outputs.values():
            names = shown[self._physical[output.node]]
            names.update(name for _, name in output.projection.reads)
        for draft in reversed(list(self._drafts.values())):
            if not draft.joins:
                continue
            names = stored[draft.id] | shown[draft.id]
            for node in (*draft.joins, *draft.selections):
                names |= self._names(node)
            for name in names:
                slot = slot_of(name)
                if slot < draft.left_slots:
                    stored[draft.left].add(name)
                else:
                    there = column_name(slot - draft.left_slots, plain_name(name))
                    stored[draft.right].add(there)
        return stored

    def _names(self, node: NetworkNode) -> set[str]:
        try:
            return {
                name
                for predicate in node.predicates.predicates
                for literal in predicate.literals
                for name in subject_names(readable(literal.subject))
            }
        except NeedsSpark as reason:
            raise self._unreadable(node, reason) from reason

    def _node(
        self,
        draft: _Draft,
        inputs: Mapping[str, list[Input]],
        read: set[str],
        outputs: Sequence[Output],
    ) -> PhysicalNode:
        on_rows, on_candidates = Compiler(), Compiler()
        families: dict[str, list[NetworkNode]] = {}
        for node in draft.selections:
            self._names(node)
            families.setdefault(node.parents[0], []).append(node)
        tests = {node.id: on_rows.numbers(node.predicates.predicates) for node in draft.selections}
        conditions = on_rows.compiled()
        join = self._join(draft, inputs, on_candidates) if draft.joins else None
        shown: dict[Projection, list[tuple[str, str]]] = {}
        for output in outputs:
            shown.setdefault(output.projection, []).append((output.name, output.node))
        stored: set[str] = set()
        if inputs[draft.id]:
            stored |= read
            for slot, relation in enumerate(draft.relations):
                stored.add(column_name(slot, STEP))
                if relation in self._plan.stream_by_name:
                    stored.add(column_name(slot, TIME))
        return PhysicalNode(
            draft.id,
            draft.relations,
            *self._source(draft),
            self._tables(draft),
            join,
            conditions,
            on_candidates.compiled(),
            tuple(draft.roots),
            tuple(
                Family(
                    parent,
                    tuple(node.id for node in nodes),
                    conditions,
                    tuple(tests[node.id] for node in nodes),
                )
                for parent, nodes in families.items()
            ),
            tuple(inputs[draft.id]),
            tuple(sorted(stored)),
            tuple((projection, tuple(queries)) for projection, queries in shown.items()),
        )

    def _source(self, draft: _Draft) -> tuple[str, tuple[CompiledLookup, ...]]:
        """The relation whose rows a source has, and their lookups."""
        if draft.joins:
            return "", ()
        entry = self._plan.looked_up.get(draft.id)
        if entry is None:
            return draft.id, ()
        try:
            return entry.relation, compiled(entry.lookups)
        except NeedsSpark as reason:
            raise self._unreadable(self._plan.node_by_id[draft.roots[0]], reason) from reason

    def _tables(self, draft: _Draft) -> frozenset[str]:
        streams = self._plan.stream_by_name
        tables: set[str] = set()
        for relation in draft.relations:
            entry = self._plan.looked_up.get(relation)
            tables |= {relation} if entry is None else {entry.relation, *tables_of(entry.lookups)}
        return frozenset(tables - streams.keys())

    def _join(
        self, draft: _Draft, inputs: Mapping[str, list[Input]], compiler: Compiler
    ) -> PhysicalJoin:
        assert draft.key is not None
        left = next(entry for entry in inputs[draft.left] if entry.id == (draft.id, True))
        right = next(entry for entry in inputs[draft.right] if entry.id == (draft.id, False))
        keys = set(draft.key.predicates)
        left_bits = {member: bit for bit, member in enumerate(left.members)}
        right_bits = {member: bit for bit, member in enumerate(right.members)}
        members = tuple(
            JoinMember(
                node.id,
                left_bits[node.parents[0]],
                right_bits[node.parents[1]],
                compiler.numbers(_beyond(node.predicates.predicates, keys)),
                self._closing(draft, node),
            )
            for node in draft.joins
        )
        tests = compiler.numbers(draft.key.predicates)
        return PhysicalJoin(left, right, draft.left_slots, draft.key, tests, members, draft.kind)


def _about_times(predicates: PredicateSet) -> Iterable[OrPredicate]:
    """The conditions that bound the difference of two timestamps."""
    for predicate in predicates.predicates:
        subject = predicate.literals[0].subject if len(predicate.literals) == 1 else None
        if isinstance(subject, Linear) and len(subject.terms) == 2:
            if all(ref.type == TIMESTAMP for _, ref in subject.terms):
                yield predicate


def _beyond(predicates: Iterable[OrPredicate], keys: set[OrPredicate]) -> Sequence[OrPredicate]:
    return [predicate for predicate in predicates if predicate not in keys]


def _fed(plan: NetworkPlan) -> dict[str, tuple[str, ...]]:
    """For each node the queries that get rows from it."""
    fed: dict[str, dict[str, None]] = {node.id: {} for node in plan.nodes}
    for feed in plan.feeds:
        fed[feed.node][feed.query] = None
    for node in reversed(plan.nodes):
        for parent in node.parents:
            fed[parent].update(fed[node.id])
    return {node: tuple(queries) for node, queries in fed.items()}
