"""A registered query after binding: what it asks of its stream, free of its SQL's spelling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weft.algebra.aggregate import Aggregate
from weft.algebra.scalar import Expression, Scalar
from weft.algebra.scalar import quote as quote
from weft.algebra.types import BIGINT, TIMESTAMP, SqlType
from weft.algebra.window import Window

if TYPE_CHECKING:
    from weft.algebra.network.lookup import Lookup

NUMBER: Final = "row#"
"""The column of a numbered stream that takes the place of the event time."""


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a query's result: a scalar over `k0…`, `a0…`, `window_start`, `window_end`,
    and `window` (the struct), under the name Spark would give it."""

    name: str
    type: SqlType
    value: Scalar


@dataclass(frozen=True, slots=True)
class Query:
    """A windowed aggregate over one stream, whose rows may be looked up in tables first.

    `id` is unique over the life of a checkpoint (`name@change`): a name that is dropped and
    registered again is another query. `bounds` is the type of a window's start and end: a
    timestamp, or a row number for windows of rows, whose stream is a numbered one.
    """

    id: str
    name: str
    sql: str
    stream: str
    window: Window
    keys: tuple[Expression, ...]
    predicate: Expression | None
    aggregates: tuple[Aggregate, ...]
    having: Scalar | None
    columns: tuple[OutputColumn, ...]
    bounds: SqlType = TIMESTAMP
    publishes: bool = False
    """Whether its rows are partials that the stream publishes to followers, and not results."""
    lookups: tuple[Lookup, ...] = ()
    """What the stream's rows get from tables before anything else (`weft.algebra.network.lookup`)."""

    @property
    def counts_rows(self) -> bool:
        """Whether its window is one of rows."""
        return self.bounds == BIGINT

    @property
    def output_types(self) -> tuple[SqlType, ...]:
        return tuple(column.type for column in self.columns)


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a stream."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """What binding needs to know of a stream: its columns, event time and delay (µs)."""

    name: str
    fields: tuple[Field, ...]
    time: str
    delay: int

    @property
    def counts_rows(self) -> bool:
        """Whether this is a numbered stream."""
        return self.time == NUMBER

    @property
    def time_micros(self) -> str:
        """The event time in microseconds, or the row number, as Spark SQL."""
        if self.counts_rows:
            return quote(self.time)
        return f"unix_micros({quote(self.time)})"
