"""FROM: relations, joins between them, subqueries and common table expressions.

`Sources` gives the scope that a SELECT's FROM makes, and collects the inputs (streams and tables, a slot
for every time that one is read) and the conditions of ON, USING, and of the WHERE clauses of subqueries.
A subquery that only selects, projects or renames is thereby merged into the query that reads it. What
groups, removes duplicates or limits is not merged.

ON sees what stands before it in FROM, and nothing behind. USING and NATURAL show each
pair of joined columns once, in front. A common table expression is bound anew wherever it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from weft.algebra.query import Field
from weft.sql.fallback import Unshared
from weft.sql.reading import syntax
from weft.sql.reading.source import Source
from weft.sql.reading.syntax import Definition, FromPart, Join, Select, SyntaxNode
from weft.sql.scopes.inputs import Inputs
from weft.sql.scopes.projection import Projection, aggregates
from weft.sql.scopes.rows import Rows
from weft.sql.scopes.scope import Column, Relation, Scope, base_columns
from weft.sql.typing.analyzer import Remembering
from weft.sql.typing.coercion import Typed
from weft.sql.typing.exact import Exact

MOST_INPUTS: Final = 15
_INNER: Final = frozenset({"inner", "cross"})


@dataclass(frozen=True, slots=True)
class Input:
    """A stream or table that the query reads, the name that the query has for it, and its token."""

    relation: str
    alias: str
    at: int


class Condition(NamedTuple):
    """A condition that rows must meet: an expression over its own scope."""

    rows: Rows
    node: SyntaxNode
    clause: str


class Visible(NamedTuple):
    """A common table expression, and those that it can read itself."""

    definition: Definition
    visible: Mapping[str, Visible]


@dataclass(slots=True)
class Sources:
    """Reads the FROM clauses of one query. With `exact`, the rules of exact arithmetic, it is for a
    join: columns of streams and tables are named by slot."""

    source: Source
    inputs: Inputs
    analyzer: Remembering
    ansi: bool
    exact: Exact | None = None
    read: list[Input] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    pairs: list[tuple[Typed, Typed, int]] = field(default_factory=list)
    """The columns that USING and NATURAL join, and the token of the join."""
    crossed: list[tuple[int, int]] = field(default_factory=list)
    """Inputs that CROSS JOIN connects on purpose."""
    base: list[Field] = field(default_factory=list)

    def rows(self, select: Select, visible: Mapping[str, Visible]) -> Rows:
        """The rows that a SELECT reads, before its own WHERE, which is added to the conditions."""
        for definition in select.definitions:
            visible = {**visible, definition.name.lower(): Visible(definition, visible)}
        rows = self._over(self._part(select.source, visible))
        if select.where is not None:
            self.conditions.append(Condition(rows, select.where, "WHERE"))
        return rows

    def _over(self, part: Scope) -> Rows:
        scope = Scope(part.relations, part.visible, tuple(self.base))
        return Rows(self.source, scope, self.analyzer, self.ansi, self.exact)

    def _part(self, part: FromPart, visible: Mapping[str, Visible]) -> Scope:
        if isinstance(part, Join):
            return self._join(part, visible)
        if part.query is not None:
            return self._derived(part, part.query, part.alias or "", visible)
        definition = visible.get(part.name.lower()) if len(part.parts) == 1 else None
        if definition is not None:
            columns = definition.definition.columns
            query = definition.definition.query
            if part.bracket is not None:
                raise Unshared("a window in brackets after a subquery", part.at)
            named = syntax.Relation(part.at, (), query, None, columns)
            scope = self._derived(named, query, part.alias or part.name, definition.visible)
            return self._renamed(scope, part)
        return self._renamed(self._base(part), part)

    def _base(self, part: syntax.Relation) -> Scope:
        name, fields = self.inputs.relation(self.source, part.parts, part.at)
        slot = None if self.exact is None else len(self.read)
        alias = part.alias or part.parts[-1]
        self.read.append(Input(name, alias, part.at))
        if len(self.read) > MOST_INPUTS:
            raise self.source.error("TOO_MANY_INPUTS", part.at, most=MOST_INPUTS)
        columns = base_columns(fields, slot)
        for column, base in zip(columns, fields, strict=True):
            self.base.append(Field(column.reads[0], base.type))
        relation = Relation(alias.lower(), columns)
        return Scope((relation,), columns, ())

    def _derived(
        self, part: syntax.Relation, query: Select, alias: str, visible: Mapping[str, Visible]
    ) -> Scope:
        if aggregates(query):
            raise Unshared(
                "a subquery that groups or aggregates has no shared form",
                part.at,
                "register it as a query of its own",
            )
        if query.distinct_at is not None:
            raise Unshared("SELECT DISTINCT in a subquery has no shared form", query.distinct_at)
        rows = self.rows(query, visible)
        columns = tuple(column for column, _ in Projection(rows).columns(query.items))
        scope = Scope((Relation(alias.lower(), columns),), columns, ())
        return self._renamed(scope, part)

    def _renamed(self, scope: Scope, part: syntax.Relation) -> Scope:
        """The scope of one relation with the names that the query gives to its columns."""
        if not part.columns:
            return scope
        (relation,) = scope.relations
        if len(part.columns) != len(relation.columns):
            detail = f"{len(part.columns)} names for {len(relation.columns)} columns"
            raise self.source.error("INVALID_QUERY", part.at, detail=detail)
        columns = tuple(
            Column(name, column.type, column.value, column.reads)
            for name, column in zip(part.columns, relation.columns, strict=True)
        )
        return Scope((Relation(relation.qualifier, columns),), columns, ())

    def _join(self, join: Join, visible: Mapping[str, Visible]) -> Scope:
        if join.kind not in _INNER:
            raise Unshared(
                f"{join.kind.upper()} JOIN has no shared form yet",
                join.at,
                "inner joins are shared",
            )
        left = self._part(join.left, visible)
        inputs_left = len(self.read)
        right = self._part(join.right, visible)
        if join.kind == "cross":
            self.crossed += [
                (inputs_left - 1, right) for right in range(inputs_left, len(self.read))
            ]
        names = join.using
        if join.natural:
            others = {column.name.lower() for column in right.visible}
            names = tuple(column.name for column in left.visible if column.name.lower() in others)
        scope = self._using(join, names, left, right)
        if join.on is not None:
            self.conditions.append(Condition(self._over(scope), join.on, "ON"))
        return scope

    def _using(self, join: Join, names: tuple[str, ...], left: Scope, right: Scope) -> Scope:
        shown: list[Column] = []
        hidden: set[int] = set()
        for name in names:
            mine = self._only(left, name, join)
            other = self._only(right, name, join)
            self.pairs.append((mine.value, other.value, join.at))
            shown.append(mine)
            hidden.update((id(mine), id(other)))
        rest = [column for column in (*left.visible, *right.visible) if id(column) not in hidden]
        return Scope((*left.relations, *right.relations), (*shown, *rest), ())

    def _only(self, scope: Scope, name: str, join: Join) -> Column:
        meanings = scope.meanings((name,))
        if len(meanings) == 1:
            return meanings[0].column
        if meanings:
            raise self.source.error(
                "AMBIGUOUS_COLUMN", join.at, name=name, relations=scope.described
            )
        raise self.source.error(
            "UNKNOWN_COLUMN", join.at, name=name, stream=scope.described, known=scope.listed
        )
