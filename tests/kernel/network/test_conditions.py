"""Conditions in the kernel against plain Python, and where sums leave 64 bits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.support.kernel_conditions import for_kernel, kernel_truth, rows_of
from tests.support.predicates import COLUMNS, Expressions, passes, random_row, value
from tests.support.seeds import chance_for

from weft.algebra.condition.values import Bound, Values, single
from weft.algebra.predicates import (
    NEVER,
    TRUE,
    Linear,
    LiteralPredicate,
    OrPredicate,
    PredicateSet,
    predicate_set,
)
from weft.algebra.scalar import Ref, quoted_sql

LARGE = 2**63 - 1


def test_random_conditions_pass_the_rows_on_which_they_are_true() -> None:
    chance = chance_for("kernel conditions")
    rows = [random_row(chance) for _ in range(150)]
    columns = rows_of(rows, COLUMNS)
    expressions = Expressions(chance)
    tested = 0
    for _ in range(300):
        scalar = expressions.boolean(chance.choice((0, 1, 2)))
        predicates = for_kernel(predicate_set(scalar))
        if predicates is None:
            continue
        tested += 1
        expected = [value(scalar, row) is True for row in rows]
        assert [passes(predicates, row) for row in rows] == expected, quoted_sql(scalar)
        assert kernel_truth(predicates, columns) == expected, quoted_sql(scalar)
    assert tested > 150


def test_what_is_always_and_never_true() -> None:
    rows = rows_of([{"0.a": 1}, {"0.a": None}], {"0.a": "int"})
    assert kernel_truth(TRUE, rows) == [True, True]
    assert kernel_truth(NEVER, rows) == [False, False]


def linear(values: Values, *terms: tuple[int, str, str]) -> PredicateSet:
    subject = Linear(tuple((factor, Ref(name, type_)) for factor, name, type_ in terms))
    return PredicateSet((OrPredicate((LiteralPredicate(subject, values),)),))


def from_(low: int) -> Values:
    return Values(((Bound(low), None),))


@pytest.mark.parametrize(
    ("values", "left", "right", "expected"),
    [
        (from_(0), LARGE, -LARGE, True),
        (from_(2 * LARGE), LARGE, -LARGE, True),
        (from_(2 * LARGE + 1), LARGE, -LARGE, False),
        (from_(2 * LARGE), 1, 2, False),
        (Values((single(-2 * LARGE),)), -LARGE, LARGE, True),
        (Values((single(0),)), LARGE, LARGE, True),
        (Values((), null=True), None, LARGE, True),
    ],
)
def test_sums_do_not_overflow(values: Values, left: Any, right: Any, expected: bool) -> None:
    predicates = linear(values, (1, "0.g", "bigint"), (-1, "1.g", "bigint"))
    rows = rows_of([{"0.g": left, "1.g": right}], {"0.g": "bigint", "1.g": "bigint"})
    assert kernel_truth(predicates, rows) == [expected]


def test_decimals_of_38_digits_are_exact() -> None:
    type_, nines = "decimal(38,1)", "9" * 37
    texts = [f"{nines}.9", f"{nines}.8", f"-{nines}.9", None]
    values = [None if text is None else Decimal(text) for text in texts]
    rows = rows_of([{"0.m": number} for number in values], {"0.m": type_})
    largest = linear(Values((single(10**38 - 1),)), (1, "0.m", type_))
    assert kernel_truth(largest, rows) == [True, False, False, False]
    assert kernel_truth(linear(from_(0), (1, "0.m", type_)), rows) == [True, True, False, False]
