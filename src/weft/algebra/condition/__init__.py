"""Conditions on rows: `condition` makes the canonical form of a boolean expression.

`values` are sets of values of one type, `constants` their bounds as Spark SQL, `selection` an
attribute with the values that pass, `canonical` the form of a whole WHERE clause. What a row's
conditions become in a shared plan is not here: that is `weft.algebra.signature`.
"""

from weft.algebra.condition.canonical import NEVER, Condition, condition, selections_on
from weft.algebra.condition.constants import EXACT, constant, constant_sql
from weft.algebra.condition.selection import Selection, sorted_bounds
from weft.algebra.condition.values import Bound, Interval, Values, is_point, union

__all__ = [
    "EXACT",
    "NEVER",
    "Bound",
    "Condition",
    "Interval",
    "Selection",
    "Values",
    "condition",
    "constant",
    "constant_sql",
    "is_point",
    "selections_on",
    "sorted_bounds",
    "union",
]
