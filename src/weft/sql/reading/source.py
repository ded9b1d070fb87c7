"""A query's text as tokens that know their place.

sqlglot's tokenizer reads Spark's comments, quotes, escapes and numbers. Its tokens become
plain values here: number suffixes and doubled quotes are put together again, and words carry
their upper-case form, since no keyword of Spark is reserved where a name may stand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlglot import TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from weft.errors import SqlError

WORD, QUOTED, STRING, NUMBER, SYMBOL, END = range(6)

_DIALECT = Spark()
_WORD = re.compile(r"[^\W\d]\w*\Z|\d+[^\W\d]\w*\Z|\d+_\w*\Z")
_PHRASE = re.compile(r"[^\W\d]\w*(?:\s+[^\W\d]\w*)+\Z")
_STRING, _RAW_STRING = TokenType.STRING, TokenType.RAW_STRING
_IDENTIFIER, _NUMBER = TokenType.IDENTIFIER, TokenType.NUMBER
_SHIFTS = frozenset({"<", ">"})


class Token(NamedTuple):
    """A token: its kind, its value, the upper-case form of words and symbols, its span.

    A string's value is None where it has escapes that only Spark should resolve.
    """

    kind: int
    value: str | None
    upper: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Source:
    """A query's text and its tokens, the last of which is an END token."""

    text: str
    tokens: tuple[Token, ...]

    def error(self, error_class: str, at: int, **parameters: Any) -> SqlError:
        """An error at a token."""
        line, column = self.position(self.tokens[min(at, len(self.tokens) - 1)].start)
        return SqlError(error_class, line=line, column=column, **parameters)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, from 1, of a place in the text."""
        return line_and_column(self.text, offset)

    def slice(self, start: int, stop: int) -> str:
        """The user's own text of the tokens from `start` up to `stop`."""
        return self.text[self.tokens[start].start : self.tokens[stop - 1].stop]


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Line and column, from 1, of an offset.

    >>> line_and_column("SELECT\\n  a", 9)
    (2, 3)
    """
    before = text.rfind("\n", 0, offset)
    return text.count("\n", 0, offset) + 1, offset - before


def read(text: str, double_quoted_names: bool = False) -> Source:
    """The tokens of a text; "double quotes" hold a name or a string, as the session has it.

    >>> [token.upper for token in read("SELECT 1L -- one").tokens]
    ['SELECT', '1L', '']
    """
    try:
        raw_tokens = _DIALECT.tokenize(text)
    except SqlglotError:
        raise _unreadable(text) from None
    tokens: list[Token] = []
    for token in raw_tokens:
        kind, start, stop = token.token_type, token.start, token.end + 1
        if kind is _STRING or kind is _RAW_STRING:
            if double_quoted_names and text[start] == '"':
                _add_name(tokens, text, start, stop)
            else:
                _add_string(tokens, text, token.text, start, stop)
        elif kind is _IDENTIFIER:
            tokens.append(Token(QUOTED, token.text, "", start, stop))
        elif kind is _NUMBER:
            raw = text[start:stop]
            if tokens and raw[0].isdigit() and _is_leading_dot(tokens, start):
                dot = tokens.pop()
                start, raw = dot.start, text[dot.start : stop]
            tokens.append(Token(NUMBER, raw, raw.upper(), start, stop))
        elif tokens and tokens[-1].start == start:
            continue  # the cast that the tokenizer makes of a number's suffix
        else:
            raw = text[start:stop]
            if _WORD.match(raw):
                tokens.append(Token(WORD, raw, raw.upper(), start, stop))
            elif _PHRASE.match(raw):
                _add_words(tokens, raw, start)
            else:
                _add_symbol(tokens, raw, start, stop)
    tokens.append(Token(END, None, "", len(text.rstrip()), len(text)))
    return Source(text, tuple(tokens))


def _add_string(tokens: list[Token], text: str, value: str, start: int, stop: int) -> None:
    raw = text[start:stop]
    plain = value if "\\" not in raw else None
    last = tokens[-1] if tokens else None
    if last is not None and last.kind == STRING:
        # 'it''s' is it's; 'a' 'b' is ab
        joint = text[start] if last.stop == start and text[last.stop - 1] == text[start] else ""
        both = last.value is not None and plain is not None
        plain = f"{last.value}{joint}{plain}" if both else None
        start = tokens.pop().start
    tokens.append(Token(STRING, plain, "", start, stop))


def _add_name(tokens: list[Token], text: str, start: int, stop: int) -> None:
    """A name in double quotes, in which a doubled quote stands for one."""
    last = tokens[-1] if tokens else None
    if last is not None and last.kind == QUOTED and last.stop == start and text[start - 1] == '"':
        start = tokens.pop().start
    name = text[start + 1 : stop - 1].replace('""', '"')
    tokens.append(Token(QUOTED, name, "", start, stop))


def _add_words(tokens: list[Token], phrase: str, start: int) -> None:
    """The words of what the tokenizer takes for one keyword, such as GROUP BY."""
    for match in re.finditer(r"\S+", phrase):
        word = match[0]
        tokens.append(Token(WORD, word, word.upper(), start + match.start(), start + match.end()))


def _add_symbol(tokens: list[Token], raw: str, start: int, stop: int) -> None:
    last = tokens[-1] if tokens else None
    if (
        raw in _SHIFTS
        and last is not None
        and last.kind == SYMBOL
        and last.stop == start
        and last.upper in (raw, raw * 2)
        and last.upper + raw != "<<<"
    ):
        tokens[-1] = Token(SYMBOL, None, last.upper + raw, last.start, stop)
    else:
        tokens.append(Token(SYMBOL, None, raw, start, stop))


def _is_leading_dot(tokens: list[Token], start: int) -> bool:
    """Whether the last token is the dot of a number such as .5, not that of a.5."""
    dot = tokens[-1]
    if dot.upper != "." or dot.stop != start:
        return False
    return len(tokens) < 2 or tokens[-2].stop != dot.start or tokens[-2].kind == SYMBOL


_OPENINGS = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`[^`]*`|(?P<open>/\*|['"`])""",
    re.DOTALL,
)


def _unreadable(text: str) -> SqlError:
    """The error for a text that the tokenizer refuses: something is opened and not closed."""
    for match in _OPENINGS.finditer(text):
        if match["open"]:
            line, column = line_and_column(text, match.start())
            detail = f"{match['open']} is not closed"
            return SqlError("PARSE_ERROR", line=line, column=column, detail=detail)
    line, column = line_and_column(text, 0)
    return SqlError("PARSE_ERROR", line=line, column=column, detail="this is not SQL")
