"""Reads what contains no expression: numbers, intervals, the names of types."""

from __future__ import annotations

from typing import Final

from weft.sql.fallback import Unshared
from weft.sql.reading.cursor import Cursor, Unexpected
from weft.sql.reading.source import END, NUMBER, STRING, WORD
from weft.sql.reading.syntax import TypedLiteral, string_sql

_INTERVAL_UNITS: Final = frozenset(
    unit + plural
    for unit in (
        "YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND",
    )
    for plural in ("", "S")
)  # fmt: skip


def number_literal(cursor: Cursor) -> str:
    """A number as written, without a sign; hexadecimal numbers do not exist in Spark SQL."""
    text = cursor.token.upper
    if text.startswith("0X"):
        raise Unexpected(cursor.at)
    cursor.at += 1
    return text


def interval_literal(cursor: Cursor, start: int) -> TypedLiteral:
    """INTERVAL 'text' [unit [TO unit]], or INTERVAL n unit …"""
    cursor.at += 1
    if cursor.token.kind == STRING:
        cursor.at += 1
        if cursor.token.kind == WORD and cursor.upper() in _INTERVAL_UNITS:
            cursor.at += 1
            if cursor.upper() == "TO" and cursor.upper(1) in _INTERVAL_UNITS:
                cursor.at += 2
    else:
        while cursor.token.kind == NUMBER or (
            cursor.upper() == "-" and cursor.ahead(1).kind == NUMBER
        ):
            cursor.at += 1 if cursor.token.kind == NUMBER else 2
            if cursor.upper() not in _INTERVAL_UNITS:
                raise Unexpected(cursor.at)
            cursor.at += 1
    parts = [
        string_sql(cursor.source.slice(index, index + 1), token.value)
        if token.kind == STRING
        else token.upper
        for index, token in enumerate(cursor.tokens[start : cursor.at], start)
    ]
    return TypedLiteral(start, cursor.at, "interval", " ".join(parts))


def type_name(cursor: Cursor) -> str:
    """A type's text in lower case without spaces, such as decimal(10,2)."""
    start = cursor.at
    cursor.name()
    if cursor.upper() == "(":
        while not cursor.take(")"):
            if cursor.token.kind == END:
                raise Unexpected(cursor.at)
            cursor.at += 1
    elif cursor.upper() == "<":
        raise Unshared("a cast to a nested type has no shared form", start)
    return "".join(token.upper.lower() for token in cursor.tokens[start : cursor.at])
