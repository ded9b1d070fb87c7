"""The node of a filter or join: searches what is there, and makes what is not (ARGUS, sections 5.5 and 7).

A query begins with one *part* for each of its inputs: a source. While there are several parts, two of
them become one: by a join that the network has, or by a new one.

- Search: a join of two parts can be shared if all its predicates, formulated on its JVOAs, are implied by
  what the query asks of these inputs. So no wanted row is missing. Rows in excess are left out later,
  by a selection: a join that is shared is not narrowed before the query's last join (SharingPlan2).
  If both parts come from one ancestor, both assignments of slots are tried (section 6.2).
- Choice: first the next join of the query's own best plan; match-plan looks at no other. Sharing-selection
  goes on to all pairs of parts, and takes the cheapest: an equivalent join costs nothing, another one its
  rows. It does not if the network has a sibling of the planned join, with other constants: the kernel
  searches the candidates of siblings once, so a new sibling costs less than another order of joins.
- A new join that differs from one of the network in constants may take its place (`restructure`).
- Else a new join: conditions of one part that keep few rows become a selection before the join (shared if
  the network has it), others are tested by the join. The order is greedy by estimated size, and
  parts that a condition connects come before products.
- A query with a partner ends in a semi-join or anti-join of its own rows with the partner's.

Sound: a part's node holds nothing that the query's predicates do not imply, and the last step tests what
the node does not hold. Time: at most n²/2 pairs are searched for n inputs, each once for every state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Final

from weft.algebra.network.query import JoinInput, JoinQuery, Partner
from weft.algebra.predicates import PredicateSet
from weft.optimizer.network.index import Probe, join_scope, selection_scope
from weft.optimizer.network.network import Network, number_of
from weft.optimizer.network.options import Options
from weft.optimizer.network.restructure import reroute, weaker
from weft.optimizer.network.topology import equality_keys

NO_INPUT: Final = -1
"""In place of an input: a slot of a partner, of which a row has no values."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some inputs of the query, computed by a node: `inputs[slot]` is the input of the node's slot."""

    node: str
    inputs: tuple[int, ...]


Pair = tuple[Part, Part]


@dataclass(frozen=True, slots=True)
class Match:
    """A join of the network that can stand for a pair of parts."""

    pair: Pair
    part: Part
    rest: int
    """How many OR predicates of the query it leaves to be tested."""


def computed(network: Network, query: JoinQuery, options: Options) -> Part:
    """The node that has exactly the rows of a query, made where there is none."""
    part = _computed(network, query.inputs, query.predicates, options)
    return part if query.partner is None else _with_partner(network, part, query.partner, options)


def _computed(
    network: Network, inputs: Sequence[JoinInput], predicates: PredicateSet, options: Options
) -> Part:
    relations = tuple(entry.source for entry in inputs)
    addition = _Addition(network, relations, predicates, options)
    part = addition.joined([Part(network.source(e.source), (i,)) for i, e in enumerate(inputs)])
    return addition.selected(part, always=True)


def _with_partner(network: Network, part: Part, partner: Partner, options: Options) -> Part:
    """The rows of a part that have a match among the partner's, or none. The partner's rows are a filter
    or join like any other, and shared with those."""
    other = _computed(network, partner.inputs, partner.predicates, options)
    order = (*part.inputs, *(len(part.inputs) + place for place in other.inputs))
    slots = {place: slot for slot, place in enumerate(order)}
    matching = partner.matching.moved(slots)
    what = (partner.kind, part.node, other.node, matching)
    shared = network.partner_of(*what) if options.share_joins else None
    node = shared or network.add_partner(*what)
    return Part(node, (*part.inputs, *(NO_INPUT for _ in other.inputs)))


class _Addition:
    """One query on its way into a network."""

    def __init__(
        self,
        network: Network,
        relations: tuple[str, ...],
        predicates: PredicateSet,
        options: Options,
    ) -> None:
        self._network = network
        self._options = options
        self._predicates = predicates
        self._relations = relations
        self._wanted: dict[tuple[int, ...], PredicateSet] = {}
        self._sizes: dict[frozenset[int], float] = {}
        self._searched: dict[Pair, Match | None] = {}

    def joined(self, parts: Sequence[Part]) -> Part:
        """One part of all inputs."""
        parts = list(parts)
        while len(parts) > 1:
            pairs = self._connected(parts)
            planned = min(pairs, key=self._pair_order)
            matched = self._best([planned])
            if matched is None and self._options.strategy == "sharing-selection":
                matched = None if self._siblings(planned) else self._best(pairs)
            if matched is not None:
                pair, part = matched.pair, matched.part
            else:
                pair = planned
                part = self._weaker_join(pair, parts) or self._new_join(self._assignments(pair)[0])
            parts = [other for other in parts if other not in pair] + [part]
        return parts[0]

    def selected(self, part: Part, *, always: bool) -> Part:
        """A part with the query's conditions on it, as far as a selection node pays: the network's
        where it has one, else a new one."""
        network = self._network
        svoa = network.place(part.node).svoa
        wanted = self._on(part.inputs)
        missing = wanted.beyond(network.place(part.node).holds)
        if not missing.predicates:
            return part
        (candidates,) = network.index.implied([Probe(selection_scope(svoa), wanted)])
        best = self._smallest([part.node, *self._allowed(candidates, wanted)], wanted)
        rest = wanted.beyond(network.place(best).holds)
        share = network.estimate.selectivity(network.node(best).relations, missing)
        if rest.predicates and (always or share < self._options.materialize_below):
            best = network.add_selection(best, rest)
            if self._options.reroute:
                reroute(network, best)
        return Part(best, part.inputs)

    def _connected(self, parts: Sequence[Part]) -> list[Pair]:
        """The pairs that a condition connects, or all where there are none."""
        connected = [pair for pair in combinations(parts, 2) if self._is_connected(pair)]
        return connected or list(combinations(parts, 2))

    def _is_connected(self, pair: Pair) -> bool:
        left, right = (set(part.inputs) for part in pair)
        return any(
            predicate.slots & left and predicate.slots & right and predicate.slots <= left | right
            for predicate in self._predicates.predicates
        )

    def _pair_order(self, pair: Pair) -> tuple[float, list[int]]:
        """Smaller joins first; among equal ones those of the first inputs."""
        inputs = frozenset(pair[0].inputs + pair[1].inputs)
        return self._size(inputs), sorted(inputs)

    def _size(self, inputs: frozenset[int]) -> float:
        """The rows of the query's join of some inputs."""
        if inputs not in self._sizes:
            estimate = self._network.estimate
            rows = prod(estimate.rows(self._relations[i]) for i in inputs)
            share = estimate.selectivity(self._relations, self._predicates.within(inputs))
            self._sizes[inputs] = rows * share
        return self._sizes[inputs]

    def _on(self, inputs: tuple[int, ...]) -> PredicateSet:
        """What the query asks of some inputs, named by their places in this order."""
        if inputs not in self._wanted:
            slots = {i: slot for slot, i in enumerate(inputs)}
            self._wanted[inputs] = self._predicates.within(inputs).moved(slots)
        return self._wanted[inputs]

    def _best(self, pairs: Sequence[Pair]) -> Match | None:
        """The cheapest join of the network for one of the pairs."""
        if not self._options.share_joins:
            return None
        self._search([pair for pair in pairs if pair not in self._searched])
        matches = [match for pair in pairs if (match := self._searched[pair]) is not None]
        return min(matches, key=self._cost, default=None)

    def _cost(self, match: Match) -> tuple[float, float, int]:
        rows = self._network.size(match.part.node)
        return (rows if match.rest else 0.0), rows, number_of(match.part.node)

    def _search(self, pairs: Sequence[Pair]) -> None:
        """Look up the joins that pairs can share."""
        tries = [(pair, ordered) for pair in pairs for ordered in self._assignments(pair)]
        probes = [
            Probe(join_scope(left.node, right.node), self._on(left.inputs + right.inputs))
            for _, (left, right) in tries
        ]
        matches: dict[Pair, list[Match]] = {pair: [] for pair in pairs}
        for (pair, (left, right)), probe, candidates in zip(
            tries, probes, self._network.index.implied(probes) if probes else [], strict=True
        ):
            allowed = self._allowed(candidates, probe.predicates)
            if allowed:
                best = self._smallest(allowed, probe.predicates)
                rest = probe.predicates.beyond(self._network.place(best).holds)
                part = Part(best, left.inputs + right.inputs)
                matches[pair].append(Match(pair, part, len(rest.predicates)))
        for pair, of_pair in matches.items():
            self._searched[pair] = min(of_pair, key=self._cost, default=None)

    def _assignments(self, pair: Pair) -> list[Pair]:
        """A pair in the order in which the network joins its nodes; in both if they are one node."""
        one, other = pair
        if one.node == other.node:
            return [(one, other), (other, one)]
        return [(one, other) if number_of(one.node) < number_of(other.node) else (other, one)]

    def _siblings(self, pair: Pair) -> list[str]:
        """Joins of the network that find the same candidates as a pair's would."""
        if not self._options.share_joins:
            return []
        return [
            join
            for left, right in self._assignments(pair)
            for join in self._network.siblings(
                left.node,
                right.node,
                equality_keys(self._on(left.inputs + right.inputs), len(left.inputs)),
            )
        ]

    def _weaker_join(self, pair: Pair, parts: Sequence[Part]) -> Part | None:
        """A new join that also feeds an old one, if that pays."""
        if not (self._options.restructure and self._options.share_joins):
            return None
        network = self._network
        in_use = {part.node for part in parts}
        for left, right in self._assignments(pair):
            inputs = left.inputs + right.inputs
            wanted = self._on(inputs)
            keys = equality_keys(wanted, len(left.inputs))
            for old in network.siblings(left.node, right.node, keys) if keys else ():
                common = weaker(network, old, wanted) if old not in in_use else None
                if common is not None:
                    back = dict(enumerate(inputs))
                    addition = _Addition(
                        network, self._relations, common.moved(back), self._options
                    )
                    part = addition._new_join((left, right))
                    rest = network.place(old).holds.beyond(network.place(part.node).holds)
                    network.become_selection(old, part.node, rest)
                    return part
        return None

    def _new_join(self, pair: Pair) -> Part:
        """A new join of two parts, in this order. Of their selections the weaker one comes first, so
        that the stronger one can use it."""
        left, right = pair
        order = sorted((left, right), key=lambda part: -self._size(frozenset(part.inputs)))
        narrowed = {part: self.selected(part, always=False) for part in order}
        left, right = narrowed[left], narrowed[right]
        network = self._network
        inputs = left.inputs + right.inputs
        shift = {slot: slot + len(left.inputs) for slot in range(len(right.inputs))}
        held = network.place(left.node).holds & network.place(right.node).holds.moved(shift)
        node = network.add_join(left.node, right.node, self._on(inputs).beyond(held))
        scope = network.place(node).jvoas
        for searched, match in list(self._searched.items()):
            if match is None and {part.node for part in searched} == set(scope):
                del self._searched[searched]  # another pair of this query may share the new join
        return Part(node, inputs)

    def _allowed(self, candidates: Iterable[str], wanted: PredicateSet) -> list[str]:
        """The candidates that the options let us use."""
        if self._options.canonicalize:
            return list(candidates)
        words = set(wanted.predicates)
        place = self._network.place
        return [node for node in candidates if words.issuperset(place(node).holds.predicates)]

    def _smallest(self, candidates: Sequence[str], wanted: PredicateSet) -> str:
        """The candidate with the fewest rows; an equivalent one, if there is one. Where estimates are
        equal, one whose rows another one includes."""
        network = self._network
        best, *others = sorted(candidates, key=lambda node: (network.size(node), number_of(node)))
        for node in (best, *others):
            if not wanted.beyond(network.place(node).holds).predicates:
                return node
        for node in others:
            if network.size(node) == network.size(best) and network.place(node).holds.implies(
                network.place(best).holds
            ):
                best = node
        return best
