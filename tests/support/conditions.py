"""Conditions and their truth in plain Python: three-valued, ordered as Spark orders."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from weft.algebra.condition import Bound, Condition, condition
from weft.algebra.scalar import Call, Expression, Literal, Ref, Scalar
from weft.algebra.signature import Cut
from weft.algebra.types import INTEGRAL_LIMITS, SqlType

NAN, INF = math.nan, math.inf
LITERALS: dict[SqlType, list[Any]] = {
    "tinyint": [-128, -127, -1, 0, 1, 2, 126, 127],
    "int": [INTEGRAL_LIMITS["int"][0], -2, 0, 1, 2, 3, INTEGRAL_LIMITS["int"][1]],
    "bigint": [INTEGRAL_LIMITS["bigint"][0], -1, 0, 1, 2, 3, 5, INTEGRAL_LIMITS["bigint"][1]],
    "string": ["", "A", "a", "ab", "é", "\uffff", "𝄞"],
    "double": [-INF, -1e300, -0.0, 0.0, 5e-324, 1.0, 2.5, INF, NAN],
    "float": [-INF, -1.5, -0.0, 0.0, 0.5, 2.25, INF, NAN],
    "decimal(10,2)": ["-99999999.99", "-0.01", "0.00", "3.50", "99999999.99"],
    "boolean": [False, True],
    "date": ["0001-01-01", "1969-12-31", "1970-01-01", "9999-12-31"],
}
"""Constants of every type that conditions are indexed by, in the form that literals have."""


def value_of(literal: Any, type_: SqlType) -> Any:
    """A literal's value as rows have it."""
    if literal is None:
        return None
    if type_.startswith("decimal"):
        return Decimal(literal)
    return dt.date.fromisoformat(literal) if type_ == "date" else literal


def order(value: Any) -> Any:
    """What Python orders as Spark orders the value."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def truth(scalar: Scalar, row: Mapping[str, Any]) -> Any:
    """The value of an expression on a row; None is NULL."""
    if isinstance(scalar, Ref):
        return row[scalar.name]
    if isinstance(scalar, Literal):
        return value_of(scalar.value, scalar.type)
    assert isinstance(scalar, Call)
    found = [truth(each, row) for each in scalar.arguments]
    operator = scalar.operator
    if operator == "not":
        return None if found[0] is None else not found[0]
    if operator == "is_null":
        return found[0] is None
    if operator in ("and", "or"):
        decisive = operator == "or"
        return decisive if decisive in found else (None if None in found else not decisive)
    if operator == "in":
        same = [truth(Call("=", (scalar.arguments[0], item), "boolean"), row)
                for item in scalar.arguments[1:]]  # fmt: skip
        return True if True in same else (None if None in same else False)
    if operator == "<=>" and None in found:
        return found == [None, None]
    if None in found:
        return None
    left, right = map(order, found)
    return {
        "=": left == right,
        "<=>": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


def predicate(scalar: Scalar) -> Expression:
    found: Condition = condition(scalar)
    return Expression(found.sql, "boolean", (), condition=found)


def class_of(value: Any, cut: Cut) -> int:
    """The class of a value: by counting the bounds below it."""
    if value is None:
        return cut.classes[0]
    return cut.classes[1 + sum(_is_below(bound, value, cut.type) for bound in cut.bounds)]


def _is_below(bound: Bound, value: Any, type_: SqlType) -> bool:
    place: Any = bound.value
    if type_.startswith("decimal"):
        place = Decimal(int(place)) / 100
    elif type_ in ("float", "double"):
        place = NAN if place is None else place
    elif type_ == "date":
        place = dt.date.fromisoformat(place)
    return bool(order(place) < order(value) or (order(place) == order(value) and not bound.after))


@st.composite
def selections(
    draw: st.DrawFn, attribute: str, type_: SqlType, literals: Sequence[Any] | None = None
) -> Scalar:
    """A random condition on one attribute."""
    side = Ref(attribute, type_)
    constants = st.sampled_from([*(literals or LITERALS[type_]), None])

    def atoms() -> st.SearchStrategy[Scalar]:
        literal = constants.map(lambda value: Literal(value, type_))
        operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>", "="])
        pair = st.tuples(operators, literal)
        compared = pair.map(lambda p: Call(p[0], (side, p[1]), "boolean"))
        items = st.lists(literal, min_size=1, max_size=3)
        listed = items.map(lambda found: Call("in", (side, *found), "boolean"))
        return compared | listed | st.just(Call("is_null", (side,), "boolean"))

    def joined(inner: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
        both = st.tuples(st.sampled_from(["and", "or"]), inner, inner)
        junction = both.map(lambda found: Call(found[0], found[1:], "boolean"))
        return junction | inner.map(lambda each: Call("not", (each,), "boolean"))

    return draw(st.recursive(atoms(), joined, max_leaves=3))
