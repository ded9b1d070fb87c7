"""How many rows a node has: the shares of rows that its predicates keep, taken as independent.

From: the classic defaults (one value of an attribute keeps 1/distinct of the rows, a bound keeps a
third), where nothing better is known. Estimates choose between plans; no result depends on them.
Time: one step for each interval of a literal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Final, Protocol

from weft.algebra.condition import Values
from weft.algebra.condition.values import is_point
from weft.algebra.predicates import LiteralPredicate, OrPredicate, PredicateSet
from weft.algebra.predicates.slots import plain_name, slot_of

ASSUMED_ROWS: Final = 1000.0
ASSUMED_DISTINCT: Final = 100.0
BOUND_SHARE: Final = 1 / 3
NULL_SHARE: Final = 0.05


class Estimate(Protocol):
    """What the generator asks about data."""

    def rows(self, relation: str) -> float:
        """The rows of a stream or table, in any unit that is the same for all of them."""
        ...

    def selectivity(self, relations: Sequence[str], predicates: PredicateSet) -> float:
        """The share of the relations' product that passes, where `relations[slot]` is a slot's."""
        ...


def size(estimate: Estimate, relations: Sequence[str], predicates: PredicateSet) -> float:
    """The expected rows of a node that holds these predicates."""
    return prod(map(estimate.rows, relations)) * estimate.selectivity(relations, predicates)


@dataclass(frozen=True)
class HeuristicEstimate:
    """Defaults, better where something is given.

    >>> HeuristicEstimate().rows("bids")
    1000.0
    """

    rows_of: Mapping[str, float] = field(default_factory=dict)
    distinct_of: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """How many values a relation's column has."""
    share_of: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """The measured share of a relation's rows that a literal keeps. The literal is its SQL on slot 0."""

    def rows(self, relation: str) -> float:
        return self.rows_of.get(relation, ASSUMED_ROWS)

    def selectivity(self, relations: Sequence[str], predicates: PredicateSet) -> float:
        return prod(self._or_share(relations, predicate) for predicate in predicates.predicates)

    def _or_share(self, relations: Sequence[str], predicate: OrPredicate) -> float:
        return 1 - prod(1 - self._share(relations, literal) for literal in predicate.literals)

    def _share(self, relations: Sequence[str], literal: LiteralPredicate) -> float:
        slots = literal.slots
        if self.share_of and len(slots) == 1:
            (slot,) = slots
            measured = self.share_of.get((relations[slot], literal.moved({slot: 0}).sql))
            if measured is not None:
                return measured
        if not self.distinct_of:
            return values_share(literal.values, ASSUMED_DISTINCT)
        distinct = max(
            (
                self.distinct_of.get((relations[slot_of(name)], plain_name(name)), ASSUMED_DISTINCT)
                for name in literal.names
            ),
            default=ASSUMED_DISTINCT,
        )
        return values_share(literal.values, distinct)


@lru_cache(maxsize=1 << 16)
def values_share(values: Values, distinct: float) -> float:
    """The share of rows whose value is in a set, of an attribute with so many values.

    >>> from weft.algebra.condition import Bound
    >>> values_share(Values(((Bound(5), Bound(6)),)), 100)
    0.01
    >>> values_share(~Values(((Bound(5), Bound(6)),), null=True), 100)
    0.99
    """
    null = NULL_SHARE if values.null else 0.0
    excluded = (~values).intervals
    if values.intervals and all(map(is_point, excluded)):
        return min(max(1 - len(excluded) / distinct, 0.0) + null, 1.0)
    share = 0.0
    for interval in values.intervals:
        low, high = interval
        if is_point(interval):
            share += 1 / distinct
        else:
            share += BOUND_SHARE ** ((low is not None) + (high is not None))
    return min(share + null, 1.0)
