"""Formulas of literals, and their conjunctive normal form.

A literal is true or false, never NULL, so a formula is two-valued: all of its parts hold (`AllOf`), or
at least one of them does (`AnyOf`). Three-valued logic has been dealt with before, in `canonical`.

`conjunctive` distributes OR over AND. The number of OR predicates may grow exponentially, so it is
bounded: a disjunction that would become more than `MOST_CLAUSES` stays one literal, whose subject is
the boolean expression it came from. Then the values that its alternatives allow for a subject they all
restrict are added, as an OR predicate that follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from weft.algebra.condition.values import Bound, Interval, Values, union
from weft.algebra.predicates.literal import LiteralPredicate
from weft.algebra.predicates.predicate_set import TRUE, OrPredicate, PredicateSet, all_of, any_of
from weft.algebra.predicates.subject import Subject, ordered
from weft.algebra.scalar import Scalar

MOST_CLAUSES: Final = 64

Outcomes = frozenset[bool | None]
"""Some of the values of a boolean expression."""


@dataclass(frozen=True, slots=True)
class AllOf:
    """A conjunction."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A disjunction. In its place may stand that `scalar` has one of the values `outcomes`: the formula
    around it would mean the same."""

    parts: tuple[Formula, ...]
    scalar: Scalar
    outcomes: Outcomes


Formula = LiteralPredicate | AllOf | AnyOf

ALWAYS: Final = AllOf(())


def truth_values(outcomes: Outcomes) -> Values:
    """The set of values of a boolean subject: false is below 1, true is not."""
    if True in outcomes and False in outcomes:
        return Values(((None, None),), None in outcomes)
    intervals: list[Interval] = []
    if False in outcomes:
        intervals.append((None, Bound(1)))
    if True in outcomes:
        intervals.append((Bound(1), None))
    return Values(tuple(intervals), None in outcomes)


def conjunctive(formula: Formula) -> PredicateSet:
    """The formula as a conjunction of disjunctions."""
    if not isinstance(formula, AnyOf):
        return all_of(_conjuncts(formula))
    sets = [conjunctive(part) for part in formula.parts]
    if TRUE in sets:
        return TRUE
    joined = _distributed(sets)
    if joined is not None:
        return joined
    whole = LiteralPredicate(ordered(formula.scalar), truth_values(formula.outcomes))
    return all_of([any_of([whole]), *_in_common(sets)])


def _conjuncts(formula: Formula) -> Iterator[OrPredicate]:
    """The OR predicates of nested conjunctions."""
    if isinstance(formula, LiteralPredicate):
        yield any_of([formula])
    elif isinstance(formula, AllOf):
        for part in formula.parts:
            yield from _conjuncts(part)
    else:
        yield from conjunctive(formula).predicates


def _distributed(sets: Iterable[PredicateSet]) -> PredicateSet | None:
    """The disjunction of predicate sets, None if it is too large. Those of one OR predicate go first,
    because they never make it larger."""
    sets = sorted(sets, key=lambda part: len(part.predicates))
    simple = [part.predicates[0] for part in sets if len(part.predicates) == 1]
    joined = all_of([any_of(literal for predicate in simple for literal in predicate.literals)])
    for part in sets[len(simple) :]:
        if len(joined.predicates) * len(part.predicates) > MOST_CLAUSES:
            return None
        joined = all_of(
            any_of((*left.literals, *right.literals))
            for left in joined.predicates
            for right in part.predicates
        )
    return joined


def _in_common(sets: list[PredicateSet]) -> list[OrPredicate]:
    """For every subject that all alternatives restrict: the values that any of them allows."""
    possible = [part for part in sets if not part.never]
    by_subject: list[dict[Subject, Values]] = [
        {literal.subject: literal.values for literal in part.single} for part in possible
    ]
    common = [
        subject
        for subject in by_subject[0]
        if all(subject in restricted for restricted in by_subject[1:])
    ]
    return [
        any_of([LiteralPredicate(subject, union([values[subject] for values in by_subject]))])
        for subject in common
    ]
