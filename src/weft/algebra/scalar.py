"""Scalar expressions over named values, in a form that weft can type and evaluate itself.

The whitelist of DESIGN section 4.4: what is built of these nodes has the meaning Spark gives
it, and is evaluated by `weft.kernel.scalar`. Everything else is `Opaque`: Spark SQL text
that only Spark evaluates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.algebra.types import SqlType

Value = None | bool | int | float | str


@dataclass(frozen=True, slots=True)
class Ref:
    """A named input value: a column, a key (`k0`), an aggregate (`a0`), `window_start`, …"""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value
    type: SqlType


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
