"""The aggregates of one input by key, and the instants at which they count.

An entry is one pane of an aggregation set, a row of a late input, or a row of a table. It counts from its first
instant to its last one, both included (`algebra/joinagg/windows`). The *contents* of an input at instants have one
entry for each instant and key (`merged`: the aggregation set of the paper, definition 3), or one for each instant and entry
(a late input).

Merging uses ranges where it can: entries of a key, in the order of their first instants, also leave in this order if they
are panes of one window. Then what counts at an instant is a range of them, and combining it costs no more for long windows
(`columns/ranges`). Entries whose last instants are in another order are copied once for each instant of the step, and so are those of many keys
of which few are there at each instant: ranges need room for all keys at all instants.
Time: O(n log n) for n entries, plus O(log n) for each result. Space: O(n) and as much as a few times the smaller of copies and ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from weft.algebra.partial import COUNT_STAR, Partial
from weft.kernel.columns import partial_columns
from weft.kernel.columns.column import Column, concatenated
from weft.kernel.columns.combine import Combiner, over_runs, ranges_of_runs
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored
from weft.kernel.columns.sorting import ordered
from weft.kernel.joinagg.contents.held import CodedColumns, Contents, EntryRows, Memory

_SPARSE = 4
"""How many ranges of a key at an instant may be looked at for each copy of an entry."""


@dataclass(frozen=True)
class Entries:
    """Aggregates by key and by the instants at which they count."""

    first: Array
    last: Array
    columns: Mapping[str, Column]
    counts: Array
    partials: Mapping[str, Stored]
    found: Memory = field(default_factory=Memory, init=False, compare=False, repr=False)
    """Codes of columns: contents at different instants share them."""

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

    @property
    def coded(self) -> CodedColumns:
        """The columns, with codes for their values."""
        return self.found.of("coded", lambda: CodedColumns(self.columns, len(self)))

    def always(self, merged: Sequence[Partial] | None) -> Contents:
        """The contents of an input that does not change."""
        entries = self if merged is None else self.combined(merged)
        every = np.arange(len(entries))
        rows = EntryRows(entries.coded, every)
        return Contents(None, rows, entries.counts, entries.partials, merged is not None)

    def at(self, instants: Array, merged: Sequence[Partial] | None) -> Contents:
        """The contents at instants, which ascend. `merged` are the partials to combine by key; None: the
        entries stay apart."""
        positions = np.zeros(0, np.int64)
        if len(instants):
            first, last = int(instants[0]), int(instants[-1])
            inside = (self.first <= last) & (self.last >= first) & (self.first <= self.last)
            positions = np.flatnonzero(inside)
        span = np.stack(
            [
                np.searchsorted(instants, self.first[positions], side="left"),
                np.searchsorted(instants, self.last[positions], side="right"),
            ]
        )
        if merged is None:
            return _copies(self, positions, span, instants)
        keys = self.coded.keys[positions]
        width = len(instants) + 1
        order, _ = ordered((keys * width + span[0]) * width + span[1])
        chosen = _Chosen(positions[order], keys[order], span[:, order])
        same = chosen.keys[1:] == chosen.keys[:-1]
        in_order = (chosen.span[1, 1:] >= chosen.span[1, :-1])[same].all()
        copies = int(np.maximum(span[1] - span[0], 0).sum())
        cells = (len(positions) - int(same.sum())) * len(instants)
        if in_order and cells <= _SPARSE * copies:
            return _ranges(self, chosen, instants, merged)
        return _merged_copies(self, chosen, instants, merged)

    def combined(
        self,
        partials: Iterable[Partial],
        names: Sequence[str] | None = None,
        positions: Array | None = None,
    ) -> Entries:
        """One entry for each key and interval of instants; the key may be some of the columns, and the entries those at some
        positions."""
        if not len(self) or (positions is not None and not len(positions)):
            nothing = self.take(np.zeros(0, np.int64))
            return nothing if names is None else nothing.only(names, partials)
        columns = self.coded if names is None else self._coded(tuple(names))
        codes = columns.keys if positions is None else columns.keys[positions]
        for bounds in (self.first, self.last):
            bounds = bounds if positions is None else bounds[positions]
            if (bounds != bounds[0]).any():
                distinct, which = np.unique(bounds, return_inverse=True)
                codes = codes * len(distinct) + which.reshape(-1)
        order, sorted_codes = ordered(codes)
        low, high = ranges_of_runs(sorted_codes)
        order = order if positions is None else positions[order]
        leading = order[low]
        entries = Entries(
            self.first[leading],
            self.last[leading],
            {name: values.take(leading) for name, values in columns.columns.items()},
            np.add.reduceat(self.counts[order], low),
            {
                p.name: over_runs(
                    p, {p.name: partial_columns.take(self.partials[p.name], order)}, low, high
                )
                for p in partials
            },
        )
        entries.found.of("coded", lambda: columns.taken(entries.columns, leading))
        return entries

    def _coded(self, names: tuple[str, ...]) -> CodedColumns:
        return self.found.of(("coded", names), lambda: self.coded.only(names))

    def only(self, names: Iterable[str], partials: Iterable[Partial]) -> Entries:
        """The entries with some of the columns and partials. What is known of their codes stays behind."""
        return Entries(
            self.first,
            self.last,
            {name: self.columns[name] for name in names},
            self.counts,
            {p.name: self.partials[p.name] for p in partials},
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


@dataclass(frozen=True)
class _Chosen:
    """Positions of entries, sorted by key and first instant, with their keys and the places of their instants."""

    positions: Array
    keys: Array
    span: Array


def _copies(entries: Entries, positions: Array, span: Array, instants: Array) -> Contents:
    """One entry for each instant at which it counts."""
    owners, places = _expanded(span)
    positions = positions[owners]
    partials = {n: partial_columns.take(s, positions) for n, s in entries.partials.items()}
    rows = EntryRows(entries.coded, positions)
    return Contents(instants[places], rows, entries.counts[positions], partials)


def _expanded(span: Array) -> tuple[Array, Array]:
    """For each entry all instants from its first to its last: which entry, which instant."""
    lengths = np.maximum(span[1] - span[0], 0)
    owners = np.repeat(np.arange(span.shape[1]), lengths)
    begins = np.cumsum(lengths) - lengths
    return owners, np.arange(len(owners)) + np.repeat(span[0] - begins, lengths)


def _merged_copies(
    entries: Entries, chosen: _Chosen, instants: Array, merged: Sequence[Partial]
) -> Contents:
    owners, places = _expanded(chosen.span)
    order, sorted_codes = ordered(chosen.keys[owners] * len(instants) + places)
    low, high = ranges_of_runs(sorted_codes)
    positions = chosen.positions[owners[order]]
    counts = entries.counts[positions]
    partials = {
        p.name: over_runs(
            p, {p.name: partial_columns.take(entries.partials[p.name], positions)}, low, high
        )
        for p in merged
    }
    return Contents(
        instants[places[order][low]],
        EntryRows(entries.coded, positions[low]),
        np.add.reduceat(counts, low) if len(low) else counts,
        partials,
        merged=True,
    )


def _ranges(
    entries: Entries, chosen: _Chosen, instants: Array, merged: Sequence[Partial]
) -> Contents:
    """Entries of a key leave in the order in which they come."""
    begins, _ = ranges_of_runs(chosen.keys)
    starts = np.zeros(len(chosen.keys), np.int64)
    starts[begins[1:]] = 1
    numbers = np.cumsum(starts)
    # Of the entries of a key those count at an instant that have come, but for those that have left before.
    high = begins[:, None] + _until(numbers, chosen.span[0], len(begins), len(instants))
    low = begins[:, None] + _until(numbers, chosen.span[1], len(begins), len(instants))
    keys, places = np.nonzero(low < high)
    low, high = low[keys, places], high[keys, places]
    columns: dict[str, Stored] = {
        p.name: partial_columns.take(entries.partials[p.name], chosen.positions) for p in merged
    }
    columns[COUNT_STAR.name] = (entries.counts[chosen.positions],)
    combiner = Combiner(columns)
    return Contents(
        instants[places],
        EntryRows(entries.coded, chosen.positions[low]),
        combiner.over(COUNT_STAR, low, high)[0],
        {p.name: combiner.over(p, low, high) for p in merged},
        merged=True,
    )


def _until(keys: Array, places: Array, count: int, instants: int) -> Array:
    """By key and instant, how many of the key's entries have a place up to the instant."""
    width = instants + 1
    at = np.bincount(keys * width + places, minlength=count * width).reshape(count, width)
    counted: Array = np.cumsum(at[:, :instants], axis=1)
    return counted


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
