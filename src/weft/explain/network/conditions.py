"""Predicate sets as people write them: `f2.amount > 0.5 * f1.amount` instead of a sum and integers.

A sum of columns is solved for the column of the last relation, and numbers get back the unit of that
column: days, lengths of time, the digits of a decimal. Of the two ways to write a bound on integers,
`> 1000000` and `>= 1000001`, the rounder one is taken. The text has the predicate's meaning, but it
is for reading; what is evaluated is the predicate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from weft.algebra.condition.constants import EXACT
from weft.algebra.condition.values import ALL, NO_POINT, NOT_NULL, Bound, Interval, Values, point
from weft.algebra.predicates import Linear, LiteralPredicate, OrPredicate, PredicateSet
from weft.algebra.predicates.literal import constant_text, holds, negated, order_operator
from weft.algebra.predicates.slots import plain_name, slot_of
from weft.algebra.predicates.subject import COMPARE, DATE
from weft.algebra.query import quote
from weft.algebra.scalar import Call, Literal, Opaque, Ref, Scalar, Value, to_sql
from weft.algebra.types import BOOLEAN, TIMESTAMP, SqlType, decimal_parameters
from weft.explain.wording import duration, readable

_FINEST = 1_000_000
"""Numbers that are no multiples of one part of this stay fractions: the comparison is multiplied."""


def slot_names(relations: Sequence[str]) -> tuple[str, ...]:
    """What a node's slots are called: by their relations, numbered where one occurs again. A single
    relation needs no name.

    >>> slot_names(["bids", "people", "bids"]), slot_names(["bids"])
    (('bids1', 'people', 'bids2'), ('',))
    """
    if len(relations) == 1:
        return ("",)
    total, seen = Counter(relations), Counter[str]()
    names = []
    for relation in relations:
        seen[relation] += 1
        apart = "_" if relation[-1:].isdigit() else ""
        names.append(f"{relation}{apart}{seen[relation]}" if total[relation] > 1 else relation)
    return tuple(names)


def conditions(predicates: PredicateSet, names: Sequence[str]) -> list[str]:
    """The OR predicates of a set, each as a condition; `names` are those of the slots."""
    return [_any_of(predicate, names) for predicate in predicates.predicates]


def conjunction(texts: Sequence[str]) -> str:
    """Conditions that all hold.

    >>> conjunction(["a > 1", "(b = 2 OR c = 3)"]), conjunction(["(b = 2 OR c = 3)"])
    ('a > 1 AND (b = 2 OR c = 3)', 'b = 2 OR c = 3')
    """
    return readable(texts[0]) if len(texts) == 1 else " AND ".join(texts)


def _any_of(predicate: OrPredicate, names: Sequence[str]) -> str:
    """A condition, in brackets if it has several alternatives."""
    alternatives = [part for literal in predicate.literals for part in _literal(literal, names)]
    if len(alternatives) == 1:
        return readable(alternatives[0])
    return f"({' OR '.join(alternatives)})" if alternatives else "false"


def _literal(literal: LiteralPredicate, names: Sequence[str]) -> list[str]:
    """A literal as alternatives."""
    subject, values = literal.subject, literal.values
    if isinstance(subject, Linear):
        return _sum(subject, values, names)
    if isinstance(subject, Call) and subject.operator == COMPARE:
        return _order(subject, values, names)
    text = scalar_text(subject, names)
    if subject.type == BOOLEAN:
        return _truth(text, values)
    return _alternatives(text, values, _Side(lambda value: _constant(value, subject.type)))


def scalar_text(scalar: Scalar, names: Sequence[str]) -> str:
    """An expression over the columns of slots.

    >>> scalar_text(Call("+", (Ref("1.a", "int"), Literal(2, "int")), "int"), ["x", "y"])
    'y.a + 2'
    """
    return readable(to_sql(_named(scalar, names)))


def column_text(name: str, names: Sequence[str]) -> str:
    """A column under the name of its slot.

    >>> column_text("1.amount", ["f1", "f2"]), column_text("0.amount", [""])
    ('f2.amount', 'amount')
    """
    slot, column = names[slot_of(name)], plain_name(name)
    column = column if all(map(str.isidentifier, column.split("."))) else quote(column)
    return f"{slot}.{column}" if slot else column


def _named(scalar: Scalar, names: Sequence[str]) -> Scalar:
    if isinstance(scalar, Ref):
        return Ref(column_text(scalar.name, names), scalar.type)
    if isinstance(scalar, Call):
        arguments = tuple(_named(argument, names) for argument in scalar.arguments)
        return Call(scalar.operator, arguments, scalar.type)
    if isinstance(scalar, Literal):
        plain = isinstance(scalar.value, int | float) and not isinstance(scalar.value, bool)
        return Ref(str(scalar.value), scalar.type) if plain else scalar
    sql = scalar.sql
    for name in sorted(scalar.names, key=len, reverse=True):
        sql = sql.replace(quote(name), column_text(name, names))
    return Opaque(sql, (), scalar.type)


@dataclass(frozen=True)
class _Side:
    """How the right sides of comparisons are written."""

    text: Callable[[Value], str]

    def low(self, bound: Bound) -> tuple[str, str]:
        """The operator and the right side of a lower bound."""
        if not isinstance(bound.value, int):
            return ">" if bound.after else ">=", self.text(bound.value)
        inclusive, exclusive = bound.value, bound.value - 1
        if _length(exclusive) < _length(inclusive):
            return ">", self.text(exclusive)
        return ">=", self.text(inclusive)

    def high(self, bound: Bound) -> tuple[str, str]:
        if not isinstance(bound.value, int):
            return "<=" if bound.after else "<", self.text(bound.value)
        inclusive, exclusive = bound.value - 1, bound.value
        if _length(exclusive) < _length(inclusive):
            return "<", self.text(exclusive)
        return "<=", self.text(inclusive)


def _length(value: int) -> int:
    """How many digits a number has before its last zeros."""
    return len(str(abs(value)).rstrip("0"))


def _alternatives(left: str, values: Values, side: _Side) -> list[str]:
    """The conditions of which one holds where the left side is in a set."""
    if values == ALL:
        return ["true"]
    if values == NOT_NULL:
        return [f"{left} IS NOT NULL"]
    alternatives = [f"{left} IS NULL"] if values.null else []
    gaps = [point(interval) for interval in (~values).intervals]
    if values.intervals and gaps and NO_POINT not in gaps:
        return [*alternatives, _equal(left, [side.text(gap) for gap in gaps], "<>", "NOT IN")]
    points = [point(interval) for interval in values.intervals]
    constants = [side.text(value) for value in points if value is not NO_POINT]
    if constants:
        alternatives.append(_equal(left, constants, "=", "IN"))
    alternatives += [
        _interval(left, interval, side)
        for interval, value in zip(values.intervals, points, strict=True)
        if value is NO_POINT
    ]
    return alternatives or ["false"]


def _equal(left: str, constants: Sequence[str], one: str, several: str) -> str:
    if len(constants) == 1:
        return f"{left} {one} {constants[0]}"
    return f"{left} {several} ({', '.join(constants)})"


def _interval(left: str, interval: Interval, side: _Side) -> str:
    low, high = interval
    if low is not None and high is not None:
        (above, least), (below, most) = side.low(low), side.high(high)
        if (above, below) == (">=", "<="):
            return f"{left} BETWEEN {least} AND {most}"
        return f"({left} {above} {least} AND {left} {below} {most})"
    if low is not None:
        return " ".join((left, *side.low(low)))
    return " ".join((left, *side.high(high))) if high is not None else f"{left} IS NOT NULL"


def _constant(value: Value, type_: SqlType) -> str:
    parameters = decimal_parameters(type_)
    if parameters and isinstance(value, int):
        return _number(Fraction(value, 10 ** parameters[1]))
    return constant_text(value, type_)


def _truth(text: str, values: Values) -> list[str]:
    """A boolean expression that must be true, false or NULL."""
    is_true, is_false = holds(values, 1), holds(values, 0)
    negation = text[4:] if text.startswith("NOT ") else f"NOT ({text})"
    alternatives = [text] if is_true else []
    alternatives += [negation] if is_false else []
    if is_true and is_false:
        return [f"({text}) IS NOT NULL"] if not values.null else ["true"]
    return [*alternatives, *([f"({text}) IS NULL"] if values.null else [])] or ["false"]


def _order(subject: Call, values: Values, names: Sequence[str]) -> list[str]:
    """Two sides that are compared as they are."""
    left, right = (scalar_text(side, names) for side in subject.arguments)
    operator = order_operator(values)
    null = [f"{left} IS NULL", f"{right} IS NULL"]
    if operator is not None:
        return [f"{left} {operator} {right}", *(null if values.null else [])]
    if values.intervals:
        return ["true"] if values.null else [f"({left} IS NOT NULL AND {right} IS NOT NULL)"]
    return null if values.null else ["false"]


def _sum(subject: Linear, values: Values, names: Sequence[str]) -> list[str]:
    if len(subject.terms) == 1:
        ((factor, ref),) = subject.terms
        if factor == 1:
            side = _Side(lambda value: _constant(value, ref.type))
            return _alternatives(column_text(ref.name, names), values, side)
    if values == NOT_NULL:
        present = [f"{column_text(ref.name, names)} IS NOT NULL" for _, ref in subject.terms]
        return [f"({' AND '.join(present)})"]
    solved = _solved(subject, names)
    if solved is None:
        text = readable(_multiplied(subject, names))
        return _alternatives(text, values, _Side(str))
    if values.null:
        missing = [f"{column_text(ref.name, names)} IS NULL" for _, ref in subject.terms]
        return [*missing, *_sum(subject, Values(values.intervals), names)]
    if solved.negative:
        values = negated(values)
    return _alternatives(solved.left, values, _Side(solved.right))


@dataclass(frozen=True)
class _Solved:
    """A sum solved for one of its columns."""

    left: str
    negative: bool
    """Whether the sum's sign has to change for that."""
    right: Callable[[Value], str]
    """The other side, from the sum's value."""


def _solved(subject: Linear, names: Sequence[str]) -> _Solved | None:
    """None where numbers would be no short decimals."""
    by_place = sorted(subject.terms, key=lambda term: (slot_of(term[1].name), term[1].name))
    factor, ref = by_place[-1]
    unit = abs(_real_factor(factor, ref))
    sign = -1 if factor < 0 else 1
    others = [
        (-sign * _real_factor(other, column) / unit, column) for other, column in by_place[:-1]
    ]
    if not all(map(_is_short, (share for share, _ in others))) or not _has_end(1 / unit):
        return None
    terms = [_term(share, column_text(column.name, names)) for share, column in others]

    def right(value: Value) -> str:
        assert isinstance(value, int)
        amount = Fraction(value) / unit
        parts = [*terms, _distance(amount, ref.type)] if amount or not terms else terms
        return _added(parts)

    return _Solved(column_text(ref.name, names), factor < 0, right)


def _real_factor(factor: int, ref: Ref) -> Fraction:
    """The factor of a column's value, where the sum counts decimals unscaled."""
    parameters = decimal_parameters(ref.type)
    return Fraction(factor * 10 ** (parameters[1] if parameters else 0))


def _is_short(number: Fraction) -> bool:
    return _FINEST % number.denominator == 0


def _has_end(number: Fraction) -> bool:
    """Whether a number is a decimal."""
    rest: int = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def _number(number: Fraction) -> str:
    if number.denominator == 1:
        return str(number.numerator)
    exact = EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))
    return f"{exact:f}"


def _term(share: Fraction, column: str) -> tuple[bool, str]:
    """A column with its factor, and whether it is subtracted."""
    size = abs(share)
    return share < 0, column if size == 1 else f"{_number(size)} * {column}"


def _distance(amount: Fraction, type_: SqlType) -> tuple[bool, str]:
    """A number in the unit of a column."""
    size = abs(amount)
    if type_ == TIMESTAMP and size.denominator == 1:
        return amount < 0, duration(int(size))
    if type_ == DATE:
        return amount < 0, f"{_number(size)} {'day' if size == 1 else 'days'}"
    return amount < 0, _number(size)


def _added(parts: Sequence[tuple[bool, str]]) -> str:
    """Terms side by side, the subtracted ones last."""
    ordered = sorted(parts, key=lambda part: part[0])
    first, *rest = ordered
    text = f"-{first[1]}" if first[0] else first[1]
    return text + "".join(f" {'-' if minus else '+'} {term}" for minus, term in rest)


def _multiplied(subject: Linear, names: Sequence[str]) -> str:
    """The sum as it is, for numbers that are not short decimals."""
    return _added(
        [
            _term(_real_factor(factor, ref), column_text(ref.name, names))
            for factor, ref in subject.terms
        ]
    )
