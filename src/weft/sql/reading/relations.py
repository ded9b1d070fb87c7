"""The relations that a text reads, for queries that only Spark can read in full.

A name is a relation where Spark's grammar has one: after FROM and JOIN, after a comma between
relations, in parentheses around joins, after TABLE. Names that the text defines itself with WITH
are left out, each in its scope: a common table expression is visible behind its definition, so
`WITH bids AS (SELECT * FROM bids)` reads the stream. Too many names would be as wrong as too few: a
stream that is defined and not read freezes the watermark of Spark's query (DESIGN section 6).

Time: linear in the number of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from weft.sql.reading.functions import words
from weft.sql.reading.source import QUOTED, SYMBOL, WORD, Source, Token

JOINS: Final = words("JOIN INNER LEFT RIGHT FULL CROSS SEMI ANTI NATURAL OUTER")
_QUERY_WORDS: Final = words("SELECT FROM VALUES TABLE WITH")
_SET_OPERATIONS: Final = words("UNION INTERSECT EXCEPT MINUS")
_END_OF_FROM: Final = words(
    "SELECT WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET QUALIFY"
)
_BEFORE_TABLE: Final = words("UNION INTERSECT EXCEPT MINUS ALL DISTINCT ( , =>")


class Reference(NamedTuple):
    """A name in the place of a relation, and the index of its first token."""

    parts: tuple[str, ...]
    at: int

    @property
    def name(self) -> str:
        return ".".join(self.parts)


@dataclass(slots=True)
class _Level:
    """What is known inside one pair of parentheses, or outside of all."""

    defined: set[str]
    """The names, in lower case, that WITH has defined so far."""
    is_query: bool = False
    in_from: bool = False
    expects_relation: bool = False
    is_join: bool = False
    """Whether these are the parentheses of a relation: a subquery or a join."""
    begun: bool = False
    in_with: bool = False
    expects_definition: bool = False
    recursive: bool = False
    being_defined: str | None = None
    opened_definition: bool = False


def references(source: Source) -> list[Reference]:
    """The relations that the text reads and does not define, in the order of the text."""
    return _Scan(source.tokens).run()


@dataclass(slots=True)
class _Scan:
    tokens: tuple[Token, ...]
    at: int = 0
    levels: list[_Level] = field(default_factory=lambda: [_Level(set(), is_query=True)])
    read: list[Reference] = field(default_factory=list)

    def run(self) -> list[Reference]:
        while self.at < len(self.tokens) - 1:
            self._step(self.tokens[self.at], self.levels[-1])
            self.at += 1
        return self.read

    def _upper(self, steps: int) -> str:
        index = self.at + steps
        return self.tokens[index].upper if 0 <= index < len(self.tokens) else ""

    def _step(self, token: Token, level: _Level) -> None:
        first = not level.begun
        level.begun = True
        if first and level.is_join and token.upper not in _QUERY_WORDS:
            level.in_from = level.expects_relation = True
        if token.kind == SYMBOL:
            self._symbol(token.upper, level)
        elif token.kind in (WORD, QUOTED) and self._upper(-1) != ".":
            if first and token.upper == "WITH":
                level.in_with = level.expects_definition = True
            elif level.in_with and token.upper not in ("SELECT", "FROM", "VALUES", "TABLE"):
                self._definition(token, level)
            elif level.expects_relation:
                self._relation(token, level)
            elif token.kind == WORD:
                self._word(token.upper, level, first)

    def _symbol(self, symbol: str, level: _Level) -> None:
        if symbol == "(":
            level.opened_definition = level.in_with and self._upper(-1) in ("AS", "MATERIALIZED")
            self.levels.append(_Level(set(level.defined), is_join=level.expects_relation))
            level.expects_relation = False
        elif symbol == ")" and len(self.levels) > 1:
            self.levels.pop()
            outer = self.levels[-1]
            if outer.opened_definition and outer.being_defined is not None:
                outer.defined.add(outer.being_defined)
            outer.opened_definition = False
        elif symbol == ",":
            level.expects_definition = level.in_with
            level.expects_relation = level.in_from and not level.in_with
        elif symbol == "|>":
            level.in_from = self._upper(1) in JOINS

    def _definition(self, token: Token, level: _Level) -> None:
        """A word between WITH and the statement itself."""
        if not level.expects_definition:
            return
        if token.upper == "RECURSIVE" and self._upper(1) not in ("AS", "("):
            level.recursive = True
            return
        level.expects_definition = False
        level.being_defined = (token.value or "").lower()
        if level.recursive:
            level.defined.add(level.being_defined)

    def _relation(self, token: Token, level: _Level) -> None:
        if token.upper == "LATERAL" or (token.upper == "STREAM" and self._names_a_stream()):
            return
        level.expects_relation = False
        if token.upper in _QUERY_WORDS:
            self._word(token.upper, level, first=True)
            return
        start = self.at
        parts = [token.value or ""]
        while self._upper(1) == "." and self.tokens[self.at + 2].kind in (WORD, QUOTED):
            self.at += 2
            parts.append(self.tokens[self.at].value or "")
        is_function = self._upper(1) == "("
        if not is_function and not (len(parts) == 1 and parts[0].lower() in level.defined):
            self.read.append(Reference(tuple(parts), start))

    def _names_a_stream(self) -> bool:
        """Whether the word STREAM stands before a name, and is not a name itself."""
        following = self.tokens[self.at + 1]
        if following.kind == QUOTED or following.upper == "(":
            return True
        clause = following.upper in _END_OF_FROM or following.upper in JOINS
        return following.kind == WORD and not clause and following.upper not in ("AS", "ON")

    def _word(self, word: str, level: _Level, first: bool) -> None:
        if word in ("SELECT", "VALUES"):
            level.is_query, level.in_from, level.in_with = True, False, False
        elif word == "FROM":
            if first or (level.is_query and not self._compares()):
                level.is_query = level.in_from = level.expects_relation = True
                level.in_with = False
        elif word == "JOIN":
            level.expects_relation = level.in_from
        elif word == "TABLE":
            level.in_with = False
            self._table(level, first)
        elif self._ends_from(word):
            level.in_from = False

    def _ends_from(self, word: str) -> bool:
        if word == "LATERAL":
            return self._upper(1) == "VIEW"
        if word == "WINDOW":
            return self._upper(2) == "AS"
        return word in _END_OF_FROM or word in _SET_OPERATIONS

    def _compares(self) -> bool:
        """Whether FROM belongs to IS [NOT] DISTINCT FROM."""
        return self._upper(-1) == "DISTINCT" and self._upper(-2) in ("IS", "NOT")

    def _table(self, level: _Level, first: bool) -> None:
        """`TABLE bids` as a query, or `TABLE(bids)` as an argument of a table function."""
        if not first and self._upper(-1) not in _BEFORE_TABLE:
            return
        if self._upper(1) == "(":
            level.expects_relation = True
        elif self.tokens[self.at + 1].kind in (WORD, QUOTED):
            following = self._upper(1)
            clause = following in _END_OF_FROM or following in ("FROM", "AS")
            level.expects_relation = not clause
