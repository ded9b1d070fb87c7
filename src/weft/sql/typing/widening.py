"""The common type of columns that a set operation puts together, and the cast to it.

Spark widens them as it widens the arguments of `coalesce`, two operands at a time. What the rules here do
not cover is asked of Spark in these words.
"""

from __future__ import annotations

from dataclasses import replace

from weft.algebra.query import Field
from weft.algebra.types import DOUBLE, STRING, SqlType, is_numeric, is_ordered
from weft.sql.typing.analyzer import AnalysisProblem, Remembering
from weft.sql.typing.coercion import VOID, Typed, common_type, promoted, widens
from weft.sql.typing.exact import Exact


def common_column_type(
    analyzer: Remembering, left: SqlType, right: SqlType
) -> SqlType | AnalysisProblem:
    """The type in which Spark puts two columns together, or its objection."""
    if left == right:
        return left
    common = common_type([left, right])
    if common is not None:
        return common
    fields = (Field("left", left), Field("right", right))
    return analyzer.type(fields, "coalesce(`left`, `right`)")


def widened(value: Typed, type_: SqlType, exact: Exact | None) -> Typed:
    """A value in a wider type. Where Spark's cast may raise, so may this."""
    if value.type == type_:
        return value
    assert value.type is not None
    sql = f"CAST({value.sql} AS {type_.upper()})"
    whole = exact.cast(sql, value, type_) if exact is not None else None
    if whole is not None:
        return whole
    safe = (
        widens(value.type, type_)
        or value.type == VOID
        or (type_ == DOUBLE and is_numeric(value.type))
        or (type_ == STRING and is_ordered(value.type))
        or (value.type, type_) == ("date", "timestamp")
    )
    result = Typed(sql, type_, value.can_raise or not safe)
    return replace(result, scalar=promoted(value, type_)) if safe else result
