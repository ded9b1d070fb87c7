"""Whether a text is one query, and who judges what weft's reader does not expect.

`check_one_select` raises `SqlError` for what is certainly not a query, and `Unshared` for a query
of another form. `verdict` decides on a token that the reader does not expect: what sqlglot parses
may be Spark SQL, and Spark has the last word; anything else is an error here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from sqlglot import TokenType
from sqlglot.dialects.spark import Spark

from weft.errors import SqlError
from weft.sql.fallback import Unshared
from weft.sql.reading.cursor import Unexpected
from weft.sql.reading.source import END, STRING, SYMBOL, WORD, Source, Token

_DIALECT = Spark()
SET_OPERATIONS: Final = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_STATEMENTS: Final = frozenset(
    {"SELECT", "FROM", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE"}
)


def check_one_select(source: Source) -> None:
    """Raises unless the text is one SELECT, or set operations on several, with or without common table
    expressions."""
    tokens = source.tokens
    first = tokens[0]
    if first.kind == END or all(token.upper == ";" for token in tokens[:-1]):
        raise source.error("NOT_ONE_SELECT", 0, found="an empty text")
    has_select = any(token.kind == WORD and token.upper == "SELECT" for token in tokens)
    if first.upper == "FROM" and has_select:
        raise Unshared(
            "a query that does not start with SELECT has no shared form",
            0,
            "write SELECT … FROM … GROUP BY … in this order",
        )
    body = _after_definitions(source)
    if tokens[body].upper not in ("SELECT", "("):
        raise source.error("NOT_ONE_SELECT", body, found=_described(source, body))
    for index, token in enumerate(tokens):
        if token.kind == SYMBOL and token.upper == ";":
            if any(later.upper != ";" for later in tokens[index:-1]):
                raise source.error("NOT_ONE_SELECT", index + 1, found="several statements")
    for index in range(len(tokens) - 1 if "$" in source.text else 0):
        if "${" in source.slice(index, index + 1) or source.slice(index, index + 2) == "${":
            raise Unshared("${…} is replaced by Spark before it reads the query", index)


def _after_definitions(source: Source) -> int:
    """The token where the statement itself begins, behind WITH and what it defines."""
    if source.tokens[0].upper != "WITH" or source.tokens[0].kind != WORD:
        return 0
    for index, token in _outside_parentheses(source):
        if token.kind == WORD and token.upper in _STATEMENTS:
            return index
        if token.upper == "(" and source.tokens[index - 1].upper == ")":
            return index
    return 0


def _outside_parentheses(source: Source) -> Iterator[tuple[int, Token]]:
    """The tokens outside of parentheses, and the opening ones."""
    depth = 0
    for index, token in enumerate(source.tokens[:-1]):
        if depth == 0:
            yield index, token
        if token.kind == SYMBOL and token.upper in ("(", ")"):
            depth += 1 if token.upper == "(" else -1


def _described(source: Source, at: int) -> str:
    token = source.tokens[at]
    return token.upper if token.kind == WORD else f"'{source.slice(at, at + 1)}'"


def verdict(source: Source, unexpected: Unexpected) -> SqlError | Unshared:
    """Whether a token that weft's reader does not expect is an error or Spark's matter."""
    at = unexpected.at
    token = source.tokens[at]
    described = f"'{source.slice(at, at + 1)}'"
    if token.kind == END:
        described = "the end of the text"
    elif token.kind == STRING:
        described = source.slice(at, at + 1)
    if not unexpected.certain and sqlglot_reads(source.text):
        return Unshared(f"weft does not know the syntax at {described}", at)
    return source.error("PARSE_ERROR", at, detail=f"{described} is not expected here")


def sqlglot_reads(text: str) -> bool:
    """Whether sqlglot's Spark dialect parses the text as one statement.

    It takes `window(` and `STREAM s` for syntax of its own unless told otherwise.
    """
    try:
        tokens = _DIALECT.tokenize(text)
        for token, following in pairwise(tokens):
            if token.text.upper() == "WINDOW" and following.text in ("(", "."):
                token.token_type = TokenType.VAR
        return len(_DIALECT.parser().parse(tokens, text)) == 1
    except Exception:  # on some texts sqlglot fails with an error that is not its own
        return False
