"""The streams and tables that a query may name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from weft.algebra.query import Field, StreamSchema
from weft.sql.fallback import Unshared
from weft.sql.reading.source import Source


@dataclass(frozen=True, slots=True)
class Inputs:
    """Streams by name, and tables: their columns by name, or names alone. Names do not depend on
    case."""

    streams: Mapping[str, StreamSchema]
    tables: Mapping[str, tuple[Field, ...]] | Collection[str] = ()

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

    def relation(
        self, source: Source, parts: tuple[str, ...], at: int
    ) -> tuple[str, tuple[Field, ...]]:
        """The registered name and the columns of a stream or table, or an error at its token."""
        name = ".".join(parts)
        stream = self.find_stream(name)
        if stream is not None:
            return stream.name, stream.fields
        table = self.find_table(name)
        if table is not None:
            if isinstance(self.tables, Mapping):
                return table, self.tables[table]
            raise Unshared("a join with a table has no shared form yet", at)
        if len(parts) > 1:
            raise Unshared(f"{name} is a table of Spark's catalog", at, "add it with add_table")
        raise source.error("UNKNOWN_STREAM", at, name=name, known=self.listed)

    @property
    def listed(self) -> str:
        return ", ".join(sorted([*self.streams, *self.tables])) or "none"
