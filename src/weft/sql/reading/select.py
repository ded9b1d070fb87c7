"""Reads one SELECT over one stream, with Spark's `window` or the bracket form.

`parse` gives the parts of the query. It raises `SqlError` for what is certainly not a query, and
`Unshared` for Spark SQL beyond one plain grouped SELECT.
"""

from __future__ import annotations

from typing import Final

from weft.sql.fallback import Unshared
from weft.sql.reading.brackets import bracket
from weft.sql.reading.cursor import Cursor, Unexpected
from weft.sql.reading.expressions import expression
from weft.sql.reading.relations import JOINS
from weft.sql.reading.source import END, QUOTED, STRING, WORD, Source
from weft.sql.reading.statement_kind import SET_OPERATIONS, check_one_select, verdict
from weft.sql.reading.syntax import BracketWindow, FromName, Item, Select, Star, SyntaxNode

_SORT_LATER: Final = "leave it out, and sort what results(name) gives"
_LATER_CLAUSES: Final = {
    "ORDER": ("ORDER BY", _SORT_LATER),
    "SORT": ("SORT BY", _SORT_LATER),
    "CLUSTER": ("CLUSTER BY", "leave it out"),
    "DISTRIBUTE": ("DISTRIBUTE BY", "leave it out"),
    "LIMIT": ("LIMIT", "leave it out, and limit what results(name) gives"),
    "OFFSET": ("OFFSET", "leave it out, and limit what results(name) gives"),
    "WINDOW": ("a WINDOW clause", ""),
    "QUALIFY": ("QUALIFY", ""),
    "LATERAL": ("LATERAL VIEW", ""),
    "PIVOT": ("PIVOT", "aggregates with FILTER (WHERE …), one for each value, are shared"),
    "UNPIVOT": ("UNPIVOT", ""),
    "TABLESAMPLE": ("TABLESAMPLE", ""),
}
_NO_ALIAS: Final = frozenset(
    {*_LATER_CLAUSES, *SET_OPERATIONS, *JOINS}
    | {"FROM", "WHERE", "GROUP", "HAVING", "ON", "USING", "VERSION", "TIMESTAMP"}
)
_GROUPINGS: Final = frozenset({"ROLLUP", "CUBE", "GROUPING"})
_ONE_QUERY_EACH: Final = "register a query for each set of keys: they share their work"


def parse(source: Source) -> Select:
    """The parts of the one SELECT in the text."""
    cursor = Cursor(source)
    check_one_select(source)
    try:
        return _select(cursor)
    except Unexpected as unexpected:
        raise verdict(source, unexpected) from None


def _select(cursor: Cursor) -> Select:
    cursor.at = 1
    if cursor.upper() == "DISTINCT" and cursor.upper(1) not in (",", "."):
        raise Unshared(
            "SELECT DISTINCT has no shared form",
            cursor.at,
            "GROUP BY the columns and a window instead",
        )
    if cursor.upper() == "ALL" and cursor.upper(1) not in (",", ".", "FROM"):
        cursor.at += 1
    if cursor.upper().startswith("/*+"):
        raise Unshared("hints have no shared form", cursor.at, "leave the hint out")
    items = [_item(cursor)]
    while cursor.take(","):
        items.append(_item(cursor))
    if cursor.token.kind == END or cursor.upper() == ";":
        raise cursor.source.error("PARSE_ERROR", cursor.at, detail="FROM is missing")
    cursor.expect("FROM")
    select = Select(items, *_relation(cursor))
    _refuse_later(cursor)
    if cursor.take("WHERE"):
        select.where = expression(cursor)
    if cursor.upper() == "GROUP" and cursor.upper(1) == "BY":
        select.group_at = cursor.at
        cursor.at += 2
        select.group = _group(cursor)
    if cursor.take("HAVING"):
        select.having = expression(cursor)
    _refuse_later(cursor)
    while cursor.take(";"):
        pass
    if cursor.token.kind != END:
        raise Unexpected(cursor.at)
    return select


def _item(cursor: Cursor) -> Item:
    if cursor.upper() == "*":
        cursor.at += 1
        node: SyntaxNode = Star(cursor.at - 1, cursor.at)
    else:
        node = expression(cursor)
    if cursor.take("AS"):
        if cursor.upper() == "(":
            raise Unshared("several aliases for one expression have no shared form", cursor.at)
        if cursor.token.kind == STRING:
            raise cursor.source.error(
                "PARSE_ERROR", cursor.at, detail="an alias is a name, or a name in `back quotes`"
            )
        return Item(node, cursor.name())
    return Item(node, _bare_alias(cursor))


def _bare_alias(cursor: Cursor) -> str | None:
    """An alias without AS."""
    token = cursor.token
    if token.kind == QUOTED or (token.kind == WORD and token.upper not in _NO_ALIAS):
        return cursor.name()
    return None


def _relation(cursor: Cursor) -> tuple[FromName, BracketWindow | None]:
    parenthesised = False
    if cursor.upper() == "STREAM" and _names_a_stream(cursor):
        cursor.at += 1
        parenthesised = cursor.take("(")
    if cursor.upper() in ("(", "VALUES", "TABLE", "LATERAL"):
        raise Unshared(
            "a subquery in FROM has no shared form",
            cursor.at,
            "write the query as one SELECT over the stream",
        )
    at = cursor.at
    parts = [cursor.name()]
    while cursor.take("."):
        parts.append(cursor.name())
    if parenthesised:
        cursor.expect(")")
    if cursor.upper() == "(":
        raise Unshared("a table function has no shared form", at)
    alias = _relation_alias(cursor)
    window = None
    if cursor.upper() == "[":
        window = bracket(cursor)
        alias = alias or _relation_alias(cursor)
    if cursor.upper() == "," or cursor.upper() in JOINS:
        raise Unshared("joins have no shared form yet", cursor.at)
    return FromName(".".join(parts), alias, at), window


def _names_a_stream(cursor: Cursor) -> bool:
    """Whether the word STREAM stands before a name, and is not a name itself."""
    following = cursor.ahead(1)
    if following.upper == "(":
        return True
    is_name = following.kind in (WORD, QUOTED)
    return is_name and following.upper not in _NO_ALIAS and following.upper != "AS"


def _relation_alias(cursor: Cursor) -> str | None:
    return cursor.name() if cursor.take("AS") else _bare_alias(cursor)


def _group(cursor: Cursor) -> list[SyntaxNode]:
    if cursor.upper() == "ALL" and cursor.upper(1) in ("", "HAVING", ";", "ORDER", "LIMIT"):
        raise Unshared("GROUP BY ALL has no shared form", cursor.at, "name the keys in GROUP BY")
    keys = [_key(cursor)]
    while cursor.take(","):
        keys.append(_key(cursor))
    word = cursor.upper()
    if word == "WITH" and cursor.upper(1) in _GROUPINGS:
        word = f"WITH {cursor.upper(1)}"
    if word.startswith("WITH") or word in _GROUPINGS:
        raise Unshared(f"GROUP BY … {word} has no shared form", cursor.at, _ONE_QUERY_EACH)
    return keys


def _key(cursor: Cursor) -> SyntaxNode:
    if cursor.upper() in _GROUPINGS and cursor.upper(1) in ("(", "SETS"):
        word = "GROUPING SETS" if cursor.upper(1) == "SETS" else cursor.upper()
        raise Unshared(f"GROUP BY {word} has no shared form", cursor.at, _ONE_QUERY_EACH)
    return expression(cursor)


def _refuse_later(cursor: Cursor) -> None:
    clause, advice = _LATER_CLAUSES.get(cursor.upper(), ("", ""))
    if clause:
        raise Unshared(f"{clause} has no shared form", cursor.at, advice)
