"""When the panes in files end, by input: which instants a step must evaluate depends on nothing else.

Of a file only the columns of times and selections are read, and only once: what was found is remembered as long as the file is in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.sets import PANES
from weft.algebra.joinagg.sources import Source
from weft.algebra.network.query import BEFORE
from weft.kernel.columns.arrow import single
from weft.kernel.columns.operations import Array
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.panes import END, Panes, signature_column
from weft.kernel.joinagg.served_panes import selected
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.joinagg.inputs import Inputs, Use
from weft.runtime.joinagg.publication import TIME
from weft.runtime.joinagg.served import Key
from weft.runtime.joinagg.statefiles import holds, read, read_panes, rows_by_set

Selected = tuple[Key, str | None]
"""What is kept for inputs, and the attribute of it that says which rows are an input's."""
Ends = tuple[Array, int]
"""The ends of panes, each once, and how many entries there are."""


@dataclass
class Coverage:
    """What is known of files."""

    storage: Storage
    _by_file: dict[str, dict[Selected, Ends]] = field(default_factory=dict)

    def known(self, files: Sequence[Entry], inputs: Inputs) -> Covered:
        """What these files hold of inputs."""
        self._by_file = {e["name"]: self._by_file.get(e["name"], {}) for e in files}
        found: dict[Selected, list[Ends]] = {}
        for entry in files:
            known = self._by_file[entry["name"]]
            wanted = {
                (key, use.selection): use
                for key, uses in inputs.by_key.items()
                if holds(entry, key, inputs)
                for use in uses
            }
            missing = [use for name, use in wanted.items() if name not in known]
            if missing:
                known |= dict(self._read(entry, missing, inputs))
            for name in wanted:
                found.setdefault(name, []).append(known[name])
        return Covered(
            {
                name: (np.unique(np.concatenate([ends for ends, _ in parts])), _total(parts))
                for name, parts in found.items()
            }
        )

    def _read(
        self, entry: Entry, uses: Iterable[Use], inputs: Inputs
    ) -> Iterator[tuple[Selected, Ends]]:
        uses = list(uses)
        if "source" in entry:
            names = [END, *(use.selection for use in uses if use.selection is not None)]
            table = read(self.storage, entry, names)
            ends = single(table.column(END)).to_numpy()
            for use in uses:
                yield (use.key, use.selection), _ends(ends[_true(table, use.selection)])
        elif entry["publication"] == PANES:
            signatures = {signature_column(finer) for finer in inputs.finer.values()}
            names = ["query", "c0", *(name for name in signatures if name is not None)]
            sets = rows_by_set(read_panes(self.storage, entry, names))
            for use in uses:
                finer = inputs.finer.get(use.source.id)
                own = use.source.id in sets or finer is None
                provider = use.source if own or finer is None else finer
                yield (use.key, None), _ends(_ends_in(sets.get(provider.id), provider, use))
        else:
            chosen = {use.source.id: row_columns(use.source, use.stream).selected for use in uses}
            names = [column.name for column in chosen.values() if column is not None]
            table = read(self.storage, entry, [TIME, BEFORE, *names])
            times, before = (single(table.column(name)).to_numpy() for name in (TIME, BEFORE))
            for use in uses:
                column, pane = chosen[use.source.id], use.source.pane
                ends = (times // pane + 1) * pane
                inside = (ends > before) & _true(table, None if column is None else column.name)
                yield (use.key, use.selection), _ends(ends[inside])


def _ends_in(rows: pa.Table | None, provider: Source, use: Use) -> Array:
    """When the panes of an input end, in the rows of the set that serves it."""
    if rows is None:
        return np.zeros(0, np.int64)
    ends: Array = single(rows.column("c0")).cast(pa.int64()).to_numpy()
    signature = signature_column(provider)
    if signature is None:
        return ends
    signatures = single(rows.column(signature)).to_numpy()
    return ends[selected(signatures, provider, use.source.predicate)]


def _total(parts: Sequence[Ends]) -> int:
    return sum(count for _, count in parts)


def _ends(ends: Array) -> Ends:
    return np.unique(ends), len(ends)


def _true(table: pa.Table, name: str | None) -> Array:
    """Which rows are selected. A file from before a selection was published has none for it."""
    if name is None:
        return np.ones(table.num_rows, bool)
    if name not in table.column_names:
        return np.zeros(table.num_rows, bool)
    flags: Array = pc.fill_null(table.column(name), False).to_numpy()
    return flags


@dataclass(frozen=True)
class Covered:
    """The panes of inputs, without what is in them."""

    ends: Mapping[Selected, Ends]

    def entries(self, use: Use, begin: int) -> Entries:
        """Entries that say only at which instants an input has some."""
        nothing = np.zeros(0, np.int64)
        ends, _ = self.ends.get((use.key, use.selection), (nothing, 0))
        ones = np.ones(len(ends), np.int64)
        panes = Panes(Entries(ends, ends, {}, ones, {}), use.source.pane)
        return panes.since(begin).entries(use.window, use.query.step)

    def counts(self) -> dict[Key, int]:
        """How many entries are kept, about: rows that several inputs select are counted for the one with most."""
        counts: dict[Key, int] = {}
        for (key, _), (_, count) in self.ends.items():
            counts[key] = max(count, counts.get(key, 0))
        return counts
