"""The numbered form of a stream: the stream on which row windows run.

The rows of a stream have an order (event time, then the stream's orderable columns, NULL first), and
so numbers 0, 1, 2, …. The numbered stream has one more column, the number, which takes the place of
the event time in all window arithmetic: its watermark is how many rows have a number, its delay is 0.
So everything that is built for windows of time holds for windows of rows as it stands.
"""

from __future__ import annotations

import re
from typing import Final

from weft.algebra.query import NUMBER, Field, StreamSchema
from weft.algebra.types import BIGINT, SqlType

PENDING_TIME: Final = "at#"
"""The column that holds the event time in microseconds while a row waits for its number."""

_SUFFIX: Final = "@rows"
"""No stream's own name has an @."""

_NOT_STORED = re.compile(r"\bvoid\b|\binterval\b(?! (?:year|month|day|hour|minute|second)\b)")


def numbered(stream: StreamSchema) -> StreamSchema:
    """The numbered form of a stream, without the columns that files cannot hold.

    >>> packets = StreamSchema("packets", (Field("ts", "timestamp"), Field("x", "void")), "ts", 5)
    >>> numbered(packets).name, [field.name for field in numbered(packets).fields]
    ('packets@rows', ['row#', 'ts'])
    """
    kept = (field for field in stream.fields if _is_stored(field.type))
    return StreamSchema(numbered_name(stream.name), (Field(NUMBER, BIGINT), *kept), NUMBER, 0)


def numbered_name(stream: str) -> str:
    return stream + _SUFFIX


def source_name(stream: str) -> str:
    """The stream that the rows come from.

    >>> source_name("packets@rows"), source_name("packets")
    ('packets', 'packets')
    """
    return stream.removesuffix(_SUFFIX)


def problem(stream: StreamSchema, columns: set[str]) -> str | None:
    """Why a query that reads these columns cannot run on the numbered stream; None if it can."""
    for field in stream.fields:
        if field.name.lower() in (NUMBER, PENDING_TIME):
            return f"windows of rows need the name of column '{field.name}' for themselves"
        if field.name in columns and not _is_stored(field.type):
            return f"rows wait in files, and these cannot hold '{field.name}' ({field.type})"
    return None


def _is_stored(type_: SqlType) -> bool:
    """Whether Parquet files of Spark's can hold values of a type."""
    return _NOT_STORED.search(type_) is None
