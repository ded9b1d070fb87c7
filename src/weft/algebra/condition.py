"""Canonical conditions: a WHERE clause as selections on attributes and clauses beside them.

An *attribute* is an expression without constants of its own comparison (`price`, `auction % 7`).
A boolean expression that compares one attribute with constants is true on a set of its values,
false on another and NULL elsewhere; both sets are unions of intervals, closed under AND, OR and
NOT. Only `true` lets a row pass, so a conjunction is one selection per attribute, however it was
spelled: `NOT x < 3 AND x <> 5`, `x BETWEEN 3 AND 4 OR x > 5`. What compares no single attribute
with constants stays a clause, in Spark SQL.

Three-valued logic is kept: NULL is a value like any other here, in the true set only where a
condition accepts it (`x IS NULL`, `x <=> NULL`). Order and equality are Spark's: NaN is equal to
itself and above all numbers, -0.0 is 0.0, strings compare by their UTF-8 bytes.

Time: linear in the number of constants, times their logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from functools import total_ordering
from typing import Any, Final

from weft.algebra.scalar import Call, Literal, Opaque, Ref, Scalar, Value, quoted_sql, to_sql
from weft.algebra.types import (
    BOOLEAN,
    FRACTIONAL,
    INTEGRAL_LIMITS,
    STRING,
    SqlType,
    decimal_parameters,
)

EXACT: Final = Context(prec=100)
"""Decimals have up to 38 digits; Python's own context rounds to 28."""
_SUFFIXES: Final = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@total_ordering
@dataclass(frozen=True, slots=True)
class Bound:
    """A place between values: just before one, or just after it.

    The value has the form of `_normal`: decimals are unscaled integers, booleans 0 and 1, NaN is
    None. So every type but strings, dates and floats is one of integers, and needs no "after".

    >>> Bound(3) < Bound(3, after=True) < Bound(4)
    True
    """

    value: Value
    after: bool = False

    @property
    def place(self) -> tuple[Any, bool]:
        return _rank(self.value), self.after

    def __lt__(self, other: Bound) -> bool:
        return self.place < other.place


Interval = tuple[Bound | None, Bound | None]
"""The values between two bounds; None is no bound."""


def _rank(value: Value) -> Any:
    """A form of a constant that Python orders as Spark orders its values. None is NaN."""
    if value is None:
        return (1, 0.0)
    if isinstance(value, float):
        return (0, value)
    return value.encode() if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Values:
    """A set of values of one type: disjoint intervals in order, and whether NULL is in it."""

    intervals: tuple[Interval, ...] = ()
    null: bool = False

    def __or__(self, other: Values) -> Values:
        return Values(_united((*self.intervals, *other.intervals)), self.null or other.null)

    def __and__(self, other: Values) -> Values:
        return ~(~self | ~other)

    def __invert__(self) -> Values:
        gaps: list[Interval] = []
        low: Bound | None = None
        for opening, closing in self.intervals:
            if opening is not None:
                gaps.append((low, opening))
            if closing is None:
                break
            low = closing
        else:
            gaps.append((low, None))
        return Values(tuple(gaps), not self.null)

    @property
    def empty(self) -> bool:
        return not self.intervals and not self.null


NOTHING: Final = Values()
NOT_NULL: Final = Values(((None, None),))
ALL: Final = Values(((None, None),), null=True)


def _united(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    found: list[Interval] = []
    unbounded = [each for each in intervals if each[0] is None]
    bounded = sorted((each for each in intervals if each[0] is not None), key=_opening)
    for low, high in [*unbounded, *bounded]:
        if found and (found[-1][1] is None or (low is None or low <= found[-1][1])):
            last = found[-1][1]
            high = None if last is None or high is None else max(last, high)
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return tuple(found)


def _opening(interval: Interval) -> Bound:
    assert interval[0] is not None
    return interval[0]


@dataclass(frozen=True, slots=True)
class Selection:
    """An attribute (Spark SQL) and the values of it that pass."""

    attribute: str
    type: SqlType
    values: Values

    @property
    def bounds(self) -> list[Bound]:
        return [bound for each in self.values.intervals for bound in each if bound is not None]

    @property
    def sql(self) -> str:
        """The selection as a condition that is true on exactly its values."""
        if self.values == ALL:
            return "true"
        parts = [f"({self.attribute} IS NULL)"] if self.values.null else []
        if self.values.intervals == NOT_NULL.intervals:
            return f"({self.attribute} IS NOT NULL)"
        points = [_point(each) for each in self.values.intervals]
        constants = [constant_sql(p, self.type) for p in points if p is not _NO_POINT]
        if len(constants) == 1:
            parts.append(f"({self.attribute} = {constants[0]})")
        elif constants:
            parts.append(f"({self.attribute} IN ({', '.join(constants)}))")
        parts += [
            self._between(each)
            for each, point in zip(self.values.intervals, points, strict=True)
            if point is _NO_POINT
        ]
        if not parts:
            return "false"
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"

    def _between(self, interval: Interval) -> str:
        low, high = interval
        parts = []
        if low is not None:
            sign = ">" if low.after else ">="
            parts.append(f"{self.attribute} {sign} {constant_sql(low.value, self.type)}")
        if high is not None:
            sign = "<=" if high.after else "<"
            parts.append(f"{self.attribute} {sign} {constant_sql(high.value, self.type)}")
        return f"({' AND '.join(parts)})"


_NO_POINT: Final = object()


def _point(interval: Interval) -> Any:
    """The only value of an interval, if it has just one."""
    low, high = interval
    if low is None or high is None or low.after:
        return _NO_POINT
    if high.after:
        return low.value if low.value == high.value else _NO_POINT
    if isinstance(low.value, int) and isinstance(high.value, int):
        return low.value if high.value == low.value + 1 else _NO_POINT
    return _NO_POINT


def is_point(interval: Interval) -> bool:
    """Whether an interval holds one value."""
    return _point(interval) is not _NO_POINT


@dataclass(frozen=True, slots=True)
class Condition:
    """A conjunction: one selection per attribute, and clauses in Spark SQL."""

    selections: tuple[Selection, ...] = ()
    clauses: tuple[str, ...] = ()

    @property
    def never(self) -> bool:
        """Whether no row can pass."""
        return any(selection.values.empty for selection in self.selections)

    @property
    def sql(self) -> str:
        """The condition in a form that is equal for equal conditions."""
        if self.never:
            return "false"
        parts = [selection.sql for selection in self.selections] + list(self.clauses)
        if not parts:
            return "true"
        return parts[0] if len(parts) == 1 else f"({' AND '.join(parts)})"


NEVER: Final = Condition((Selection("NULL", BOOLEAN, NOTHING),))


def condition(scalar: Scalar) -> Condition:
    """The canonical form of a boolean expression of which only `true` counts."""
    selections: dict[tuple[str, SqlType], Values] = {}
    clauses: set[str] = set()
    for conjunct in _conjuncts(scalar):
        truth = _truth(conjunct)
        if truth is None:
            clauses.add(_attribute(conjunct)[0])
            continue
        if truth.attribute is None:
            if truth.true.empty:
                return NEVER
            continue
        key = (truth.attribute, truth.type)
        selections[key] = selections.get(key, ALL) & truth.true
    chosen = [
        Selection(attribute, type_, values)
        for (attribute, type_), values in sorted(selections.items())
        if values != ALL
    ]
    found = Condition(tuple(chosen), tuple(sorted(clauses)))
    return NEVER if found.never else found


def _conjuncts(scalar: Scalar) -> list[Scalar]:
    if isinstance(scalar, Call) and scalar.operator == "and":
        return [each for argument in scalar.arguments for each in _conjuncts(argument)]
    return [scalar]


@dataclass(frozen=True, slots=True)
class _Truth:
    """Where an expression over one attribute (None: over none) is true, and where false."""

    attribute: str | None
    type: SqlType
    true: Values
    false: Values


def _truth(scalar: Scalar) -> _Truth | None:
    """None for an expression that does not compare one attribute with constants."""
    if isinstance(scalar, Literal):
        true = ALL if scalar.value is True else NOTHING
        return _Truth(None, BOOLEAN, true, ALL if scalar.value is False else NOTHING)
    if not isinstance(scalar, Call):
        return _atom(scalar, "=", Literal(True, BOOLEAN)) if isinstance(scalar, Ref) else None
    if scalar.operator in ("and", "or"):
        return _junction(scalar)
    if scalar.operator == "not":
        inner = _truth(scalar.arguments[0])
        return None if inner is None else replace(inner, true=inner.false, false=inner.true)
    if scalar.operator == "is_null":
        if isinstance(scalar.arguments[0], Literal):
            return None
        null = Values(null=True)
        attribute, type_ = _attribute(scalar.arguments[0])
        return _Truth(attribute, type_, null, ~null)
    if scalar.operator == "in":
        return _membership(scalar)
    if scalar.operator in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
        left, right = scalar.arguments
        if isinstance(right, Literal) and not isinstance(left, Literal):
            return _atom(left, scalar.operator, right)
        if isinstance(left, Literal) and not isinstance(right, Literal):
            return _atom(right, _FLIPPED.get(scalar.operator, scalar.operator), left)
    return None


def _junction(scalar: Call) -> _Truth | None:
    found = [_truth(argument) for argument in scalar.arguments]
    parts = [part for part in found if part is not None]
    named = {(part.attribute, part.type) for part in parts if part.attribute is not None}
    if len(parts) < len(found) or len(named) > 1:
        return None
    attribute, type_ = next(iter(named), (None, BOOLEAN))
    trues, falses = [part.true for part in parts], [part.false for part in parts]
    if scalar.operator == "or":
        return _Truth(attribute, type_, union(trues), _intersection(falses))
    return _Truth(attribute, type_, _intersection(trues), union(falses))


def union(sets: Sequence[Values]) -> Values:
    """The values that are in any of the sets."""
    intervals = [interval for each in sets for interval in each.intervals]
    return Values(_united(intervals), any(each.null for each in sets))


def _intersection(sets: Sequence[Values]) -> Values:
    return ~union([~each for each in sets])


def _membership(scalar: Call) -> _Truth | None:
    operand, *items = scalar.arguments
    if isinstance(operand, Literal):
        return None
    points: list[Interval] = []
    for item in items:
        atom = _atom(operand, "=", item) if isinstance(item, Literal) else None
        if atom is None:
            return None
        points += atom.true.intervals
    true = Values(_united(points))
    missing = any(isinstance(item, Literal) and item.value is None for item in items)
    attribute, type_ = _attribute(operand)
    return _Truth(attribute, type_, true, NOTHING if missing else (~true) & NOT_NULL)


def _attribute(scalar: Scalar) -> tuple[str, SqlType]:
    """An attribute's SQL and type; a wider integer is the same attribute."""
    if isinstance(scalar, Call) and scalar.operator in ("cast_int", "cast_bigint"):
        return _attribute(scalar.arguments[0])
    if isinstance(scalar, Opaque):
        return scalar.sql, scalar.type
    return quoted_sql(scalar), scalar.type


def _atom(operand: Scalar, operator: str, literal: Literal) -> _Truth | None:
    attribute, type_ = _attribute(operand)
    if literal.value is None:
        null = Values(null=True)
        if operator == "<=>":
            return _Truth(attribute, type_, null, ~null)
        return _Truth(attribute, type_, NOTHING, NOTHING)
    if literal.type != operand.type or not is_indexable(type_):
        return None
    value = _normal(literal.value, type_)
    below, equal = Values(((None, Bound(value)),)), Values((_one(value),))
    above = (~(below | equal)) & NOT_NULL
    true = {
        "=": equal,
        "<=>": equal,
        "<>": below | above,
        "<": below,
        "<=": below | equal,
        ">": above,
        ">=": above | equal,
    }[operator]
    true = _clipped(true, type_)
    false = ~true if operator == "<=>" else (~true) & NOT_NULL
    return _Truth(attribute, type_, true, false)


def is_indexable(type_: SqlType) -> bool:
    """Whether conditions on attributes of the type become selections."""
    return type_ in FRACTIONAL or type_ in (STRING, "date") or _limits(type_) is not None


def _normal(value: Value, type_: SqlType) -> Value:
    """A constant in the form that bounds have."""
    if type_ in FRACTIONAL:
        number = float(value)  # type: ignore[arg-type]
        return None if math.isnan(number) else number + 0.0
    parameters = decimal_parameters(type_)
    if parameters:
        return int(Decimal(str(value)).scaleb(parameters[1], EXACT))
    return int(value) if isinstance(value, bool) else value


def constant(value: Value, type_: SqlType) -> Value:
    """A bound's value as a constant of its type; decimals, NaN and infinities as text."""
    parameters = decimal_parameters(type_)
    if parameters:
        return f"{Decimal(str(value)).scaleb(-parameters[1], EXACT):f}"
    if type_ == BOOLEAN:
        return bool(value)
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return "NaN" if value is None else value


def constant_sql(value: Value, type_: SqlType) -> str:
    """A bound's value as Spark SQL."""
    value = constant(value, type_)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and type_ in _SUFFIXES:
        return f"{value}{_SUFFIXES[type_]}"
    elif isinstance(value, float) and math.isfinite(value) and type_ == "double":
        return f"{value!r}D"
    elif type_ == "date":
        return f"DATE '{value}'"
    return to_sql(Literal(value, type_))


def _one(value: Value) -> Interval:
    if isinstance(value, int):
        return Bound(value), Bound(value + 1)
    return Bound(value), Bound(value, after=True)


def _limits(type_: SqlType) -> tuple[int, int] | None:
    """The lowest and highest value of a type of integers."""
    parameters = decimal_parameters(type_)
    if parameters:
        return 1 - 10 ** parameters[0], 10 ** parameters[0] - 1
    return (0, 1) if type_ == BOOLEAN else INTEGRAL_LIMITS.get(type_)


def _clipped(values: Values, type_: SqlType) -> Values:
    """Without bounds that no value of the type lies beyond."""
    limits = _limits(type_)
    if limits is None:
        return values
    low, high = limits
    found: list[Interval] = []
    for opening, closing in values.intervals:
        first = low if opening is None else max(low, _integer(opening))
        beyond = high + 1 if closing is None else min(high + 1, _integer(closing))
        if first < beyond:
            found.append(
                (
                    None if first == low else Bound(first),
                    None if beyond == high + 1 else Bound(beyond),
                )
            )
    return replace(values, intervals=_united(found))


def _integer(bound: Bound) -> int:
    assert isinstance(bound.value, int)
    return bound.value


def selections_on(conditions: Iterable[Condition]) -> dict[str, list[Selection]]:
    """All selections by attribute."""
    found: dict[str, list[Selection]] = {}
    for each in conditions:
        for selection in each.selections:
            found.setdefault(selection.attribute, []).append(selection)
    return found


def sorted_bounds(selections: Sequence[Selection]) -> tuple[Bound, ...]:
    """The distinct bounds of selections on one attribute, in order."""
    return tuple(sorted({bound for selection in selections for bound in selection.bounds}))
