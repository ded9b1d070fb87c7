"""Set operations as a list of SELECTs, and the choice of one of them where a query reads a union.

Selections, projections and inner joins distribute over UNION ALL. So a query that reads a union is bound
once for every branch of it, as if it read that branch alone; if it reads several, once for every
combination. `Choices` counts through them: binding meets the unions of a query in an order that depends
only on the choices before.

The names of a union's columns are those of its first branch. Their types are widened from operation to
operation, as Spark does it: a date that meets a timestamp first and a string then is cast twice.

EXCEPT and INTERSECT keep the SELECTs of their left side, each with what it is compared with: the one SELECT of
the right side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from weft.algebra.types import SqlType
from weft.sql.fallback import Unshared
from weft.sql.reading.source import Source
from weft.sql.reading.syntax import (
    Definition,
    QueryExpression,
    Select,
    SetOperation,
    SyntaxNode,
)
from weft.sql.scopes.projection import aggregates
from weft.sql.scopes.scope import Column
from weft.sql.typing.analyzer import AnalysisProblem, Remembering
from weft.sql.typing.exact import Exact
from weft.sql.typing.widening import common_column_type, widened


class Visible(NamedTuple):
    """A common table expression, and those that it can read itself."""

    definition: Definition
    visible: Definitions


Definitions = Mapping[str, Visible]
Columns = Sequence[tuple[Column, SyntaxNode]]


def with_definitions(query: QueryExpression, visible: Definitions) -> Definitions:
    """What can be read inside of a query: also what it defines itself."""
    for definition in query.definitions:
        visible = {**visible, definition.name.lower(): Visible(definition, visible)}
    return visible


@dataclass(frozen=True)
class Against:
    """What the rows of a SELECT are compared with: EXCEPT leaves out those that the other one has, too,
    INTERSECT the others."""

    leaf: Leaf
    excludes: bool
    words: str
    at: int
    casts: int
    """How many operations the SELECT has gone through before they are compared, this one included."""


@dataclass(frozen=True)
class Leaf:
    """A SELECT among set operations, and what its columns are in the whole."""

    select: Select
    visible: Definitions
    """The common table expressions that it can read."""
    distinct_in: int | None = None
    """The number of the set that its rows go to; None: all rows count."""
    names: tuple[str, ...] = ()
    casts: tuple[tuple[SqlType, ...], ...] = ()
    """The types of its columns in each operation, from the innermost to the outermost."""
    against: Against | None = None

    def shaped(
        self, columns: Sequence[Column], exact: Exact | None, operations: int | None = None
    ) -> list[Column]:
        """The columns of the SELECT as columns of the whole, or of the innermost operations."""
        shaped = list(columns)
        for types in self.casts[:operations]:
            for place, type_ in enumerate(types):
                column = shaped[place]
                value = widened(column.value, type_, exact)
                shaped[place] = Column(column.name, type_, value, column.reads)
        for place, name in enumerate(self.names):
            column = shaped[place]
            shaped[place] = Column(name, column.type, column.value, column.reads)
        return shaped


class _Shape(NamedTuple):
    """A column of a set operation: its name, its type, and where it stands in the text."""

    name: str
    type: SqlType
    at: int


@dataclass
class Leaves:
    """Takes set operations apart."""

    source: Source
    analyzer: Remembering
    columns: Callable[[Select, Definitions, bool], Columns]
    """Binds the columns of a SELECT, for their types, and for their names if so asked."""
    _sets: int = 0

    def of(self, query: QueryExpression, visible: Definitions) -> list[Leaf]:
        """The SELECTs of a query, in the order of the text."""
        if isinstance(query, Select):
            return [Leaf(query, visible, None if query.distinct_at is None else 0)]
        leaves, shape = self._taken_apart(query, visible, named=True)
        names = tuple(column.name for column in shape)
        return [replace(leaf, names=names) for leaf in leaves]

    def _taken_apart(
        self, query: QueryExpression, visible: Definitions, *, named: bool
    ) -> tuple[list[Leaf], list[_Shape]]:
        if isinstance(query, Select):
            return self._select(query, visible, named)
        visible = with_definitions(query, visible)
        if query.kind != "union" and query.every:
            detail = (
                f"{query.words} of streams compares how often a row comes on both sides, which is not "
                f"known before both have ended; {query.kind.upper()} compares the rows alone"
            )
            raise self.source.error("UNSUPPORTED", query.at, detail=detail)
        left, left_shape = self._taken_apart(query.left, visible, named=named)
        right, right_shape = self._taken_apart(query.right, visible, named=False)
        shape = self._common(query, left_shape, right_shape)
        types = tuple(column.type for column in shape)
        left, right = (
            [replace(leaf, casts=(*leaf.casts, types)) for leaf in side] for side in (left, right)
        )
        if query.kind == "union":
            leaves = [*left, *right]
        else:
            leaves = self._compared(query, left, right)
        if not query.every:
            number = self._new_set()
            leaves = [replace(leaf, distinct_in=number) for leaf in leaves]
        return leaves, shape

    def _compared(
        self, query: SetOperation, left: Sequence[Leaf], right: Sequence[Leaf]
    ) -> list[Leaf]:
        """The SELECTs of the left side, to be compared with that of the right side."""
        if len(right) > 1 or any(leaf.against is not None for leaf in (*left, *right)):
            reason = (
                f"{query.words} beside other set operations that it compares has no shared form"
            )
            raise Unshared(reason, query.at, "register each part as a query of its own")
        (other,) = right
        return [
            replace(
                leaf,
                against=Against(
                    other, query.kind == "except", query.words, query.at, len(leaf.casts)
                ),
            )
            for leaf in left
        ]

    def _select(
        self, select: Select, visible: Definitions, named: bool
    ) -> tuple[list[Leaf], list[_Shape]]:
        if aggregates(select):
            raise Unshared(
                "a set operation on queries that group or aggregate has no shared form",
                select.group_at or 0,
                "register each of them as a query of its own",
            )
        number = None if select.distinct_at is None else self._new_set()
        shape = [
            _Shape(column.name, column.type, node.start)
            for column, node in self.columns(select, visible, named)
        ]
        return [Leaf(select, visible, number)], shape

    def _new_set(self) -> int:
        self._sets += 1
        return self._sets - 1

    def _common(
        self, operation: SetOperation, left: Sequence[_Shape], right: Sequence[_Shape]
    ) -> list[_Shape]:
        if len(left) != len(right):
            detail = f"{operation.words} of {_counted(left)} with {_counted(right)}"
            raise self.source.error("INVALID_QUERY", operation.at, detail=detail)
        shape: list[_Shape] = []
        for mine, other in zip(left, right, strict=True):
            type_ = common_column_type(self.analyzer, mine.type, other.type)
            if isinstance(type_, AnalysisProblem):
                detail = (
                    f"the column '{mine.name}' of {operation.words} has the types "
                    f"{mine.type} and {other.type}, which have no common type"
                )
                raise self.source.error("TYPE_MISMATCH", other.at, detail=detail)
            shape.append(_Shape(mine.name, type_, mine.at))
        return shape


def _counted(columns: Sequence[_Shape]) -> str:
    return f"{len(columns)} column" + ("s" if len(columns) > 1 else "")


@dataclass
class Choices:
    """Which branch is taken at every union that binding meets, in the order in which it meets them."""

    known: dict[int, list[Leaf]] = field(default_factory=dict)
    """The branches of the unions met so far, by the identity of their syntax."""
    _taken: list[int] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _met: int = 0

    def take(self, leaves: Sequence[Leaf]) -> Leaf:
        """The branch to take of the next union."""
        number = self._met
        self._met += 1
        if number == len(self._taken):
            self._taken.append(0)
            self._sizes.append(len(leaves))
        return leaves[self._taken[number]]

    def advance(self) -> bool:
        """Go on to the next combination; whether there is one."""
        self._met = 0
        while self._taken:
            self._taken[-1] += 1
            if self._taken[-1] < self._sizes[-1]:
                return True
            self._taken.pop()
            self._sizes.pop()
        return False
