"""OR predicates and predicate sets: conjunctions of disjunctions of literals.

Implication is sound and, as in ARGUS (section 6.4), not complete: an OR predicate implies another if
each of its literals implies one of the other's literals; a set implies another if each OR predicate of
the other is implied by one of its own, where alternatives that the set's single literals exclude do not
count. Alternatives on one subject are one literal, so a correlated disjunction such as `a < 4 OR a > 5`
is decided exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from weft.algebra.condition.values import ALL, NOT_NULL, NOTHING, Values, intersection, union
from weft.algebra.frozen import hashed_once
from weft.algebra.predicates.literal import LiteralPredicate
from weft.algebra.predicates.slots import Rename
from weft.algebra.predicates.subject import (
    COMPARE,
    Linear,
    Subject,
    is_plain_column,
    subject_of,
)
from weft.algebra.scalar import Call, Ref, Scalar

_REMEMBERED: Final = 1 << 16
"""How many results are kept. Queries of one application share most of their conditions."""
_REMEMBERED_PAIRS: Final = 1 << 18


@hashed_once
@dataclass(frozen=True)
class OrPredicate:
    """A disjunction of literals: one for each subject, sorted. Made by `any_of`. One without literals
    is never true."""

    literals: tuple[LiteralPredicate, ...]

    @cached_property
    def slots(self) -> frozenset[int]:
        return frozenset(slot for literal in self.literals for slot in literal.slots)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(name for literal in self.literals for name in literal.names)

    @cached_property
    def sql(self) -> str:
        texts = [literal.sql for literal in self.literals]
        return texts[0] if len(texts) == 1 else f"({' OR '.join(texts) or 'false'})"

    @cached_property
    def _sorted_slots(self) -> tuple[int, ...]:
        return tuple(sorted(self.slots))

    def implies(self, other: OrPredicate) -> bool:
        return self is other or _implies(self, other)

    def moved(self, slots: Mapping[int, int]) -> OrPredicate:
        """The same OR predicate after its slots have moved, no two of them to the same one."""
        places = tuple([slots[slot] for slot in self._sorted_slots])
        return self if places == self._sorted_slots else _moved(self, places)

    def renamed(self, rename: Rename) -> OrPredicate:
        """The same OR predicate over columns with other names."""
        literals = [literal.renamed(rename) for literal in self.literals]
        return OrPredicate(tuple(sorted(literals, key=lambda literal: literal.sql)))


@lru_cache(maxsize=_REMEMBERED_PAIRS)
def _implies(one: OrPredicate, other: OrPredicate) -> bool:
    """Whether each literal of one implies a literal of the other."""
    return all(any(mine.implies(theirs) for theirs in other.literals) for mine in one.literals)


@lru_cache(maxsize=_REMEMBERED)
def _moved(predicate: OrPredicate, places: tuple[int, ...]) -> OrPredicate:
    """An OR predicate whose slots, in their order, have moved to these."""
    slots = dict(zip(sorted(predicate.slots), places, strict=True))
    literals = [literal.moved(slots) for literal in predicate.literals]
    if len(literals) == 1:
        return alone(literals[0])
    return OrPredicate(tuple(sorted(literals, key=lambda literal: literal.sql)))


@lru_cache(maxsize=_REMEMBERED)
def alone(literal: LiteralPredicate) -> OrPredicate:
    """A literal as an OR predicate."""
    return OrPredicate(() if literal.values.empty else (literal,))


def any_of(literals: Iterable[LiteralPredicate]) -> OrPredicate:
    """The disjunction of literals; those on one subject become one. If one of them is always true, it
    stands alone."""
    literals = tuple(literals)
    if len(literals) == 1:
        return alone(literals[0])
    by_subject: dict[Subject, list[LiteralPredicate]] = {}
    for literal in literals:
        by_subject.setdefault(literal.subject, []).append(literal)
    merged = [
        same[0]
        if len(same) == 1
        else LiteralPredicate(subject, union([literal.values for literal in same]))
        for subject, same in by_subject.items()
    ]
    for literal in merged:
        if literal.values == ALL:
            return alone(literal)
    possible = [literal for literal in merged if not literal.values.empty]
    kept = [
        literal
        for literal in possible
        if not any(literal is not other and literal.implies(other) for other in possible)
    ]
    return OrPredicate(tuple(sorted(kept, key=lambda literal: literal.sql)))


@hashed_once
@dataclass(frozen=True)
class PredicateSet:
    """A conjunction of OR predicates: sorted, none implied by another. Made by `all_of`."""

    predicates: tuple[OrPredicate, ...] = ()

    @cached_property
    def never(self) -> bool:
        """Whether no row can pass."""
        return any(not predicate.literals for predicate in self.predicates)

    @cached_property
    def slots(self) -> frozenset[int]:
        return frozenset(slot for predicate in self.predicates for slot in predicate.slots)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(name for predicate in self.predicates for name in predicate.names)

    @cached_property
    def sql(self) -> str:
        if self.never:
            return "false"
        return " AND ".join(predicate.sql for predicate in self.predicates) or "true"

    @cached_property
    def single(self) -> tuple[LiteralPredicate, ...]:
        """The literals that stand alone, so that each of them holds for every row that passes."""
        return tuple(p.literals[0] for p in self.predicates if len(p.literals) == 1)

    @cached_property
    def _by_name(self) -> dict[str, list[OrPredicate]]:
        """The OR predicates by the columns that their first literals read: a literal implies none that
        reads other columns."""
        by_name: dict[str, list[OrPredicate]] = {}
        for predicate in self.predicates:
            for literal in predicate.literals[:1]:
                for name in literal.names or {""}:
                    by_name.setdefault(name, []).append(predicate)
        return by_name

    @cached_property
    def _members(self) -> frozenset[OrPredicate]:
        return frozenset(self.predicates)

    def implies(self, other: PredicateSet) -> bool:
        return self.never or all(map(self.implies_one, other.predicates))

    def implies_one(self, weaker: OrPredicate) -> bool:
        """Whether one of the OR predicates implies another one."""
        if self.never or weaker in self._members:
            return True
        for literal in weaker.literals:
            for predicate in self._by_name.get(literal.first_name, ()):
                if predicate.implies(weaker):
                    return True
        return False

    def within(self, slots: Collection[int]) -> PredicateSet:
        """The OR predicates that read these slots only."""
        allowed = frozenset(slots)
        return PredicateSet(tuple(p for p in self.predicates if p.slots <= allowed))

    def beyond(self, given: PredicateSet) -> PredicateSet:
        """What remains to be tested on rows that pass `given`."""
        return PredicateSet(
            tuple(predicate for predicate in self.predicates if not given.implies_one(predicate))
        )

    def moved(self, slots: Mapping[int, int]) -> PredicateSet:
        """The same predicates after their slots have moved, no two of them to the same one. What they
        imply does not change, so it is enough to sort them again."""
        predicates = [predicate.moved(slots) for predicate in self.predicates]
        return PredicateSet(tuple(sorted(predicates, key=lambda predicate: predicate.sql)))

    def renamed(self, rename: Rename) -> PredicateSet:
        """The same predicates over columns with other names."""
        predicates = [predicate.renamed(rename) for predicate in self.predicates]
        return PredicateSet(tuple(sorted(predicates, key=lambda predicate: predicate.sql)))

    def __and__(self, other: PredicateSet) -> PredicateSet:
        if not self.predicates or not other.predicates:
            return self if self.predicates else other
        return all_of((*self.predicates, *other.predicates))


TRUE: Final = PredicateSet()
NEVER: Final = PredicateSet((OrPredicate(()),))


def all_of(predicates: Iterable[OrPredicate]) -> PredicateSet:
    """The conjunction of OR predicates. Single literals on one subject become one, alternatives lose the
    values that single literals exclude, and what another OR predicate implies is left out."""
    single: dict[Subject, LiteralPredicate] = {}
    nulls = _Nulls(frozenset(), frozenset())
    several = list(
        dict.fromkeys(part for predicate in predicates for part in _by_columns(predicate))
    )
    while True:
        certain = [predicate for predicate in several if len(predicate.literals) < 2]
        if not certain:
            break
        several = [predicate for predicate in several if len(predicate.literals) > 1]
        for predicate in certain:
            if not predicate.literals:
                return NEVER
            _restrict(single, predicate.literals[0])
        nulls = _Nulls.of(single.values())
        for subject, literal in single.items():
            single[subject] = nulls.excluded_from(literal)
            if single[subject].values.empty:
                return NEVER
        several = list(dict.fromkeys(_possible(predicate, single, nulls) for predicate in several))
    certain = [alone(literal) for literal in single.values() if not nulls.make_true(literal)]
    kept: list[OrPredicate] = []
    for predicate in sorted(several, key=lambda predicate: len(predicate.literals)):
        if not any(other.implies(predicate) for other in kept):
            kept.append(predicate)
    return PredicateSet(tuple(sorted((*certain, *kept), key=lambda predicate: predicate.sql)))


@dataclass(frozen=True, slots=True)
class _Nulls:
    """The columns of larger expressions that are never NULL, and the columns that always are, in the rows
    that pass."""

    never: frozenset[str]
    always: frozenset[str]

    @classmethod
    def of(cls, literals: Collection[LiteralPredicate]) -> _Nulls:
        never: set[str] = set()
        always: set[str] = set()
        for literal in literals:
            if is_plain_column(literal.subject):
                always |= literal.names if not literal.values.intervals else set()
            elif not literal.values.null:
                never |= literal.strict_names
        return cls(frozenset(never), frozenset(always))

    def make_true(self, literal: LiteralPredicate) -> bool:
        """Whether the literal says no more than that such a column is not NULL."""
        if literal.values.intervals != NOT_NULL.intervals:
            return False
        is_never = is_plain_column(literal.subject) and literal.names <= self.never
        return literal.values.null or is_never

    def excluded_from(self, literal: LiteralPredicate) -> LiteralPredicate:
        """The literal without the values that these columns exclude."""
        values = literal.values
        if self.make_true(literal):
            return LiteralPredicate(literal.subject, ALL)
        if not values.null:
            impossible = not self.always.isdisjoint(literal.strict_names)
            return LiteralPredicate(literal.subject, NOTHING) if impossible else literal
        if is_plain_column(literal.subject) and literal.names <= self.never:
            return LiteralPredicate(literal.subject, Values(values.intervals))
        return literal


def _restrict(single: dict[Subject, LiteralPredicate], literal: LiteralPredicate) -> None:
    """Adds a literal to those that hold."""
    earlier = single.get(literal.subject)
    if earlier is not None:
        literal = LiteralPredicate(literal.subject, intersection([earlier.values, literal.values]))
    single[literal.subject] = literal


def _possible(
    predicate: OrPredicate, single: Mapping[Subject, LiteralPredicate], nulls: _Nulls
) -> OrPredicate:
    """The OR predicate without the values that single literals exclude."""
    narrowed = []
    for literal in predicate.literals:
        bound = single.get(literal.subject)
        if bound is not None:
            literal = LiteralPredicate(literal.subject, literal.values & bound.values)
            if literal.values == bound.values:
                literal = LiteralPredicate(literal.subject, ALL)
        narrowed.append(nulls.excluded_from(literal))
    return any_of(narrowed)


def _by_columns(predicate: OrPredicate) -> list[OrPredicate]:
    """That a sum or an order of columns is not NULL, said of each column by itself."""
    for literal in predicate.literals:
        columns = _columns(literal.subject) if literal.values == NOT_NULL else ()
        if columns:
            others = [other for other in predicate.literals if other is not literal]
            tests = [LiteralPredicate(subject_of(column), NOT_NULL) for column in columns]
            return [part for test in tests for part in _by_columns(any_of((*others, test)))]
    return [predicate]


def _columns(subject: Subject) -> tuple[Scalar, ...]:
    """The columns of a sum, or of an order of two columns; empty for other subjects."""
    if isinstance(subject, Linear):
        return () if subject.is_column else tuple(ref for _, ref in subject.terms)
    if not isinstance(subject, Call) or subject.operator != COMPARE:
        return ()
    return subject.arguments if all(isinstance(side, Ref) for side in subject.arguments) else ()
