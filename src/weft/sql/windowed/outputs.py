"""Output-level expressions: the select list and HAVING, over keys, aggregates and the window.

The values of a group are `k0…` (keys), `a0…` (aggregates), `window_start`, `window_end` and
`window` (the struct). An expression of the whitelist becomes a `Scalar` over them; any other
becomes `Opaque` Spark SQL over the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from weft.algebra.aggregate import Aggregate
from weft.algebra.query import Field as Column
from weft.algebra.query import quote
from weft.algebra.scalar import Expression, Literal, Opaque, Ref, Scalar
from weft.algebra.types import (
    BIGINT,
    BOOLEAN,
    ROW_WINDOW,
    TIMESTAMP,
    WINDOW,
    SqlType,
    decimal_parameters,
    is_ordered,
)
from weft.algebra.window import Window
from weft.sql.fallback import Unshared
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
from weft.sql.windowed.aggregates import bind_aggregate
from weft.sql.windowed.windows import window_of

_LITERALS: Final = (Number, String, Constant)
_BOUNDS: Final = {"start": "window_start", "end": "window_end"}


def _value(name: str, type_: SqlType) -> Typed:
    return Typed(quote(name), type_, False, Ref(name, type_))


def _is_result(type_: SqlType) -> bool:
    """Whether results may have a column of the type."""
    element = type_.removeprefix("array<").removesuffix(">")
    return type_ in (WINDOW, ROW_WINDOW) or is_ordered(element)


@dataclass(frozen=True, slots=True)
class WindowValues:
    """The window and its bounds as values of a group: times, or row numbers."""

    window: Typed
    bounds: Mapping[str, Typed]

    @staticmethod
    def of(window: SqlType, bound: SqlType) -> WindowValues:
        bounds = {part: _value(name, bound) for part, name in _BOUNDS.items()}
        return WindowValues(_value("window", window), bounds)


_TIMES: Final = WindowValues.of(WINDOW, TIMESTAMP)
_NUMBERS: Final = WindowValues.of(ROW_WINDOW, BIGINT)


@dataclass(slots=True)
class Outputs:
    """Binds output expressions of one query, and collects the aggregates they need."""

    rows: Rows
    window: Window
    keys: tuple[Expression, ...]
    counts_rows: bool = False
    aggregates: list[Aggregate] = field(default_factory=list)
    aliases: dict[str, Typed] = field(default_factory=dict)
    lateral: set[str] = field(default_factory=set)
    in_having: bool = False
    _values: WindowValues = _TIMES
    _key_values: dict[str, Typed] = field(default_factory=dict)
    _has_composite_keys: bool = False

    def __post_init__(self) -> None:
        self._values = _NUMBERS if self.counts_rows else _TIMES
        for index, key in enumerate(self.keys):
            self._key_values[key.sql] = _value(f"k{index}", key.type)
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
        types = {name: self._values.bounds[part].type for part, name in _BOUNDS.items()}
        types["window"] = self._values.window.type
        return [*keys, *values, *(Column(name, type_) for name, type_ in types.items() if type_)]

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
        if node.name == "window":
            if self.in_having:
                raise Unshared("window( … ) in HAVING has no shared form", node.start)
            if self.counts_rows or window_of(node, self.rows) != self.window:
                raise self.rows.source.error("SEVERAL_WINDOWS", node.start)
            return self._values.window
        if node.name in ("window_time", "session_window"):
            raise Unshared(f"{node.name} has no shared form", node.start, ADVICE[node.name])
        if node.name in UNSHARED_AGGREGATES:
            advice = ADVICE.get(node.name, "")
            raise Unshared(f"{node.name} has no partial form", node.start, advice)
        if node.name not in AGGREGATES:
            return None
        aggregate = bind_aggregate(node, self.rows)
        if aggregate not in self.aggregates:
            self.aggregates.append(aggregate)
        return _value(f"a{self.aggregates.index(aggregate)}", aggregate.type)

    def _field(self, node: FieldAccess) -> Typed | None:
        base = self.leaf(node.base)
        if base is not self._values.window:
            return None
        return self._bound(node, (node.name,))

    def _bound(self, node: SyntaxNode, path: tuple[str, ...]) -> Typed:
        if not path:
            return self._values.window
        bound = self._values.bounds.get(path[0].lower())
        if bound is None or len(path) > 1:
            raise self.rows.source.error(
                "UNKNOWN_COLUMN",
                node.start,
                name=f"window.{'.'.join(path)}",
                stream=self.rows.scope.described,
                known="window.start, window.end",
            )
        return bound

    def _name(self, node: Name) -> Typed:
        meaning = self.rows.find(node)
        first = node.parts[0].lower()
        if meaning is not None:
            column, path = meaning
            if first == "window" and column.name.lower() == "window":
                raise Unshared("the stream has a column called window", node.start)
            key = self._key(column.value, path)
            if key is not None:
                return key
        alias = self.aliases.get(first)
        if alias is not None and (meaning is None or self.in_having):
            return self._of_alias(node, alias)
        if meaning is not None:
            raise self._ungrouped(node, meaning.column.value.sql)
        if first == "window":
            return self._bound(node, node.parts[1:])
        raise self.rows.unknown(node)

    def _key(self, column: Typed, path: tuple[str, ...]) -> Typed | None:
        """The key that is the column, or a field of it, with the rest of the path."""
        for length in range(len(path), -1, -1):
            key = self._key_values.get(with_path(column, path[:length]).sql)
            if key is not None:
                return with_path(key, path[length:])
        return None

    def _of_alias(self, node: Name, alias: Typed) -> Typed:
        path = node.parts[1:]
        if alias.scalar == self._values.window.scalar:
            return self._bound(node, path)
        return with_path(alias, path)

    def _ungrouped(self, node: Name, column: str) -> Exception:
        """An error, unless a composite key has the column: Spark may match what weft does not."""
        if any(key.sql != column and column in key.sql for key in self.keys):
            return Unshared(f"{node.parts[-1]} may be part of a group-by expression", node.start)
        return self.rows.source.error("NOT_GROUPED", node.start, name=".".join(node.parts))
