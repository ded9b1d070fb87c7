"""Queries that differ in constants of WHERE and of their window are bound by one template.

Ten thousand alerts of one kind are one text with other constants. The first of them is bound as `bind` does it.
Of the others only the parts with constants are read and bound, each combination of constants once: the condition
of WHERE, and the window in GROUP BY. All else is taken from the first.

1. **What a template is.** The text with its strings and whole numbers left out. Two texts with equal templates have
   equal tokens, apart from the values and places of these constants. Texts whose constants cannot be told by a simple
   pattern (comments, escapes, other quotes, strings side by side) have no template.
2. **Why it is sound.** WHERE is bound from its own tokens and the relation of FROM, and nothing else of a query
   depends on it. The same holds for the window if it stands once in the query. Both are bound by the code that binds
   them otherwise, from the query's own constants, so no assumption is made on what a constant decides. All other
   constants (GROUP BY 1, HAVING, arguments) must be equal to those of the first query.
3. **When it declines.** Queries that are not windowed aggregates over one stream alone, and whatever raises: such a
   query is bound from its text as a whole, which also gives every error its place.

Time: one pass of a pattern over the text, and look-ups. Space: bounded by `MOST`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar, cast

from weft.algebra.query import Query
from weft.algebra.scalar import Expression
from weft.algebra.window import Window
from weft.errors import SqlError
from weft.sql.fallback import Unshared
from weft.sql.reading.cursor import Cursor, Unexpected
from weft.sql.reading.expressions import expression
from weft.sql.reading.relations import references
from weft.sql.reading.select import parse
from weft.sql.reading.source import END, NUMBER, STRING, Source, Token, read
from weft.sql.reading.syntax import Function, Relation, Select, SyntaxNode, walk
from weft.sql.scopes.inputs import Inputs
from weft.sql.scopes.sources import Sources
from weft.sql.typing.analyzer import Remembering
from weft.sql.windowed.query import selected_rows
from weft.sql.windowed.windows import window_of

MOST: Final = 200_000
"""Templates, conditions and windows that are kept; when there are more, all are forgotten."""

_CONSTANT = re.compile(r"('[^'\\]*'|(?<![\w.`$:])[0-9]+(?![\w.`]))")
_NO_TEMPLATE = re.compile(r"""[\\"?]|--|/\*|'\s*'""")

T = TypeVar("T", bound=Hashable)
K = TypeVar("K")
V = TypeVar("V")
Constants = tuple[str, ...]


class Shape(NamedTuple):
    """A text without its constants."""

    text: str
    kinds: str
    """For each constant, whether it is a string (s) or a number (n)."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the text whose constants may differ: where its tokens are, and its shape, by which what is bound is
    kept for all templates that have the same part."""

    start: int
    stop: int
    shape: Hashable
    constants: tuple[int, ...]
    """The numbers of its constants among those of the text."""


@dataclass(slots=True)
class _Template:
    """What texts of one shape have in common."""

    source: Source
    """The first text."""
    relation: Relation
    constant_tokens: tuple[int, ...]
    """The token of each constant."""
    where: _Part | None
    window: _Part | None
    fixed: tuple[int, ...]
    """The constants that must be those of a query that has been bound as a whole."""
    queries: dict[Constants, Query] = field(default_factory=dict)
    """Queries that have been bound as a whole, by their fixed constants."""


def split(sql: str) -> tuple[Shape, Constants] | None:
    """A text's template and its constants; None where a simple pattern cannot tell.

    >>> split("SELECT a FROM s WHERE b = 'x' AND c1 > 15")
    (Shape(text='SELECT a FROM s WHERE b = ? AND c1 > ?', kinds='sn'), ("'x'", '15'))
    """
    if _NO_TEMPLATE.search(sql):
        return None
    parts = _CONSTANT.split(sql)
    constants = parts[1::2]
    if "`" in sql and any("`" in constant for constant in constants):
        return None
    kinds = "".join("s" if constant[0] == "'" else "n" for constant in constants)
    return Shape("?".join(parts[::2]), kinds), tuple(constants)


def with_constants(
    source: Source, tokens_of: Sequence[int], text: str, constants: Constants
) -> Source:
    """The tokens of a text of the same template as the source's."""
    tokens: list[Token] = []
    moved = 0
    constant_at = dict(zip(tokens_of, constants, strict=True))
    for at, token in enumerate(source.tokens):
        start = token.start + moved
        constant = constant_at.get(at)
        if constant is not None:
            stop = start + len(constant)
            moved += len(constant) - (token.stop - token.start)
            is_string = token.kind == STRING
            value, upper = (constant[1:-1], "") if is_string else (constant, constant)
            tokens.append(Token(token.kind, value, upper, start, stop))
        elif token.kind == END:
            tokens.append(token._replace(start=start, stop=len(text)))
        else:
            tokens.append(
                token if not moved else token._replace(start=start, stop=token.stop + moved)
            )
    return Source(text, tuple(tokens))


class Templates:
    """The templates of queries that were bound over the same streams and tables by the same settings."""

    def __init__(
        self, inputs: Inputs, analyzer: Remembering, ansi: bool, double_quoted_names: bool
    ) -> None:
        self._inputs, self._analyzer, self._ansi = inputs, analyzer, ansi
        self._double_quoted_names = double_quoted_names
        self._templates: dict[Shape, _Template | None] = {}
        self._predicates: dict[Hashable, Expression | None] = {}
        self._windows: dict[Hashable, Window] = {}
        self._values: dict[Hashable, Hashable] = {}
        """Parts of queries, each once: equal parts are the same object."""

    def bound(self, name: str, sql: str, query_id: str) -> Query | None:
        """The query by a template; None if there is none, or the query must be bound as a whole."""
        shape_and_constants = split(sql)
        if shape_and_constants is None:
            return None
        shape, constants = shape_and_constants
        template = self._templates.get(shape)
        if template is None:
            return None
        query = template.queries.get(tuple([constants[number] for number in template.fixed]))
        if query is None:
            return None
        try:
            predicate = query.predicate
            if template.where is not None:
                predicate = self._predicate(template, template.where, sql, constants)
            window = query.window
            if template.window is not None:
                window = self._window(template, template.window, sql, constants)
        except (SqlError, Unshared, Unexpected, RecursionError):
            return None
        return replace(query, id=query_id, name=name, sql=sql, predicate=predicate, window=window)

    def learn(self, query: Query) -> Query:
        """Take a query that has been bound as a whole for a template; the same query, of parts that other queries
        have as well."""
        shape_and_constants = split(query.sql)
        if shape_and_constants is None:
            return query
        shape, constants = shape_and_constants
        if shape not in self._templates:
            self._bounded(self._templates)[shape] = self._template(query, constants)
        template = self._templates[shape]
        if template is None:
            return query
        query = replace(
            query,
            keys=self._once(query.keys),
            predicate=self._once(query.predicate),
            aggregates=self._once(query.aggregates),
            columns=self._once(query.columns),
            window=self._once(query.window),
        )
        fixed = tuple(constants[number] for number in template.fixed)
        self._bounded(template.queries)[fixed] = query
        if template.where is not None:
            self._bounded(self._predicates)[_key(template.where, constants)] = query.predicate
        if template.window is not None:
            self._bounded(self._windows)[_key(template.window, constants)] = query.window
        return query

    def _template(self, query: Query, constants: Constants) -> _Template | None:
        """The template of a query's text; None if the query has parts that templates do not know."""
        if type(query) is not Query or query.lookups or query.counts_rows:
            return None
        source = read(query.sql, self._double_quoted_names)
        select = parse(source)
        if not isinstance(select, Select) or select.definitions or select.instants is not None:
            return None
        relation = select.source
        if (
            not isinstance(relation, Relation)
            or relation.query is not None
            or relation.bracket is not None
        ):
            return None
        tables = self._inputs.tables
        if tables and any(
            self._inputs.find_table(read.name) is not None for read in references(source)
        ):
            return None
        tokens_of = _constant_tokens(source, constants)
        if tokens_of is None:
            return None
        where = self._part(source, tokens_of, select.where, relation.at)
        window_call = _only_window(select)
        window = self._part(source, tokens_of, window_call, None)
        varying = {
            number for part in (where, window) if part is not None for number in part.constants
        }
        fixed = tuple(number for number in range(len(constants)) if number not in varying)
        return _Template(source, relation, tokens_of, where, window, fixed)

    def _part(
        self,
        source: Source,
        tokens_of: tuple[int, ...],
        node: SyntaxNode | None,
        context: int | None,
    ) -> _Part | None:
        """A part with constants. The shape begins at the token `context`, if that decides what the part means."""
        if node is None:
            return None
        numbers = tuple(n for n, token in enumerate(tokens_of) if node.start <= token < node.stop)
        if not numbers:
            return None
        begin = node.start if context is None else context
        shape = split(source.slice(begin, node.stop))
        if shape is None:
            return None
        return _Part(node.start, node.stop, (context is None, shape[0]), numbers)

    def _predicate(
        self, template: _Template, part: _Part, sql: str, constants: Constants
    ) -> Expression | None:
        key = _key(part, constants)
        if key not in self._predicates:
            node, sources = self._read(template, part, sql, constants)
            select = Select([], template.relation, where=node)
            _, _, predicate = selected_rows(select, sources)
            self._bounded(self._predicates)[key] = self._once(predicate)
        return self._predicates[key]

    def _window(self, template: _Template, part: _Part, sql: str, constants: Constants) -> Window:
        key = _key(part, constants)
        window = self._windows.get(key)
        if window is None:
            node, sources = self._read(template, part, sql, constants)
            rows, _, _ = selected_rows(Select([], template.relation), sources)
            if not isinstance(node, Function):
                raise Unexpected(part.start)
            window = self._once(window_of(node, rows))
            self._bounded(self._windows)[key] = window
        return window

    def _read(
        self, template: _Template, part: _Part, sql: str, constants: Constants
    ) -> tuple[SyntaxNode, Sources]:
        """The part as the text has it."""
        source = with_constants(template.source, template.constant_tokens, sql, constants)
        cursor = Cursor(source, part.start)
        node = expression(cursor)
        if cursor.at != part.stop:
            raise Unexpected(cursor.at)
        return node, Sources(source, self._inputs, self._analyzer, self._ansi)

    def _once(self, value: T) -> T:
        return cast(T, self._bounded(self._values).setdefault(value, value))

    @staticmethod
    def _bounded(kept: dict[K, V]) -> dict[K, V]:
        if len(kept) >= MOST:
            kept.clear()
        return kept


def _key(part: _Part, constants: Constants) -> Hashable:
    return part.shape, tuple([constants[number] for number in part.constants])


def _constant_tokens(source: Source, constants: Constants) -> tuple[int, ...] | None:
    """The token of each constant; None if one is only a part of its token."""
    places = {match.start(): match.end() for match in _CONSTANT.finditer(source.text)}
    tokens = tuple(
        at
        for at, token in enumerate(source.tokens)
        if token.kind in (STRING, NUMBER) and places.get(token.start) == token.stop
    )
    return tokens if len(tokens) == len(constants) else None


def _only_window(select: Select) -> Function | None:
    """The call of window in GROUP BY, if it is the only one in the query."""
    calls = [
        node
        for root in select.roots()
        for node in walk(root)
        if isinstance(node, Function) and node.name == "window"
    ]
    grouped = [call for call in calls if any(call is node for node in select.group)]
    return grouped[0] if len(calls) == len(grouped) == 1 else None
