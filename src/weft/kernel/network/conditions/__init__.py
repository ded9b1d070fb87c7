"""Conditions of a network over the rows of a physical node.

`subjects` gives the values that literals speak of, `regions` where they lie between the constants,
`evaluation` the rows that pass a predicate set, `families` those of many selections of the same rows.
"""

from weft.kernel.network.conditions.evaluation import Compiler, Conditions, Evaluation
from weft.kernel.network.conditions.families import Family

__all__ = ["Compiler", "Conditions", "Evaluation", "Family"]
