"""Row-level expressions: WHERE, group keys, arguments and filters of aggregates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from weft.algebra.condition import condition
from weft.algebra.query import Field, StreamSchema, quote
from weft.algebra.scalar import Expression, Ref, Scalar
from weft.algebra.types import BOOLEAN, SqlType
from weft.errors import SqlError
from weft.sql.binding.analyzer import AnalysisProblem, Remembering
from weft.sql.binding.coercion import Typed
from weft.sql.binding.scalars import Typer
from weft.sql.fallback import Unshared
from weft.sql.reading.functions import (
    ADVICE,
    AGGREGATES,
    CHANGING,
    NAMING,
    ROW_CHANGING,
    SCALARS,
    UNSHARED_AGGREGATES,
)
from weft.sql.reading.source import Source
from weft.sql.reading.syntax import Binary, Function, Name, Star, SyntaxNode

_NESTED: Final = ("struct", "map", "array", "variant")
_PLACES = re.compile(r"\s*SQLSTATE: .*|^\[[A-Z_.]+\]\s*", re.DOTALL)
IN_FILTER: Final = "in FILTER"
IN_ARGUMENT: Final = "inside another aggregate"
AGGREGATED: Final = frozenset({IN_FILTER, IN_ARGUMENT})
WINDOWING: Final = frozenset({"window", "session_window", "window_time"})


@lru_cache(maxsize=1024)
def columns_of(stream: StreamSchema) -> dict[str, tuple[Field, Typed]]:
    """The stream's columns by their names in lower case."""
    return {
        column.name.lower(): (
            column,
            Typed(quote(column.name), column.type, False, Ref(column.name, column.type)),
        )
        for column in stream.fields
    }


@dataclass(slots=True)
class Rows:
    """Binds row-level expressions of one query; a scope of the stream's columns.

    `qualifier` is what may stand before a column's name: the alias, else the stream's name.
    """

    source: Source
    stream: StreamSchema
    qualifier: str
    analyzer: Remembering
    ansi: bool
    clause: str = "here"
    _used: set[str] = field(default_factory=set)

    def expression(self, node: SyntaxNode, clause: str) -> Expression:
        """The bound form of an expression; `clause` says where it stands, for errors."""
        return self._expression(node, clause)[0]

    def _expression(
        self, node: SyntaxNode, clause: str, opaque: bool = False
    ) -> tuple[Expression, Scalar | None]:
        self.clause = clause
        self._used = set()
        typer = Typer(self, self.ansi, opaque)
        typed = typer.type(node)
        type_ = typed.type
        if type_ is None:
            type_ = self.ask(typed.sql, typer.doubt or node)
        columns = tuple(sorted(self._used))
        return Expression(typed.sql, type_, columns, typed.can_raise), typed.scalar

    def condition(self, node: SyntaxNode, clause: str) -> Expression:
        """The bound form of a WHERE clause, of which only `true` counts.

        Spark stops at the first conjunct that is false or NULL, so a conjunct that can raise
        is evaluated only behind those before it. A plain AND would evaluate it after a NULL.
        """
        whole, scalar = self._expression(node, clause, opaque=True)
        if scalar is not None and whole.type == BOOLEAN and not whole.can_raise:
            canonical = condition(scalar)
            return replace(whole, sql=canonical.sql, condition=canonical)
        conjuncts = _conjuncts(node)
        if not whole.can_raise or len(conjuncts) == 1:
            return whole
        *before, sql = [self.expression(part, clause).sql for part in conjuncts]
        for part in reversed(before):
            sql = f"CASE WHEN {part} THEN {sql} ELSE false END"
        return replace(whole, sql=sql)

    def ask(self, sql: str, node: SyntaxNode) -> SqlType:
        """The type that Spark gives an expression over the stream's columns."""
        answer = self.analyzer.type(self.stream.fields, sql)
        if isinstance(answer, AnalysisProblem):
            raise refusal(self.source, node, answer)
        return answer

    def canonical(self, node: SyntaxNode) -> str | None:
        """The canonical SQL of a node, None if it is no row-level expression."""
        used, self._used = self._used, set()
        try:
            return Typer(self, self.ansi).type(node).sql
        except (SqlError, Unshared):
            return None
        finally:
            self._used = used

    def leaf(self, node: SyntaxNode) -> Typed | None:
        if isinstance(node, Name):
            return self.column(node)
        if isinstance(node, Star):
            raise Unshared("* among expressions has no shared form", node.start)
        return None

    def column(self, node: Name) -> Typed:
        meaning = self.find(node)
        if meaning is None:
            if node.parts[0].lower() == "window" and self.clause in AGGREGATED:
                raise Unshared("the window inside an aggregate has no shared form", node.start)
            raise self.unknown(node)
        column, typed, path = meaning
        self._used.add(column.name)
        return with_path(typed, path)

    def find(self, node: Name) -> tuple[Field, Typed, tuple[str, ...]] | None:
        """The column that a name means, and the fields of it that follow."""
        columns = columns_of(self.stream)
        parts = node.parts
        if len(parts) > 1 and parts[0].lower() == self.qualifier:
            column = columns.get(parts[1].lower())
            if column is not None:
                return (*column, parts[2:])
        column = columns.get(parts[0].lower())
        if column is None or (len(parts) > 1 and not column[0].type.startswith(_NESTED)):
            return None
        return (*column, parts[1:])

    def unknown(self, node: Name) -> SqlError:
        columns = ", ".join(column.name for column in self.stream.fields)
        return self.source.error(
            "UNKNOWN_COLUMN",
            node.start,
            name=".".join(node.parts),
            stream=self.stream.name,
            known=columns,
        )

    def call(self, node: Function) -> None:
        name = node.name
        if name in AGGREGATES or name in UNSHARED_AGGREGATES:
            raise self.source.error(
                "INVALID_QUERY",
                node.start,
                detail=f"the aggregate {name} cannot stand {self.clause}",
            )
        if name in WINDOWING:
            advice = ADVICE.get(name, "")
            raise Unshared(f"{name} {self.clause} has no shared form", node.start, advice)
        check_function(node)


def check_function(node: Function) -> None:
    """Raises unless the function is a built-in one that depends on its arguments only."""
    name = node.name
    if name in CHANGING or (name == "unix_timestamp" and not node.arguments):
        advice = ADVICE.get(name, "")
        raise Unshared(f"{name} may change from run to run", node.start, advice)
    if name in ROW_CHANGING:
        raise Unshared(f"{name} makes several rows of one", node.start)
    if name in NAMING:
        raise Unshared(f"{name} has no shared form", node.start)
    if name not in SCALARS:
        raise Unshared(
            f"{name} is a user's function, or one that weft does not know",
            node.start,
            "with Spark's built-in functions alone the query would be shared",
        )
    if node.distinct or node.star or node.filter is not None or node.nulls is not None:
        raise Unshared(f"{name} is called like an aggregate", node.start)


def with_path(typed: Typed, path: tuple[str, ...]) -> Typed:
    """A field inside a value; which type it has, only Spark can tell."""
    if not path:
        return typed
    return Typed(typed.sql + "".join(f".{quote(part.lower())}" for part in path), None)


def refusal(source: Source, node: SyntaxNode, problem: AnalysisProblem) -> SqlError:
    """The error for an expression that Spark refuses, without the places in the text it saw."""
    message = _PLACES.sub("", problem.message.strip()).split("\n", 1)[0] or problem.error_class
    if problem.error_class.startswith("DATATYPE_MISMATCH"):
        return source.error("TYPE_MISMATCH", node.start, detail=message)
    return source.error("INVALID_QUERY", node.start, detail=message)


def _conjuncts(node: SyntaxNode) -> list[SyntaxNode]:
    if isinstance(node, Binary) and node.operator == "and":
        return [*_conjuncts(node.left), *_conjuncts(node.right)]
    return [node]
