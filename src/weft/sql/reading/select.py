"""Reads one query: SELECT, or set operations on several of them, with common table expressions and the
subqueries in FROM.

`parse` gives the parts of the query. It raises `SqlError` for what is certainly not a query, and
`Unshared` for Spark SQL beyond SELECT, FROM, WHERE, GROUP BY, HAVING and set operations. INTERSECT binds
tighter than UNION and EXCEPT, which are grouped from the left. At the end of the text may stand EVERY.
"""

from __future__ import annotations

from typing import Final

from weft.sql.fallback import Unshared
from weft.sql.reading.brackets import bracket, every, input_window, is_every
from weft.sql.reading.cursor import Cursor, Unexpected
from weft.sql.reading.expressions import expression
from weft.sql.reading.relations import JOINS
from weft.sql.reading.source import END, NUMBER, QUOTED, STRING, WORD, Source
from weft.sql.reading.statement_kind import SET_OPERATIONS, check_one_select, verdict
from weft.sql.reading.syntax import (
    Definition,
    FromPart,
    Item,
    Join,
    QueryExpression,
    Relation,
    Select,
    SetOperation,
    Star,
    SyntaxNode,
)

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
_CLAUSES: Final = frozenset({"WHERE", "GROUP", "HAVING", "ON", "USING"})
"""Words that are no relation where a relation is missing before them."""
_GROUPINGS: Final = frozenset({"ROLLUP", "CUBE", "GROUPING"})
_ONE_QUERY_EACH: Final = "register a query for each set of keys: they share their work"


def parse(source: Source) -> QueryExpression:
    """The parts of the one query in the text."""
    cursor = Cursor(source, subquery=_select_in_condition)
    check_one_select(source)
    try:
        query = _query(cursor)
        if is_every(cursor):
            query.instants = every(cursor)
            _refuse_later(cursor)
        while cursor.take(";"):
            pass
        if cursor.token.kind != END:
            raise Unexpected(cursor.at)
        return query
    except Unexpected as unexpected:
        raise verdict(source, unexpected) from None


def _query(cursor: Cursor) -> QueryExpression:
    """[WITH definitions] a SELECT or set operations, up to a token that does not belong to it."""
    definitions: list[Definition] = []
    if cursor.take("WITH"):
        definitions.append(_definition(cursor))
        while cursor.take(","):
            definitions.append(_definition(cursor))
    query = _operand(cursor)
    while cursor.upper() in SET_OPERATIONS:
        query = _set_operation(cursor, query)
    _refuse_later(cursor)
    query.definitions = [*definitions, *query.definitions]
    return query


def _set_operation(cursor: Cursor, left: QueryExpression) -> SetOperation:
    """The operation at the cursor, with all INTERSECTs behind its right operand."""
    at, word = cursor.at, cursor.upper()
    cursor.at += 1
    every = cursor.take("ALL")
    if not every:
        cursor.take("DISTINCT")
    right = _operand(cursor)
    kind = "except" if word == "MINUS" else word.lower()
    while kind != "intersect" and cursor.upper() == "INTERSECT":
        right = _set_operation(cursor, right)
    return SetOperation(at, kind, every, left, right)


def _operand(cursor: Cursor) -> QueryExpression:
    """A SELECT, or a query in parentheses."""
    if cursor.take("("):
        query = _query(cursor)
        cursor.expect(")")
        return query
    if cursor.upper() in ("VALUES", "TABLE", "FROM"):
        raise Unshared(f"a query that starts with {cursor.upper()} has no shared form", cursor.at)
    cursor.expect("SELECT")
    return _select(cursor)


def _definition(cursor: Cursor) -> Definition:
    if cursor.upper() == "RECURSIVE" and cursor.upper(1) not in ("AS", "("):
        raise Unshared("WITH RECURSIVE has no shared form", cursor.at)
    name = cursor.name()
    columns = _column_names(cursor)
    cursor.take("AS")
    return Definition(name, columns, _subquery(cursor))


def _column_names(cursor: Cursor) -> tuple[str, ...]:
    """New names for columns, in parentheses."""
    if not cursor.take("("):
        return ()
    names = [cursor.name()]
    while cursor.take(","):
        names.append(cursor.name())
    cursor.expect(")")
    return tuple(names)


def _subquery(cursor: Cursor) -> QueryExpression:
    """A query in parentheses."""
    at = cursor.at
    cursor.expect("(")
    if cursor.upper() not in ("SELECT", "WITH", "("):
        raise Unshared("a subquery that does not start with SELECT has no shared form", at)
    query = _query(cursor)
    cursor.expect(")")
    return query


def _select_in_condition(cursor: Cursor) -> Select:
    """A SELECT in parentheses inside an expression."""
    query = _subquery(cursor)
    if isinstance(query, SetOperation):
        raise Unshared(f"{query.words} in a condition has no shared form", query.at)
    return query


def _select(cursor: Cursor) -> Select:
    distinct_at = None
    if cursor.upper() == "DISTINCT" and cursor.upper(1) not in (",", "."):
        distinct_at = cursor.at
        cursor.at += 1
    elif cursor.upper() == "ALL" and cursor.upper(1) not in (",", ".", "FROM"):
        cursor.at += 1
    if cursor.upper().startswith("/*+"):
        raise Unshared("hints have no shared form", cursor.at, "leave the hint out")
    items = [_item(cursor)]
    while cursor.take(","):
        items.append(_item(cursor))
    if cursor.token.kind == END or cursor.upper() == ";":
        raise cursor.source.error("PARSE_ERROR", cursor.at, detail="FROM is missing")
    if cursor.upper() == ")":
        raise Unshared("a subquery without FROM has no shared form", cursor.at)
    cursor.expect("FROM")
    select = Select(items, _from(cursor), distinct_at=distinct_at)
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
    is_word = token.kind == WORD and token.upper not in _NO_ALIAS and not is_every(cursor)
    return cursor.name() if is_word or token.kind == QUOTED else None


def _from(cursor: Cursor) -> FromPart:
    """What stands in FROM. A comma is a join like any other, grouped from the left: in
    `a, b JOIN c ON …` the condition sees a, too."""
    left = _joined(cursor, _relation(cursor))
    while cursor.upper() == ",":
        at = cursor.at
        cursor.at += 1
        left = _joined(cursor, Join(at, "inner", left, _relation(cursor)))
    return left


def _joined(cursor: Cursor, left: FromPart) -> FromPart:
    """The relation, and those joined to it by JOIN, grouped from the left."""
    while cursor.upper() in JOINS:
        left = _join(cursor, left)
    return left


def _join(cursor: Cursor, left: FromPart) -> Join:
    at = cursor.at
    natural = cursor.take("NATURAL")
    words: list[str] = []
    while not cursor.take("JOIN"):
        if cursor.upper() not in JOINS:
            raise Unexpected(cursor.at)
        if cursor.upper() != "OUTER":
            words.append(cursor.upper().lower())
        cursor.at += 1
    kind = " ".join(words) or "inner"
    join = Join(at, kind, left, _relation(cursor), natural=natural)
    if cursor.take("ON"):
        join.on = expression(cursor)
    elif cursor.take("USING"):
        join.using = _column_names(cursor)
    return join


def _relation(cursor: Cursor) -> FromPart:
    """A name, a subquery, or joins in parentheses."""
    in_parentheses = False
    if cursor.upper() == "STREAM" and _names_a_stream(cursor):
        cursor.at += 1
        in_parentheses = cursor.take("(")
    at = cursor.at
    if cursor.upper() in _CLAUSES and cursor.ahead(1).kind in (WORD, QUOTED, NUMBER):
        raise Unexpected(at, certain=True)
    if cursor.upper() in ("VALUES", "TABLE", "LATERAL") and cursor.ahead(1).upper not in (",", ""):
        raise Unshared(f"{cursor.upper()} in FROM has no shared form", at)
    if cursor.upper() == "(" and cursor.upper(1) in ("SELECT", "WITH", "FROM", "VALUES", "TABLE"):
        query = _subquery(cursor)
        return _with_window(cursor, Relation(at, (), query, *_relation_alias(cursor)))
    if cursor.upper() == "(" and cursor.upper(1) == "(":
        try:
            query = _subquery(cursor)
            return _with_window(cursor, Relation(at, (), query, *_relation_alias(cursor)))
        except Unexpected:
            cursor.at = at  # joins in parentheses that begin with a subquery
    if cursor.take("("):
        inner = _joined(cursor, _relation(cursor))
        cursor.expect(")")
        alias, columns = _relation_alias(cursor)
        if alias is not None or columns:
            raise Unshared("an alias for joins in parentheses has no shared form", at)
        return inner
    parts = [cursor.name()]
    while cursor.take("."):
        parts.append(cursor.name())
    if in_parentheses:
        cursor.expect(")")
    if cursor.upper() == "(":
        raise Unshared("a table function has no shared form", at)
    relation = Relation(at, tuple(parts), None, *_relation_alias(cursor))
    if cursor.upper() == "[" and cursor.upper(1) != "WINDOW":
        relation.bracket = bracket(cursor)
        if relation.alias is None:
            relation.alias, relation.columns = _relation_alias(cursor)
    return _with_window(cursor, relation)


def _with_window(cursor: Cursor, relation: Relation) -> Relation:
    """The relation with the window in brackets that may follow, before or behind its alias."""
    if cursor.upper() == "[" and cursor.upper(1) == "WINDOW":
        relation.window = input_window(cursor)
        if relation.alias is None:
            relation.alias, relation.columns = _relation_alias(cursor)
    return relation


def _names_a_stream(cursor: Cursor) -> bool:
    """Whether the word STREAM stands before a name, and is not a name itself."""
    following = cursor.ahead(1)
    if following.upper == "(":
        return True
    is_name = following.kind in (WORD, QUOTED)
    return is_name and following.upper not in _NO_ALIAS and following.upper != "AS"


def _relation_alias(cursor: Cursor) -> tuple[str | None, tuple[str, ...]]:
    """The alias of a relation, and the names that it gives to the columns."""
    alias = cursor.name() if cursor.take("AS") else _bare_alias(cursor)
    return alias, () if alias is None else _column_names(cursor)


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
