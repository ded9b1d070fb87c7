"""From which ancestors a node's rows come, and which predicates lie in between.

ARGUS, section 6.5. A node's *SVOA* is the closest source or join at or above it; a join's *JVOAs* are
the SVOAs of its parents. A union, a semi-join or an anti-join is where this ends: no selection or join reads
it. Predicates of a node are named by its own slots, so the conversions between DPredSet, SVOAPredSet and
JVOAPredSet are conjunctions, with the right parent's slots moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.algebra.condition.values import is_point
from weft.algebra.network.plan import NetworkNode
from weft.algebra.predicates import TRUE, OrPredicate, PredicateSet
from weft.algebra.predicates.predicate_set import all_of


@dataclass(frozen=True, slots=True)
class Topology:
    """A node's place in the network."""

    svoa: str
    svoa_predicates: PredicateSet
    """Which rows of its SVOA it has."""
    jvoas: tuple[str, ...]
    """The JVOAs of its SVOA: two for joins, none for sources."""
    jvoa_predicates: PredicateSet
    """Which pairs of its JVOAs' rows its SVOA has. With `svoa_predicates`: which ones it has itself."""
    holds: PredicateSet
    """Which rows of the product of its sources it has."""


def topology(node: NetworkNode, parents: Sequence[Topology], left_slots: int) -> Topology:
    """The place of a node below its parents; `left_slots` is the number of its left parent's."""
    if node.kind not in ("selection", "join"):
        return Topology(node.id, TRUE, (), TRUE, TRUE)
    if node.kind == "selection":
        (parent,) = parents
        return Topology(
            parent.svoa,
            parent.svoa_predicates & node.predicates,
            parent.jvoas,
            parent.jvoa_predicates,
            parent.holds & node.predicates,
        )
    left, right = parents
    shift = {slot: slot + left_slots for slot in range(len(node.relations) - left_slots)}
    holds = joined(left.holds, right.holds.moved(shift), node.predicates)
    if left.holds == left.svoa_predicates and right.holds == right.svoa_predicates:
        jvoa_predicates = holds
    else:
        svoa_predicates = right.svoa_predicates.moved(shift)
        jvoa_predicates = joined(left.svoa_predicates, svoa_predicates, node.predicates)
    return Topology(node.id, TRUE, (left.svoa, right.svoa), jvoa_predicates, holds)


def joined(*sets: PredicateSet) -> PredicateSet:
    """The conjunction of several predicate sets."""
    conditions = [predicates for predicates in sets if predicates.predicates]
    if len(conditions) == 1:
        return conditions[0]
    return all_of(predicate for predicates in conditions for predicate in predicates.predicates)


def equality_keys(predicates: PredicateSet, left_slots: int) -> frozenset[OrPredicate]:
    """The equalities between the two sides of a join. Joins of the same inputs that agree in them find
    the same candidates, and the kernel searches these once for all."""
    return frozenset(
        predicate
        for predicate in predicates.predicates
        if len(predicate.literals) == 1
        and min(predicate.slots, default=0) < left_slots <= max(predicate.slots, default=0)
        and len(predicate.literals[0].values.intervals) == 1
        and is_point(predicate.literals[0].values.intervals[0])
    )
