"""Which predicate sets are implied by others, decided on what a look-up has fetched.

ARGUS' Algorithm 1 with its two-level hash sets: the upper level are predicate sets, the lower level the
OR predicates of theirs that have been found implied. A set is implied once all of its OR predicates are.
An OR predicate that many sets have in common is decided once.

Time: one decision for each pair of a wanted and a fetched OR predicate on the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from weft.algebra.predicates import OrPredicate, PredicateSet

Members = Mapping[str, frozenset[str]]
"""The OR predicates of every predicate set."""


def implied_sets(
    wanted: PredicateSet,
    members: Members,
    or_predicate: Callable[[str], OrPredicate],
    candidates: Iterable[str],
) -> list[str]:
    """The candidates that hold wherever the wanted predicates do, in their order."""
    candidates = list(candidates)
    fetched = frozenset[str]().union(*(members[candidate] for candidate in candidates))
    implied = {name for name in fetched if wanted.implies_one(or_predicate(name))}
    return [candidate for candidate in candidates if members[candidate] <= implied]


def implying_sets(
    wanted: PredicateSet,
    members: Members,
    or_predicate: Callable[[str], OrPredicate],
    candidates: Iterable[str],
) -> list[str]:
    """The candidates that hold only where all wanted predicates do, in their order."""
    candidates = list(candidates)
    fetched = frozenset[str]().union(*(members[candidate] for candidate in candidates))
    stronger = [
        {name for name in fetched if or_predicate(name).implies(predicate)}
        for predicate in wanted.predicates
    ]
    return [
        candidate
        for candidate in candidates
        if all(members[candidate] & names for names in stronger)
    ]
