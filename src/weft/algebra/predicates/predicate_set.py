"""OR predicates and predicate sets: conjunctions of disjunctions of literals.

Implication is sound and, as in ARGUS (section 6.4), not complete: an OR predicate implies another if
each of its literals implies one of the other's literals; a set implies another if each OR predicate of
the other is implied by one of its own. Alternatives on one subject are one literal, so a correlated
disjunction such as `a < 4 OR a > 5` is decided exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from weft.algebra.condition.values import ALL, intersection, union
from weft.algebra.predicates.literal import LiteralPredicate
from weft.algebra.predicates.subject import Subject


@dataclass(frozen=True, slots=True)
class OrPredicate:
    """A disjunction of literals: one for each subject, sorted. Made by `any_of`."""

    literals: tuple[LiteralPredicate, ...]

    @property
    def slots(self) -> frozenset[int]:
        return frozenset(slot for literal in self.literals for slot in literal.slots)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for literal in self.literals for name in literal.names)

    @property
    def sql(self) -> str:
        texts = [literal.sql for literal in self.literals]
        return texts[0] if len(texts) == 1 else f"({' OR '.join(texts)})"

    def implies(self, other: OrPredicate) -> bool:
        return all(any(mine.implies(theirs) for theirs in other.literals) for mine in self.literals)

    def moved(self, slots: Mapping[int, int]) -> OrPredicate:
        return any_of(literal.moved(slots) for literal in self.literals)


def any_of(literals: Iterable[LiteralPredicate]) -> OrPredicate:
    """The disjunction of literals; those on one subject become one."""
    by_subject: dict[Subject, list[LiteralPredicate]] = {}
    for literal in literals:
        by_subject.setdefault(literal.subject, []).append(literal)
    merged = [
        LiteralPredicate(subject, union([literal.values for literal in same]))
        for subject, same in by_subject.items()
    ]
    possible = [literal for literal in merged if not literal.values.empty]
    return OrPredicate(tuple(sorted(possible, key=lambda literal: literal.sql)))


@dataclass(frozen=True, slots=True)
class PredicateSet:
    """A conjunction of OR predicates: sorted, none implied by another. Made by `all_of`."""

    predicates: tuple[OrPredicate, ...] = ()

    @property
    def never(self) -> bool:
        """Whether no row can pass."""
        return any(not predicate.literals for predicate in self.predicates)

    @property
    def slots(self) -> frozenset[int]:
        return frozenset(slot for predicate in self.predicates for slot in predicate.slots)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for predicate in self.predicates for name in predicate.names)

    @property
    def sql(self) -> str:
        if self.never:
            return "false"
        return " AND ".join(predicate.sql for predicate in self.predicates) or "true"

    def implies(self, other: PredicateSet) -> bool:
        return self.never or all(
            any(mine.implies(theirs) for mine in self.predicates) for theirs in other.predicates
        )

    def within(self, slots: Collection[int]) -> PredicateSet:
        """The OR predicates that read these slots only."""
        return PredicateSet(tuple(p for p in self.predicates if p.slots <= set(slots)))

    def beyond(self, given: PredicateSet) -> PredicateSet:
        """What remains to be tested on rows that pass `given`."""
        return PredicateSet(
            tuple(
                predicate
                for predicate in self.predicates
                if not any(known.implies(predicate) for known in given.predicates)
            )
        )

    def moved(self, slots: Mapping[int, int]) -> PredicateSet:
        return all_of(predicate.moved(slots) for predicate in self.predicates)

    def __and__(self, other: PredicateSet) -> PredicateSet:
        return all_of((*self.predicates, *other.predicates))


TRUE: Final = PredicateSet()
NEVER: Final = PredicateSet((OrPredicate(()),))


def all_of(predicates: Iterable[OrPredicate]) -> PredicateSet:
    """The conjunction of OR predicates. Single literals on one subject become one, and what another
    implies is left out."""
    single: dict[Subject, list[LiteralPredicate]] = {}
    several: list[OrPredicate] = []
    for predicate in predicates:
        if not predicate.literals:
            return NEVER
        if len(predicate.literals) == 1:
            literal = predicate.literals[0]
            single.setdefault(literal.subject, []).append(literal)
        else:
            several.append(predicate)
    merged: list[OrPredicate] = []
    for subject, same in single.items():
        values = intersection([literal.values for literal in same])
        if values.empty:
            return NEVER
        if values != ALL:
            merged.append(OrPredicate((LiteralPredicate(subject, values),)))
    kept: list[OrPredicate] = []
    for predicate in (*merged, *sorted(set(several), key=lambda predicate: predicate.sql)):
        if any(other.implies(predicate) for other in kept):
            continue
        kept = [other for other in kept if not predicate.implies(other)]
        kept.append(predicate)
    return PredicateSet(tuple(sorted(kept, key=lambda predicate: predicate.sql)))
