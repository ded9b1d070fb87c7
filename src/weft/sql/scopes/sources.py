"""FROM: relations, joins between them, subqueries and common table expressions.

`Sources` gives the scope that a SELECT's FROM makes, and collects the inputs (streams and tables, a slot
for every time that one is read) and the conditions of ON, USING, and of the WHERE clauses of subqueries.
A subquery that only selects, projects or renames is thereby merged into the query that reads it, and so is
one branch of a union (`unions`). Where a subquery removes duplicates this is noted, and they are not
removed there: it must not matter, or be made up for, above. What groups or limits is not merged.

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
from weft.sql.reading.syntax import (
    FromPart,
    Join,
    QueryExpression,
    Select,
    SetOperation,
    SyntaxNode,
)
from weft.sql.scopes.inputs import Inputs
from weft.sql.scopes.projection import Projection, aggregates
from weft.sql.scopes.rows import Rows
from weft.sql.scopes.scope import Column, Relation, Scope, base_columns
from weft.sql.scopes.unions import Choices, Columns, Leaf, Leaves, Visible, with_definitions
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


class Unremoved(NamedTuple):
    """A subquery that removes duplicates, read as if it did not."""

    key: tuple[int, int]
    """Its token and the number of the set: equal for branches of one UNION."""
    values: frozenset[str]
    """The values of its columns, as SQL over the inputs."""
    slots: range
    """The inputs that it reads."""


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
    choices: Choices | None = None
    """Which branches of unions are read; None: unions have no shared form."""
    unremoved: list[Unremoved] = field(default_factory=list)
    shown: frozenset[str] = frozenset()
    """The values of the result columns, as SQL over the inputs."""

    def rows(self, select: Select, visible: Mapping[str, Visible]) -> Rows:
        """The rows that a SELECT reads, before its own WHERE, which is added to the conditions."""
        rows = self._over(self._part(select.source, with_definitions(select, visible)))
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

    def leaves(self, query: QueryExpression, visible: Mapping[str, Visible]) -> list[Leaf]:
        """The SELECTs that a query consists of."""
        known = self.choices.known if self.choices is not None else {}

        def columns(select: Select, visible: Mapping[str, Visible], named: bool) -> Columns:
            apart = Sources(self.source, self.inputs, self.analyzer, self.ansi, self.exact)
            apart.choices = Choices(known)
            return Projection(apart.rows(select, visible), named).columns(select.items)

        if id(query) not in known:
            known[id(query)] = Leaves(self.source, self.analyzer, columns).of(query, visible)
        return known[id(query)]

    def _leaf(self, query: QueryExpression, visible: Mapping[str, Visible]) -> Leaf:
        """The SELECT that stands for a subquery: itself, or the chosen branch of a union."""
        if isinstance(query, SetOperation) and self.choices is None:
            raise Unshared(f"{query.words} below GROUP BY has no shared form", query.at)
        leaves = self.leaves(query, visible)
        return leaves[0] if self.choices is None else self.choices.take(leaves)

    def _derived(
        self,
        part: syntax.Relation,
        expression: QueryExpression,
        alias: str,
        visible: Mapping[str, Visible],
    ) -> Scope:
        leaf = self._leaf(expression, visible)
        query = leaf.select
        if aggregates(query):
            raise Unshared(
                "a subquery that groups or aggregates has no shared form",
                part.at,
                "register it as a query of its own",
            )
        if leaf.distinct_in is not None and self.exact is None:
            raise Unshared(
                "SELECT DISTINCT in a subquery has no shared form", query.distinct_at or 0
            )
        first = len(self.read)
        rows = self.rows(query, leaf.visible)
        projection = Projection(rows, named=not leaf.names)
        selected = [column for column, _ in projection.columns(query.items)]
        columns = tuple(leaf.shaped(selected, self.exact))
        if leaf.distinct_in is not None:
            values = frozenset(column.value.sql for column in columns)
            slots = range(first, len(self.read))
            self.unremoved.append(Unremoved((part.at, leaf.distinct_in), values, slots))
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
