"""Lengths of row windows: `1000 ROWS`."""

from __future__ import annotations

import re
from typing import Final

MOST_ROWS: Final = 1 << 60
"""So that a number, a range and a slide can be added within a bigint."""

_ROWS = re.compile(r"(?:.*\s)?rows?\s*\Z", re.IGNORECASE | re.DOTALL)
_COUNT = re.compile(r"\s*(?P<count>\+?\s*\d+)\s+rows?\s*\Z", re.IGNORECASE)


class RowCountProblem(ValueError):
    """Why a text is no number of rows."""


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
    weft.sql.reading.rowcounts.RowCountProblem: rows are counted in whole positive numbers, not '1.5 rows'
    """
    match = _COUNT.match(text)
    count = int(match["count"].removeprefix("+")) if match else 0
    if count <= 0:
        raise RowCountProblem(f"rows are counted in whole positive numbers, not '{text}'")
    if count > MOST_ROWS:
        raise RowCountProblem(f"a window has at most {MOST_ROWS:,} rows, not '{text}'")
    return count
