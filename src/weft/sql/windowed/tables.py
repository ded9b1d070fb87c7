"""Tables beside the stream of a windowed aggregate: lookups of the stream's rows, before everything else.

The conditions of the query are bound twice. First by slot, with exact arithmetic, as those of joins are
(`sql.joins`): so it is found which tables are looked up, and by which conditions. Then over the rows that
result, in which a table's columns are called `t@i.column`: there WHERE is a predicate like that of a query on
the stream alone. Conditions that the lookups themselves enforce are left out of it.

Spark evaluates all of this, so what may raise in Spark is kept apart: such a condition of WHERE decides no
match, and is evaluated only on rows that the other conditions let through.

Declines several streams, subqueries that remove duplicates, and conditions that may raise in the optional
part of a join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.algebra.condition.canonical import NEVER
from weft.algebra.network.lookup import Lookup, prefix
from weft.algebra.predicates import OrPredicate, PredicateSet
from weft.algebra.predicates.slots import (
    column_name,
    names_in,
    plain_name,
    renamed,
    renamed_by,
    slot_of,
)
from weft.algebra.query import Field, StreamSchema
from weft.algebra.scalar import Expression, Opaque, Scalar
from weft.algebra.types import BOOLEAN
from weft.errors import SqlError
from weft.sql.fallback import Unshared
from weft.sql.joins.bound import BoundBlock, bound_block
from weft.sql.joins.conditions import canonical, equal, may_raise, with_names
from weft.sql.joins.connected import check_connected
from weft.sql.joins.lookups import Folded, folded
from weft.sql.reading.syntax import Exists, InSubquery, SyntaxNode, walk
from weft.sql.scopes.block import Condition
from weft.sql.scopes.rows import Rows, boolean, conjunct_nodes, where
from weft.sql.scopes.scope import Column, Relation, Scope
from weft.sql.scopes.sources import Sources
from weft.sql.typing.coercion import Typed

_NO_ROW = Expression(NEVER.sql, BOOLEAN, (), False, NEVER)


@dataclass(frozen=True)
class LookedUp:
    """The rows of a stream after its lookups, and what WHERE asks of them."""

    rows: Rows
    lookups: tuple[Lookup, ...]
    predicate: Expression | None


def looked_up(sources: Sources, rows: Rows, stream: StreamSchema) -> LookedUp:
    """The stream's rows with the columns of all tables that the query reads."""
    if sources.unremoved:
        at = sources.unremoved[0].key[0]
        raise Unshared("SELECT DISTINCT in a subquery has no shared form", at)
    conditions = [
        Condition(condition.rows, node, condition.clause)
        for condition in sources.conditions
        for node in conjunct_nodes(condition.node)
    ]
    raising = {id(c.node): slots for c in conditions if (slots := _raising(c)) is not None}
    sources.block.conditions = [c for c in conditions if id(c.node) not in raising]
    block = bound_block(sources, rows)
    check_connected(sources, block, raising.values())
    _check_matches(sources, block, [c for c in conditions if id(c.node) in raising])
    folding = _Renaming(sources, folded(sources, block, every_table=True))
    lookups = folding.folded.inputs[0].lookups
    predicate: Expression | None = _NO_ROW
    if not block.predicates.never:
        predicate = _predicate(sources, rows, conditions, folding)
    after = folding.rows(rows)
    after.time = stream.time
    return LookedUp(after, lookups, predicate)


def _check_matches(sources: Sources, block: BoundBlock, raising: Sequence[Condition]) -> None:
    """Raises if tables are found by nothing but conditions that may raise an error."""
    try:
        check_connected(sources, block)
    except SqlError:
        first = raising[0]
        what = f"a condition in {first.clause} that finds rows of a table"
        raise may_raise(first.rows, first.node, what) from None


def _raising(condition: Condition) -> frozenset[int] | None:
    """The inputs that a condition reads that may raise an error; None if it does not."""
    if _has_subquery(condition.node):
        return None
    whole, _ = boolean(condition.rows, condition.node, condition.clause, opaque=True)
    return frozenset(map(slot_of, whole.columns)) if whole.can_raise else None


def _has_subquery(node: SyntaxNode) -> bool:
    return any(isinstance(part, InSubquery | Exists) for part in walk(node))


def _predicate(
    sources: Sources, rows: Rows, conditions: Sequence[Condition], folding: _Renaming
) -> Expression | None:
    """What is left to ask of the rows after their lookups."""
    enforced = _enforced(folding.folded.inputs[0].lookups)

    def holds(scalar: Scalar) -> bool:
        return enforced.implies(canonical([scalar]).renamed(folding.folded.rename))

    parts: list[tuple[Rows, SyntaxNode]] = []
    for condition in conditions:
        if not _has_subquery(condition.node):
            whole, scalar = boolean(condition.rows, condition.node, condition.clause, opaque=True)
            if scalar is not None and not whole.can_raise:
                if holds(with_names(scalar, whole.columns, condition.node)):
                    continue
        parts.append((folding.rows(condition.rows), condition.node))
    pairs = [equal(sources, rows, pair) for pair in sources.block.pairs]
    tests = [*sources.block.tests, *(pair for pair in pairs if not holds(pair))]
    predicate = where(parts, [renamed_by(test, folding.name) for test in tests])
    return None if predicate is not None and predicate.sql == "true" else predicate


def _enforced(lookups: Sequence[Lookup]) -> PredicateSet:
    """What holds of every row after inner lookups, over the columns that it has then."""
    predicates: list[OrPredicate] = []
    for number, lookup in enumerate(lookups):
        beginning = prefix(lookup.table, number)

        def after(name: str, beginning: str = beginning) -> str:
            return column_name(0, (beginning if slot_of(name) else "") + plain_name(name))

        if lookup.kind == "inner":
            predicates += lookup.predicates.renamed(after).predicates
    return PredicateSet(tuple(predicates))


@dataclass(frozen=True)
class _Renaming:
    """From columns by slot to those of the rows after their lookups."""

    sources: Sources
    folded: Folded

    def name(self, name: str) -> str:
        return plain_name(self.folded.rename(name))

    def rows(self, rows: Rows) -> Rows:
        """The rows of a scope, for expressions that Spark evaluates."""
        after = Rows(rows.source, self._scope(rows.scope), rows.analyzer, rows.ansi)
        after.subquery = self._mark
        return after

    def _mark(self, node: InSubquery | Exists, rows: Rows) -> Typed:
        """The truth value of a subquery, which was bound before."""
        mark = self.sources.marks.get(id(node))
        if mark is None:
            raise Unshared("a subquery has no shared form here", node.start)
        assert mark.scalar is not None
        return self._typed(mark, tuple(names_in(mark.scalar)))

    def _scope(self, scope: Scope) -> Scope:
        columns = {
            id(column): self._column(column)
            for column in (*scope.visible, *(c for r in scope.relations for c in r.columns))
        }
        return Scope(
            tuple(
                Relation(r.qualifier, tuple(columns[id(column)] for column in r.columns))
                for r in scope.relations
            ),
            tuple(columns[id(column)] for column in scope.visible),
            tuple(Field(self.name(base.name), base.type) for base in scope.base),
        )

    def _column(self, column: Column) -> Column:
        value = self._typed(column.value, column.reads)
        return replace(column, value=value, reads=tuple(map(self.name, column.reads)))

    def _typed(self, value: Typed, reads: tuple[str, ...]) -> Typed:
        names = {name: self.name(name) for name in reads}
        text = renamed(Opaque(value.sql, reads, value.type or ""), names)
        assert isinstance(text, Opaque)
        scalar = None if value.scalar is None else renamed(value.scalar, names)
        return replace(value, sql=text.sql, scalar=scalar)
