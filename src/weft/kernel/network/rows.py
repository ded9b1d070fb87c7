"""Rows whose columns are gathered when somebody asks for them.

A column is named `slot.column`, as in predicates. Every row has two columns more for each slot: its
event time (`slot.#time`, microseconds or NULL) and the step that it came with (`slot.#step`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa

from weft.algebra.predicates.slots import column_name, plain_name, slot_of
from weft.kernel.columns.column import Column, column, concatenated
from weft.kernel.columns.operations import Array

TIME: Final = "#time"
STEP: Final = "#step"

Seen = int | Sequence[int]
"""The steps whose rows a query sees: from one on, or in turns from one on and no longer from the next on."""


def in_steps(steps: Array, seen: Seen) -> Array:
    """Which of some steps are among those that a query sees.

    >>> in_steps(np.array([1, 2, 3, 4, 5]), (2, 4, 5)).tolist()
    [False, True, True, False, True]
    """
    turns = np.searchsorted(np.atleast_1d(seen), steps, side="right")
    return (turns & 1).astype(bool)


class Rows(Protocol):
    """Rows by position, with columns by name."""

    @property
    def count(self) -> int: ...
    def column(self, name: str) -> Column: ...


class TableRows:
    """The rows of a relation's table; all their columns are in slot 0. A column that the table does
    not have is NULL."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._columns: dict[str, Column] = {}

    @property
    def count(self) -> int:
        return int(self._table.num_rows)

    def column(self, name: str) -> Column:
        if name not in self._columns:
            plain = plain_name(name)
            if plain in self._table.column_names:
                self._columns[name] = column(self._table.column(plain))
            else:
                self._columns[name] = _absent(plain, self.count)
        return self._columns[name]


class ColumnRows:
    """Rows of columns at hand. Other columns are NULL."""

    def __init__(self, columns: Mapping[str, Column], count: int) -> None:
        self._columns, self._count = columns, count

    @property
    def count(self) -> int:
        return self._count

    def column(self, name: str) -> Column:
        values = self._columns.get(name)
        return _absent(plain_name(name), self._count) if values is None else values


def _absent(plain: str, count: int) -> Column:
    if plain == STEP:
        return Column(np.zeros(count, np.int64), None, pa.int64())
    return column(pa.nulls(count, pa.int64() if plain == TIME else pa.null()))


class View:
    """Some of the rows of others."""

    def __init__(self, rows: Rows, positions: Array | slice) -> None:
        self._rows, self._positions = rows, positions
        self._columns: dict[str, Column] = {}
        if isinstance(positions, slice):
            self._count = len(range(*positions.indices(rows.count)))
        else:
            self._count = len(positions)

    @property
    def count(self) -> int:
        return self._count

    def column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = self._rows.column(name).take(self._positions)
        return self._columns[name]


@dataclass(frozen=True)
class Segment:
    """Pairs of rows: which of the left ones, and which of the right ones."""

    left: Rows
    left_positions: Array
    right: Rows
    right_positions: Array

    @property
    def count(self) -> int:
        return len(self.left_positions)


class Pairs:
    """Pairs of rows as rows: first the slots of the left ones, then those of the right ones."""

    def __init__(self, segments: Sequence[Segment], left_slots: int) -> None:
        self._segments, self._left_slots = segments, left_slots
        self._count = sum(segment.count for segment in segments)
        self._columns: dict[str, Column] = {}

    @property
    def count(self) -> int:
        return self._count

    def column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = self._gathered(name)
        return self._columns[name]

    def _gathered(self, name: str) -> Column:
        slot = slot_of(name)
        if slot < self._left_slots:
            parts = [part.left.column(name).take(part.left_positions) for part in self._segments]
        else:
            there = column_name(slot - self._left_slots, plain_name(name))
            parts = [part.right.column(there).take(part.right_positions) for part in self._segments]
        return concatenated(parts)
