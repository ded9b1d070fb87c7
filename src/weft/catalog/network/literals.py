"""Literals as rows: ARGUS' triple for people, and the lowest and highest value for look-ups.

A look-up compares these two numbers, so it finds every literal whose set of values may include another.
They are coarse (64-bit floats, the first six bytes of strings) but keep the order, so nothing is missed;
what is found is then decided on the sets themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

from weft.algebra import codec
from weft.algebra.condition import Bound, Values
from weft.algebra.condition.values import NOT_NULL, is_point
from weft.algebra.predicates import LiteralPredicate, OrPredicate
from weft.algebra.query import quote

_TEXT_BYTES = 6


class Range(NamedTuple):
    """What a look-up asks of literals on a subject."""

    subject: str
    low: float
    high: float
    null_passes: int


ANYTHING = Range("", inf, -inf, 0)
"""What leads to predicate sets without conditions."""
NEVER = Range("false", inf, -inf, 0)
"""What leads to predicate sets that are never true."""


def digest(*texts: str) -> str:
    """A name for texts: equal for equal texts only, for all that can happen."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=12).hexdigest()


@lru_cache(maxsize=100_000)
def _subject(left: str) -> str:
    return digest(left)


def range_of(literal: LiteralPredicate) -> Range:
    low, high = bounds(literal.values)
    return Range(_subject(literal.left), low, high, int(literal.values.null))


@lru_cache(maxsize=1 << 16)
def weaker_ranges(predicate: OrPredicate) -> tuple[Range, ...]:
    """Where literals are found that an OR predicate may imply. Each of its literals must imply one, so
    the first one leads to all. A literal also implies that the columns it reads are not NULL."""
    if not predicate.literals:
        return (NEVER,)
    literal = predicate.literals[0]
    ranges = [range_of(literal)]
    if not literal.values.null:
        low, high = bounds(NOT_NULL)
        for name in literal.strict_names:
            ranges.append(Range(_subject(quote(name)), low, high, 0))
    return tuple(ranges)


def bounds(values: Values) -> tuple[float, float]:
    """The lowest and highest value of a set, infinite where there is no bound.

    >>> bounds(Values(((Bound(3), Bound(5)), (Bound(7), None))))
    (3.0, inf)
    >>> bounds(Values(null=True))
    (inf, -inf)
    """
    if not values.intervals:
        return inf, -inf
    low, high = values.intervals[0][0], values.intervals[-1][1]
    return (-inf if low is None else _number(low)), (inf if high is None else _number(high))


def _number(bound: Bound) -> float:
    value = bound.value
    if value is None:  # NaN is above all numbers
        return inf
    if isinstance(value, str):
        prefix = value.encode()[:_TEXT_BYTES]
        return float(int.from_bytes(prefix.ljust(_TEXT_BYTES, b"\0"), "big"))
    return float(value)


def ranges_of(predicate: OrPredicate | None) -> list[Range]:
    """Under which an OR predicate is found; None is no condition."""
    if predicate is None:
        return [Range("", -inf, inf, 1)]
    return [range_of(literal) for literal in predicate.literals] or [NEVER]


def literal_rows(or_id: str, scope: str, predicate: OrPredicate | None) -> list[dict[str, Any]]:
    """An OR predicate as rows, one for each literal; one row if there is none."""
    literals: Sequence[LiteralPredicate | None] = predicate.literals if predicate else ()
    return [
        {
            "or_predicate": or_id,
            "position": position,
            "scope": scope,
            "left": literal.left if literal else "",
            "body": _body(literal) if literal else "",
            **of_literal._asdict(),
            **_operator_and_right(literal),
        }
        for position, (literal, of_literal) in enumerate(
            zip(literals or [None], ranges_of(predicate), strict=True)
        )
    ]


@lru_cache(maxsize=1 << 14)
def _body(literal: LiteralPredicate) -> str:
    return codec.dumps(literal)


def _operator_and_right(literal: LiteralPredicate | None) -> dict[str, str]:
    """The operator and the right side of ARGUS' triple; sets that no single operator describes are IN."""
    if literal is None:
        return {"operator": "", "right": ""}
    text, left = literal.sql, literal.left
    values = literal.values
    simple = len(values.intervals) <= 1 and not (values.null and values.intervals)
    two_sided = values.intervals and None not in values.intervals[0]
    if simple and (not two_sided or is_point(values.intervals[0])) and text.startswith(f"{left} "):
        operator, _, right = text[len(left) + 1 :].partition(" ")
        if operator == "IS":
            return {"operator": f"IS {right}", "right": ""}
        return {"operator": operator, "right": right}
    return {"operator": "IN", "right": text}
