"""Rows with the columns of their matches in tables. Columns are gathered when somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from weft.algebra.network.lookup import FOUND, split_prefix
from weft.algebra.predicates.slots import column_name, plain_name
from weft.kernel.columns.column import Column, column, concatenated
from weft.kernel.columns.operations import Array
from weft.kernel.network.lookups.compiled import CompiledLookup
from weft.kernel.network.lookups.tables import Count, LookupTable, lookup_table, matches
from weft.kernel.network.passing import Limits, Passage
from weft.kernel.network.program import PhysicalNode
from weft.kernel.network.rows import Rows, TableRows, View

Made = dict[tuple[str, ...], Rows]
"""Rows by the ids of the lookups that they have had."""


def with_lookups(
    passage: Passage,
    node: PhysicalNode,
    rows: Rows,
    tables: Mapping[str, LookupTable],
    made: Made | None = None,
) -> Rows:
    """New rows of a source with what their lookups find. Raises `QueryFailure` if that is too much.
    `made` is for sources with the same new rows: what they have in common is found once."""

    def count(candidates: int, matches: int) -> None:
        passage.count(node, candidates, matches)

    made = {} if made is None else made
    had: tuple[str, ...] = ()
    for lookup in node.lookups:
        had = (*had, lookup.id)
        if had not in made:
            made[had] = _looked_up(rows, lookup, tables[lookup.id], passage.limits, count)
        rows = made[had]
    return rows


def _looked_up(
    rows: Rows, lookup: CompiledLookup, table: LookupTable, limits: Limits, count: Count
) -> Rows:
    """The rows with what a lookup finds."""
    if lookup.kind == "mark":
        marks = _marks(lookup, table, rows, limits, count)
        return _Marked(rows, lookup.beginning + FOUND, marks)
    left, right = matches(lookup.matching, table.matching, rows, limits, count)
    if lookup.kind == "left":
        without = np.ones(rows.count, bool)
        without[left] = False
        alone = np.flatnonzero(without)
        left = np.concatenate([left, alone])
        right = np.concatenate([right, np.full(len(alone), -1)])
    return _Matched(View(rows, left), lookup.beginning, table, right)


def lookup_tables(
    nodes: Iterable[PhysicalNode],
    contents: Mapping[str, pa.Table],
    absent: pa.Table | None,
    limits: Limits,
) -> dict[str, LookupTable]:
    """The tables that lookups of nodes read, made ready, by the lookups' ids. Lookups in tables of which
    there are no contents are left out. `absent` has one row: what Spark computes (`bits`) of columns that
    are all NULL."""
    columns = {} if absent is None else {n: column(absent.column(n)) for n in absent.column_names}
    lookups = {
        lookup.id: lookup for node in nodes for lookup in node.lookups if lookup.table in contents
    }
    return dict(_opened(list(lookups.values()), contents, columns, limits))


def _opened(
    lookups: Sequence[CompiledLookup],
    contents: Mapping[str, pa.Table],
    absent: Mapping[str, Column],
    limits: Limits,
) -> Iterator[tuple[str, LookupTable]]:
    """Those that a table needs itself come first."""
    for lookup in lookups:
        inner = dict(_opened(lookup.lookups, contents, absent, limits))
        rows: Rows = TableRows(contents[lookup.table])
        for part in lookup.lookups:
            rows = _looked_up(rows, part, inner[part.id], limits, _uncounted)
        yield lookup.id, lookup_table(lookup, rows, absent, ansi=limits.ansi)


def _uncounted(candidates: int, matches: int) -> None:
    """A table's own lookups are made once."""


def _marks(
    lookup: CompiledLookup, table: LookupTable, rows: Rows, limits: Limits, count: Count
) -> Column:
    """Whether each row has a match; NULL where that is unknown."""
    found = np.zeros(rows.count, bool)
    found[matches(lookup.matching, table.matching, rows, limits, count)[0]] = True
    if not lookup.unknown:
        return Column(found, None, pa.bool_())
    unknown = np.zeros(rows.count, bool)
    for matching, part in zip(lookup.unknown, table.unknown, strict=True):
        unknown[matches(matching, part, rows, limits, count)[0]] = True
    return Column(found, found | ~unknown, pa.bool_())


class _Marked:
    """Rows with one more column."""

    def __init__(self, rows: Rows, name: str, values: Column) -> None:
        self._rows, self._name, self._values = rows, name, values

    @property
    def count(self) -> int:
        return self._rows.count

    def column(self, name: str) -> Column:
        return self._values if plain_name(name) == self._name else self._rows.column(name)


class _Matched:
    """Rows, each with a row of a table, or with none where its position is -1."""

    def __init__(self, rows: Rows, beginning: str, table: LookupTable, positions: Array) -> None:
        self._rows, self._beginning = rows, beginning
        self._table, self._positions = table, positions
        self._missing = positions < 0
        self._columns: dict[str, Column] = {}

    @property
    def count(self) -> int:
        return len(self._positions)

    def column(self, name: str) -> Column:
        plain = plain_name(name)
        if not plain.startswith(self._beginning):
            return self._rows.column(name)
        if plain not in self._columns:
            self._columns[plain] = self._of_table(plain.removeprefix(self._beginning))
        return self._columns[plain]

    def _of_table(self, name: str) -> Column:
        if name == FOUND:
            return Column(~self._missing, None, pa.bool_())
        values = self._table.rows.column(column_name(0, name))
        if not self._missing.any():
            return values.take(self._positions)
        absent = self._table.absent.get(split_prefix(name)[1])
        return _taken(values, self._positions, self._missing, absent)


def _taken(values: Column, positions: Array, missing: Array, absent: Column | None) -> Column:
    """The values at positions; where they are missing NULL, or what is given for that."""
    if absent is not None or not len(values):
        last = column(pa.nulls(1, values.type)) if absent is None else absent
        return concatenated([values, last]).take(np.where(missing, len(values), positions))
    if not isinstance(values.values, np.ndarray):
        return Column(values.values.take(pa.array(positions, mask=missing)), None, values.type)
    places = np.where(missing, 0, positions)
    valid = ~missing if values.valid is None else values.valid[places] & ~missing
    return Column(values.values[places], valid, values.type)
