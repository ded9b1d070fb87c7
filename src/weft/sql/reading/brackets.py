"""Windows in brackets, and EVERY.

`[RANGE 1 MINUTE SLIDE 5 SECONDS]` and `[RANGE 1000 ROWS]` are windows of a query on one stream. The inputs of an
aggregation join have windows of their own: `[WINDOW 1 HOUR]` slides, `[WINDOW 1 HOUR TUMBLING]` tumbles,
`[WINDOW UNTIL NOW]` is a landmark window. The word for the kind may also stand before the length.
"""

from __future__ import annotations

import re
from typing import Final

from weft.sql.reading.cursor import Cursor, Unexpected
from weft.sql.reading.intervals import IntervalProblem, interval_micros
from weft.sql.reading.source import END, NUMBER, STRING, WORD, Source
from weft.sql.reading.syntax import BracketWindow, Every, InputWindow

MOST_ROWS: Final = 1 << 60
"""So that a number, a range and a slide can be added within a bigint."""

_KINDS: Final = {"SLIDING": "sliding", "TUMBLING": "tumbling"}
_STEPS: Final = ("SLIDE", "EVERY")
_AFTER_EVERY: Final = ("ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET")
"""Clauses that other queries may end with."""
_ROWS = re.compile(r"(?:.*\s)?rows?\s*\Z", re.IGNORECASE | re.DOTALL)
_COUNT = re.compile(r"\s*(?P<count>\+?\s*\d+)\s+rows?\s*\Z", re.IGNORECASE)


class RowCountProblem(ValueError):
    """Why a text is not a number of rows."""


def bracket(cursor: Cursor) -> BracketWindow:
    """The window in brackets that starts here; without SLIDE it tumbles."""
    opening = cursor.at
    cursor.at += 1
    cursor.expect("RANGE")
    range_, rows = _length(cursor, "RANGE")
    slide, at = range_, cursor.at + 1
    if cursor.take("SLIDE"):
        slide, slides_by_rows = _length(cursor, "SLIDE")
        if slides_by_rows != rows:
            raise cursor.source.error(
                "BAD_WINDOW",
                at,
                detail="a window's range and slide must both be times, or both be rows",
            )
    cursor.expect("]")
    return BracketWindow(range_, slide, opening, rows)


def input_window(cursor: Cursor) -> InputWindow:
    """The window of an input, in the brackets that start here; it slides unless a word says otherwise."""
    opening = cursor.at
    cursor.at += 2
    if cursor.take("UNTIL", "NOW") or cursor.take("UNBOUNDED") or cursor.take("LANDMARK"):
        cursor.expect("]")
        return InputWindow("landmark", 0, opening)
    kind = _kind(cursor)
    start = cursor.at
    text = _text(cursor, (*_KINDS, *_STEPS, "]"))
    kind = kind or _kind(cursor) or "sliding"
    if cursor.upper() in _STEPS:
        detail = "how often the query is evaluated is said once, by EVERY at the end of the query"
        raise cursor.source.error("BAD_WINDOW", cursor.at, detail=detail)
    cursor.expect("]")
    if not text or counts_rows(text):
        found = f"not '{text}'" if text else "and this one has none"
        detail = f"the window of an input has a length in time, such as 1 HOUR, {found}"
        raise cursor.source.error("BAD_WINDOW", start, detail=detail)
    return InputWindow(kind, window_length(cursor.source, start, text, "length"), opening)


def _kind(cursor: Cursor) -> str | None:
    """The word for the kind of a window, if it comes next."""
    kind = _KINDS.get(cursor.upper())
    cursor.at += kind is not None
    return kind


def is_every(cursor: Cursor) -> bool:
    """Whether EVERY and a length come next, and not an alias or the aggregate of this name."""
    following = cursor.ahead(1)
    is_length = following.kind in (NUMBER, STRING) or following.upper in ("INTERVAL", "-", "+")
    return cursor.upper() == "EVERY" and is_length


def every(cursor: Cursor) -> Every:
    """The clause EVERY that starts here, up to the end of the statement."""
    at = cursor.at
    cursor.at += 1
    text = _text(cursor, (";", *_AFTER_EVERY), ends=True)
    length = interval(cursor.source, at + 1, text)
    if length <= 0:
        detail = f"EVERY takes a positive length of time, not '{text}'"
        raise cursor.source.error("BAD_EVERY", at + 1, detail=detail)
    return Every(length, at)


def _length(cursor: Cursor, what: str) -> tuple[int, bool]:
    """The length up to SLIDE or the closing bracket, and whether it is in rows."""
    source, start = cursor.source, cursor.at
    text = _text(cursor, ("SLIDE", "]"))
    if not counts_rows(text):
        return window_length(source, start, text, what), False
    try:
        return row_count(text), True
    except RowCountProblem as problem:
        raise source.error("BAD_WINDOW", start, detail=str(problem)) from None


def _text(cursor: Cursor, stops: tuple[str, ...], *, ends: bool = False) -> str:
    """What stands before one of some words, in one spelling; a value may stand in quotes. `ends` says that
    the text may end there."""
    parts: list[str] = []
    while cursor.upper() not in stops:
        token = cursor.token
        if token.kind == END:
            if ends:
                break
            detail = "the closing ] is missing"
            raise cursor.source.error("PARSE_ERROR", cursor.at, detail=detail)
        if token.kind not in (WORD, NUMBER, STRING) and token.upper not in ("-", "+"):
            raise Unexpected(cursor.at)
        parts.append(token.value or token.upper)
        cursor.at += 1
    return " ".join(parts)


def counts_rows(text: str) -> bool:
    """Whether a length is meant in rows.

    >>> counts_rows("1000 ROWS"), counts_rows("1.5 rows"), counts_rows("1 minute")
    (True, True, False)
    """
    return _ROWS.match(text) is not None


def row_count(text: str) -> int:
    """The number of rows of a length that is meant in rows.

    >>> row_count("1000 ROWS")
    1000
    >>> row_count("1.5 rows")
    Traceback (most recent call last):
    weft.sql.reading.brackets.RowCountProblem: rows are counted in whole positive numbers, not '1.5 rows'
    """
    match = _COUNT.match(text)
    count = int(match["count"].removeprefix("+")) if match else 0
    if count <= 0:
        raise RowCountProblem(f"rows are counted in whole positive numbers, not '{text}'")
    if count > MOST_ROWS:
        raise RowCountProblem(f"a window has at most {MOST_ROWS:,} rows, not '{text}'")
    return count


def window_length(source: Source, at: int, text: str, what: str) -> int:
    """The positive length of a window's range or slide, in microseconds."""
    length = interval(source, at, text)
    if length <= 0:
        raise source.error(
            "BAD_WINDOW", at, detail=f"a window's {what.lower()} must be positive, not '{text}'"
        )
    return length


def interval(source: Source, at: int, text: str) -> int:
    """The length of an interval in microseconds, or an error at its token."""
    try:
        return interval_micros(text)
    except IntervalProblem as problem:
        raise source.error("BAD_INTERVAL", at, text=text, detail=str(problem)) from None
