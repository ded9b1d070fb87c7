"""State files in tiles: a reader finds the fragments of a span of time and of some buckets without
reading the rest.

A file is in the order of time by blocks of rows, inside a block in the order of buckets, and its row groups
are small. So a row group has a narrow span of fragment ends and a narrow range of buckets, and its
statistics tell both. In a file that Spark wrote, blocks are of equal time instead (`statefiles.block_length`). Any order gives the same rows:
what statistics do not exclude is read and filtered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weft.kernel.columns.operations import Array
from weft.kernel.fragments.state import BUCKET, FRAGMENT_END
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.storage import Storage, TableFile

GROUP_ROWS = 1 << 14
BLOCK_ROWS = 8 * GROUP_ROWS
_ROWS_AT_ONCE = 1 << 20
_ALWAYS = 1 << 62

Span = tuple[int, int]
"""Fragments that end after the one time, and at or before the other."""
ALL_TIMES: Span = (-_ALWAYS, _ALWAYS)


@dataclass(frozen=True, eq=False)
class Extract:
    """Which rows are read: those that end in a span, of buckets that are marked; None is all of them."""

    span: Span = ALL_TIMES
    buckets: Array | None = None

    def may_hold(self, entry: Entry) -> bool:
        """Whether a file may have such rows, by its manifest entry."""
        low, high = self.span
        first, last = entry.get("min_end"), entry["max_end"]
        return last is not None and last > low and (first is None or first <= high)

    def holds(self, table: pa.Table) -> pa.Table:
        """The rows of a table."""
        ends = table.column(FRAGMENT_END)
        chosen = np.ones(table.num_rows, bool)
        if ends.null_count:
            chosen = ends.is_valid().to_numpy()
            ends = ends.fill_null(0)
        if self.span != ALL_TIMES:
            times = ends.to_numpy()
            chosen &= (times > self.span[0]) & (times <= self.span[1])
        if self.buckets is not None:
            chosen &= self.buckets[table.column(BUCKET).to_numpy()]
        return table if chosen.all() else table.filter(pa.array(chosen))


def tiled(table: pa.Table) -> pa.Table:
    """The rows in the order of a state file."""
    ends = table.column(FRAGMENT_END).to_numpy()
    blocks = np.empty(len(ends), np.int64)
    blocks[np.argsort(ends, kind="stable")] = np.arange(len(ends)) // BLOCK_ROWS
    within = ends if len(ends) <= GROUP_ROWS else table.column(BUCKET).to_numpy()
    return table.take(np.lexsort((ends, within, blocks)))


def write_tiles(storage: Storage, name: str, table: pa.Table) -> None:
    """Write a state file."""
    file = TableFile(storage, name, table.schema)
    file.add(tiled(table), GROUP_ROWS)
    file.close()


class StateFile:
    """A state file whose row groups are read by need."""

    def __init__(self, storage: Storage, entry: Entry) -> None:
        self._storage, self.entry = storage, entry
        self._groups: list[_Group] | None = None

    def rows(self, extract: Extract) -> int:
        """How many rows the row groups have that must be read."""
        if not extract.may_hold(self.entry):
            return 0
        return sum(self._known()[number].rows for number in self._chosen(extract))

    def expected(self, extract: Extract) -> float:
        """About how many rows are inside: of a row group that holds other buckets, too, as large a part as it has buckets."""
        if not extract.may_hold(self.entry):
            return 0.0
        groups = (self._known()[number] for number in self._chosen(extract))
        return sum(group.rows * group.part(extract) for group in groups)

    def read(self, extract: Extract, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows, in pieces of bounded size."""
        if not extract.may_hold(self.entry):
            return
        whole = extract.span == ALL_TIMES and extract.buckets is None
        wanted = list(dict.fromkeys([*columns, *(() if whole else (FRAGMENT_END, BUCKET))]))
        with self._storage.reading(self.entry["name"]) as file:
            if self._groups is None:
                self._groups = _groups(file.metadata)
            chosen = self._chosen(extract)
            portion: list[int] = []
            rows = 0
            for number in chosen:
                portion.append(number)
                rows += self._groups[number].rows
                if rows >= _ROWS_AT_ONCE or number == chosen[-1]:
                    table = file.read_row_groups(portion, wanted)
                    yield table if whole else extract.holds(table).select(list(columns))
                    portion, rows = [], 0

    def _chosen(self, extract: Extract) -> list[int]:
        return [number for number, group in enumerate(self._known()) if group.may_hold(extract)]

    def _known(self) -> list[_Group]:
        if self._groups is None:
            with self._storage.reading(self.entry["name"]) as file:
                self._groups = _groups(file.metadata)
        return self._groups


@dataclass(frozen=True)
class _Group:
    """A row group: its rows, and the bounds of its ends and buckets, None where they are not known."""

    rows: int
    ends: tuple[int, int] | None
    buckets: tuple[int, int] | None

    def part(self, extract: Extract) -> float:
        """Which part of the buckets in the row group is wanted."""
        if extract.buckets is None:
            return 1.0
        low, high = self.buckets or (0, len(extract.buckets) - 1)
        return float(extract.buckets[low : high + 1].mean())

    def may_hold(self, extract: Extract) -> bool:
        low, high = extract.span
        if self.ends is not None and (self.ends[1] <= low or self.ends[0] > high):
            return False
        if extract.buckets is None or self.buckets is None:
            return True
        return bool(extract.buckets[self.buckets[0] : self.buckets[1] + 1].any())


def _groups(metadata: pq.FileMetaData) -> list[_Group]:
    places = {name: metadata.schema.names.index(name) for name in (FRAGMENT_END, BUCKET)}

    def bounds(group: Any, name: str) -> tuple[int, int] | None:
        statistics = group.column(places[name]).statistics
        known = statistics is not None and statistics.has_min_max
        return (statistics.min, statistics.max) if known else None

    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [
        _Group(group.num_rows, bounds(group, FRAGMENT_END), bounds(group, BUCKET))
        for group in groups
    ]
