"""A select list without aggregates: of a filter, a join, or a subquery in FROM.

Every column becomes a value over the columns of streams and tables. An alias can be used by the
expressions behind it, as in Spark, unless a column has that name.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.sql.fallback import Unshared
from weft.sql.reading.functions import AGGREGATES, UNSHARED_AGGREGATES
from weft.sql.reading.syntax import Function, Item, Name, Select, Star, SyntaxNode, walk
from weft.sql.scopes.names import output_name
from weft.sql.scopes.rows import Rows, with_path
from weft.sql.scopes.scope import Column
from weft.sql.typing.coercion import Typed
from weft.sql.typing.scalars import Typer

IN_SELECT = "in a select list without GROUP BY"


@dataclass(slots=True)
class Projection:
    """Binds the items of one select list."""

    rows: Rows
    named: bool = True
    """Whether columns without an alias need the name that Spark gives them."""
    aliases: dict[str, Typed] = field(default_factory=dict)
    lateral: set[str] = field(default_factory=set)
    _reads: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _named: bool = False
    """Whether the item at hand has an alias. Without one, Spark's name of it is not for people."""

    def columns(self, items: list[Item]) -> list[tuple[Column, SyntaxNode]]:
        """The columns of the list, each with the item that it comes from."""
        columns: list[tuple[Column, SyntaxNode]] = []
        for item in items:
            if isinstance(item.node, Star):
                columns += [(column, item.node) for column in self._starred(item, item.node)]
            else:
                columns.append((self._column(item), item.node))
        return columns

    def _starred(self, item: Item, star: Star) -> tuple[Column, ...]:
        starred = self.rows.scope.starred(star.qualifier)
        if item.alias is not None:
            raise Unshared("an alias after * has no shared form", star.start)
        if starred is not None:
            return starred
        if self.rows.find(Name(star.start, star.stop - 2, star.qualifier)) is not None:
            raise Unshared("the fields of a struct by .* have no shared form", star.start)
        raise self.rows.source.error(
            "UNKNOWN_COLUMN",
            star.start,
            name=".".join((*star.qualifier, "*")),
            stream=self.rows.scope.described,
            known=self.rows.scope.listed,
        )

    def _column(self, item: Item) -> Column:
        self.rows.clause = IN_SELECT
        self._used = set()
        self._named = item.alias is not None
        typer = Typer(self, self.rows.ansi, opaque=True, exact=self.rows.exact)
        typed = typer.type(item.node)
        type_ = typed.type
        if type_ is None:
            type_ = self.rows.ask(typed.sql, typer.doubt or item.node)
        reads = tuple(sorted(self._used))
        value = Typed(typed.sql, type_, typed.can_raise, typed.scalar)
        name = output_name(item, self) if self.named else item.alias or ""
        column = Column(name, type_, value, reads)
        if item.alias is not None:
            self.aliases[item.alias.lower()] = value
            self._reads[item.alias.lower()] = reads
        return column

    def leaf(self, node: SyntaxNode) -> Typed | None:
        if not isinstance(node, Name):
            return self.rows.leaf(node)
        meaning = self.rows.find(node)
        if meaning is not None:
            self._used.update(meaning.column.reads)
            return with_path(meaning.column.value, meaning.path)
        alias = node.parts[0].lower()
        if alias not in self.aliases:
            raise self.rows.unknown(node)
        if not self._named:
            raise Unshared(
                "an alias used in an expression without one has no shared form",
                node.start,
                "give the expression an alias",
            )
        self._used.update(self._reads[alias])
        return with_path(self.aliases[alias], node.parts[1:])

    def call(self, node: Function) -> None:
        self.rows.call(node)


def first_aggregate(node: SyntaxNode) -> Function | None:
    """The first call of an aggregate function in an expression."""
    for part in walk(node):
        if isinstance(part, Function):
            if part.name in AGGREGATES or part.name in UNSHARED_AGGREGATES:
                return part
    return None


def aggregates(select: Select) -> bool:
    """Whether a SELECT groups or aggregates rows."""
    if select.bracket is not None or select.group_at is not None or select.having is not None:
        return True
    return any(first_aggregate(item.node) is not None for item in select.items)
