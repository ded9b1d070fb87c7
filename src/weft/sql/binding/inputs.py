"""The streams and tables that a query may name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from weft.algebra.query import StreamSchema
from weft.sql.reading.source import Source


@dataclass(frozen=True, slots=True)
class Inputs:
    """Streams by name, and the names of tables; names do not depend on case."""

    streams: Mapping[str, StreamSchema]
    tables: Collection[str] = ()

    def find_stream(self, name: str) -> StreamSchema | None:
        wanted = name.lower()
        for candidate, schema in self.streams.items():
            if candidate.lower() == wanted:
                return schema
        return None

    def find_table(self, name: str) -> str | None:
        wanted = name.lower()
        return next((table for table in self.tables if table.lower() == wanted), None)

    def stream(self, source: Source, name: str, at: int) -> StreamSchema:
        """The stream of a name that stands at a token, or an error there."""
        schema = self.find_stream(name)
        if schema is not None:
            return schema
        if self.find_table(name) is not None:
            raise source.error(
                "UNSUPPORTED", at, detail=f"'{name}' is a table; a continuous query reads a stream"
            )
        raise source.error("UNKNOWN_STREAM", at, name=name, known=self.listed)

    @property
    def listed(self) -> str:
        return ", ".join(sorted([*self.streams, *self.tables])) or "none"
