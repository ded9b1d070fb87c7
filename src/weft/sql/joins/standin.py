"""A predicate set with one literal for every conjunct, until `algebra.predicates.canonical` is there."""

from __future__ import annotations

from weft.algebra.condition.values import Values, single
from weft.algebra.predicates import LiteralPredicate, PredicateSet
from weft.algebra.predicates.predicate_set import all_of, any_of
from weft.algebra.scalar import Call, Scalar


def predicate_set(scalar: Scalar) -> PredicateSet:
    return all_of(
        any_of([LiteralPredicate(conjunct, Values((single(1),)))])
        for conjunct in _conjuncts(scalar)
    )


def _conjuncts(scalar: Scalar) -> list[Scalar]:
    if isinstance(scalar, Call) and scalar.operator == "and":
        return [part for argument in scalar.arguments for part in _conjuncts(argument)]
    return [scalar]
