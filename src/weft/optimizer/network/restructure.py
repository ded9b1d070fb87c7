"""Changes to what a network has already, when something new is added (ARGUS, section 7, Figure 13).

*Rerouting*: a selection whose rows a new, smaller selection on the same rows includes is moved below it.
*Restructuring*: an old join becomes a selection on a new one of the same ancestors and the same keys, which
is weak enough to feed both it and the query: the query's own join, or one that both imply.

Only nodes that are as new as the change are moved: an old one has history, and its rows of before are not
among the rows of a new parent.

The cost counts rows. A selection costs its parent's rows, so rerouting pays if the new parent has fewer. A
join costs its own rows, so a weaker join pays if it has no more than the two joins that it replaces.
Both estimates are heuristics. Time: rerouting asks the index once; restructuring looks at every new join of
the same ancestors and keys.
"""

from __future__ import annotations

from weft.algebra.condition.values import ALL, union
from weft.algebra.predicates import LiteralPredicate, OrPredicate, PredicateSet
from weft.algebra.predicates.predicate_set import all_of
from weft.optimizer.network.estimate import size
from weft.optimizer.network.index import Probe, selection_scope
from weft.optimizer.network.network import Network


def reroute(network: Network, new: str) -> None:
    """Move selections below a new one where that pays."""
    place = network.place(new)
    above = set(_selections_above(network, new))
    for name in network.index.implying(Probe(selection_scope(place.svoa), place.svoa_predicates)):
        if name == new or name in above or not network.is_new(name):
            continue
        rest = network.place(name).holds.beyond(network.place(new).holds)
        parent = network.node(name).parents[0]
        if rest.predicates and network.size(parent) > network.size(new):
            network.become_selection(name, new, rest)


def _selections_above(network: Network, node: str) -> list[str]:
    found = []
    while network.node(node).kind == "selection":
        node = network.node(node).parents[0]
        found.append(node)
    return found


def weaker(network: Network, old: str, wanted: PredicateSet) -> PredicateSet | None:
    """The predicates of a join that can feed a new join with wanted predicates and also its sibling, an
    old one, or None if it does not pay. All are about the rows of the old join's JVOAs."""
    if not network.is_new(old):
        return None
    place = network.place(old)
    common = _hull(place.jvoa_predicates, wanted)
    if not place.holds.beyond(common).predicates:
        return None
    relations, given = network.node(old).relations, _held_by_jvoas(network, old)
    apart = network.size(old) + size(network.estimate, relations, wanted & given)
    together = size(network.estimate, relations, common & given)
    return common if together <= apart else None


def _held_by_jvoas(network: Network, join: str) -> PredicateSet:
    """What the rows of a join's JVOAs pass already, on the join's slots."""
    left, right = network.place(join).jvoas
    slots = len(network.node(left).relations)
    shift = {slot: slot + slots for slot in range(len(network.node(right).relations))}
    return network.place(left).holds & network.place(right).holds.moved(shift)


def _hull(one: PredicateSet, other: PredicateSet) -> PredicateSet:
    """Predicates that both sets imply: what one has and the other implies, and for literals on one
    subject the values of both."""
    shared = [p for p in one.predicates if other.implies_one(p)]
    shared += [p for p in other.predicates if one.implies_one(p)]
    by_subject = {literal.subject: literal for literal in other.single}
    for literal in one.single:
        same = by_subject.get(literal.subject)
        if same is not None:
            values = union([literal.values, same.values])
            if values != ALL:
                shared.append(OrPredicate((LiteralPredicate(literal.subject, values),)))
    return all_of(shared)
