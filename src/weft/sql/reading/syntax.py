"""The syntax tree of expressions, of a SELECT and of set operations, as the user wrote them.

Nodes carry the span of their tokens, so that errors and names can quote the user's text.
Parentheses leave no node: the tree is the grouping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class SyntaxNode:
    """Part of an expression: the tokens from `start` up to `stop`."""

    start: int
    stop: int

    def children(self) -> tuple[SyntaxNode, ...]:
        return ()


@dataclass(slots=True, eq=False)
class Name(SyntaxNode):
    """A column, alias or field path such as `b.price`."""

    parts: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Number(SyntaxNode):
    """A number as written, with its sign and suffix: `-1`, `17L`, `1.5e3`."""

    text: str


@dataclass(slots=True, eq=False)
class String(SyntaxNode):
    """A string; `value` is None where it has escapes that only Spark should resolve."""

    raw: str
    value: str | None


@dataclass(slots=True, eq=False)
class Constant(SyntaxNode):
    """TRUE, FALSE or NULL."""

    value: bool | None


@dataclass(slots=True, eq=False)
class TypedLiteral(SyntaxNode):
    """A literal with a type in front, `DATE '2020-01-01'`, or an interval; canonical text."""

    kind: str
    text: str


@dataclass(slots=True, eq=False)
class Unary(SyntaxNode):
    """`-`, `+`, `~` or `not` before an operand."""

    operator: str
    operand: SyntaxNode

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.operand,)


@dataclass(slots=True, eq=False)
class Binary(SyntaxNode):
    """An operator between two operands; comparisons, arithmetic, bits, `and`, `or`, `||`."""

    operator: str
    left: SyntaxNode
    right: SyntaxNode

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.left, self.right)


@dataclass(slots=True, eq=False)
class Is(SyntaxNode):
    """`x IS NULL`, `IS TRUE`, `IS FALSE`; negation is a `not` around it."""

    operand: SyntaxNode
    what: bool | None

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.operand,)


@dataclass(slots=True, eq=False)
class Between(SyntaxNode):
    operand: SyntaxNode
    low: SyntaxNode
    high: SyntaxNode

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.operand, self.low, self.high)


@dataclass(slots=True, eq=False)
class In(SyntaxNode):
    operand: SyntaxNode
    items: tuple[SyntaxNode, ...]

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.operand, *self.items)


@dataclass(slots=True, eq=False)
class InSubquery(SyntaxNode):
    """`x IN (SELECT …)`. The expressions of the subquery are not among the children."""

    operand: SyntaxNode
    query: Select

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.operand,)


@dataclass(slots=True, eq=False)
class Exists(SyntaxNode):
    """`EXISTS (SELECT …)`."""

    query: Select


@dataclass(slots=True, eq=False)
class Like(SyntaxNode):
    """LIKE, ILIKE or RLIKE; `escape` is the user's text of the ESCAPE character."""

    operator: str
    operand: SyntaxNode
    pattern: SyntaxNode
    escape: str | None

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.operand, self.pattern)


@dataclass(slots=True, eq=False)
class Case(SyntaxNode):
    """CASE; with an operand, every condition is compared with it."""

    operand: SyntaxNode | None
    branches: tuple[tuple[SyntaxNode, SyntaxNode], ...]
    otherwise: SyntaxNode | None

    def children(self) -> tuple[SyntaxNode, ...]:
        parts = [part for branch in self.branches for part in branch]
        ends = [end for end in (self.operand, self.otherwise) if end is not None]
        return (*parts, *ends)


@dataclass(slots=True, eq=False)
class Cast(SyntaxNode):
    """CAST, TRY_CAST or `::`; the type is in lower case without spaces."""

    operand: SyntaxNode
    type: str
    is_try: bool

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.operand,)


@dataclass(slots=True, eq=False)
class Function(SyntaxNode):
    """A function call; `name` is in lower case. `count(*)` has a star and no arguments."""

    name: str
    arguments: tuple[SyntaxNode, ...]
    distinct: bool = False
    star: bool = False
    filter: SyntaxNode | None = None
    nulls: str | None = None

    def children(self) -> tuple[SyntaxNode, ...]:
        return self.arguments if self.filter is None else (*self.arguments, self.filter)


@dataclass(slots=True, eq=False)
class FieldAccess(SyntaxNode):
    """A field of a value that is no plain path of names: `window(…).start`, `a[0].b`."""

    base: SyntaxNode
    name: str

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.base,)


@dataclass(slots=True, eq=False)
class Subscript(SyntaxNode):
    base: SyntaxNode
    index: SyntaxNode

    def children(self) -> tuple[SyntaxNode, ...]:
        return (self.base, self.index)


@dataclass(slots=True, eq=False)
class Star(SyntaxNode):
    """`*`, or `t.*` with the name before the star, in a select list."""

    qualifier: tuple[str, ...] = ()


def string_sql(raw: str, value: str | None) -> str:
    """A string literal in one spelling; with escapes it stays as the user wrote it.

    >>> string_sql('"Google"', "Google")
    "'Google'"
    """
    return raw if value is None else "'" + value.replace("'", "''") + "'"


def walk(node: SyntaxNode) -> Iterator[SyntaxNode]:
    """The node and all nodes below it, in the order of the text."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children()))


@dataclass(slots=True, eq=False)
class Item:
    """An expression of the select list and its alias."""

    node: SyntaxNode
    alias: str | None


@dataclass(slots=True, eq=False)
class BracketWindow:
    """The window of `FROM s [RANGE r SLIDE s]` in microseconds, or in rows."""

    range: int
    slide: int
    at: int
    rows: bool = False


@dataclass(slots=True, eq=False)
class InputWindow:
    """The window of an input of an aggregation join, `[WINDOW 1 HOUR]`, in microseconds. `kind` is
    `sliding`, `tumbling` or `landmark`, which has no length."""

    kind: str
    length: int
    at: int


@dataclass(slots=True, eq=False)
class Every:
    """How often an aggregation join is evaluated: `EVERY 10 SECONDS`, in microseconds."""

    length: int
    at: int


@dataclass(slots=True, eq=False)
class Relation:
    """A name or a subquery in FROM, with its alias and new names for its columns.

    `at` is its first token. `parts` is empty for a subquery.
    """

    at: int
    parts: tuple[str, ...] = ()
    query: QueryExpression | None = None
    alias: str | None = None
    columns: tuple[str, ...] = ()
    bracket: BracketWindow | None = None
    window: InputWindow | None = None

    @property
    def name(self) -> str:
        return ".".join(self.parts)


@dataclass(slots=True, eq=False)
class Join:
    """Two parts of FROM with JOIN or a comma between them, which is the token `at`.

    `kind` is `inner`, `cross`, or the words of another join in lower case (`left`, `left semi`).
    """

    at: int
    kind: str
    left: FromPart
    right: FromPart
    on: SyntaxNode | None = None
    using: tuple[str, ...] = ()
    natural: bool = False


FromPart = Relation | Join


@dataclass(slots=True, eq=False)
class Definition:
    """A common table expression: `name [(columns)] AS (query)`."""

    name: str
    columns: tuple[str, ...]
    query: QueryExpression


@dataclass(slots=True, eq=False)
class Select:
    """One SELECT."""

    items: list[Item]
    source: FromPart
    definitions: list[Definition] = field(default_factory=list)
    distinct_at: int | None = None
    where: SyntaxNode | None = None
    group: list[SyntaxNode] = field(default_factory=list)
    group_at: int | None = None
    having: SyntaxNode | None = None
    instants: Every | None = None

    @property
    def bracket(self) -> BracketWindow | None:
        """The bracket window, where FROM is one relation."""
        return self.source.bracket if isinstance(self.source, Relation) else None

    def roots(self) -> list[SyntaxNode]:
        """Every expression of the query, subqueries and ON apart."""
        conditions = [node for node in (self.where, self.having) if node is not None]
        return [*(item.node for item in self.items), *self.group, *conditions]


@dataclass(slots=True, eq=False)
class SetOperation:
    """Two queries with UNION, INTERSECT or EXCEPT between them, which is the token `at`.

    `every` says that ALL follows: duplicates are kept.
    """

    at: int
    kind: str
    """`union`, `intersect` or `except`."""
    every: bool
    left: QueryExpression
    right: QueryExpression
    definitions: list[Definition] = field(default_factory=list)
    instants: Every | None = None

    @property
    def words(self) -> str:
        return f"{self.kind.upper()} ALL" if self.every else self.kind.upper()


QueryExpression = Select | SetOperation


def relations(query: QueryExpression) -> Iterator[Relation]:
    """The relations in FROM of a query, of its common table expressions and of the subqueries in FROM."""
    for definition in query.definitions:
        yield from relations(definition.query)
    if isinstance(query, SetOperation):
        yield from relations(query.left)
        yield from relations(query.right)
    else:
        yield from _relations_of(query.source)


def _relations_of(part: FromPart) -> Iterator[Relation]:
    if isinstance(part, Join):
        yield from _relations_of(part.left)
        yield from _relations_of(part.right)
        return
    yield part
    if part.query is not None:
        yield from relations(part.query)
