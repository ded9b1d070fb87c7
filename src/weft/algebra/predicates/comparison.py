"""One comparison as a subject and two sets of its values: where it is true, and where it is false.

Exact types go through `linear`. Another expression compared with a constant is a subject with values of
its own type. Two other sides become `compare(left, right)`; only their places may change.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import InvalidOperation
from typing import Final

from weft.algebra.condition.constants import is_indexable, normal
from weft.algebra.condition.values import (
    ALL,
    NOT_NULL,
    NOTHING,
    Bound,
    Values,
    intersection,
    single,
    union,
)
from weft.algebra.predicates.linear import FLIPPED, compared_sum, date_days, divided, exact_sum
from weft.algebra.predicates.literal import clipped_for, holds, negated
from weft.algebra.predicates.subject import (
    DATE,
    Subject,
    comparison_subject,
    is_exact,
    subject_of,
)
from weft.algebra.scalar import Literal, Opaque, Scalar, Value, walk

_ORDERS: Final = {
    "=": Values((single(0),)),
    "<>": Values(((None, Bound(0)), (Bound(1), None))),
    "<": Values(((None, Bound(0)),)),
    "<=": Values(((None, Bound(1)),)),
    ">": Values(((Bound(1), None),)),
    ">=": Values(((Bound(0), None),)),
}
COMPARISONS: Final = frozenset(_ORDERS)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The subject's values for which a comparison is true, and those for which it is false; for others
    it is NULL. It is NULL, too, where one of `others` is, which are not part of the subject. Without a
    subject no column is left, and the sets are all or nothing."""

    subject: Subject | None
    true: Values
    false: Values
    others: tuple[Scalar, ...] = ()


NEITHER: Final = Comparison(None, NOTHING, NOTHING)


def compared(operator: str, left: Scalar, right: Scalar) -> Comparison:
    """`left operator right`, for any operator but `<=>`."""
    if any(isinstance(side, Literal) and side.value is None for side in (left, right)):
        return NEITHER
    exact = _exact(operator, left, right)
    if exact is not None:
        return exact
    if isinstance(left, Literal) and not isinstance(right, Literal):
        left, right, operator = right, left, FLIPPED.get(operator, operator)
    bound = _bound(right) if isinstance(right, Literal) and right.type == left.type else None
    if bound is None:
        return _sides(operator, left, right)
    if not isinstance(left, Literal):
        return _with_constant(operator, left, bound.value)
    other = _bound(left)
    if other is None:
        return _sides(operator, left, right)
    return _settled(holds(_ORDERS[operator], (other > bound) - (other < bound)))


def one_of(operand: Scalar, items: list[Literal]) -> Comparison | None:
    """`operand IN (items)`, None if it is better taken as a disjunction."""
    tests = [compared("=", operand, item) for item in items if item.value is not None]
    if not tests:
        return NEITHER
    first = tests[0]
    if any(test.subject != first.subject for test in tests):
        return None
    true = union([test.true for test in tests])
    misses_are_null = len(tests) < len(items)
    false = NOTHING if misses_are_null else intersection([test.false for test in tests])
    return Comparison(first.subject, true, false, first.others)


def matched(operand: Scalar, pattern: Scalar) -> Comparison | None:
    """`operand LIKE pattern` where only the beginning of a string decides: `ab` and `ab%`; else None.
    The strings that begin with `ab` are those from `ab` up to `ac`."""
    text = pattern.value if isinstance(pattern, Literal) else None
    if not isinstance(text, str) or isinstance(operand, Literal) or set(text[:-1]) & set("%_\\"):
        return None
    start = text.removesuffix("%")
    last = start[-1:]
    if not last or last in "_\\" or not last < "\x7f":
        return None
    if start == text:
        return _with_constant("=", operand, text)
    beyond = start[:-1] + chr(ord(last) + 1)
    return _sets(subject_of(operand), Values(((Bound(start), Bound(beyond)),)))


def _settled(is_true: bool, others: tuple[Scalar, ...] = ()) -> Comparison:
    return Comparison(None, *((ALL, NOTHING) if is_true else (NOTHING, ALL)), others)


def _exact(operator: str, left: Scalar, right: Scalar) -> Comparison | None:
    sums = exact_sum(left), exact_sum(right)
    if sums[0] is None or sums[1] is None:
        return None
    total = sums[0].plus(sums[1], -1)
    if total.is_null:
        return NEITHER
    division = divided(total)
    if division is None:
        return None
    true = compared_sum(operator, total, division)
    if division.subject is None:
        return _settled(holds(true, 0), division.cancelled)
    return _sets(division.subject, true, division.cancelled)


def _sets(subject: Subject, true: Values, others: tuple[Scalar, ...] = ()) -> Comparison:
    true = clipped_for(subject, true)
    return Comparison(subject, true, ~true & NOT_NULL, others)


def _bound(literal: Literal) -> Bound | None:
    """A constant as a value of a set, None if its type has no such form."""
    value: Value = literal.value
    if literal.type == DATE:
        value = date_days(value) if isinstance(value, str) else value
        return Bound(value) if isinstance(value, int) else None
    if is_exact(literal.type) and isinstance(value, int):
        return Bound(normal(value, literal.type))
    if not is_indexable(literal.type):
        return None
    try:
        return Bound(normal(value, literal.type))
    except (ValueError, InvalidOperation, OverflowError):
        return None


def _with_constant(operator: str, operand: Scalar, value: Value) -> Comparison:
    below, equal = Values(((None, Bound(value)),)), Values((single(value),))
    above = ~(below | equal) & NOT_NULL
    parts = {"<": [below], "=": [equal], ">": [above]}
    true = union([values for sign in operator for values in parts[sign]])
    return _sets(subject_of(operand), true)


def _sides(operator: str, left: Scalar, right: Scalar) -> Comparison:
    subject, sign = comparison_subject(left, right)
    orders = _ORDERS[operator] if sign > 0 else negated(_ORDERS[operator])
    smaller, larger = subject.arguments
    if smaller == larger and not any(isinstance(part, Opaque) for part in walk(smaller)):
        return _settled(holds(orders, 0), (smaller,))
    return _sets(subject, orders)
