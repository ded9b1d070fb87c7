"""Output-level expressions: the select list and HAVING, over keys, aggregates and the time of a group.

The values of a group are `k0…` (keys), `a0…` (aggregates), and those of its time (`GroupTime`). An expression of
the whitelist becomes a `Scalar` over them; any other becomes `Opaque` Spark SQL over the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from weft.algebra.aggregate import Aggregate
from weft.algebra.query import Field as Column
from weft.algebra.query import quote
from weft.algebra.scalar import Expression, Literal, Opaque, Ref, Scalar
from weft.algebra.types import (
    BOOLEAN,
    ROW_WINDOW,
    WINDOW,
    SqlType,
    decimal_parameters,
    is_ordered,
)
from weft.sql.fallback import Unshared
from weft.sql.grouping.aggregates import bind_aggregate
from weft.sql.reading.functions import ADVICE, AGGREGATES, UNSHARED_AGGREGATES
from weft.sql.reading.syntax import (
    Constant,
    FieldAccess,
    Function,
    Name,
    Number,
    Star,
    String,
    SyntaxNode,
)
from weft.sql.scopes.rows import Rows, check_function, refusal, with_path
from weft.sql.typing.analyzer import AnalysisProblem
from weft.sql.typing.coercion import Typed
from weft.sql.typing.scalars import Typer

_LITERALS: Final = (Number, String, Constant)


def value_of_group(name: str, type_: SqlType) -> Typed:
    """A value that a group has under a name."""
    return Typed(quote(name), type_, False, Ref(name, type_))


class GroupTime(Protocol):
    """The time that a group belongs to, as values of the group: its window, or its instant."""

    @property
    def fields(self) -> tuple[Column, ...]:
        """The values by their names."""
        ...

    def call(self, node: Function, *, in_having: bool) -> Typed | None:
        """What a call means that stands for the time, such as `window(…)`; None for other calls."""
        ...

    def name(self, node: Name) -> Typed | None:
        """What a name means that is no column."""
        ...

    def check(self, node: Name, column: str) -> None:
        """Raises if a column must not be called so."""
        ...

    def field(self, value: Typed, node: SyntaxNode, path: tuple[str, ...]) -> Typed | None:
        """A field of one of the values; None if the value has no fields."""
        ...


def _is_result(type_: SqlType) -> bool:
    """Whether results may have a column of the type."""
    element = type_.removeprefix("array<").removesuffix(">")
    return type_ in (WINDOW, ROW_WINDOW) or is_ordered(element)


@dataclass(slots=True)
class Outputs:
    """Binds output expressions of one query, and collects the aggregates they need."""

    rows: Rows
    keys: tuple[Expression, ...]
    time: GroupTime
    bind_aggregate: Callable[[Function, Rows], Aggregate] = bind_aggregate
    aggregates: list[Aggregate] = field(default_factory=list)
    aliases: dict[str, Typed] = field(default_factory=dict)
    lateral: set[str] = field(default_factory=set)
    in_having: bool = False
    _key_values: dict[str, Typed] = field(default_factory=dict)
    _has_composite_keys: bool = False

    def __post_init__(self) -> None:
        for index, key in enumerate(self.keys):
            self._key_values[key.sql] = value_of_group(f"k{index}", key.type)
        columns = {quote(column.name) for column in self.rows.scope.base}
        self._has_composite_keys = any(key.sql not in columns for key in self.keys)

    def select(self, node: SyntaxNode, alias: str | None) -> tuple[Scalar, SqlType]:
        """A column of the result."""
        typer = Typer(self, self.rows.ansi)
        typed = typer.type(node)
        scalar, type_ = self._resolved(typed, typer.doubt or node)
        if not _is_result(type_):
            raise Unshared(f"a result column of type {type_} has no shared form", node.start)
        if alias is not None:
            self.aliases[alias.lower()] = Typed(typed.sql, type_, typed.can_raise, typed.scalar)
        return scalar, type_

    def having(self, node: SyntaxNode) -> Scalar:
        """The condition on groups."""
        self.in_having = True
        typer = Typer(self, self.rows.ansi)
        scalar, type_ = self._resolved(typer.type(node), typer.doubt or node)
        if type_ != BOOLEAN:
            raise Unshared(f"HAVING with a {type_} has no shared form", node.start)
        return scalar

    def _resolved(self, typed: Typed, doubt: SyntaxNode) -> tuple[Scalar, SqlType]:
        type_, scalar = typed.type, typed.scalar
        if isinstance(scalar, Literal) and decimal_parameters(scalar.type):
            scalar = None
        if type_ is not None and scalar is not None:
            return scalar, type_
        fields = tuple(value for value in self._fields() if quote(value.name) in typed.sql)
        if type_ is None:
            answer = self.rows.analyzer.type(fields, typed.sql)
            if isinstance(answer, AnalysisProblem):
                raise refusal(self.rows.source, doubt, answer)
            type_ = answer
        return Opaque(typed.sql, tuple(value.name for value in fields), type_), type_

    def _fields(self) -> list[Column]:
        keys = [Column(f"k{index}", key.type) for index, key in enumerate(self.keys)]
        values = [
            Column(f"a{index}", aggregate.type) for index, aggregate in enumerate(self.aggregates)
        ]
        return [*keys, *values, *self.time.fields]

    def leaf(self, node: SyntaxNode) -> Typed | None:
        if isinstance(node, _LITERALS):
            return None
        if self._has_composite_keys:
            sql = self.rows.canonical(node)
            if sql is not None and sql in self._key_values:
                return self._key_values[sql]
        if isinstance(node, Name):
            return self._name(node)
        if isinstance(node, Function):
            return self._function(node)
        if isinstance(node, FieldAccess):
            return self._field(node)
        if isinstance(node, Star):
            raise Unshared("* in a grouped SELECT has no shared form", node.start)
        return None

    def call(self, node: Function) -> None:
        check_function(node)

    def _function(self, node: Function) -> Typed | None:
        time = self.time.call(node, in_having=self.in_having)
        if time is not None:
            return time
        if node.name in ("window_time", "session_window"):
            raise Unshared(f"{node.name} has no shared form", node.start, ADVICE[node.name])
        if node.name in UNSHARED_AGGREGATES:
            advice = ADVICE.get(node.name, "")
            raise Unshared(f"{node.name} has no partial form", node.start, advice)
        if node.name not in AGGREGATES:
            return None
        aggregate = self.bind_aggregate(node, self.rows)
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        return value_of_group(f"a{self.aggregates.index(aggregate)}", aggregate.type)

    def _field(self, node: FieldAccess) -> Typed | None:
        base = self.leaf(node.base)
        return None if base is None else self.time.field(base, node, (node.name,))

    def _name(self, node: Name) -> Typed:
        meaning = self.rows.find(node)
        first = node.parts[0].lower()
        if meaning is not None:
            column, path = meaning
            self.time.check(node, column.name)
            key = self._key(column.value, path)
            if key is not None:
                return key
        alias = self.aliases.get(first)
        if alias is not None and (meaning is None or self.in_having):
            return self._of_alias(node, alias)
        if meaning is not None:
            raise self._ungrouped(node, meaning.column.value.sql)
        time = self.time.name(node)
        if time is None:
            raise self.rows.unknown(node)
        return time

    def _key(self, column: Typed, path: tuple[str, ...]) -> Typed | None:
        """The key that is the column, or a field of it, with the rest of the path."""
        for length in range(len(path), -1, -1):
            key = self._key_values.get(with_path(column, path[:length]).sql)
            if key is not None:
                return with_path(key, path[length:])
        return None

    def _of_alias(self, node: Name, alias: Typed) -> Typed:
        path = node.parts[1:]
        return (self.time.field(alias, node, path) if path else None) or with_path(alias, path)

    def _ungrouped(self, node: Name, column: str) -> Exception:
        """An error, unless a composite key has the column: Spark may match what weft does not."""
        if any(key.sql != column and column in key.sql for key in self.keys):
            return Unshared(f"{node.parts[-1]} may be part of a group-by expression", node.start)
        return self.rows.source.error("NOT_GROUPED", node.start, name=".".join(node.parts))
