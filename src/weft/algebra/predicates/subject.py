"""What a literal speaks of: an exact sum of columns, or any other expression.

`Linear` is for types whose values are integers behind their spelling: integers, decimals (unscaled),
dates (days), timestamps (microseconds). Its value is exact: no rounding, no overflow. Comparisons of
such types become a `Linear` and a set of integers, however they were written: `r2.d <= r1.d + 20` and
`r1.d - r2.d >= -20` are both `1.d - 0.d` in (-∞, 20].

Everything else is a `Scalar` with values of its own type. Two sides that cannot be moved to one side
(strings, floats) are `Call("compare", (left, right), "tinyint")`: -1, 0 or 1, and NULL if a side is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.algebra.predicates.slots import moved, moved_name, names_in, slot_of
from weft.algebra.query import quote
from weft.algebra.scalar import Call, Ref, Scalar, quoted_sql
from weft.algebra.types import SqlType

COMPARE = "compare"
"""The operator that gives the order of two values: -1, 0 or 1; NULL if one of them is NULL."""


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of columns with integer factors: relatively prime, in the order of the columns' names, the
    first one positive. A column's value counts as an integer: decimals unscaled, dates in days since
    1970, timestamps in microseconds.

    >>> Linear(((2, Ref("1.amount", "bigint")), (-1, Ref("0.amount", "bigint")))).sql
    '2 * `1.amount` - `0.amount`'
    """

    terms: tuple[tuple[int, Ref], ...]

    @property
    def type(self) -> SqlType:
        """The type whose values the literal's set holds: that of the column itself, or an integer of
        any size for sums."""
        if len(self.terms) == 1 and self.terms[0][0] == 1:
            return self.terms[0][1].type
        return "integer"

    @property
    def sql(self) -> str:
        text = ""
        for factor, ref in self.terms:
            sign = "-" if factor < 0 else "+"
            size = "" if abs(factor) == 1 else f"{abs(factor)} * "
            lead = f" {sign} " if text else ("-" if factor < 0 else "")
            text += f"{lead}{size}{quote(ref.name)}"
        return text

    @property
    def names(self) -> frozenset[str]:
        return frozenset(ref.name for _, ref in self.terms)

    def moved(self, slots: Mapping[int, int]) -> tuple[Linear, int]:
        """The same sum after its slots have moved, and 1, or -1 if its sign has changed."""
        terms = sorted(
            ((factor, Ref(moved_name(ref.name, slots), ref.type)) for factor, ref in self.terms),
            key=lambda term: term[1].name,
        )
        if terms[0][0] > 0:
            return Linear(tuple(terms)), 1
        return Linear(tuple((-factor, ref) for factor, ref in terms)), -1


Subject = Linear | Scalar


def subject_names(subject: Subject) -> frozenset[str]:
    """The columns that a subject reads."""
    return subject.names if isinstance(subject, Linear) else names_in(subject)


def subject_slots(subject: Subject) -> frozenset[int]:
    """The slots that a subject reads."""
    return frozenset(slot_of(name) for name in subject_names(subject))


def subject_sql(subject: Subject) -> str:
    """A text that is equal for equal subjects."""
    if isinstance(subject, Linear):
        return subject.sql
    if isinstance(subject, Call) and subject.operator == COMPARE:
        left, right = subject.arguments
        return f"compare({quoted_sql(left)}, {quoted_sql(right)})"
    return quoted_sql(subject)


def moved_subject(subject: Subject, slots: Mapping[int, int]) -> tuple[Subject, int]:
    """The same subject after its slots have moved, and -1 if its values have changed their sign."""
    if isinstance(subject, Linear):
        return subject.moved(slots)
    if isinstance(subject, Call) and subject.operator == COMPARE:
        left, right = (moved(side, slots) for side in subject.arguments)
        if quoted_sql(right) < quoted_sql(left):
            return Call(COMPARE, (right, left), subject.type), -1
        return Call(COMPARE, (left, right), subject.type), 1
    return moved(subject, slots), 1
