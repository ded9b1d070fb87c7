"""What sharing saved: the work of all queries, each alone, against the nodes of the network.

A query alone reads each of its inputs, selects on those that have conditions of their own, joins
them two by two, looks for partners, and unites its branches. In the network the same work is sources,
selection nodes and join nodes. Join nodes with
the same two inputs, up to selections, and the same keys are one *physical* join, as the kernel runs it:
its pairs are searched once, and the nodes are bits on them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from weft.algebra.network.plan import PARTNER_KINDS, NetworkNode, NetworkPlan
from weft.algebra.network.query import JoinQuery, Partner
from weft.kernel.network.joins.keys import best_range, equalities, range_subjects


@dataclass(frozen=True)
class Savings:
    """Counts of work: `…_alone` if every query ran by itself, the others in the network."""

    scans_alone: int
    scans: int
    selections_alone: int
    selections: int
    joins_alone: int
    joins: int
    physical_joins: int
    unions_alone: int = 0
    unions: int = 0
    lookups_alone: int = 0
    lookups: int = 0
    partners_alone: int = 0
    """Semi-joins and anti-joins."""
    partners: int = 0


def savings(plan: NetworkPlan) -> Savings:
    """Count the work of a plan and of its queries alone."""
    branches = [branch for query in plan.queries for branch in query.branches]
    partners = [branch.partner for branch in branches if branch.partner is not None]
    sides: list[JoinQuery | Partner] = [*branches, *partners]
    return Savings(
        scans_alone=sum(len(side.inputs) for side in sides),
        scans=len(_scanned(plan)),
        selections_alone=sum(
            bool(side.predicates.within({slot}).predicates)
            for side in sides
            for slot in range(len(side.inputs))
        ),
        selections=sum(node.kind == "selection" for node in plan.nodes),
        joins_alone=sum(len(side.inputs) - 1 for side in sides),
        joins=sum(node.kind == "join" for node in plan.nodes),
        physical_joins=len(set(physical_joins(plan).values())),
        unions_alone=sum(len(query.branches) > 1 for query in plan.queries),
        unions=sum(node.kind == "union" for node in plan.nodes),
        lookups_alone=sum(len(entry.lookups) for q in plan.queries for entry in q.every_input),
        lookups=len(_lookups(plan)),
        partners_alone=len(partners),
        partners=sum(node.kind in PARTNER_KINDS for node in plan.nodes),
    )


def _scanned(plan: NetworkPlan) -> set[str]:
    """The streams and tables that sources have the rows of."""
    sources = [node.relations[0] for node in plan.nodes if node.kind == "source"]
    inputs = plan.looked_up
    return {inputs[name].relation if name in inputs else name for name in sources}


def _lookups(plan: NetworkPlan) -> set[Hashable]:
    """The different lookups, each with those before it."""
    return {
        (entry.relation, entry.lookups[: number + 1])
        for entry in plan.looked_up.values()
        for number in range(len(entry.lookups))
    }


def physical_joins(plan: NetworkPlan) -> dict[str, int]:
    """The number of the physical join that computes each join node."""
    inputs: dict[str, Hashable] = {}
    numbers: dict[Hashable, int] = {}
    physical: dict[str, int] = {}
    for node in plan.nodes:
        if node.kind == "source":
            inputs[node.id] = node.id
        elif node.kind == "selection":
            inputs[node.id] = inputs[node.parents[0]]
        elif node.kind == "join":
            left, right = (inputs[parent] for parent in node.parents)
            slots = len(plan.node_by_id[node.parents[0]].relations)
            key = (left, right, join_keys(node, slots))
            physical[node.id] = numbers.setdefault(key, len(numbers) + 1)
            inputs[node.id] = ("physical", physical[node.id])
    return physical


def join_keys(node: NetworkNode, left_slots: int) -> frozenset[str]:
    """What pairs are searched by: the equalities of the two sides, else a sum in a range."""
    equal = equalities(node.predicates, left_slots)
    if equal:
        return frozenset(literal.sql for literal in equal)
    ranges = range_subjects(node.predicates, left_slots)
    best = best_range(ranges)
    return frozenset() if best is None else frozenset({best.sql})
