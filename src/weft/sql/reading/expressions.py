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

What is Spark SQL but outside what weft shares (subqueries, lambdas, OVER, …) raises
`Unshared`; a token that fits nowhere raises `Unexpected`.
"""

from __future__ import annotations

from typing import Final

from weft.sql.fallback import Unshared
from weft.sql.reading.functions import words
from weft.sql.reading.source import END, NUMBER, QUOTED, STRING, SYMBOL, WORD, Source, Token
from weft.sql.reading.syntax import (
    Between,
    Binary,
    Case,
    Cast,
    Constant,
    Field,
    Function,
    In,
    Is,
    Like,
    Name,
    Node,
    Number,
    Star,
    String,
    Subscript,
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
_LOOKAHEAD: Final = 4
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


class Unexpected(Exception):
    """A token that does not fit; `at` is its index. It is certain that it fits nowhere if an
    operand is missing; else Spark may know syntax that this reader does not."""

    def __init__(self, at: int, *, certain: bool = False) -> None:
        super().__init__(at)
        self.at = at
        self.certain = certain


class Reader:
    """A position in a source's tokens, and the rules that move it."""

    __slots__ = ("_tokens", "_uppers", "at", "source")

    def __init__(self, source: Source, at: int = 0) -> None:
        self.source = source
        self._tokens = source.tokens
        self._uppers = [token.upper for token in source.tokens] + [""] * _LOOKAHEAD
        self.at = at

    @property
    def token(self) -> Token:
        return self._tokens[self.at]

    def upper(self, ahead: int = 0) -> str:
        """The token's word or symbol; empty for names in quotes, strings and the end."""
        return self._uppers[self.at + ahead]

    def take(self, *words: str) -> bool:
        """Moves past these words or symbols if they come next."""
        at = self.at
        for word in words:
            if self._uppers[at] != word:
                return False
            at += 1
        self.at = at
        return True

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise Unexpected(self.at)

    def name(self) -> str:
        """A name, in quotes or not."""
        token = self.token
        if token.kind not in (WORD, QUOTED) or token.value is None:
            raise Unexpected(self.at)
        self.at += 1
        return token.value

    def expression(self) -> Node:
        return self._or()

    def _or(self) -> Node:
        start = self.at
        left = self._and()
        while self.take("OR"):
            right = self._and()
            left = Binary(start, self.at, "or", left, right)
        return left

    def _and(self) -> Node:
        start = self.at
        left = self._not()
        while self.take("AND"):
            right = self._not()
            left = Binary(start, self.at, "and", left, right)
        return left

    def _not(self) -> Node:
        start = self.at
        if self.take("NOT") or self.take("!"):
            operand = self._not()
            return Unary(start, self.at, "not", operand)
        return self._predicate(start, self._value(1))

    def _predicate(self, start: int, operand: Node) -> Node:
        word = self.upper()
        negated = word == "NOT"
        if negated:
            word = self.upper(1)
        if word == "IS" and not negated:
            self.at += 1
            return self._is(start, operand)
        if word not in ("BETWEEN", "IN") and word not in _LIKES:
            return operand
        self.at += 2 if negated else 1
        node: Node
        if word == "BETWEEN":
            low = self._value(1)
            self.expect("AND")
            high = self._value(1)
            node = Between(start, self.at, operand, low, high)
        elif word == "IN":
            self.expect("(")
            self._refuse_subquery()
            items = self._list(")")
            node = In(start, self.at, operand, items)
        else:
            node = self._like(start, operand, word)
        return Unary(start, self.at, "not", node) if negated else node

    def _like(self, start: int, operand: Node, word: str) -> Node:
        if self.upper() in ("ANY", "SOME", "ALL") and self.upper(1) == "(":
            raise Unshared(f"{word} {self.upper()} has no shared form", self.at)
        pattern = self._value(1)
        escape = None
        if self.take("ESCAPE"):
            if self.token.kind != STRING:
                raise Unexpected(self.at)
            escape = self.source.slice(self.at, self.at + 1)
            self.at += 1
        return Like(start, self.at, _LIKES[word], operand, pattern, escape)

    def _is(self, start: int, operand: Node) -> Node:
        negated = self.take("NOT")
        word = self.upper()
        node: Node
        if self.take("DISTINCT", "FROM"):
            right = self._value(1)
            node = Binary(start, self.at, "<=>", operand, right)
            negated = not negated
        elif word in _CONSTANTS or word == "UNKNOWN":
            self.at += 1
            node = Is(start, self.at, operand, _CONSTANTS.get(word))
        else:
            raise Unexpected(self.at)
        return Unary(start, self.at, "not", node) if negated else node

    def _value(self, level: int) -> Node:
        """Operators of this level and tighter, from the left."""
        start = self.at
        left = self._signed()
        while True:
            operator = self.upper()
            own = _LEVELS.get(operator, 0)
            if own < level:
                return left
            self.at += 1
            right = self._value(own + 1)
            left = Binary(start, self.at, _SPELLINGS.get(operator, operator), left, right)

    def _signed(self) -> Node:
        start = self.at
        word = self.upper()
        if word not in _SIGNS:
            return self._suffixed(start, self._primary())
        self.at += 1
        if word == "-" and self.token.kind == NUMBER:
            text = self._number()
            return self._suffixed(start, Number(start, self.at, f"-{text}"))
        operand = self._signed()
        return Unary(start, self.at, word, operand)

    def _suffixed(self, start: int, node: Node) -> Node:
        """`x.field`, `x[index]` and `x::type` after a primary."""
        while True:
            word = self.upper()
            if word == "." and self.upper(1) == "*":
                raise Unexpected(self.at)
            if word == ".":
                self.at += 1
                field = self.name()
                node = Field(start, self.at, node, field)
            elif word == "[":
                self.at += 1
                index = self.expression()
                self.expect("]")
                node = Subscript(start, self.at, node, index)
            elif word == "::":
                self.at += 1
                type_ = self._type()
                node = Cast(start, self.at, node, type_, False)
            elif word in (":", "?", "->"):
                raise Unshared(f"'{word}' has no shared form", self.at)
            else:
                return node

    def _primary(self) -> Node:
        token, start = self.token, self.at
        kind = token.kind
        if kind == NUMBER:
            text = self._number()
            return Number(start, self.at, text)
        if kind == STRING:
            self.at += 1
            return String(start, self.at, self.source.slice(start, self.at), token.value)
        if kind == QUOTED:
            return self._path(start)
        if kind == SYMBOL:
            return self._symbol(start)
        if kind == END or token.upper in _CONNECTIVES or self._starts_clause():
            raise Unexpected(start, certain=True)
        return self._word(start, token.upper)

    def _starts_clause(self) -> bool:
        """Whether a word is a clause's and no column's: Spark allows columns called `order`."""
        if self.upper() not in _CLAUSES:
            return False
        following = self._ahead(1)
        if self.upper() != "FROM" and following.upper in ("FROM", "AS"):
            return False
        return following.kind not in (SYMBOL, END) or following.upper == "("

    def _number(self) -> str:
        text = self.token.upper
        if text.startswith("0X"):
            raise Unexpected(self.at)
        self.at += 1
        return text

    def _symbol(self, start: int) -> Node:
        word = self.upper()
        if word == "(":
            self.at += 1
            self._refuse_subquery()
            inner = self.expression()
            if self.upper() == ",":
                raise Unshared("a row of several values has no shared form", start)
            self.expect(")")
            return inner
        if word in (":", "?", "{"):
            raise Unshared("parameters in the text have no shared form", start)
        if word[:2] in ("x'", 'x"', "X'", 'X"'):
            self.at += 1
            return TypedLiteral(start, self.at, "binary", "X'" + word[2:-1].upper() + "'")
        raise Unexpected(start, certain=word in _LEVELS or word in _CLOSING)

    def _word(self, start: int, word: str) -> Node:
        following = self._tokens[start + 1]
        if following.kind == STRING and word in _TYPED_LITERALS:
            self.at += 2
            text = string_sql(self.source.slice(start + 1, self.at), following.value)
            kind = "binary" if word == "X" else word.lower()
            return TypedLiteral(start, self.at, kind, f"{word} {text}")
        if word == "INTERVAL" and (following.kind in (STRING, NUMBER) or following.upper == "-"):
            return self._interval(start)
        if following.upper == "(":
            return self._call(start, word)
        if word in _CONSTANTS and following.upper != ".":
            self.at += 1
            return Constant(start, self.at, _CONSTANTS[word])
        if word == "CASE" and following.upper != ".":
            return self._case(start)
        if word in _WITHOUT_PARENTHESES:
            raise Unshared(f"{word.lower()} changes from run to run", start)
        return self._path(start)

    def _path(self, start: int) -> Node:
        parts = [self.name()]
        while self.upper() == "." and self._tokens[self.at + 1].kind in (WORD, QUOTED):
            self.at += 1
            parts.append(self.name())
        if self.upper() == "." and self.upper(1) == "*":
            self.at += 2
            return Star(start, self.at)
        return Name(start, self.at, tuple(parts))

    def _call(self, start: int, word: str) -> Node:
        if word in _OWN_SYNTAX:
            raise Unshared(f"{word}( … ) has no shared form", start)
        if word == "EXISTS":
            raise Unshared("a subquery has no shared form", start)
        self.at += 2
        if word in ("CAST", "TRY_CAST"):
            operand = self.expression()
            self.expect("AS")
            type_ = self._type()
            self.expect(")")
            return Cast(start, self.at, operand, type_, word == "TRY_CAST")
        name = word.lower()
        self._refuse_subquery()
        if word == "EXTRACT" and self.upper(1) == "FROM":
            return self._extract(start)
        star = self.upper() == "*" and self.upper(1) == ")"
        distinct = False
        arguments: tuple[Node, ...] = ()
        if star:
            self.at += 2
        else:
            distinct = self.take("DISTINCT")
            if not distinct and self.upper() == "ALL" and self.upper(1) not in (",", ")", "."):
                self.at += 1
            if distinct and self.upper() == "*":
                raise Unshared(f"{name}(DISTINCT *) has no shared form", start)
            arguments = () if self.take(")") else self._list(")")
        if len(arguments) > 2 and name in _UNIT_FUNCTIONS:
            raise Unshared(f"{name} with a unit has no shared form", start)
        call = Function(start, self.at, name, arguments, distinct, star)
        self._after_call(call)
        return call

    def _extract(self, start: int) -> Node:
        """EXTRACT(field FROM x) is date_part('field', x)."""
        field = self.name().lower()
        part = String(self.at - 1, self.at, f"'{field}'", field)
        self.expect("FROM")
        operand = self.expression()
        self.expect(")")
        return Function(start, self.at, "date_part", (part, operand))

    def _after_call(self, call: Function) -> None:
        if self.upper() == "WITHIN" and self.upper(1) == "GROUP":
            raise Unshared(f"{call.name} WITHIN GROUP has no shared form", self.at)
        if self.take("FILTER", "("):
            self.expect("WHERE")
            call.filter = self.expression()
            self.expect(")")
        if self.upper() in ("IGNORE", "RESPECT") and self.upper(1) == "NULLS":
            call.nulls = self.upper().lower()
            self.at += 2
        if self.upper() == "OVER" and (self.upper(1) == "(" or self._names_a_window()):
            raise self.source.error(
                "UNSUPPORTED",
                self.at,
                detail=f"{call.name} … OVER: analytic functions do not exist on streams",
            )
        call.stop = self.at

    def _names_a_window(self) -> bool:
        following = self._tokens[self.at + 1]
        if following.upper in _CLAUSES or following.upper in _CONNECTIVES:
            return False
        return following.kind in (WORD, QUOTED)

    def _list(self, closing: str) -> tuple[Node, ...]:
        items = [self._argument()]
        while self.take(","):
            items.append(self._argument())
        self.expect(closing)
        return tuple(items)

    def _argument(self) -> Node:
        if self.upper(1) in ("->", "=>"):
            raise Unshared(f"'{self.upper(1)}' has no shared form", self.at + 1)
        if self.upper() == "(" and self._is_lambda():
            raise Unshared("'->' has no shared form", self.at)
        return self.expression()

    def _is_lambda(self) -> bool:
        ahead = 1
        while self.upper(ahead) not in (")", "") or self._ahead(ahead).kind == QUOTED:
            if self._ahead(ahead).kind not in (WORD, QUOTED) and self.upper(ahead) != ",":
                return False
            ahead += 1
        return self.upper(ahead + 1) == "->"

    def _ahead(self, ahead: int) -> Token:
        return self._tokens[min(self.at + ahead, len(self._tokens) - 1)]

    def _case(self, start: int) -> Node:
        self.at += 1
        operand = None if self.upper() == "WHEN" else self.expression()
        branches = []
        while self.take("WHEN"):
            condition = self.expression()
            self.expect("THEN")
            branches.append((condition, self.expression()))
        otherwise = self.expression() if self.take("ELSE") else None
        if not branches:
            raise Unexpected(self.at)
        self.expect("END")
        return Case(start, self.at, operand, tuple(branches), otherwise)

    def _interval(self, start: int) -> Node:
        """INTERVAL 'text' [unit [TO unit]], or INTERVAL n unit …"""
        self.at += 1
        if self.token.kind == STRING:
            self.at += 1
            if self.token.kind == WORD and self.upper() in _INTERVAL_UNITS:
                self.at += 1
                if self.upper() == "TO" and self.upper(1) in _INTERVAL_UNITS:
                    self.at += 2
        else:
            while self.token.kind == NUMBER or (
                self.upper() == "-" and self._ahead(1).kind == NUMBER
            ):
                self.at += 1 if self.token.kind == NUMBER else 2
                if self.upper() not in _INTERVAL_UNITS:
                    raise Unexpected(self.at)
                self.at += 1
        words = [
            string_sql(self.source.slice(index, index + 1), token.value)
            if token.kind == STRING
            else token.upper
            for index, token in enumerate(self._tokens[start : self.at], start)
        ]
        return TypedLiteral(start, self.at, "interval", " ".join(words))

    def _type(self) -> str:
        """A type's text in lower case without spaces, such as decimal(10,2)."""
        start = self.at
        self.name()
        if self.upper() == "(":
            while not self.take(")"):
                if self.token.kind == END:
                    raise Unexpected(self.at)
                self.at += 1
        elif self.upper() == "<":
            raise Unshared("a cast to a nested type has no shared form", start)
        return "".join(token.upper.lower() for token in self._tokens[start : self.at])

    def _refuse_subquery(self) -> None:
        if self.upper() in ("SELECT", "WITH", "FROM", "VALUES") and self.upper(1) not in (",", ")"):
            raise Unshared("a subquery has no shared form", self.at)


_INTERVAL_UNITS: Final = frozenset(
    unit + plural
    for unit in (
        "YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND",
    )
    for plural in ("", "S")
)  # fmt: skip
