"""What a source of aggregation joins holds: entries by pane, before any window says at which instants they count.

An early input's panes come aggregated from its stream; a late input's rows are entries of the pane that they lie in. Both are
kept in the same form, in memory and in state files, so an input may have some of either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.joinagg.row_lifts import RowColumns
from weft.algebra.joinagg.sources import LATE, Source
from weft.algebra.joinagg.windows import FOR_EVER, InputWindow
from weft.algebra.partial import Partial
from weft.algebra.query import StreamSchema
from weft.kernel.columns import partial_columns
from weft.kernel.columns.arrow import arrow_type, single
from weft.kernel.columns.column import Column, coded, column, to_arrow
from weft.kernel.columns.operations import Array
from weft.kernel.joinagg.entries import Entries

END, COUNT = "#end", "#count"
"""Columns of state files."""


@dataclass(frozen=True)
class Panes:
    """Entries by the end of their pane, which both bounds of `kept` hold."""

    kept: Entries
    pane: int

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def ends(self) -> Array:
        return self.kept.first

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        columns = sum(values.nbytes for values in self.kept.columns.values())
        partials = sum(partial_columns.size(stored) for stored in self.kept.partials.values())
        return int(columns + partials + 3 * self.kept.counts.nbytes)

    def after(self, horizon: int) -> Panes:
        """The panes that end after a time."""
        inside = self.ends > horizon
        return self if inside.all() else replace(self, kept=self.kept.take(np.flatnonzero(inside)))

    def since(self, begin: int) -> Panes:
        """The panes that begin at a time or later."""
        inside = self.ends - self.pane >= begin
        return self if inside.all() else replace(self, kept=self.kept.take(np.flatnonzero(inside)))

    def together(self, others: Sequence[Panes]) -> Panes:
        """These panes and others."""
        parts = [part.kept for part in (self, *others) if len(part)]
        return replace(self, kept=Entries.together(parts)) if parts else self

    def having(self, source: Source, partials: Sequence[Partial]) -> Panes:
        """The panes with the attributes and partials of a source; what they do not have is absent."""
        kept, count = self.kept, len(self)
        columns = {
            a.name: kept.columns[a.name]
            if a.name in kept.columns
            else column(pa.nulls(count, arrow_type(a.value.type)))
            for a in source.attributes
        }
        stored = {
            p.name: kept.partials[p.name]
            if p.name in kept.partials
            else partial_columns.absent(p, count)
            for p in partials
        }
        return replace(self, kept=replace(kept, columns=columns, partials=stored))

    def entries(self, window: InputWindow, step: int) -> Entries:
        """The entries with the instants at which they count."""
        first, last = instants_of(window, self.ends, step)
        return replace(self.kept, first=first, last=last)

    def folded(self, until: int, edges: Sequence[int], partials: Sequence[Partial]) -> Panes:
        """The panes that end by a time, as one between any two edges: where nobody tells them apart any more."""
        old = np.flatnonzero(self.ends <= until)
        if not len(old):
            return self
        folded = self.kept.take(old)
        spans = np.searchsorted(np.unique(edges), folded.first - self.pane, side="right")
        ends = np.full(int(spans.max()) + 1, np.iinfo(np.int64).min, np.int64)
        np.maximum.at(ends, spans, folded.first)
        combined = replace(folded, first=ends[spans], last=ends[spans]).combined(partials)
        rest = self.kept.take(np.flatnonzero(self.ends > until))
        return replace(self, kept=Entries.together([combined, rest]))

    def table(self, partials: Sequence[Partial]) -> pa.Table:
        """The columns of a state file."""
        columns: dict[str, pa.Array] = {END: pa.array(self.ends), COUNT: pa.array(self.kept.counts)}
        columns |= {name: to_arrow(values) for name, values in self.kept.columns.items()}
        columns |= {
            f"#{p.name}": partial_columns.packed(p, self.kept.partials[p.name]) for p in partials
        }
        return pa.table(columns)


def instants_of(window: InputWindow, ends: Array, step: int) -> tuple[Array, Array]:
    """The first and the last instants at which panes with these ends count (`InputWindow.instants`)."""
    first = -(-ends // step) * step
    if window.kind == "landmark":
        return first, np.full(len(ends), FOR_EVER, np.int64)
    if window.kind == "tumbling":
        last = -(-ends // window.length) * window.length
    else:
        last = ends - window.pane(step) + window.length
    return first, last // step * step


def no_panes(source: Source, stream: StreamSchema | None) -> Panes:
    """A source of which nothing is there."""
    empty = np.zeros(0, np.int64)
    columns = {
        attribute.name: column(pa.array([], arrow_type(attribute.value.type)))
        for attribute in source.attributes
    }
    partials = {p.name: partial_columns.absent(p, 0) for p in source.partials(stream)}
    return Panes(Entries(empty, empty, columns, empty, partials), source.pane)


def of_state(table: pa.Table, source: Source, stream: StreamSchema) -> Panes:
    """The panes of a state file. What it does not have is absent: whoever reads it counts from later on."""
    ends = single(table.column(END)).to_numpy()
    columns = {a.name: _attribute(table, a.name, a.value.type) for a in source.attributes}
    names = set(table.column_names)
    partials = {
        p.name: partial_columns.unpacked(p, single(table.column(f"#{p.name}")))
        if f"#{p.name}" in names
        else partial_columns.absent(p, len(ends))
        for p in source.partials(stream)
    }
    counts = single(table.column(COUNT)).to_numpy()
    return Panes(Entries(ends, ends, columns, counts, partials), source.pane)


def of_set(table: pa.Table, source: Source, stream: StreamSchema) -> Panes:
    """The panes that a stream has published for a source: rows of the hidden query of its set."""
    ends = single(table.column("c0")).cast(pa.int64()).to_numpy()
    width = len(source.keys)
    columns = {
        attribute.name: _attribute(table, f"c{place + 1}", attribute.value.type)
        for place, attribute in enumerate(source.keys)
    }
    counts = single(table.column(f"c{width + 1}")).field(0).field(0).to_numpy()
    partials = {}
    for place, lifted in enumerate(source.lifted(stream)):
        of_aggregate = single(table.column(f"c{width + 2 + place}"))
        for number, partial in enumerate(lifted):
            partials[partial.name] = partial_columns.unpacked(partial, of_aggregate.field(number))
    return Panes(Entries(ends, ends, columns, counts, partials), source.pane)


def signature_column(source: Source) -> str | None:
    """The column of a published set that has the signatures of its entries, if it has any."""
    return f"c{len(source.keys)}" if source.selections else None


def of_rows(
    rows: pa.Table,
    times: Array,
    before: Array,
    names: RowColumns,
    source: Source,
    stream: StreamSchema,
    any_of: Sequence[str] = (),
) -> Panes:
    """Published rows as panes of one row each. A row counts if its pane was still open when it came: `before` is
    the stream's watermark then. `any_of`: the columns of truth values of which one must be true."""
    ends = (times // source.pane + 1) * source.pane
    chosen = ends > before
    if any_of:
        true = np.zeros(len(ends), bool)
        for name in any_of:
            if name in rows.column_names:
                true |= _true(single(rows.column(name)))
        chosen &= true
    places = np.flatnonzero(chosen)
    taken = rows if len(places) == len(chosen) else rows.take(pa.array(places))
    kept = row_entries(taken, names, source, source.partials(stream))
    late = column(pa.array((times <= before)[places]))
    columns = {name: late if name == LATE else values for name, values in kept.columns.items()}
    ends = ends[places]
    return Panes(replace(kept, first=ends, last=ends, columns=columns), source.pane)


def of_table(rows: pa.Table, names: RowColumns, source: Source) -> Entries:
    """The rows of a table, which count at every instant."""
    if names.selected is not None:
        rows = rows.filter(pa.array(_true(single(rows.column(names.selected.name)))))
    return row_entries(rows, names, source, source.partials(None))


def row_entries(
    rows: pa.Table, names: RowColumns, source: Source, partials: Sequence[Partial]
) -> Entries:
    """Each row as an entry."""
    columns = {
        attribute.name: _attribute(rows, made.name, attribute.value.type)
        for attribute, made in zip(source.attributes, names.attributes, strict=True)
    }
    there = set(rows.column_names)
    loaded = {
        partial.name: partial_columns.load(partial, single(rows.column(made.name)))
        if made.name in there
        else partial_columns.absent(partial, rows.num_rows)
        for partial, made in zip(partials, names.partials, strict=True)
    }
    nothing = np.zeros(rows.num_rows, np.int64)
    return Entries(nothing, nothing, columns, np.ones(rows.num_rows, np.int64), loaded)


def _attribute(table: pa.Table, name: str, type_: str) -> Column:
    wanted = arrow_type(type_)
    if name not in table.column_names:
        return column(pa.nulls(table.num_rows, wanted))
    values = single(table.column(name))
    if isinstance(values, pa.DictionaryArray) and values.type.value_type == wanted:
        return coded(values)
    return column(values if values.type == wanted else values.cast(wanted))


def _true(values: pa.Array) -> Array:
    """Where a condition is true: neither false nor NULL."""
    flags: Array = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return flags
