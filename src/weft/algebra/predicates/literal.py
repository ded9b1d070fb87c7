"""A literal: the value of a subject lies in a set.

Implication between two literals of one subject is inclusion of their sets. This decides every row of
ARGUS' Table 2 and more: IN lists, <>, several ranges, NULL tests. (Printed, the table says that `>=`
implies `>` where the right sides decrease; it does so only if they decrease strictly.) A literal that
is not true for NULL also implies that the columns of its subject are not NULL.

The values have the form of `weft.algebra.condition`, and dates are days since 1970, timestamps
microseconds. So all sets but those of strings and floats hold integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Final

from weft.algebra.condition import Bound, Interval, Values, constant, constant_sql, is_point
from weft.algebra.condition.values import ALL, NO_POINT, NOT_NULL, NOTHING, clipped, point
from weft.algebra.frozen import hashed_once
from weft.algebra.predicates.slots import Rename, moved_name
from weft.algebra.predicates.subject import (
    COMPARE,
    DATE,
    INTEGER,
    Linear,
    Subject,
    is_plain_column,
    is_truth,
    renamed_subject,
    subject_limits,
    subject_names,
    subject_slots,
    subject_sql,
)
from weft.algebra.scalar import Call, Opaque, Scalar, Value, quoted_sql
from weft.algebra.types import FRACTIONAL, STRING, TIMESTAMP, SqlType

_AFTER_NAN: Final = Bound(None, after=True)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STRICT: Final = frozenset(
    {"+", "-", "*", "negate", "like", COMPARE, "date_add", "date_sub", "datediff"}
)
_TRUTHS: Final = {
    (True, False, False): "{}",
    (False, True, False): "NOT {}",
    (True, False, True): "{} IS NOT FALSE",
    (False, True, True): "{} IS NOT TRUE",
    (True, True, False): "{} IS NOT NULL",
    (False, False, True): "{} IS NULL",
}


@hashed_once
@dataclass(frozen=True)
class LiteralPredicate:
    """True exactly where the subject's value is in `values`; NULL is a value like any other. What
    follows from both is computed once."""

    subject: Subject
    values: Values

    @cached_property
    def slots(self) -> frozenset[int]:
        return subject_slots(self.subject)

    @cached_property
    def names(self) -> frozenset[str]:
        """The columns that it reads."""
        return subject_names(self.subject)

    @cached_property
    def first_name(self) -> str:
        """The first column that it reads in the order of names, empty if there is none."""
        return min(self.names, default="")

    @cached_property
    def strict_names(self) -> frozenset[str]:
        """The columns without which its subject is NULL."""
        return strict_names(self.subject)

    @cached_property
    def left(self) -> str:
        """The left expression of ARGUS' triple: equal for equal subjects."""
        return subject_sql(self.subject)

    @cached_property
    def sql(self) -> str:
        """A text that is equal for equal literals and only for these, for people and for look-ups.
        (`spark_sql` is what Spark evaluates.)"""
        if isinstance(self.subject, Call) and self.subject.operator == COMPARE:
            return _order_text(self.subject, self.values)
        if is_truth(self.subject):
            signs = (holds(self.values, 1), holds(self.values, 0), self.values.null)
            return _TRUTHS.get(signs, "{} IN ()").format(self.left)
        return values_text(
            self.left, self.values, lambda value: constant_text(value, self.subject.type)
        )

    def implies(self, other: LiteralPredicate) -> bool:
        """Whether the other is true wherever this one is."""
        if self.subject == other.subject:
            return is_subset(self.values, other.values)
        if other.values.intervals == NOT_NULL.intervals:
            return other.values.null or (
                not self.values.null
                and is_plain_column(other.subject)
                and other.names <= self.strict_names
            )
        return self.values.empty

    def moved(self, slots: Mapping[int, int]) -> LiteralPredicate:
        """The same literal after its slots have moved. No two slots may move to the same one."""
        return self.renamed(lambda name: moved_name(name, slots))

    def renamed(self, rename: Rename) -> LiteralPredicate:
        """The same literal over columns with other names."""
        subject, sign = renamed_subject(self.subject, rename)
        return LiteralPredicate(subject, self.values if sign > 0 else negated(self.values))


def strict_names(subject: Subject) -> frozenset[str]:
    """Columns without which the subject is NULL."""
    return subject.names if isinstance(subject, Linear) else _strict_names(subject)


def _strict_names(scalar: Scalar) -> frozenset[str]:
    if isinstance(scalar, Call):
        if is_strict(scalar):
            return frozenset().union(*(_strict_names(argument) for argument in scalar.arguments))
        return frozenset()
    return frozenset() if isinstance(scalar, Opaque) else subject_names(scalar)


def is_strict(call: Call) -> bool:
    """Whether the call is NULL exactly where one of its arguments is. A division is not: a zero
    divisor may give NULL."""
    return call.operator in _STRICT or call.operator.startswith("cast_")


def is_subset(smaller: Values, larger: Values) -> bool:
    """Whether all values of one set are in another. Intervals of a set are apart from each other, so
    each of the smaller set's must lie in one of the larger set's."""
    if smaller.null and not larger.null:
        return False
    at = 0
    for opening, closing in smaller.intervals:
        while at < len(larger.intervals) and _ends_before(larger.intervals[at][1], closing):
            at += 1
        if at == len(larger.intervals):
            return False
        low = larger.intervals[at][0]
        if low is not None and (opening is None or opening < low):
            return False
    return True


def _ends_before(high: Bound | None, closing: Bound | None) -> bool:
    return high is not None and (closing is None or high < closing)


def holds(values: Values, value: Value) -> bool:
    """Whether a value is in a set. None is NaN here; NULL is `values.null`."""
    position = Bound(value)
    return any(
        (low is None or low <= position) and (high is None or position < high)
        for low, high in values.intervals
    )


def clipped_for(subject: Subject, values: Values) -> Values:
    """The set without bounds that the subject's type makes idle: `x <= 127` for a tinyint is `x IS NOT
    NULL`."""
    extremes = subject_limits(subject)
    if extremes is not None:
        return clipped(values, extremes)
    if subject.type not in FRACTIONAL:
        return values
    # Nothing is above NaN.
    intervals = tuple(
        (low, None if high == _AFTER_NAN else high)
        for low, high in values.intervals
        if low != _AFTER_NAN
    )
    return Values(intervals, values.null)


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


def date_text(days: int) -> str | None:
    """Days since 1970 as a date, None beyond the years that Spark SQL can write.

    >>> date_text(-1), date_text(10**8)
    ('1969-12-31', None)
    """
    try:
        return (date(1970, 1, 1) + timedelta(days)).isoformat()
    except OverflowError:
        return None


def timestamp_text(micros: int) -> str | None:
    """Microseconds since 1970 as a timestamp in UTC, None beyond the years that Spark SQL can write."""
    try:
        return (_EPOCH + timedelta(microseconds=micros)).isoformat(" ").replace("+00:00", "Z")
    except OverflowError:
        return None


def constant_text(value: Value, type_: SqlType) -> str:
    """A constant of a set, as people write it."""
    if type_ == DATE and isinstance(value, int):
        text = date_text(value)
        return f"date_from_unix_date({value})" if text is None else f"DATE '{text}'"
    if type_ == TIMESTAMP and isinstance(value, int):
        text = timestamp_text(value)
        return f"timestamp_micros({value})" if text is None else f"TIMESTAMP '{text}'"
    if type_ == STRING:
        return constant_sql(value, type_)
    return str(value if type_ == INTEGER else constant(value, type_))


def values_text(left: str, values: Values, written: Callable[[Value], str]) -> str:
    """The condition that a value is in a set, with its constants written by a function."""
    if values == ALL:
        return "true"
    if values == NOTHING:
        return "false"
    if values == NOT_NULL:
        return f"{left} IS NOT NULL"
    parts = [f"{left} IS NULL"] if values.null else []
    points = [value for value in map(point, values.intervals) if value is not NO_POINT]
    if len(points) == 1:
        parts.append(f"{left} = {written(points[0])}")
    elif points:
        parts.append(f"{left} IN ({', '.join(map(written, points))})")
    parts += [
        _range_text(left, interval, written)
        for interval in values.intervals
        if not is_point(interval)
    ]
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def _range_text(left: str, interval: Interval, written: Callable[[Value], str]) -> str:
    low, high = interval
    parts = []
    if low is not None:
        parts.append(f"{left} {'>' if low.after else '>='} {written(low.value)}")
    if high is not None:
        is_whole = isinstance(high.value, int)
        last = high.value - 1 if isinstance(high.value, int) else high.value
        parts.append(f"{left} {'<=' if high.after or is_whole else '<'} {written(last)}")
    return parts[0] if len(parts) == 1 else f"({' AND '.join(parts)})"


def order_operator(values: Values) -> str | None:
    """The comparison that is true for these orders (-1, 0, 1) of two sides, None for all or none."""
    return {
        (True, False, False): "<",
        (True, True, False): "<=",
        (False, True, False): "=",
        (False, True, True): ">=",
        (False, False, True): ">",
        (True, False, True): "<>",
    }.get((holds(values, -1), holds(values, 0), holds(values, 1)))


def _order_text(subject: Call, values: Values) -> str:
    operator = order_operator(values)
    if operator is None:
        return values_text(subject_sql(subject), values, str)
    left, right = (quoted_sql(side) for side in subject.arguments)
    text = f"{left} {operator} {right}"
    return f"({text} OR {subject_sql(subject)} IS NULL)" if values.null else text
