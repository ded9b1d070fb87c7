"""The aggregates of one input by key, and the instants at which they count.

An entry is one pane of an aggregation set, a row of a late input, or a row of a table. It counts from its first
instant to its last one, both included (`algebra/joinagg/windows`). The *contents* of an input at instants have one
entry for each instant and key (`merged`: the aggregation set of the paper, definition 3), or one for each instant and entry
(a late input).

Merging uses ranges where it can: entries of a key, in the order of their first instants, also leave in this order if they
are panes of one window. Then what counts at an instant is a range of them, and combining it costs no more for long windows
(`columns/ranges`). Entries whose last instants are in another order are copied once for each instant of the step.
Time: O(n log n) for n entries, plus O(log n) for each result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weft.algebra.partial import COUNT_STAR, Partial
from weft.kernel.columns import partial_columns
from weft.kernel.columns.column import Column, concatenated, to_arrow
from weft.kernel.columns.combine import Combiner, over_runs, ranges_of_runs
from weft.kernel.columns.keys import KeyEncoder
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored
from weft.kernel.columns.sorting import ordered
from weft.kernel.network.rows import ColumnRows

ALWAYS = None
"""The instants of contents that are the same at every instant."""


@dataclass(frozen=True)
class Contents:
    """What an input holds at instants: the instant of each entry, its columns (`0.name`), how many rows it
    stands for, and their partials."""

    instants: Array | None
    rows: ColumnRows
    counts: Array
    partials: Mapping[str, Stored]

    def __len__(self) -> int:
        return len(self.counts)


@dataclass(frozen=True)
class Entries:
    """Aggregates by key and by the instants at which they count."""

    first: Array
    last: Array
    columns: Mapping[str, Column]
    counts: Array
    partials: Mapping[str, Stored]

    def __len__(self) -> int:
        return len(self.counts)

    def take(self, positions: Array) -> Entries:
        return Entries(
            self.first[positions],
            self.last[positions],
            {name: values.take(positions) for name, values in self.columns.items()},
            self.counts[positions],
            {
                name: partial_columns.take(stored, positions)
                for name, stored in self.partials.items()
            },
        )

    def counting(self, first: int, last: int) -> Entries:
        """The entries that count at some instant between two."""
        inside = (self.first <= last) & (self.last >= first) & (self.first <= self.last)
        return self if inside.all() else self.take(np.flatnonzero(inside))

    def always(self, merged: Sequence[Partial] | None) -> Contents:
        """The contents of an input that does not change."""
        entries = self if merged is None else self.combined(merged)
        return Contents(
            ALWAYS, _rows(entries.columns, len(entries)), entries.counts, entries.partials
        )

    def at(self, instants: Array, merged: Sequence[Partial] | None) -> Contents:
        """The contents at instants, which ascend. `merged` are the partials to combine by key; None: the
        entries stay apart."""
        if not len(instants):
            return _copies(self.take(np.zeros(0, np.int64)), np.zeros((2, 0), np.int64), instants)
        entries = self.counting(int(instants[0]), int(instants[-1]))
        span = np.stack(
            [
                np.searchsorted(instants, entries.first, side="left"),
                np.searchsorted(instants, entries.last, side="right"),
            ]
        )
        if merged is None:
            return _copies(entries, span, instants)
        codes = _codes(entries.columns, len(entries))
        order = np.lexsort((span[1], span[0], codes))
        codes, span, entries = codes[order], span[:, order], entries.take(order)
        same = codes[1:] == codes[:-1]
        if (span[1, 1:] >= span[1, :-1])[same].all():
            return _ranges(entries, codes, span, instants, merged)
        return _merged_copies(entries, codes, span, instants, merged)

    def combined(self, partials: Iterable[Partial]) -> Entries:
        """One entry for each key and interval of instants."""
        if not len(self):
            return self
        codes = _codes(self.columns, len(self))
        for bounds in (self.first, self.last):
            if (bounds != bounds[0]).any():
                distinct, which = np.unique(bounds, return_inverse=True)
                codes = codes * len(distinct) + which.reshape(-1)
        order, sorted_codes = ordered(codes)
        low, high = ranges_of_runs(sorted_codes)
        entries = self.take(order)
        return Entries(
            entries.first[low],
            entries.last[low],
            {name: values.take(low) for name, values in entries.columns.items()},
            np.add.reduceat(entries.counts, low),
            {p.name: over_runs(p, entries.partials, low, high) for p in partials},
        )

    @staticmethod
    def together(parts: Sequence[Entries]) -> Entries:
        """The entries of several parts. All have the same columns and partials."""
        if len(parts) == 1:
            return parts[0]
        return Entries(
            np.concatenate([part.first for part in parts]),
            np.concatenate([part.last for part in parts]),
            {
                name: concatenated([part.columns[name] for part in parts])
                for name in parts[0].columns
            },
            np.concatenate([part.counts for part in parts]),
            {
                name: partial_columns.concatenate([part.partials[name] for part in parts])
                for name in parts[0].partials
            },
        )


def _codes(columns: Mapping[str, Column], count: int) -> Array:
    """An integer for each row, equal for rows with the same key as SQL groups them."""
    if not columns:
        return np.zeros(count, np.int64)
    arrays = [to_arrow(values) for values in columns.values()]
    codes: Array = KeyEncoder([array.type for array in arrays]).encode(arrays)
    return codes


def _rows(columns: Mapping[str, Column], count: int) -> ColumnRows:
    return ColumnRows({f"0.{name}": values for name, values in columns.items()}, count)


def _copies(entries: Entries, span: Array, instants: Array) -> Contents:
    """One entry for each instant at which it counts."""
    owners, places = _expanded(span)
    copied = entries.take(owners)
    return Contents(
        instants[places], _rows(copied.columns, len(copied)), copied.counts, copied.partials
    )


def _expanded(span: Array) -> tuple[Array, Array]:
    """For each entry all instants from its first to its last: which entry, which instant."""
    lengths = np.maximum(span[1] - span[0], 0)
    owners = np.repeat(np.arange(span.shape[1]), lengths)
    begins = np.cumsum(lengths) - lengths
    return owners, np.arange(len(owners)) + np.repeat(span[0] - begins, lengths)


def _merged_copies(
    entries: Entries, codes: Array, span: Array, instants: Array, merged: Sequence[Partial]
) -> Contents:
    owners, places = _expanded(span)
    order, sorted_codes = ordered(codes[owners] * len(instants) + places)
    low, high = ranges_of_runs(sorted_codes)
    copied = entries.take(owners[order])
    columns = {name: values.take(low) for name, values in copied.columns.items()}
    counts = np.add.reduceat(copied.counts, low) if len(low) else copied.counts
    partials = {p.name: over_runs(p, copied.partials, low, high) for p in merged}
    return Contents(instants[places[order][low]], _rows(columns, len(low)), counts, partials)


def _ranges(
    entries: Entries, codes: Array, span: Array, instants: Array, merged: Sequence[Partial]
) -> Contents:
    """Entries are sorted by key and first instant, and those of a key leave in the same order."""
    begins, _ = ranges_of_runs(codes) if len(codes) else (codes, codes)
    width = len(instants) + 1
    numbers = np.zeros(len(codes), np.int64)
    numbers[begins[1:]] = 1
    numbers = np.cumsum(numbers)
    wanted = np.arange(len(begins))[:, None] * width + np.arange(len(instants))
    low = np.searchsorted(numbers * width + span[1], wanted, side="right")
    high = np.searchsorted(numbers * width + span[0], wanted, side="right")
    keys, places = np.nonzero(low < high)
    low, high = low[keys, places], high[keys, places]
    combiner = Combiner({**entries.partials, COUNT_STAR.name: (entries.counts,)})
    columns = {name: values.take(low) for name, values in entries.columns.items()}
    return Contents(
        instants[places],
        _rows(columns, len(low)),
        combiner.over(COUNT_STAR, low, high)[0],
        {p.name: combiner.over(p, low, high) for p in merged},
    )


def entries_of(
    table: pa.Table,
    first: Array,
    last: Array,
    columns: Mapping[str, Column],
    counts: Array,
    partials: Iterable[Partial],
) -> Entries:
    """The entries of a table whose columns of partials are as in state files."""
    loaded = {
        p.name: partial_columns.load(p, table.column(p.name).combine_chunks()) for p in partials
    }
    return Entries(first, last, columns, counts, loaded)
