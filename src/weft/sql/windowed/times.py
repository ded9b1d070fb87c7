"""The window as the time of a group: `window`, `window.start` and `window.end` in SELECT and HAVING."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weft.algebra.query import Field
from weft.algebra.types import BIGINT, ROW_WINDOW, TIMESTAMP, WINDOW, SqlType
from weft.algebra.window import Window
from weft.sql.fallback import Unshared
from weft.sql.grouping.outputs import value_of_group
from weft.sql.reading.syntax import Function, Name, SyntaxNode
from weft.sql.scopes.rows import Rows
from weft.sql.typing.coercion import Typed
from weft.sql.windowed.windows import window_of

_BOUNDS: Final = {"start": "window_start", "end": "window_end"}


@dataclass(frozen=True, slots=True)
class WindowValues:
    """The window and its bounds as values of a group: times, or row numbers."""

    window: Typed
    bounds: Mapping[str, Typed]
    fields: tuple[Field, ...]

    @staticmethod
    def of(window: SqlType, bound: SqlType) -> WindowValues:
        bounds = {part: value_of_group(name, bound) for part, name in _BOUNDS.items()}
        fields = (*(Field(name, bound) for name in _BOUNDS.values()), Field("window", window))
        return WindowValues(value_of_group("window", window), bounds, fields)


_TIMES: Final = WindowValues.of(WINDOW, TIMESTAMP)
_NUMBERS: Final = WindowValues.of(ROW_WINDOW, BIGINT)


@dataclass(frozen=True, slots=True)
class WindowTime:
    """The window of a query, which its groups belong to."""

    rows: Rows
    window: Window
    counts_rows: bool = False

    @property
    def _values(self) -> WindowValues:
        return _NUMBERS if self.counts_rows else _TIMES

    @property
    def fields(self) -> tuple[Field, ...]:
        return self._values.fields

    def call(self, node: Function, *, in_having: bool) -> Typed | None:
        if node.name != "window":
            return None
        if in_having:
            raise Unshared("window( … ) in HAVING has no shared form", node.start)
        if self.counts_rows or window_of(node, self.rows) != self.window:
            raise self.rows.source.error("SEVERAL_WINDOWS", node.start)
        return self._values.window

    def name(self, node: Name) -> Typed | None:
        if node.parts[0].lower() != "window":
            return None
        return self.field(self._values.window, node, node.parts[1:])

    def check(self, node: Name, column: str) -> None:
        if node.parts[0].lower() == column.lower() == "window":
            raise Unshared("the stream has a column called window", node.start)

    def field(self, value: Typed, node: SyntaxNode, path: tuple[str, ...]) -> Typed | None:
        if value.scalar != self._values.window.scalar:
            return None
        if not path:
            return value
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
