"""Files of several queries: `-- name: x` above each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from weft.errors import SqlError
from weft.sql.reading.source import SYMBOL, read

_HEADER = re.compile(r"^[ \t]*--[ \t]*name[ \t]*:[ \t]*(?P<name>\S.*?)[ \t]*\r?$", re.MULTILINE)


class Statement(NamedTuple):
    """One query of a file; `line` is how many lines of the file stand above its text."""

    name: str | None
    sql: str
    line: int


def statements(text: str) -> Iterator[Statement]:
    """The queries of a file.

    Text without headers is one query without a name. What stands above the first header
    must be comments only, else it is a query without a name, too.

    >>> for statement in statements('''-- name: a
    ... SELECT 1;
    ... -- name: b
    ... SELECT 2'''):
    ...     print(statement.name, statement.sql.strip(), statement.line)
    a SELECT 1; 1
    b SELECT 2 3
    """
    headers = list(_HEADER.finditer(text))
    first = headers[0].start() if headers else len(text)
    if not headers or _has_tokens(text[:first]):
        yield Statement(None, text[:first], 0)
    for index, header in enumerate(headers):
        start = min(header.end() + 1, len(text))
        stop = headers[index + 1].start() if index + 1 < len(headers) else len(text)
        yield Statement(header["name"], text[start:stop], text.count("\n", 0, start))


def _has_tokens(text: str) -> bool:
    try:
        tokens = read(text).tokens[:-1]
    except SqlError:
        return True
    return any(token.kind != SYMBOL or token.upper != ";" for token in tokens)
