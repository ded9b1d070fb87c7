"""Every canonical predicate set says what the expression says, for every row."""

from __future__ import annotations

from tests.support.predicates import Expressions, passes, random_row, value
from tests.support.seeds import chance_for
from weft.algebra.predicates import predicate_set


def test_random_expressions_pass_the_rows_for_which_they_are_true() -> None:
    chance = chance_for("predicates: canonical")
    expressions = Expressions(chance)
    for _ in range(3000):
        expression = expressions.boolean()
        predicates = predicate_set(expression)
        for _ in range(25):
            row = random_row(chance)
            assert passes(predicates, row) == (value(expression, row) is True), (expression, row)
