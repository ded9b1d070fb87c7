"""Reads expressions by Spark's own grammar.

sqlglot's parser groups some operators otherwise than Spark (`a || b + c`, `a | b & c`) and
rewrites casts and functions, so its tree cannot vouch for a query's meaning. This reader
follows the precedence of Spark's SqlBaseParser, from tight to loose:

    primary  x.y  x[i]  x::t
    - + ~ (signs)
    * / % DIV
    + - ||
    << >> >>>
    &
    ^
    |
    = == <=> <> != < <= > >=            all on one level, from the left
    BETWEEN IN LIKE ILIKE RLIKE IS      one, after a value
    NOT !
    AND
    OR

Of subqueries, IN (SELECT …) and EXISTS (SELECT …) are read. What is Spark SQL but outside what weft
shares (other subqueries, lambdas, OVER, …) raises `Unshared`; a token that fits nowhere raises
`Unexpected`.
"""

from __future__ import annotations

from typing import Final

from weft.sql.fallback import Unshared
from weft.sql.reading.cursor import Cursor, Unexpected
from weft.sql.reading.functions import ADVICE, words
from weft.sql.reading.literals import interval_literal, number_literal, type_name
from weft.sql.reading.source import END, NUMBER, QUOTED, STRING, SYMBOL, WORD
from weft.sql.reading.syntax import (
    Between,
    Binary,
    Case,
    Cast,
    Constant,
    Exists,
    FieldAccess,
    Function,
    In,
    InSubquery,
    Is,
    Like,
    Name,
    Number,
    Star,
    String,
    Subscript,
    SyntaxNode,
    TypedLiteral,
    Unary,
    string_sql,
)

_LEVELS: Final[dict[str, int]] = {
    **dict.fromkeys(("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="), 1),
    "|": 2,
    "^": 3,
    "&": 4,
    **dict.fromkeys(("<<", ">>", ">>>"), 5),
    **dict.fromkeys(("+", "-", "||"), 6),
    **dict.fromkeys(("*", "/", "%", "DIV"), 7),
}
_CLOSING: Final = frozenset(")],;.")
_SPELLINGS: Final = {"==": "=", "!=": "<>", "DIV": "div"}
_SIGNS: Final = frozenset("+-~")
_LIKES: Final = {"LIKE": "like", "ILIKE": "ilike", "RLIKE": "rlike", "REGEXP": "rlike"}
_CONSTANTS: Final = {"TRUE": True, "FALSE": False, "NULL": None}
_TYPED_LITERALS: Final = frozenset(
    {"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TIME", "X"}
)
_CONNECTIVES: Final = words("AND OR AS THEN WHEN ELSE")
_CLAUSES: Final = words(
    "FROM WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT UNION INTERSECT EXCEPT LATERAL "
    "PIVOT UNPIVOT TABLESAMPLE JOIN ON USING"
)
_OWN_SYNTAX: Final = frozenset({"OVERLAY", "IDENTIFIER"})
_UNIT_FUNCTIONS: Final = frozenset(
    {"dateadd", "date_add", "datediff", "date_diff", "timestampadd", "timestampdiff"}
)
_WITHOUT_PARENTHESES: Final = frozenset(
    {"CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_TIME", "CURRENT_USER", "SESSION_USER", "USER"}
)


def expression(cursor: Cursor) -> SyntaxNode:
    return _or(cursor)


def _or(cursor: Cursor) -> SyntaxNode:
    start = cursor.at
    left = _and(cursor)
    while cursor.take("OR"):
        right = _and(cursor)
        left = Binary(start, cursor.at, "or", left, right)
    return left


def _and(cursor: Cursor) -> SyntaxNode:
    start = cursor.at
    left = _not(cursor)
    while cursor.take("AND"):
        right = _not(cursor)
        left = Binary(start, cursor.at, "and", left, right)
    return left


def _not(cursor: Cursor) -> SyntaxNode:
    start = cursor.at
    if cursor.take("NOT") or cursor.take("!"):
        operand = _not(cursor)
        return Unary(start, cursor.at, "not", operand)
    return _predicate(cursor, start, _value(cursor, 1))


def _predicate(cursor: Cursor, start: int, operand: SyntaxNode) -> SyntaxNode:
    word = cursor.upper()
    negated = word == "NOT"
    if negated:
        word = cursor.upper(1)
    if word == "IS" and not negated:
        cursor.at += 1
        return _is(cursor, start, operand)
    if word not in ("BETWEEN", "IN") and word not in _LIKES:
        return operand
    cursor.at += 2 if negated else 1
    node: SyntaxNode
    if word == "BETWEEN":
        low = _value(cursor, 1)
        cursor.expect("AND")
        high = _value(cursor, 1)
        node = Between(start, cursor.at, operand, low, high)
    elif word == "IN":
        node = _in(cursor, start, operand)
    else:
        node = _like(cursor, start, operand, word)
    return Unary(start, cursor.at, "not", node) if negated else node


def _in(cursor: Cursor, start: int, operand: SyntaxNode) -> SyntaxNode:
    if cursor.subquery is not None and cursor.upper() == "(" and _starts_select(cursor, 1):
        query = cursor.subquery(cursor)
        return InSubquery(start, cursor.at, operand, query)
    cursor.expect("(")
    _refuse_subquery(cursor)
    items = _list(cursor, ")")
    return In(start, cursor.at, operand, items)


def _like(cursor: Cursor, start: int, operand: SyntaxNode, word: str) -> SyntaxNode:
    if cursor.upper() in ("ANY", "SOME", "ALL") and cursor.upper(1) == "(":
        joined = "AND" if cursor.upper() == "ALL" else "OR"
        raise Unshared(
            f"{word} {cursor.upper()} has no shared form",
            cursor.at,
            f"write {word} … {joined} {word} …",
        )
    pattern = _value(cursor, 1)
    escape = None
    if cursor.take("ESCAPE"):
        if cursor.token.kind != STRING:
            raise Unexpected(cursor.at)
        escape = cursor.source.slice(cursor.at, cursor.at + 1)
        cursor.at += 1
    return Like(start, cursor.at, _LIKES[word], operand, pattern, escape)


def _is(cursor: Cursor, start: int, operand: SyntaxNode) -> SyntaxNode:
    negated = cursor.take("NOT")
    word = cursor.upper()
    node: SyntaxNode
    if cursor.take("DISTINCT", "FROM"):
        right = _value(cursor, 1)
        node = Binary(start, cursor.at, "<=>", operand, right)
        negated = not negated
    elif word in _CONSTANTS or word == "UNKNOWN":
        cursor.at += 1
        node = Is(start, cursor.at, operand, _CONSTANTS.get(word))
    else:
        raise Unexpected(cursor.at)
    return Unary(start, cursor.at, "not", node) if negated else node


def _value(cursor: Cursor, level: int) -> SyntaxNode:
    """Operators of this level and tighter, from the left."""
    start = cursor.at
    left = _signed(cursor)
    while True:
        operator = cursor.upper()
        tightness = _LEVELS.get(operator, 0)
        if tightness < level:
            return left
        cursor.at += 1
        right = _value(cursor, tightness + 1)
        left = Binary(start, cursor.at, _SPELLINGS.get(operator, operator), left, right)


def _signed(cursor: Cursor) -> SyntaxNode:
    start = cursor.at
    word = cursor.upper()
    if word not in _SIGNS:
        return _suffixed(cursor, start, _primary(cursor))
    cursor.at += 1
    if word == "-" and cursor.token.kind == NUMBER:
        text = number_literal(cursor)
        return _suffixed(cursor, start, Number(start, cursor.at, f"-{text}"))
    operand = _signed(cursor)
    return Unary(start, cursor.at, word, operand)


def _suffixed(cursor: Cursor, start: int, node: SyntaxNode) -> SyntaxNode:
    """`x.field`, `x[index]` and `x::type` after a primary."""
    while True:
        word = cursor.upper()
        if word == "." and cursor.upper(1) == "*":
            raise Unexpected(cursor.at)
        if word == ".":
            cursor.at += 1
            field = cursor.name()
            node = FieldAccess(start, cursor.at, node, field)
        elif word == "[":
            cursor.at += 1
            index = expression(cursor)
            cursor.expect("]")
            node = Subscript(start, cursor.at, node, index)
        elif word == "::":
            cursor.at += 1
            type_ = type_name(cursor)
            node = Cast(start, cursor.at, node, type_, False)
        elif word in (":", "?", "->"):
            raise Unshared(f"'{word}' has no shared form", cursor.at)
        else:
            return node


def _primary(cursor: Cursor) -> SyntaxNode:
    token, start = cursor.token, cursor.at
    kind = token.kind
    if kind == NUMBER:
        text = number_literal(cursor)
        return Number(start, cursor.at, text)
    if kind == STRING:
        cursor.at += 1
        return String(start, cursor.at, cursor.source.slice(start, cursor.at), token.value)
    if kind == QUOTED:
        return _path(cursor, start)
    if kind == SYMBOL:
        return _symbol(cursor, start)
    if kind == END or token.upper in _CONNECTIVES or _starts_clause(cursor):
        raise Unexpected(start, certain=True)
    return _word(cursor, start, token.upper)


def _starts_clause(cursor: Cursor) -> bool:
    """Whether a word is a clause's and no column's: Spark allows columns called `order`."""
    if cursor.upper() not in _CLAUSES:
        return False
    following = cursor.ahead(1)
    if cursor.upper() != "FROM" and following.upper in ("FROM", "AS"):
        return False
    return following.kind not in (SYMBOL, END) or following.upper == "("


def _symbol(cursor: Cursor, start: int) -> SyntaxNode:
    word = cursor.upper()
    if word == "(":
        cursor.at += 1
        _refuse_subquery(cursor)
        inner = expression(cursor)
        if cursor.upper() == ",":
            raise Unshared("a row of several values has no shared form", start)
        cursor.expect(")")
        return inner
    if word in (":", "?", "{"):
        raise Unshared("parameters in the text have no shared form", start)
    if word[:2] in ("x'", 'x"', "X'", 'X"'):
        cursor.at += 1
        return TypedLiteral(start, cursor.at, "binary", "X'" + word[2:-1].upper() + "'")
    raise Unexpected(start, certain=word in _LEVELS or word in _CLOSING)


def _word(cursor: Cursor, start: int, word: str) -> SyntaxNode:
    following = cursor.tokens[start + 1]
    if following.kind == STRING and word in _TYPED_LITERALS:
        cursor.at += 2
        text = string_sql(cursor.source.slice(start + 1, cursor.at), following.value)
        kind = "binary" if word == "X" else word.lower()
        return TypedLiteral(start, cursor.at, kind, f"{word} {text}")
    if word == "INTERVAL" and (following.kind in (STRING, NUMBER) or following.upper == "-"):
        return interval_literal(cursor, start)
    if following.upper == "(":
        return _call(cursor, start, word)
    if word in _CONSTANTS and following.upper != ".":
        cursor.at += 1
        return Constant(start, cursor.at, _CONSTANTS[word])
    if word == "CASE" and following.upper != ".":
        return _case(cursor, start)
    if word in _WITHOUT_PARENTHESES:
        name = word.lower()
        raise Unshared(f"{name} changes from run to run", start, ADVICE.get(name, ""))
    return _path(cursor, start)


def _path(cursor: Cursor, start: int) -> SyntaxNode:
    parts = [cursor.name()]
    while cursor.upper() == "." and cursor.tokens[cursor.at + 1].kind in (WORD, QUOTED):
        cursor.at += 1
        parts.append(cursor.name())
    if cursor.upper() == "." and cursor.upper(1) == "*":
        cursor.at += 2
        return Star(start, cursor.at, tuple(parts))
    return Name(start, cursor.at, tuple(parts))


def _call(cursor: Cursor, start: int, word: str) -> SyntaxNode:
    if word in _OWN_SYNTAX:
        raise Unshared(f"{word}( … ) has no shared form", start)
    if cursor.subquery is not None and word == "EXISTS" and _starts_select(cursor, 2):
        cursor.at += 1
        query = cursor.subquery(cursor)
        return Exists(start, cursor.at, query)
    cursor.at += 2
    if word in ("CAST", "TRY_CAST"):
        operand = expression(cursor)
        cursor.expect("AS")
        type_ = type_name(cursor)
        cursor.expect(")")
        return Cast(start, cursor.at, operand, type_, word == "TRY_CAST")
    name = word.lower()
    _refuse_subquery(cursor)
    if word == "EXTRACT" and cursor.upper(1) == "FROM":
        return _extract(cursor, start)
    star = cursor.upper() == "*" and cursor.upper(1) == ")"
    distinct = False
    arguments: tuple[SyntaxNode, ...] = ()
    if star:
        cursor.at += 2
    else:
        distinct = cursor.take("DISTINCT")
        if not distinct and cursor.upper() == "ALL" and cursor.upper(1) not in (",", ")", "."):
            cursor.at += 1
        if distinct and cursor.upper() == "*":
            raise Unshared(
                f"{name}(DISTINCT *) has no shared form", start, "name the columns after DISTINCT"
            )
        arguments = () if cursor.take(")") else _list(cursor, ")")
    if len(arguments) > 2 and name in _UNIT_FUNCTIONS:
        raise Unshared(
            f"{name} with a unit has no shared form",
            start,
            "write ts + INTERVAL '1' DAY and the like",
        )
    call = Function(start, cursor.at, name, arguments, distinct, star)
    _after_call(cursor, call)
    return call


def _extract(cursor: Cursor, start: int) -> SyntaxNode:
    """EXTRACT(field FROM x) is date_part('field', x)."""
    field = cursor.name().lower()
    part = String(cursor.at - 1, cursor.at, f"'{field}'", field)
    cursor.expect("FROM")
    operand = expression(cursor)
    cursor.expect(")")
    return Function(start, cursor.at, "date_part", (part, operand))


def _after_call(cursor: Cursor, call: Function) -> None:
    if cursor.upper() == "WITHIN" and cursor.upper(1) == "GROUP":
        advice = ADVICE.get(call.name, "")
        raise Unshared(f"{call.name} WITHIN GROUP has no shared form", cursor.at, advice)
    if cursor.take("FILTER", "("):
        cursor.expect("WHERE")
        call.filter = expression(cursor)
        cursor.expect(")")
    if cursor.upper() in ("IGNORE", "RESPECT") and cursor.upper(1) == "NULLS":
        call.nulls = cursor.upper().lower()
        cursor.at += 2
    if cursor.upper() == "OVER" and (cursor.upper(1) == "(" or _names_a_window(cursor)):
        raise cursor.source.error(
            "UNSUPPORTED",
            cursor.at,
            detail=f"{call.name} … OVER: analytic functions do not exist on streams",
        )
    call.stop = cursor.at


def _names_a_window(cursor: Cursor) -> bool:
    following = cursor.tokens[cursor.at + 1]
    if following.upper in _CLAUSES or following.upper in _CONNECTIVES:
        return False
    return following.kind in (WORD, QUOTED)


def _list(cursor: Cursor, closing: str) -> tuple[SyntaxNode, ...]:
    items = [_argument(cursor)]
    while cursor.take(","):
        items.append(_argument(cursor))
    cursor.expect(closing)
    return tuple(items)


def _argument(cursor: Cursor) -> SyntaxNode:
    if cursor.upper(1) == "=>":
        raise Unshared(
            "a named argument ('=>') has no shared form",
            cursor.at + 1,
            "give the arguments in their order, without names",
        )
    if cursor.upper(1) == "->" or (cursor.upper() == "(" and _is_lambda(cursor)):
        raise Unshared("a lambda ('->') has no shared form", cursor.at)
    return expression(cursor)


def _is_lambda(cursor: Cursor) -> bool:
    ahead = 1
    while cursor.upper(ahead) not in (")", "") or cursor.ahead(ahead).kind == QUOTED:
        if cursor.ahead(ahead).kind not in (WORD, QUOTED) and cursor.upper(ahead) != ",":
            return False
        ahead += 1
    return cursor.upper(ahead + 1) == "->"


def _case(cursor: Cursor, start: int) -> SyntaxNode:
    cursor.at += 1
    operand = None if cursor.upper() == "WHEN" else expression(cursor)
    branches = []
    while cursor.take("WHEN"):
        condition = expression(cursor)
        cursor.expect("THEN")
        branches.append((condition, expression(cursor)))
    otherwise = expression(cursor) if cursor.take("ELSE") else None
    if not branches:
        raise Unexpected(cursor.at)
    cursor.expect("END")
    return Case(start, cursor.at, operand, tuple(branches), otherwise)


def _starts_select(cursor: Cursor, ahead: int) -> bool:
    """Whether a SELECT comes, and no column called `select` or `with`."""
    is_select = cursor.upper(ahead) in ("SELECT", "WITH")
    return is_select and cursor.upper(ahead + 1) not in (",", ")", ".")


def _refuse_subquery(cursor: Cursor) -> None:
    starts_query = cursor.upper() in ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
    if starts_query and cursor.upper(1) not in (",", ")", "."):
        raise Unshared("a subquery has no shared form", cursor.at)
