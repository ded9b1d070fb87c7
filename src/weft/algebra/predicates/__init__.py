"""Predicates over the rows of one or several relations, in ARGUS' three layers.

A *literal* (`LiteralPredicate`) says that the value of a subject lies in a set of values. An *OR
predicate* is a disjunction of literals, a *predicate set* a conjunction of OR predicates: what a node
of a query network evaluates. All are canonical: equal meaning, as far as it is recognized, is equality
of values, and implication is decided by comparing sets.

Columns are named by slot (`slots`): `0.amount` is the column `amount` of the first relation, `1.amount`
that of the second. So the predicates of a self-join need no aliases of their own.

`canonical` turns a boolean expression into a predicate set. What one row's conditions become in a plan
of windowed aggregates is not here: that is `weft.algebra.condition`, whose sets of values are used here.
"""

from weft.algebra.predicates.canonical import predicate_set
from weft.algebra.predicates.literal import LiteralPredicate
from weft.algebra.predicates.predicate_set import NEVER, TRUE, OrPredicate, PredicateSet
from weft.algebra.predicates.subject import Linear, Subject

__all__ = [
    "NEVER",
    "TRUE",
    "Linear",
    "LiteralPredicate",
    "OrPredicate",
    "PredicateSet",
    "Subject",
    "predicate_set",
]
