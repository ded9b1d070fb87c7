"""Scalar expressions over named values, in a form that weft can type and evaluate itself.

The whitelist of DESIGN section 4.4: what is built of these nodes has the meaning Spark gives
it, and is evaluated by `weft.kernel.columns.scalar`. Everything else is `Opaque`: Spark SQL text
that only Spark evaluates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weft.algebra.types import SqlType

if TYPE_CHECKING:
    from weft.algebra.condition import Condition

Value = None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class Ref:
    """A named input value: a column, a key (`k0`), an aggregate (`a0`), `window_start`, …"""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. The two zeros of a double are different constants, though equal as numbers: a column may show them."""

    value: Value
    type: SqlType

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        same = self.type == other.type and self.value == other.value
        if same and self.value == 0 and isinstance(self.value, float):
            return str(self.value) == str(other.value)
        return same


@dataclass(frozen=True, slots=True)
class Call:
    """An operator of the whitelist applied to arguments of types it was checked for."""

    operator: str
    arguments: tuple[Scalar, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class Opaque:
    """Spark SQL text over the names of the scope; only Spark can evaluate it."""

    sql: str
    names: tuple[str, ...]
    type: SqlType


Scalar = Ref | Literal | Call | Opaque


def quote(name: str) -> str:
    """A column name as Spark SQL.

    >>> quote("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def walk(scalar: Scalar) -> Iterator[Scalar]:
    yield scalar
    if isinstance(scalar, Call):
        for argument in scalar.arguments:
            yield from walk(argument)


def is_native(scalar: Scalar) -> bool:
    """Whether the kernel can evaluate the expression without Spark."""
    return not any(isinstance(node, Opaque) for node in walk(scalar))


@dataclass(frozen=True, slots=True)
class Expression:
    """A row-level expression of a query: canonical Spark SQL over the stream's columns.

    Two expressions with equal `sql` mean the same on the same stream. `can_raise` says that
    evaluating it may fail at run time (division, cast, overflow under ANSI, any function
    weft does not know), so it must not be evaluated on rows that its query would not reach.
    """

    sql: str
    type: SqlType
    columns: tuple[str, ...] = ()
    can_raise: bool = False
    condition: Condition | None = None
    """The canonical form of a predicate that cannot raise."""


def conjunction(left: Expression | None, right: Expression | None) -> Expression | None:
    """`left AND right`, where None is the condition that is always true."""
    if left is None or right is None:
        return left or right
    return Expression(
        f"({left.sql}) AND ({right.sql})",
        "boolean",
        tuple(sorted({*left.columns, *right.columns})),
        left.can_raise or right.can_raise,
    )


def to_sql(scalar: Scalar) -> str:
    """The expression as Spark SQL over the names of its scope.

    >>> to_sql(Call("and", (Ref("a0", "boolean"), Literal(True, "boolean")), "boolean"))
    '(a0 AND true)'
    """
    if isinstance(scalar, Ref):
        return scalar.name
    if isinstance(scalar, Opaque):
        return f"({scalar.sql})"
    if isinstance(scalar, Literal):
        return _literal_sql(scalar)
    operator = scalar.operator
    parts = [to_sql(argument) for argument in scalar.arguments]
    if operator in ("and", "or"):
        return "(" + f" {operator.upper()} ".join(parts) + ")"
    if operator == "not":
        return f"(NOT {parts[0]})"
    if operator == "is_null":
        return f"({parts[0]} IS NULL)"
    if operator == "in":
        return f"({parts[0]} IN ({', '.join(parts[1:])}))"
    if operator == "like":
        return f"({parts[0]} LIKE {parts[1]})"
    if operator == "negate":
        return f"(- {parts[0]})"
    if operator == "coalesce":
        return f"coalesce({', '.join(parts)})"
    if operator == "case":
        *branches, otherwise = parts
        pairs = zip(branches[::2], branches[1::2], strict=True)
        cases = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
        return f"CASE {cases} ELSE {otherwise} END"
    if operator.startswith("cast_"):
        return f"cast({parts[0]} AS {operator[5:]})"
    if operator in ("date_add", "date_sub", "datediff"):
        return f"{operator}({', '.join(parts)})"
    return f"({parts[0]} {operator} {parts[1]})"


def quoted_sql(scalar: Scalar) -> str:
    """The expression as Spark SQL over a stream's columns.

    >>> quoted_sql(Call("=", (Ref("a b", "int"), Literal(1, "int")), "boolean"))
    "(`a b` = cast('1' AS int))"
    """
    return to_sql(_with_quoted_names(scalar))


def _with_quoted_names(scalar: Scalar) -> Scalar:
    if isinstance(scalar, Ref):
        return Ref(quote(scalar.name), scalar.type)
    if isinstance(scalar, Call):
        arguments = tuple(_with_quoted_names(argument) for argument in scalar.arguments)
        return Call(scalar.operator, arguments, scalar.type)
    return scalar


def _literal_sql(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return f"cast(NULL AS {literal.type})"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        quoted = f"'{text}'"
        return quoted if literal.type == "string" else f"cast({quoted} AS {literal.type})"
    if literal.type == "timestamp":
        return f"timestamp_micros({value}L)"
    if literal.type == "interval":
        sign, micros = "-" if value < 0 else "", abs(int(value))
        return f"make_dt_interval(0, 0, 0, {sign}{micros // 1_000_000}.{micros % 1_000_000:06d})"
    return f"cast('{value!r}' AS {literal.type})"
