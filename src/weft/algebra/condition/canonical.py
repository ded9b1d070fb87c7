"""Canonical conditions: a WHERE clause as selections on attributes and clauses beside them.

An *attribute* is an expression without constants of its own comparison (`price`, `auction % 7`).
A boolean expression that compares one attribute with constants is true on a set of its values,
false on another and NULL elsewhere; both sets are unions of intervals, closed under AND, OR and
NOT. Only `true` lets a row pass, so a conjunction is one selection per attribute, however it was
spelled: `NOT x < 3 AND x <> 5`, `x BETWEEN 3 AND 4 OR x > 5`. What compares no single attribute
with constants stays a clause, in Spark SQL.

Three-valued logic is kept: NULL is a value like any other here, in the true set only where a
condition accepts it (`x IS NULL`, `x <=> NULL`).

Time: linear in the number of constants, times their logarithm.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from weft.algebra.condition.constants import is_indexable, limits, normal
from weft.algebra.condition.selection import Selection
from weft.algebra.condition.values import (
    ALL,
    NOT_NULL,
    NOTHING,
    Bound,
    Interval,
    Values,
    clipped,
    intersection,
    single,
    union,
    united,
)
from weft.algebra.scalar import Call, Literal, Opaque, Ref, Scalar, quoted_sql
from weft.algebra.types import BOOLEAN, SqlType

_FLIPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


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
    canonical = Condition(tuple(chosen), tuple(sorted(clauses)))
    return NEVER if canonical.never else canonical


def _conjuncts(scalar: Scalar) -> list[Scalar]:
    if isinstance(scalar, Call) and scalar.operator == "and":
        return [part for argument in scalar.arguments for part in _conjuncts(argument)]
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
    truths = [_truth(argument) for argument in scalar.arguments]
    parts = [truth for truth in truths if truth is not None]
    named = {(part.attribute, part.type) for part in parts if part.attribute is not None}
    if len(parts) < len(truths) or len(named) > 1:
        return None
    attribute, type_ = next(iter(named), (None, BOOLEAN))
    trues, falses = [part.true for part in parts], [part.false for part in parts]
    if scalar.operator == "or":
        return _Truth(attribute, type_, union(trues), intersection(falses))
    return _Truth(attribute, type_, intersection(trues), union(falses))


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
    true = Values(united(points))
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
    value = normal(literal.value, type_)
    below, equal = Values(((None, Bound(value)),)), Values((single(value),))
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
    extremes = limits(type_)
    if extremes is not None:
        true = clipped(true, extremes)
    false = ~true if operator == "<=>" else (~true) & NOT_NULL
    return _Truth(attribute, type_, true, false)


def selections_on(conditions: Iterable[Condition]) -> dict[str, list[Selection]]:
    """All selections by attribute."""
    by_attribute: dict[str, list[Selection]] = {}
    for conjunction in conditions:
        for selection in conjunction.selections:
            by_attribute.setdefault(selection.attribute, []).append(selection)
    return by_attribute
