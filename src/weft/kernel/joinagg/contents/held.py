"""What an input holds at instants, and what is found out about it once for all queries that share it.

Contents are positions in the entries that they were made of. Values of columns are looked at once for each entry: they get small integers
(`ColumnCodes`), from which joins and groups go on. A column itself is gathered only where somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from weft.algebra.predicates.slots import plain_name
from weft.kernel.columns.column import Column, column, plain, to_arrow
from weft.kernel.columns.keys import KeyEncoder
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored

Found = TypeVar("Found")
_MOST = 1 << 40
"""Codes of several columns in one integer: they are sorted together with instants."""


class Memory:
    """What was computed of a value that does not change, by name."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}

    def of(self, name: Hashable, find: Callable[[], Found]) -> Found:
        """What was found before, or is now."""
        if name not in self._found:
            self._found[name] = find()
        found: Found = self._found[name]
        return found


class ColumnCodes:
    """An integer for every row, equal for values that SQL groups together, and the values back."""

    def __init__(self, encoder: KeyEncoder, codes: Array, count: int) -> None:
        self._encoder, self.codes, self.count = encoder, codes, count

    @staticmethod
    def of(values: Column) -> ColumnCodes:
        array: pa.Array = values.values if values.is_coded else to_arrow(values)
        encoder = KeyEncoder([values.type if values.is_coded else array.type])
        codes = encoder.encode([array])
        return ColumnCodes(encoder, codes, int(codes.max(initial=0)) + 1)

    @property
    def type(self) -> pa.DataType:
        return self._encoder.types[0]

    def take(self, positions: Array) -> ColumnCodes:
        """Those of some rows; codes stay as they are."""
        return ColumnCodes(self._encoder, self.codes[positions], self.count)

    def decode(self, codes: Array) -> pa.Array:
        return self._encoder.decode(0, codes)

    def distinct(self) -> tuple[Array, Column]:
        """The codes that rows have, and their values."""
        present = np.flatnonzero(np.bincount(self.codes, minlength=self.count))
        return present, column(self.decode(present))


class CodedColumns:
    """Columns of entries, with codes that are made when somebody asks for them."""

    def __init__(
        self,
        columns: Mapping[str, Column],
        count: int,
        made: Callable[[str], ColumnCodes] | None = None,
    ) -> None:
        self.columns, self._count = columns, count
        self._made = made
        """Where codes come from, if not from the columns."""
        self._memory = Memory()

    def codes(self, name: str) -> ColumnCodes:
        if self._made is not None:
            return self._made(name)
        return self._memory.of(name, lambda: ColumnCodes.of(self.columns[name]))

    def only(self, names: Iterable[str]) -> CodedColumns:
        """Some of the columns, with the same codes."""
        return CodedColumns({name: self.columns[name] for name in names}, self._count, self.codes)

    def taken(self, columns: Mapping[str, Column], positions: Array) -> CodedColumns:
        """Columns of the entries at some positions, with the same codes."""
        found = Memory()

        def codes(name: str) -> ColumnCodes:
            return found.of(name, lambda: self.codes(name).take(positions))

        return CodedColumns(columns, len(positions), codes)

    @property
    def keys(self) -> Array:
        """An integer for each entry, equal for entries whose columns SQL groups together."""
        return self._memory.of(None, self._keys)

    def _keys(self) -> Array:
        coded = [self.codes(name) for name in self.columns]
        product = 1
        for one in coded:
            product *= one.count
        if product >= _MOST:
            arrays = [to_arrow(values) for values in self.columns.values()]
            keys: Array = KeyEncoder([array.type for array in arrays]).encode(arrays)
            return keys
        keys = np.zeros(self._count, np.int64)
        for one in coded:
            keys = keys * one.count + one.codes
        return keys


class EntryRows:
    """Some entries as rows of slot 0; columns are gathered when somebody asks for them."""

    def __init__(self, source: CodedColumns, positions: Array) -> None:
        self._source, self._positions = source, positions
        self._columns: dict[str, Column] = {}

    @property
    def count(self) -> int:
        return len(self._positions)

    def column(self, name: str) -> Column:
        if name not in self._columns:
            values = self._source.columns[plain_name(name)]
            self._columns[name] = plain(values.take(self._positions))
        return self._columns[name]

    def codes(self, name: str) -> ColumnCodes:
        return self._source.codes(name).take(self._positions)

    def only(self, chosen: Array) -> EntryRows:
        """Some of the rows."""
        return EntryRows(self._source, self._positions[chosen])

    @property
    def columns(self) -> dict[str, Column]:
        """All columns, by their plain names. Some may be coded."""
        return {name: values.take(self._positions) for name, values in self._source.columns.items()}


@dataclass(frozen=True)
class Contents:
    """What an input holds at instants: the instant of each entry (None: the same at every instant), its columns (`0.name`), how many
    rows it stands for, and their partials."""

    instants: Array | None
    rows: EntryRows
    counts: Array
    partials: Mapping[str, Stored]
    merged: bool = False
    """Whether they are an aggregation set: entries of the same key are one."""
    found: Memory = field(default_factory=Memory, init=False, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.counts)

    def codes(self, name: str) -> ColumnCodes:
        """The values of a column as small integers."""
        return self.found.of(("codes", name), lambda: self.rows.codes(name))

    @property
    def single(self) -> bool:
        """Whether every entry stands for one row."""
        return self.found.of("single", lambda: bool((self.counts == 1).all()))
