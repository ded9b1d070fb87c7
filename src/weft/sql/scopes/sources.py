"""FROM: relations, joins between them, subqueries and common table expressions.

`Sources` gives the scope that a SELECT's FROM makes, and collects the inputs (streams and tables, a slot
for every time that one is read) and, in blocks, the conditions of ON, USING, and of the WHERE clauses of
subqueries. A subquery that only selects, projects or renames is thereby merged into the query that reads it, and so is
one branch of a union (`unions`). Where a subquery removes duplicates this is noted, and they are not
removed there: it must not matter, or be made up for, above. What groups or limits is not merged.

ON sees what stands before it in FROM, and nothing behind. USING and NATURAL show each
pair of joined columns once, in front: of an outer join that of the side whose rows are all kept. A common
table expression is bound anew wherever it is read.

Of outer joins, the side whose rows may be missing must be tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from weft.algebra.predicates.slots import plain_name, slot_of
from weft.algebra.query import Field
from weft.algebra.scalar import Call, Ref
from weft.algebra.types import BOOLEAN, is_stored
from weft.sql.fallback import Unshared
from weft.sql.reading import syntax
from weft.sql.reading.source import Source
from weft.sql.reading.syntax import (
    FromPart,
    Join,
    QueryExpression,
    Select,
    SetOperation,
)
from weft.sql.scopes.block import Block, Condition, OptionalTables, Pair, if_found
from weft.sql.scopes.inputs import Inputs
from weft.sql.scopes.projection import Projection, aggregates
from weft.sql.scopes.rows import Rows
from weft.sql.scopes.scope import Column, Relation, Scope, base_columns
from weft.sql.scopes.subqueries import mark
from weft.sql.scopes.unions import Choices, Columns, Leaf, Leaves, Visible, with_definitions
from weft.sql.typing.analyzer import Remembering
from weft.sql.typing.coercion import Typed
from weft.sql.typing.exact import Exact

MOST_INPUTS: Final = 15
_INNER: Final = frozenset({"inner", "cross"})
_OUTER: Final = frozenset({"left", "right", "left semi", "left anti", "semi", "anti"})


@dataclass(frozen=True, slots=True)
class Input:
    """A stream or table that the query reads, the name that the query has for it, and its token."""

    relation: str
    alias: str
    at: int
    window: syntax.InputWindow | None = None


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
    windows: bool = False
    """Whether it is for an aggregation join: inputs have windows, and columns are named by slot in any case."""
    read: list[Input] = field(default_factory=list)
    block: Block = field(default_factory=Block)
    """The block that is being read: in the end the outermost one."""
    crossed: list[tuple[int, int]] = field(default_factory=list)
    """Inputs that CROSS JOIN connects on purpose."""
    base: list[Field] = field(default_factory=list)
    choices: Choices | None = None
    """Which branches of unions are read; None: unions have no shared form."""
    unremoved: list[Unremoved] = field(default_factory=list)
    marks: dict[int, Typed] = field(default_factory=dict)
    """The truth values of subqueries in conditions that have been bound, by the identity of their nodes."""
    shown: frozenset[str] = frozenset()
    """The values of the result columns, as SQL over the inputs."""

    @property
    def conditions(self) -> list[Condition]:
        """The conditions of the block that is being read."""
        return self.block.conditions

    def rows(
        self, select: Select, visible: Mapping[str, Visible], outer: Rows | None = None
    ) -> Rows:
        """The rows that a SELECT reads, before its own WHERE, which is added to the conditions. Names
        that it does not know itself may be those of a query around it."""
        visible = with_definitions(select, visible)
        rows = self._over(self._part(select.source, visible), visible)
        rows.outer = outer
        if select.where is not None:
            self.conditions.append(Condition(rows, select.where, "WHERE"))
        return rows

    def _over(self, part: Scope, visible: Mapping[str, Visible]) -> Rows:
        scope = Scope(part.relations, part.visible, tuple(self.base))
        rows = Rows(self.source, scope, self.analyzer, self.ansi, self.exact)
        if self.exact is not None:
            rows.subquery = partial(mark, self, visible)
        return rows

    @contextmanager
    def within(self, block: Block) -> Iterator[None]:
        """What is read goes into another block meanwhile."""
        around, self.block = self.block, block
        try:
            yield
        finally:
            self.block = around

    def reads_stream(self, slots: Iterable[int]) -> bool:
        """Whether one of some inputs is a stream."""
        return any(self.inputs.find_stream(self.read[slot].relation) for slot in slots)

    def _part(self, part: FromPart, visible: Mapping[str, Visible]) -> Scope:
        if isinstance(part, Join):
            return self._join(part, visible)
        first = len(self.read)
        if part.query is not None:
            scope = self._derived(part, part.query, part.alias or "", visible)
            self._give_window(part, first)
            return scope
        definition = visible.get(part.name.lower()) if len(part.parts) == 1 else None
        if definition is not None:
            columns = definition.definition.columns
            query = definition.definition.query
            if part.bracket is not None:
                raise Unshared("a window in brackets after a subquery", part.at)
            named = syntax.Relation(part.at, (), query, None, columns)
            scope = self._derived(named, query, part.alias or part.name, definition.visible)
            self._give_window(part, first)
            return self._renamed(scope, part)
        return self._renamed(self._base(part), part)

    def _base(self, part: syntax.Relation) -> Scope:
        name, fields = self.inputs.relation(self.source, part.parts, part.at)
        slot = None if self.exact is None and not self.windows else len(self.read)
        alias = part.alias or part.parts[-1]
        if part.window is not None and not self.windows:
            raise Unshared("a window in brackets has no shared form here", part.window.at)
        self.read.append(Input(name, alias, part.at, part.window))
        if len(self.read) > MOST_INPUTS:
            raise self.source.error("TOO_MANY_INPUTS", part.at, most=MOST_INPUTS)
        columns = base_columns(fields, slot)
        if self.inputs.find_table(name) is not None:
            columns = tuple(replace(one, is_stored=is_stored(one.type)) for one in columns)
        for column, base in zip(columns, fields, strict=True):
            self.base.append(Field(column.reads[0], base.type))
        relation = Relation(alias.lower(), columns)
        return Scope((relation,), columns, ())

    def _give_window(self, part: syntax.Relation, first: int) -> None:
        """The window behind a subquery is that of the one stream which the subquery reads."""
        if part.window is None:
            return
        inside = range(first, len(self.read))
        streams = [slot for slot in inside if self.reads_stream(range(slot, slot + 1))]
        if len(streams) != 1 or self.read[streams[0]].window is not None:
            detail = (
                "the window behind a subquery is for the one stream in it, if that has none; "
                "write the windows inside of the subquery, behind the streams"
            )
            raise self.source.error("BAD_WINDOW", part.window.at, detail=detail)
        self.read[streams[0]] = replace(self.read[streams[0]], window=part.window)

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
        if isinstance(query, SetOperation) and self.block.kind != "all":
            raise Unshared(f"{query.words} of optional tables has no shared form", query.at)
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
        if leaf.distinct_in is not None and (self.exact is None or self.block.kind == "left"):
            raise Unshared(
                "SELECT DISTINCT in a subquery has no shared form", query.distinct_at or 0
            )
        first = len(self.read)
        rows = self.rows(query, leaf.visible)
        projection = Projection(rows, named=not leaf.names)
        selected = [column for column, _ in projection.columns(query.items)]
        self.compare(leaf, selected)
        columns = tuple(leaf.shaped(selected, self.exact))
        if leaf.distinct_in is not None and self.block.kind == "all":
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
            replace(column, name=name)
            for name, column in zip(part.columns, relation.columns, strict=True)
        )
        return Scope((Relation(relation.qualifier, columns),), columns, ())

    def _join(self, join: Join, visible: Mapping[str, Visible]) -> Scope:
        words = f"{join.kind.upper()} JOIN"
        if self.windows and join.kind not in _INNER:
            reason = (
                f"{words} of windows: aggregation sets have no entries for rows without a partner"
            )
            raise Unshared(reason, join.at, "write an inner JOIN")
        if join.kind in _OUTER and self.exact is not None:
            return self._optional(join, visible)
        if join.kind not in _INNER:
            raise Unshared(f"{words} has no shared form", join.at, "inner joins are shared")
        left = self._part(join.left, visible)
        inputs_left = len(self.read)
        right = self._part(join.right, visible)
        if join.kind == "cross":
            self.crossed += [
                (inputs_left - 1, right) for right in range(inputs_left, len(self.read))
            ]
        self._matching(join, left, right, visible)
        return self._joined(join, left, right)

    def _optional(self, join: Join, visible: Mapping[str, Visible]) -> Scope:
        """An outer join, or a join that only tests whether there is a match."""
        words = f"{join.kind.upper()} JOIN"
        tests_only = join.kind not in ("left", "right")
        outside, inside = self.block, Block("mark" if tests_only else "left")
        is_right = join.kind == "right"
        first = len(self.read)
        with self.within(inside if is_right else outside):
            left = self._part(join.left, visible)
        middle = len(self.read)
        with self.within(outside if is_right else inside):
            right = self._part(join.right, visible)
        slots = range(first, middle) if is_right else range(middle, len(self.read))
        if not tests_only and self.reads_stream(slots):
            reason = f"{words} has no shared form unless the side that may be missing is a table"
            raise Unshared(reason, join.at)
        with self.within(inside):
            self._matching(join, left, right, visible)
        tables = OptionalTables(slots, inside, words, join.at)
        if tests_only:
            self._test(tables, negated="anti" in join.kind)
            return left
        outside.tables.append(tables)
        if is_right:
            return self._joined(join, right, _optional_columns(left, slots[0]), left_first=False)
        return self._joined(join, left, _optional_columns(right, slots[0]))

    def _test(self, tables: OptionalTables, *, negated: bool) -> None:
        """Only rows with a match in some tables count, or only those without."""
        match = tables.found.scalar
        assert match is not None
        self.block.tables.append(tables)
        self.block.tests.append(Call("not", (match,), BOOLEAN) if negated else match)

    def compare(self, leaf: Leaf, columns: Sequence[Column]) -> None:
        """Take up what EXCEPT or INTERSECT compares the rows of a SELECT with. NULL equals NULL there;
        rows without event time are not admitted, so of two event times it does not matter."""
        against = leaf.against
        if against is None:
            return
        block, first = Block("mark"), len(self.read)
        with self.within(block):
            rows = self.rows(against.leaf.select, against.leaf.visible)
            items = against.leaf.select.items
            selected = [column for column, _ in Projection(rows, named=False).columns(items)]
        mine = leaf.shaped(columns, self.exact, against.casts)
        others = against.leaf.shaped(selected, self.exact)
        words = f"compared by {against.words}"
        for left, right in zip(mine, others, strict=True):
            null_safe = not (self._is_event_time(left) and self._is_event_time(right))
            block.pairs.append(Pair(left.value, right.value, against.at, words, null_safe))
        tables = OptionalTables(range(first, len(self.read)), block, against.words, against.at)
        self._test(tables, negated=against.excludes)

    def _is_event_time(self, column: Column) -> bool:
        value = column.value.scalar
        if not isinstance(value, Ref):
            return False
        stream = self.inputs.find_stream(self.read[slot_of(value.name)].relation)
        return stream is not None and plain_name(value.name) == stream.time

    def _matching(
        self, join: Join, left: Scope, right: Scope, visible: Mapping[str, Visible]
    ) -> None:
        """Take up the conditions of a join."""
        for name in _common_names(join, left, right):
            mine, other = self._only(left, name, join), self._only(right, name, join)
            self.block.pairs.append(Pair(mine.value, other.value, join.at))
        if join.on is not None:
            columns = (*left.visible, *right.visible)
            scope = Scope((*left.relations, *right.relations), columns, ())
            self.conditions.append(Condition(self._over(scope, visible), join.on, "ON"))

    def _joined(self, join: Join, kept: Scope, other: Scope, *, left_first: bool = True) -> Scope:
        """The scope of a join. Of the columns that USING joins, those of the kept side are shown."""
        shown: list[Column] = []
        hidden: set[int] = set()
        for name in _common_names(join, kept, other):
            shown.append(self._only(kept, name, join))
            hidden.update((id(shown[-1]), id(self._only(other, name, join))))
        left, right = (kept, other) if left_first else (other, kept)
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


def _common_names(join: Join, left: Scope, right: Scope) -> tuple[str, ...]:
    """The columns that USING or NATURAL joins."""
    if not join.natural:
        return join.using
    others = {column.name.lower() for column in right.visible}
    return tuple(column.name for column in left.visible if column.name.lower() in others)


def _optional_columns(scope: Scope, slot: int) -> Scope:
    """The scope of tables whose rows may be missing."""
    every = [column for relation in scope.relations for column in relation.columns]
    columns = {id(column): if_found(column, slot) for column in (*every, *scope.visible)}
    relations = tuple(
        Relation(relation.qualifier, tuple(columns[id(column)] for column in relation.columns))
        for relation in scope.relations
    )
    return Scope(relations, tuple(columns[id(column)] for column in scope.visible), ())
