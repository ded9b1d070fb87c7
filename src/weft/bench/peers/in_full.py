"""The baseline of ARGUS: every query in full over all data, each time that data arrives. On DuckDB.

DuckDB is not needed to run weft; where it is not installed, `available` says so. Its timestamps with
zone need a time zone database, so `ts` is given to it without zone, in UTC. The text of the queries is
the same.
"""

from __future__ import annotations

import importlib.util
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from weft.workloads.named import NamedSql

Query = TypeVar("Query")


def available() -> bool:
    """Whether DuckDB is installed."""
    return importlib.util.find_spec("duckdb") is not None


class JoinText(NamedSql, Protocol):
    """A join query over one stream."""

    @property
    def category(self) -> str: ...

    @property
    def ways(self) -> int: ...


@dataclass(frozen=True)
class FullRun:
    """One query over all rows: how long it took, and how many rows it gave."""

    name: str
    category: str
    seconds: float
    rows: int


class InFull:
    """All rows of one stream in DuckDB."""

    def __init__(self, stream: str, rows: pa.Table, threads: int | None = None) -> None:
        import duckdb

        self._stream = stream
        self._connection = duckdb.connect()
        if threads is not None:
            self._connection.execute(f"SET threads = {threads}")
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.register("given_rows", rows)
        self._connection.execute(
            f"CREATE TABLE {stream} AS SELECT * REPLACE (ts::TIMESTAMP AS ts) FROM given_rows"
        )

    def run(self, query: JoinText) -> FullRun:
        """The query in full, its rows fetched as Arrow."""
        started = time.perf_counter()
        rows = self.rows(query).num_rows
        return FullRun(query.name, query.category, time.perf_counter() - started, rows)

    def rows(self, query: NamedSql) -> pa.Table:
        """What the query gives."""
        table: pa.Table = self._connection.sql(query.sql).to_arrow_table()
        return table

    def new_matches(self, query: JoinText, key: str, first_new: int) -> tuple[int, int]:
        """How many matches have a row whose key is new, and how many there are."""
        keys = ", ".join(f"{key}{number}" for number in range(1, query.ways + 1))
        (counts,) = self._connection.execute(
            f"SELECT count(*) FILTER (greatest({keys}) >= {first_new}), count(*) FROM ({query.sql})"
        ).fetchall()
        return int(counts[0]), int(counts[1])


def sampled(queries: Sequence[Query], count: int, seed: int = 1) -> list[Query]:
    """`count` of the queries at random, in their order; all if there are fewer. Not every n-th one:
    queries are interleaved by category, and n may be a multiple of the categories.

    >>> sampled(range(10), 3)
    [5, 8, 9]
    """
    if count >= len(queries):
        return list(queries)
    positions = random.Random(f"sample {seed}").sample(range(len(queries)), count)
    return [queries[position] for position in sorted(positions)]
