"""Reads one SELECT over one stream, with Spark's `window` or the bracket form.

`parse` gives the parts of the query. It raises `SqlError` for what is certainly no query, and
`Unshared` for Spark SQL beyond one plain grouped SELECT. Where this reader meets a token that
it does not expect, sqlglot's parser decides between the two: what sqlglot reads may be Spark
SQL, and Spark has the last word.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from sqlglot import TokenType
from sqlglot.dialects.spark import Spark

from weft.errors import SqlError
from weft.sql.fallback import Unshared
from weft.sql.reading.expressions import Reader, Unexpected
from weft.sql.reading.functions import words
from weft.sql.reading.intervals import IntervalProblem, interval_micros
from weft.sql.reading.rowcounts import RowCountProblem, counts_rows, row_count
from weft.sql.reading.source import END, NUMBER, QUOTED, STRING, SYMBOL, WORD, Source, Token
from weft.sql.reading.syntax import BracketWindow, Item, Node, Relation, Select, Star

_DIALECT = Spark()
_SET_OPERATIONS: Final = frozenset({"UNION", "INTERSECT", "EXCEPT", "MINUS"})
_LATER_CLAUSES: Final = {
    "ORDER": "ORDER BY",
    "SORT": "SORT BY",
    "CLUSTER": "CLUSTER BY",
    "DISTRIBUTE": "DISTRIBUTE BY",
    "LIMIT": "LIMIT",
    "OFFSET": "OFFSET",
    "WINDOW": "a WINDOW clause",
    "QUALIFY": "QUALIFY",
    "LATERAL": "LATERAL VIEW",
    "PIVOT": "PIVOT",
    "UNPIVOT": "UNPIVOT",
    "TABLESAMPLE": "TABLESAMPLE",
}
_JOINS: Final = words("JOIN INNER LEFT RIGHT FULL CROSS SEMI ANTI NATURAL OUTER")
_NO_ALIAS: Final = frozenset(
    {*_LATER_CLAUSES, *_SET_OPERATIONS, *_JOINS}
    | {"FROM", "WHERE", "GROUP", "HAVING", "ON", "USING", "VERSION", "TIMESTAMP"}
)
_GROUPINGS: Final = frozenset({"ROLLUP", "CUBE", "GROUPING"})


def parse(source: Source) -> Select:
    """The parts of the one SELECT in the text."""
    reader = Reader(source)
    _check_one_select(source)
    try:
        return _select(reader)
    except Unexpected as unexpected:
        raise _verdict(source, unexpected) from None


def _check_one_select(source: Source) -> None:
    tokens = source.tokens
    first = tokens[0]
    if first.kind == END:
        raise source.error("NOT_ONE_SELECT", 0, found="an empty text")
    if all(token.upper == ";" for token in tokens[:-1]):
        raise source.error("NOT_ONE_SELECT", 0, found="an empty text")
    if first.upper == "(" or (first.upper == "FROM" and _has_word(source, "SELECT")):
        raise Unshared("a query that does not start with SELECT has no shared form", 0)
    body = _after_ctes(source)
    if tokens[body].upper != "SELECT":
        raise source.error("NOT_ONE_SELECT", body, found=_described(source, body))
    depth = 0
    for index, token in enumerate(tokens):
        if token.kind == SYMBOL:
            depth += (token.upper in "([") - (token.upper in ")]")
            if token.upper == ";" and any(later.upper != ";" for later in tokens[index:-1]):
                raise source.error("NOT_ONE_SELECT", index + 1, found="several statements")
        elif depth == 0 and token.kind == WORD and token.upper in _SET_OPERATIONS:
            if tokens[index + 1].upper in ("SELECT", "ALL", "DISTINCT", "(", "VALUES", "TABLE"):
                raise source.error("NOT_ONE_SELECT", index, found=token.upper)
    if body:
        raise Unshared("common table expressions have no shared form", 0)


def _after_ctes(source: Source) -> int:
    """The token where the statement itself begins, behind WITH and what it defines."""
    if source.tokens[0].upper != "WITH" or source.tokens[0].kind != WORD:
        return 0
    statements = ("SELECT", "FROM", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE")
    for index, token in _outermost(source):
        if token.kind == WORD and token.upper in statements:
            return index
    return 0


def _outermost(source: Source) -> Iterator[tuple[int, Token]]:
    """The tokens outside of all parentheses, with their places."""
    depth = 0
    for index, token in enumerate(source.tokens[:-1]):
        if token.kind == SYMBOL and token.upper in ("(", ")"):
            depth += 1 if token.upper == "(" else -1
        elif depth == 0:
            yield index, token


def _cte_names(source: Source) -> set[str]:
    """The names, in lower case, that WITH defines at the beginning of the text."""
    body = _after_ctes(source)
    before = ("WITH", "RECURSIVE", ",")
    return {
        (token.value or "").lower()
        for index, token in _outermost(source)
        if 0 < index < body
        and token.kind in (WORD, QUOTED)
        and source.tokens[index - 1].upper in before
    }


def _described(source: Source, at: int) -> str:
    token = source.tokens[at]
    return token.upper if token.kind == WORD else f"'{source.slice(at, at + 1)}'"


def _has_word(source: Source, word: str) -> bool:
    return any(token.kind == WORD and token.upper == word for token in source.tokens)


def _select(reader: Reader) -> Select:
    reader.at = 1
    if reader.upper() == "DISTINCT" and reader.upper(1) not in (",", "."):
        raise Unshared("SELECT DISTINCT has no shared form", reader.at)
    if reader.upper() == "ALL" and reader.upper(1) not in (",", ".", "FROM"):
        reader.at += 1
    if reader.upper().startswith("/*+"):
        raise Unshared("hints have no shared form", reader.at)
    items = [_item(reader)]
    while reader.take(","):
        items.append(_item(reader))
    if reader.token.kind == END or reader.upper() == ";":
        raise reader.source.error("PARSE_ERROR", reader.at, detail="there is no FROM")
    reader.expect("FROM")
    select = Select(items, *_relation(reader))
    _refuse_later(reader)
    if reader.take("WHERE"):
        select.where = reader.expression()
    if reader.upper() == "GROUP" and reader.upper(1) == "BY":
        select.group_at = reader.at
        reader.at += 2
        select.group = _group(reader)
    if reader.take("HAVING"):
        select.having = reader.expression()
    _refuse_later(reader)
    while reader.take(";"):
        pass
    if reader.token.kind != END:
        raise Unexpected(reader.at)
    return select


def _item(reader: Reader) -> Item:
    if reader.upper() == "*":
        reader.at += 1
        node: Node = Star(reader.at - 1, reader.at)
    else:
        node = reader.expression()
    if reader.take("AS"):
        if reader.upper() == "(":
            raise Unshared("several aliases for one expression have no shared form", reader.at)
        if reader.token.kind == STRING:
            raise reader.source.error(
                "PARSE_ERROR", reader.at, detail="an alias is a name, or a name in `back quotes`"
            )
        return Item(node, reader.name())
    token = reader.token
    if token.kind == QUOTED or (token.kind == WORD and token.upper not in _NO_ALIAS):
        return Item(node, reader.name())
    return Item(node, None)


def _relation(reader: Reader) -> tuple[Relation, BracketWindow | None]:
    parenthesised = False
    if reader.upper() == "STREAM" and _names_a_stream(reader):
        reader.at += 1
        parenthesised = reader.take("(")
    if reader.upper() in ("(", "VALUES", "TABLE", "LATERAL"):
        raise Unshared("a subquery in FROM has no shared form", reader.at)
    at = reader.at
    parts = [reader.name()]
    while reader.take("."):
        parts.append(reader.name())
    if parenthesised:
        reader.expect(")")
    if reader.upper() == "(":
        raise Unshared("a table function has no shared form", at)
    alias = _relation_alias(reader)
    bracket = None
    if reader.upper() == "[":
        bracket = _bracket(reader)
        alias = alias or _relation_alias(reader)
    if reader.upper() == "," or reader.upper() in _JOINS:
        raise Unshared("joins have no shared form yet", reader.at)
    return Relation(".".join(parts), alias, at), bracket


def _names_a_stream(reader: Reader) -> bool:
    """Whether the word STREAM comes before a name, and is none itself."""
    following = reader.upper(1)
    return following == "(" or (
        _starts_name(reader, 1) and following not in _NO_ALIAS and following != "AS"
    )


def _starts_name(reader: Reader, ahead: int) -> bool:
    index = reader.at + ahead
    return reader.source.tokens[index].kind in (WORD, QUOTED)


def _relation_alias(reader: Reader) -> str | None:
    if reader.take("AS"):
        return reader.name()
    token = reader.token
    if token.kind == QUOTED or (token.kind == WORD and token.upper not in _NO_ALIAS):
        return reader.name()
    return None


def _bracket(reader: Reader) -> BracketWindow:
    """`[RANGE 1 MINUTE SLIDE 5 SECONDS]` or `[RANGE 1000 ROWS SLIDE 100 ROWS]`; without SLIDE
    the window tumbles."""
    opening = reader.at
    reader.at += 1
    if reader.upper() == "WINDOW":
        raise reader.source.error(
            "UNSUPPORTED",
            opening,
            detail="[WINDOW …] belongs to aggregation joins, which come in a later version; "
            "for one stream write [RANGE …]",
        )
    reader.expect("RANGE")
    range_, rows = _length(reader, "RANGE")
    slide, at = range_, reader.at + 1
    if reader.take("SLIDE"):
        slide, slides_by_rows = _length(reader, "SLIDE")
        if slides_by_rows != rows:
            raise reader.source.error(
                "BAD_WINDOW", at, detail="a window's range and slide are both times, or both rows"
            )
    reader.expect("]")
    return BracketWindow(range_, slide, opening, rows)


def _length(reader: Reader, what: str) -> tuple[int, bool]:
    """The length up to SLIDE or the closing bracket, and whether it is in rows; its value may
    stand in quotes."""
    source, start = reader.source, reader.at
    words: list[str] = []
    while reader.upper() not in ("SLIDE", "]"):
        token = reader.token
        if token.kind == END:
            raise source.error("PARSE_ERROR", reader.at, detail="no closing ]")
        if token.kind not in (WORD, NUMBER, STRING) and token.upper not in ("-", "+"):
            raise Unexpected(reader.at)
        words.append(token.value or token.upper)
        reader.at += 1
    text = " ".join(words)
    if not counts_rows(text):
        return window_length(source, start, text, what), False
    try:
        return row_count(text), True
    except RowCountProblem as problem:
        raise source.error("BAD_WINDOW", start, detail=str(problem)) from None


def window_length(source: Source, at: int, text: str, what: str) -> int:
    """The positive length of a window's range or slide."""
    length = interval(source, at, text)
    if length <= 0:
        raise source.error(
            "BAD_WINDOW", at, detail=f"a window's {what.lower()} must be positive, not '{text}'"
        )
    return length


def interval(source: Source, at: int, text: str) -> int:
    try:
        return interval_micros(text)
    except IntervalProblem as problem:
        raise source.error("BAD_INTERVAL", at, text=text, detail=str(problem)) from None


def _group(reader: Reader) -> list[Node]:
    if reader.upper() == "ALL" and reader.upper(1) in ("", "HAVING", ";", "ORDER", "LIMIT"):
        raise Unshared("GROUP BY ALL has no shared form", reader.at)
    keys = [_key(reader)]
    while reader.take(","):
        keys.append(_key(reader))
    if reader.upper() == "WITH" or reader.upper() in _GROUPINGS:
        raise Unshared(f"{reader.upper()} in GROUP BY has no shared form", reader.at)
    return keys


def _key(reader: Reader) -> Node:
    if reader.upper() in _GROUPINGS and reader.upper(1) in ("(", "SETS"):
        raise Unshared(f"GROUP BY {reader.upper()} has no shared form", reader.at)
    return reader.expression()


def _refuse_later(reader: Reader) -> None:
    clause = _LATER_CLAUSES.get(reader.upper())
    if clause is not None:
        raise Unshared(f"{clause} has no shared form", reader.at)


def _verdict(source: Source, unexpected: Unexpected) -> SqlError | Unshared:
    """Whether a token that this reader does not expect is an error or Spark's matter."""
    at = unexpected.at
    token = source.tokens[at]
    found = "the end of the text" if token.kind == END else f"'{source.slice(at, at + 1)}'"
    if not unexpected.certain and sqlglot_reads(source.text):
        return Unshared(f"weft does not read {found} here", at)
    return source.error("PARSE_ERROR", at, detail=f"{found} is not expected here")


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
    except Exception:  # on some texts it stumbles over itself instead of raising its own error
        return False


def relations(source: Source) -> list[Relation]:
    """The names after FROM and JOIN anywhere in the text, for queries that are not shared."""
    found: list[Relation] = []
    defined = _cte_names(source)
    selecting = [True]
    for index, token in enumerate(source.tokens[:-1]):
        if token.upper == "(":
            selecting.append(False)
        elif token.upper == ")" and len(selecting) > 1:
            selecting.pop()
        elif token.kind == WORD and token.upper == "SELECT":
            selecting[-1] = True
        elif token.kind == WORD and token.upper in ("FROM", "JOIN") and selecting[-1]:
            # else it is that of extract(year FROM ts)
            if index == 0 or source.tokens[index - 1].upper != "DISTINCT":
                after = _relations_after(source, index + 1)
                found.extend(each for each in after if each.name.lower() not in defined)
    return found


def _relations_after(source: Source, at: int) -> list[Relation]:
    reader = Reader(source, at)
    found: list[Relation] = []
    try:
        while True:
            if reader.upper() == "STREAM" and _names_a_stream(reader):
                reader.at += 1
                reader.take("(")
            start = reader.at
            parts = [reader.name()]
            while reader.take("."):
                parts.append(reader.name())
            reader.take(")")
            if reader.upper() == "(":
                return found
            alias = _relation_alias(reader)
            found.append(Relation(".".join(parts), alias, start))
            if not reader.take(","):
                return found
    except Unexpected:
        return found
