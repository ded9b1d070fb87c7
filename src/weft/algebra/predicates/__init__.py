"""Predicates over the rows of one or several relations, in ARGUS' three layers.

A *literal* (`LiteralPredicate`) says that the value of a subject lies in a set of values. An *OR
predicate* is a disjunction of literals, a *predicate set* a conjunction of OR predicates: what a node
of a query network evaluates. All are canonical: equal meaning, as far as it is recognized, is equality
of values, and implication is decided by comparing sets.

Columns are named by slot (`slots`): `0.amount` is the column `amount` of the first relation, `1.amount`
that of the second. So the predicates of a self-join need no aliases of their own.

| module | what it does |
|---|---|
| `slots`, `subject`, `literal`, `predicate_set` | the values |
| `linear`, `comparison`, `formula`, `canonical` | a boolean expression as a predicate set |
| `ranges`, `transitivity` | hidden selections |
| `time_bounds` | how far apart event times may be |
| `spark_sql` | what Spark evaluates |

What one row's conditions become in a plan of windowed aggregates is not here: that is
`weft.algebra.condition`, whose sets of values are used here.
"""

from weft.algebra.predicates.canonical import predicate_set
from weft.algebra.predicates.literal import LiteralPredicate
from weft.algebra.predicates.predicate_set import NEVER, TRUE, OrPredicate, PredicateSet
from weft.algebra.predicates.spark_sql import spark_sql, widened
from weft.algebra.predicates.subject import Linear, Subject
from weft.algebra.predicates.time_bounds import time_bounds
from weft.algebra.predicates.transitivity import inferred

__all__ = [
    "NEVER",
    "TRUE",
    "Linear",
    "LiteralPredicate",
    "OrPredicate",
    "PredicateSet",
    "Subject",
    "inferred",
    "predicate_set",
    "spark_sql",
    "time_bounds",
    "widened",
]
