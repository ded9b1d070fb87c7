"""A position in a query's tokens, which readers of expressions and clauses move forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from weft.sql.reading.source import QUOTED, WORD, Source, Token

if TYPE_CHECKING:
    from weft.sql.reading.syntax import Select

_LOOKAHEAD: Final = 4


class Unexpected(Exception):
    """A token that does not fit; `at` is its index. Where an operand is missing it is `certain`
    that the text is wrong; elsewhere Spark may know syntax that weft does not."""

    def __init__(self, at: int, *, certain: bool = False) -> None:
        super().__init__(at)
        self.at = at
        self.certain = certain


class Cursor:
    """A position in a source's tokens, and the few ways to look ahead and to move.

    `subquery` reads a SELECT in parentheses inside an expression; None: there are none.
    """

    __slots__ = ("_uppers", "at", "source", "subquery", "tokens")

    def __init__(
        self,
        source: Source,
        at: int = 0,
        subquery: Callable[[Cursor], Select] | None = None,
    ) -> None:
        self.source = source
        self.subquery = subquery
        self.tokens = source.tokens
        self._uppers = [token.upper for token in source.tokens] + [""] * _LOOKAHEAD
        self.at = at

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

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

    def ahead(self, steps: int) -> Token:
        """A later token; the END token where the text has no more."""
        return self.tokens[min(self.at + steps, len(self.tokens) - 1)]
