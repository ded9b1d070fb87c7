"""The bracket form of a window: `[RANGE 1 MINUTE SLIDE 5 SECONDS]`, `[RANGE 1000 ROWS]`."""

from __future__ import annotations

import re
from typing import Final

from weft.sql.reading.cursor import Cursor, Unexpected
from weft.sql.reading.intervals import IntervalProblem, interval_micros
from weft.sql.reading.source import END, NUMBER, STRING, WORD, Source
from weft.sql.reading.syntax import BracketWindow

MOST_ROWS: Final = 1 << 60
"""So that a number, a range and a slide can be added within a bigint."""

_ROWS = re.compile(r"(?:.*\s)?rows?\s*\Z", re.IGNORECASE | re.DOTALL)
_COUNT = re.compile(r"\s*(?P<count>\+?\s*\d+)\s+rows?\s*\Z", re.IGNORECASE)


class RowCountProblem(ValueError):
    """Why a text is not a number of rows."""


def bracket(cursor: Cursor) -> BracketWindow:
    """The window in brackets that starts here; without SLIDE it tumbles."""
    opening = cursor.at
    cursor.at += 1
    if cursor.upper() == "WINDOW":
        raise cursor.source.error(
            "UNSUPPORTED",
            opening,
            detail="[WINDOW …] belongs to aggregation joins, which come in a later version; "
            "for one stream write [RANGE …]",
        )
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


def _length(cursor: Cursor, what: str) -> tuple[int, bool]:
    """The length up to SLIDE or the closing bracket, and whether it is in rows; its value may
    stand in quotes."""
    source, start = cursor.source, cursor.at
    parts: list[str] = []
    while cursor.upper() not in ("SLIDE", "]"):
        token = cursor.token
        if token.kind == END:
            raise source.error("PARSE_ERROR", cursor.at, detail="the closing ] is missing")
        if token.kind not in (WORD, NUMBER, STRING) and token.upper not in ("-", "+"):
            raise Unexpected(cursor.at)
        parts.append(token.value or token.upper)
        cursor.at += 1
    text = " ".join(parts)
    if not counts_rows(text):
        return window_length(source, start, text, what), False
    try:
        return row_count(text), True
    except RowCountProblem as problem:
        raise source.error("BAD_WINDOW", start, detail=str(problem)) from None


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
