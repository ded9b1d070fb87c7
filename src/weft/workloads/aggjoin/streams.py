"""The data generator of the AggJoin paper (section 7.1.2), seeded, in NumPy.

A row is S(TS, G, J, A): a timestamp that follows from the rate, a grouping and a join attribute, which
are strings, and an integer to aggregate. The last three are independent and uniform. A stream
with one group has the same grouping attribute in all rows: it has none, as the paper says.
Join values of all streams are the same strings, so streams with equally many of them match row
for row with probability 1 / values.

Columns are drawn each from a generator of its own, so a longer stream begins with the shorter one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from weft.workloads.columns import Integers, micros_of, strings, timestamps

BASE = datetime(2009, 2, 11, tzinfo=UTC)
TIME, GROUP, JOIN, VALUE = "ts", "g", "j", "a"
LARGEST = 100
"""Values to aggregate are 1 to this."""
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class StreamShape:
    """A stream: rows per second, groups, and join values; the selectivity is 1 / `join_values`."""

    rate: float
    groups: int
    join_values: int

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.groups < 1 or self.join_values < 1:
            raise ValueError(f"a stream of {self}")


def stream(shape: StreamShape, rows: int, number: int = 0, seed: int = 1) -> pa.Table:
    """The first rows of a stream; `number` is its place among the joined ones.

    >>> table = stream(StreamShape(rate=4, groups=12, join_values=3), rows=3)
    >>> table.column_names, table[GROUP].to_pylist()
    (['ts', 'g', 'j', 'a'], ['g05', 'g06', 'g09'])
    >>> [str(at.time()) for at in table[TIME].to_pylist()]
    ['00:00:00', '00:00:00.250000', '00:00:00.500000']
    """
    at = np.round(np.arange(rows) * (_SECOND / shape.rate)).astype(np.int64)
    return pa.table(
        {
            TIME: timestamps(micros_of(BASE) + at),
            GROUP: strings(names("g", shape.groups), _uniform(shape.groups, rows, seed, number, 0)),
            JOIN: strings(
                names("j", shape.join_values), _uniform(shape.join_values, rows, seed, number, 1)
            ),
            VALUE: pa.array(_uniform(LARGEST, rows, seed, number, 2) + 1),
        }
    )


def names(prefix: str, count: int) -> list[str]:
    """Strings of equal length.

    >>> names("j", 11)[-2:]
    ['j09', 'j10']
    """
    width = len(str(count - 1))
    return [f"{prefix}{value:0{width}}" for value in range(count)]


def _uniform(values: int, rows: int, seed: int, number: int, column: int) -> Integers:
    drawn: Integers = np.random.default_rng([seed, number, column]).integers(0, values, rows)
    return drawn
