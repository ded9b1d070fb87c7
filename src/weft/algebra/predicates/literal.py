"""A literal: the value of a subject lies in a set.

Implication between two literals of one subject is inclusion of their sets. This decides every row of
ARGUS' Table 2 and more: IN lists, <>, several ranges, NULL tests. (Printed, the table says that `>=`
implies `>` where the right sides decrease; it does so only if they decrease strictly.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.algebra.condition import Bound, Selection, Values
from weft.algebra.predicates.subject import (
    Linear,
    Subject,
    moved_subject,
    subject_names,
    subject_slots,
    subject_sql,
)


@dataclass(frozen=True, slots=True)
class LiteralPredicate:
    """True exactly where the subject's value is in `values`; NULL is a value like any other."""

    subject: Subject
    values: Values

    @property
    def slots(self) -> frozenset[int]:
        return subject_slots(self.subject)

    @property
    def names(self) -> frozenset[str]:
        """The columns that it reads."""
        return subject_names(self.subject)

    @property
    def left(self) -> str:
        """The left expression of ARGUS' triple: equal for equal subjects."""
        return subject_sql(self.subject)

    @property
    def sql(self) -> str:
        """A text that is equal for equal literals."""
        type_ = self.subject.type
        return Selection(
            self.left, "decimal(38,0)" if type_ == "integer" else type_, self.values
        ).sql

    def implies(self, other: LiteralPredicate) -> bool:
        """Whether the other is true wherever this one is."""
        return self.subject == other.subject and is_subset(self.values, other.values)

    def moved(self, slots: Mapping[int, int]) -> LiteralPredicate:
        """The same literal after its slots have moved."""
        subject, sign = moved_subject(self.subject, slots)
        return LiteralPredicate(subject, self.values if sign > 0 else negated(self.values))


def is_subset(smaller: Values, larger: Values) -> bool:
    """Whether all values of one set are in another."""
    return (smaller & larger) == smaller


def negated(values: Values) -> Values:
    """The integers of a set with the other sign."""

    def turned(bound: Bound | None) -> Bound | None:
        """The integers below a bound are those above it after the turn: v < b becomes -v >= 1 - b."""
        if bound is None:
            return None
        assert isinstance(bound.value, int)
        return Bound(1 - bound.value)

    intervals = tuple((turned(high), turned(low)) for low, high in reversed(values.intervals))
    return Values(intervals, values.null)


__all__ = ["Linear", "LiteralPredicate", "is_subset", "negated"]
