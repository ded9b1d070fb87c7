"""What a query that Spark runs may not do unless the user allows it.

Shared queries are read by weft and can do none of this. A text that goes to Spark as it is could
call any Java method, start a program on the cluster, or read any file that the cluster can read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from weft.algebra.query import quote
from weft.errors import SqlError
from weft.sql.reading.relations import Reference
from weft.sql.reading.source import QUOTED, STRING, WORD, Source

_JAVA: Final = frozenset({"reflect", "java_method", "try_reflect"})
_NAMED_BY_TEXT: Final = "identifier"


@dataclass(frozen=True, slots=True)
class Guard:
    """Refuses what is unsafe. `is_table` says whether Spark's catalog has a qualified name: one
    that it does not have is read as a file, as in ``parquet.`/path` ``."""

    is_table: Callable[[str], bool]

    def check(self, source: Source, read: Sequence[Reference]) -> None:
        for at, token in enumerate(source.tokens[:-1]):
            following = source.tokens[at + 1]
            name = (token.value or "").lower() if token.kind in (WORD, QUOTED) else ""
            if following.upper == "(" and name in _JAVA:
                raise _unsafe(source, at, f"{name} calls Java methods")
            if following.upper == "(" and name == _NAMED_BY_TEXT:
                raise _unsafe(source, at, "IDENTIFIER may name any function or file")
            if token.upper == "USING" and following.kind == STRING:
                raise _unsafe(source, at, "TRANSFORM … USING starts a program")
        for reference in read:
            # Spark takes only names of two parts for a format and a path.
            if len(reference.parts) == 2 and not self.is_table(
                ".".join(map(quote, reference.parts))
            ):
                detail = f"'{reference.name}' is not a table of Spark's catalog, so it is a file"
                raise _unsafe(source, reference.at, detail)


def _unsafe(source: Source, at: int, detail: str) -> SqlError:
    return source.error("UNSAFE_SQL", at, detail=detail)
