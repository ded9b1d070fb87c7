"""Row-level expressions: WHERE, ON, group keys, arguments and filters of aggregates."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.algebra.condition import condition
from weft.algebra.network.lookup import FOUND
from weft.algebra.predicates.slots import names_in
from weft.algebra.query import Field, quote
from weft.algebra.scalar import Call, Expression, Ref, Scalar, quoted_sql
from weft.algebra.types import BOOLEAN, SqlType
from weft.errors import SqlError
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
from weft.sql.reading.syntax import (
    Binary,
    Exists,
    Function,
    InSubquery,
    Name,
    Star,
    SyntaxNode,
)
from weft.sql.scopes.scope import Meaning, Scope
from weft.sql.typing.analyzer import AnalysisProblem, Remembering
from weft.sql.typing.coercion import Typed
from weft.sql.typing.exact import Exact
from weft.sql.typing.scalars import Typer

_PLACES = re.compile(r"\s*SQLSTATE: .*|^\[[A-Z_.]+\]\s*", re.DOTALL)
_SLOTS = re.compile(r"(?<![\w.])\d+\.(?=[A-Za-z_])")
"""The input's number before a column's name, which no user has written."""
IN_FILTER: Final = "in FILTER"
IN_ARGUMENT: Final = "inside another aggregate"
AGGREGATED: Final = frozenset({IN_FILTER, IN_ARGUMENT})
CONDITIONS: Final = frozenset({"in WHERE", "in ON"})
WINDOWING: Final = frozenset({"window", "session_window", "window_time"})


@dataclass(slots=True)
class Rows:
    """Binds row-level expressions of one SELECT over the relations of its FROM.

    `exact` is for joins: the rules of exact arithmetic.
    """

    source: Source
    scope: Scope
    analyzer: Remembering
    ansi: bool
    exact: Exact | None = None
    time: str = ""
    """The column that a window may be over: the event time of the one stream."""
    clause: str = "here"
    outer: Rows | None = None
    """Of a subquery in a condition: the rows of the query around it."""
    subquery: Callable[[InSubquery | Exists, Rows], Typed] | None = None
    """Binds a subquery in a condition; None: it has no shared form."""
    _used: set[str] = field(default_factory=set)

    def expression(self, node: SyntaxNode, clause: str) -> Expression:
        """The bound form of an expression; `clause` says where it stands, for errors."""
        return self.typed(node, clause)[0]

    def typed(
        self, node: SyntaxNode, clause: str, opaque: bool = False
    ) -> tuple[Expression, Scalar | None]:
        """The bound form of an expression, and its scalar if it has one. With `opaque`, every part
        that cannot raise has one."""
        self.clause = clause
        self._used = set()
        typer = Typer(self, self.ansi, opaque, self.exact)
        typed = typer.type(node)
        type_ = typed.type
        if type_ is None:
            type_ = self.ask(typed.sql, typer.doubt or node)
        columns = tuple(sorted(self._used))
        return Expression(typed.sql, type_, columns, typed.can_raise), typed.scalar

    def ask(self, sql: str, node: SyntaxNode) -> SqlType:
        """The type that Spark gives an expression over the columns of streams and tables."""
        marks = (Field(name, BOOLEAN) for name in self._used if name.endswith(f".{FOUND}"))
        fields = tuple(base for base in (*self.scope.base, *marks) if quote(base.name) in sql)
        answer = self.analyzer.type(fields, sql)
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
        if isinstance(node, InSubquery | Exists) and self.subquery is not None:
            if self.clause not in CONDITIONS:
                raise Unshared(f"a subquery {self.clause} has no shared form", node.start)
            return self._mark(self.subquery(node, self))
        return None

    def _mark(self, found: Typed) -> Typed:
        """What a subquery says of a row, as a column."""
        if isinstance(found.scalar, Ref):
            self._used.add(found.scalar.name)
        return found

    def column(self, node: Name) -> Typed:
        meaning = self.find(node)
        if meaning is None:
            if node.parts[0].lower() == "window" and self.clause in AGGREGATED:
                raise Unshared("the window inside an aggregate has no shared form", node.start)
            raise self.unknown(node)
        column, path = meaning
        if not column.is_stored:
            reason = f"a table's column of type {column.type} has no shared form"
            raise Unshared(reason, node.start)
        self._used.update(column.reads)
        return with_path(column.value, path)

    def find(self, node: Name) -> Meaning | None:
        """The column that a name means, and the fields of it that follow."""
        meanings = self.scope.meanings(node.parts)
        if not meanings and self.outer is not None:
            return self.outer.find(node)
        if len(meanings) > 1:
            raise self.source.error(
                "AMBIGUOUS_COLUMN",
                node.start,
                name=".".join(node.parts),
                relations=self.scope.described,
            )
        return meanings[0] if meanings else None

    def unknown(self, node: Name) -> SqlError:
        qualifiers = {relation.qualifier for relation in self.scope.relations}
        if self.outer is not None and len(node.parts) > 1:
            if node.parts[0].lower() not in qualifiers and self.outer.names(node.parts[0]):
                return self.outer.unknown(node)
        return self.source.error(
            "UNKNOWN_COLUMN",
            node.start,
            name=".".join(node.parts),
            stream=self.scope.described,
            known=self.scope.listed,
        )

    def names(self, qualifier: str) -> bool:
        """Whether a relation of FROM, here or further out, is called so."""
        if any(relation.qualifier == qualifier.lower() for relation in self.scope.relations):
            return True
        return self.outer is not None and self.outer.names(qualifier)

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
    message = _SLOTS.sub("", message)
    if problem.error_class.startswith("DATATYPE_MISMATCH"):
        return source.error("TYPE_MISMATCH", node.start, detail=message)
    return source.error("INVALID_QUERY", node.start, detail=message)


def where(
    parts: Sequence[tuple[Rows, SyntaxNode]], tests: Sequence[Scalar] = ()
) -> Expression | None:
    """The bound form of WHERE clauses, of a query and of the subqueries it reads: their conjunction,
    of which only `true` counts. None if there are none. `tests` are conditions that are bound already.

    Spark stops at the first conjunct that is false or NULL, so a conjunct that can raise is
    evaluated only behind those before it. A plain AND would evaluate it after a NULL.
    """
    tested = [
        Expression(quoted_sql(test), BOOLEAN, tuple(sorted(names_in(test)))) for test in tests
    ]
    bound: list[tuple[Expression, Scalar | None]] = list(zip(tested, tests, strict=True))
    bound += [boolean(rows, node, "WHERE", opaque=True) for rows, node in parts]
    if not bound:
        return None
    wholes = [whole for whole, _ in bound]
    scalars = [scalar for _, scalar in bound if scalar is not None]
    columns = tuple(sorted({name for whole in wholes for name in whole.columns}))
    can_raise = any(whole.can_raise for whole in wholes)
    if len(scalars) == len(bound) and not can_raise:
        whole_scalar = scalars[0] if len(scalars) == 1 else Call("and", tuple(scalars), BOOLEAN)
        canonical = condition(whole_scalar)
        return Expression(canonical.sql, BOOLEAN, columns, False, canonical)
    conjuncts = [(rows, part) for rows, node in parts for part in conjunct_nodes(node)]
    if len(conjuncts) + len(tested) == 1 or (len(wholes) == 1 and not can_raise):
        return wholes[0]
    if not can_raise:
        return Expression(" AND ".join(f"({whole.sql})" for whole in wholes), BOOLEAN, columns)
    texts = [test.sql for test in tested]
    *before, sql = texts + [rows.expression(part, "in WHERE").sql for rows, part in conjuncts]
    for part in reversed(before):
        sql = f"CASE WHEN {part} THEN {sql} ELSE false END"
    return Expression(sql, BOOLEAN, columns, True)


def boolean(
    rows: Rows, node: SyntaxNode, clause: str, opaque: bool = False
) -> tuple[Expression, Scalar | None]:
    """The bound form of a condition, which must be boolean."""
    whole, scalar = rows.typed(node, f"in {clause}", opaque)
    if whole.type != BOOLEAN:
        detail = f"{clause} needs a boolean, not {whole.type}"
        raise rows.source.error("TYPE_MISMATCH", node.start, detail=detail)
    return whole, scalar


def conjunct_nodes(node: SyntaxNode) -> list[SyntaxNode]:
    """The conditions that AND connects."""
    if isinstance(node, Binary) and node.operator == "and":
        return [*conjunct_nodes(node.left), *conjunct_nodes(node.right)]
    return [node]
