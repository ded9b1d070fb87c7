"""What a literal speaks of: an exact sum of columns, or any other expression.

`Linear` is for types whose values are integers behind their spelling: integers, decimals (unscaled),
dates (days), timestamps (microseconds). Its value is exact: no rounding, no overflow. Comparisons of
such types become a `Linear` and a set of integers, however they were written: `r2.d <= r1.d + 20` and
`r1.d - r2.d >= -20` are both `1.d - 0.d` in (-∞, 20].

Everything else is a `Scalar` with values of its own type, in the order of `ordered`. Two sides that
cannot be moved to one side (strings, floats) are `Call("compare", (left, right), "tinyint")`: -1, 0 or
1, and NULL if a side is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from weft.algebra.condition.constants import limits
from weft.algebra.predicates.slots import Rename, names_in, renamed_by, slot_of
from weft.algebra.scalar import Call, Ref, Scalar, quote, quoted_sql
from weft.algebra.types import (
    BOOLEAN,
    INTEGRAL,
    INTEGRAL_LIMITS,
    TIMESTAMP,
    SqlType,
    decimal_parameters,
)

COMPARE: Final = "compare"
"""The operator that gives the order of two values: -1, 0 or 1; NULL if one of them is NULL."""
DATE: Final = "date"
INTEGER: Final = "integer"
"""The type of sums: an integer of any size."""
_FLIPPED: Final = {">": "<", ">=": "<="}
_SYMMETRIC: Final = frozenset({"=", "<>", "<=>", "+", "*"})


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of columns with integer factors: relatively prime, in the order of the columns' names, the
    first one positive. A column's value counts as an integer: decimals unscaled, dates in days since
    1970, timestamps in microseconds.

    >>> Linear(((2, Ref("0.amount", "bigint")), (-1, Ref("1.amount", "bigint")))).sql
    '2 * `0.amount` - `1.amount`'
    """

    terms: tuple[tuple[int, Ref], ...]

    @property
    def type(self) -> SqlType:
        """The type whose values the literal's set holds: that of the column itself, or an integer of
        any size for sums."""
        return self.terms[0][1].type if self.is_column else INTEGER

    @property
    def is_column(self) -> bool:
        """Whether it is a column alone."""
        return len(self.terms) == 1

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

    @property
    def limits(self) -> tuple[int, int]:
        """The lowest and highest value that the columns' types allow."""
        low = high = 0
        for factor, ref in self.terms:
            ends = [factor * end for end in integer_limits(ref.type)]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def renamed(self, rename: Rename) -> tuple[Linear, int]:
        """The same sum of columns with other names, and 1, or -1 if its sign has changed."""
        terms = sorted(
            ((factor, Ref(rename(ref.name), ref.type)) for factor, ref in self.terms),
            key=lambda term: term[1].name,
        )
        if terms[0][0] > 0:
            return Linear(tuple(terms)), 1
        return Linear(tuple((-factor, ref) for factor, ref in terms)), -1


Subject = Linear | Scalar


def is_exact(type_: SqlType) -> bool:
    """Whether values of the type are integers behind their spelling, so that columns of it may stand in
    a `Linear`."""
    return type_ in INTEGRAL or type_ in (DATE, TIMESTAMP) or decimal_parameters(type_) is not None


def integer_limits(type_: SqlType) -> tuple[int, int]:
    """The lowest and highest integer behind the values of an exact type."""
    if type_ == DATE:
        return INTEGRAL_LIMITS["int"]
    extremes = INTEGRAL_LIMITS["bigint"] if type_ == TIMESTAMP else limits(type_)
    assert extremes is not None
    return extremes


def subject_limits(subject: Subject) -> tuple[int, int] | None:
    """The lowest and highest value of a subject whose values are integers."""
    if isinstance(subject, Linear):
        return subject.limits
    if isinstance(subject, Call) and subject.operator == COMPARE:
        return -1, 1
    return integer_limits(subject.type) if is_exact(subject.type) else limits(subject.type)


def subject_of(scalar: Scalar) -> Subject:
    """An expression as a subject: a column of an exact type is a `Linear`."""
    if isinstance(scalar, Ref) and is_exact(scalar.type):
        return Linear(((1, scalar),))
    return ordered(scalar)


def ordered(scalar: Scalar) -> Scalar:
    """The expression with its operands in one order, wherever the order does not change its value:
    `b = a` as `a = b`, `a > b` as `b < a`, `2.0 * a` as `a * 2.0`, chains of AND and OR sorted. Sums of
    several floats stay as they are, because they are rounded in their order."""
    if not isinstance(scalar, Call):
        return scalar
    operator = scalar.operator
    arguments = [ordered(argument) for argument in scalar.arguments]
    chained = operator in ("and", "or") or (operator in ("+", "*") and scalar.type in INTEGRAL)
    if chained:
        arguments = [link for chain in arguments for link in _links(chain, operator, scalar.type)]
    if operator in ("and", "or", "in"):
        first = arguments[:1] if operator == "in" else []
        rest = {quoted_sql(argument): argument for argument in arguments[len(first) :]}
        arguments = [*first, *(rest[text] for text in sorted(rest))]
        if operator != "in" and len(arguments) == 1:
            return arguments[0]
    elif operator in _FLIPPED:
        operator, arguments = _FLIPPED[operator], arguments[::-1]
    elif operator in _SYMMETRIC:
        arguments.sort(key=quoted_sql)
        if chained:
            return _chain(operator, arguments, scalar.type)
    return Call(operator, tuple(arguments), scalar.type)


def _links(scalar: Scalar, operator: str, type_: SqlType) -> list[Scalar]:
    """The operands of a chain of one operator."""
    if isinstance(scalar, Call) and (scalar.operator, scalar.type) == (operator, type_):
        return [link for chain in scalar.arguments for link in _links(chain, operator, type_)]
    return [scalar]


def _chain(operator: str, arguments: list[Scalar], type_: SqlType) -> Scalar:
    """A chain of a binary operator, from the left."""
    chain = arguments[0]
    for argument in arguments[1:]:
        chain = Call(operator, (chain, argument), type_)
    return chain


def comparison_subject(left: Scalar, right: Scalar) -> tuple[Call, int]:
    """The order of two values as a subject, and -1 if the sides have changed places."""
    left, right = ordered(left), ordered(right)
    if quoted_sql(right) < quoted_sql(left):
        return Call(COMPARE, (right, left), "tinyint"), -1
    return Call(COMPARE, (left, right), "tinyint"), 1


def subject_names(subject: Subject) -> frozenset[str]:
    """The columns that a subject reads."""
    return subject.names if isinstance(subject, Linear) else names_in(subject)


def subject_slots(subject: Subject) -> frozenset[int]:
    """The slots that a subject reads."""
    return frozenset(slot_of(name) for name in subject_names(subject))


@lru_cache(maxsize=100_000)
def subject_sql(subject: Subject) -> str:
    """A text that is equal for equal subjects, and only for these."""
    if isinstance(subject, Linear):
        return subject.sql
    if isinstance(subject, Call) and subject.operator == COMPARE:
        left, right = subject.arguments
        return f"compare({quoted_sql(left)}, {quoted_sql(right)})"
    return quoted_sql(subject)


def renamed_subject(subject: Subject, rename: Rename) -> tuple[Subject, int]:
    """The same subject over columns with other names, and -1 if its values have changed their sign."""
    if isinstance(subject, Linear):
        return subject.renamed(rename)
    if isinstance(subject, Call) and subject.operator == COMPARE:
        left, right = (renamed_by(side, rename) for side in subject.arguments)
        return comparison_subject(left, right)
    return ordered(renamed_by(subject, rename)), 1


def is_plain_column(subject: Subject) -> bool:
    """Whether the subject is one column as it is."""
    return subject.is_column if isinstance(subject, Linear) else isinstance(subject, Ref)


def is_truth(subject: Subject) -> bool:
    """Whether the subject is a boolean expression."""
    return subject.type == BOOLEAN
