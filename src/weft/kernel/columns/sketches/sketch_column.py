"""Columns of mergeable sketches.

In general a column of sketches is an array of codes and a table of the distinct sketches that they stand for, as
in a dictionary-encoded column: fragments of few rows often have equal sketches, and then each merge
and each estimate is made once. Code 0 is no sketch. A table only grows, so codes stay valid;
concatenating columns makes a new one of the sketches in use. Columns that are parts of one share
its table, also between threads. Of few sketches of distinct values it is a column of sets
(`sketch_sets`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import datasketches as ds
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.kernel.columns.arrow import factorized
from weft.kernel.columns.ranges import combine_ranges
from weft.kernel.columns.sketches.sketch_kinds import KINDS, Kind
from weft.kernel.columns.sketches.sketch_sets import SketchSets

Codes = NDArray[np.int64]

_PAIR_SHIFT = 32
_CODE_MASK = (1 << _PAIR_SHIFT) - 1


class SketchTable:
    """Sketches under small numbers, as bytes; what a merge of some of them gave is remembered."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.written: list[bytes | None] = [None]
        self._merges: dict[bytes, int] = {}
        self._lock = threading.Lock()

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    def __len__(self) -> int:
        return len(self.written)

    def add(self, written: bytes) -> int:
        """The code of one more sketch."""
        with self._lock:
            self.written.append(written)
            return len(self.written) - 1

    def sketch(self, code: int) -> Any:
        written = self.written[code]
        return None if written is None else self.kind.read(written)

    def merged(self, codes: Codes) -> int:
        """The code of the sketch of several together."""
        merged_codes = codes.tobytes()
        code = self._merges.get(merged_codes)
        if code is None:
            merged = self.kind.merge([self.sketch(code) for code in codes.tolist()])
            code = self._merges[merged_codes] = self.add(self.kind.write(merged))
        return code

    def combined(self, left: Codes, right: Codes) -> Codes:
        """The merges of two columns of codes, element by element."""
        merged = np.where(left == 0, right, left)
        different = (left != 0) & (right != 0)
        if self.kind.idempotent:
            different &= left != right
        places = np.flatnonzero(different)
        if len(places):
            low = np.minimum(left[places], right[places])
            high = np.maximum(left[places], right[places])
            pairs, pair_of = np.unique(low << _PAIR_SHIFT | high, return_inverse=True)
            ends = np.stack([pairs >> _PAIR_SHIFT, pairs & _CODE_MASK], axis=1)
            merged[places] = np.array([self.merged(pair) for pair in ends], np.int64)[pair_of]
        return merged


@dataclass(frozen=True)
class SketchColumn:
    """A column of sketches."""

    codes: Codes
    table: SketchTable

    @staticmethod
    def of(kind: str, written: Sequence[bytes | None], places: NDArray[Any]) -> SketchColumn:
        """The column of sketches at the given places of a list."""
        table = SketchTable(kind)
        codes = [0 if sketch is None else table.add(sketch) for sketch in written]
        return SketchColumn(np.array(codes, np.int64)[places], table)

    @staticmethod
    def concatenated(columns: Sequence[SketchColumn]) -> SketchColumn:
        """Columns one after the other; the new table has the sketches in use."""
        table = SketchTable(columns[0].table.name)
        parts = []
        code_of: dict[bytes | None, int] = {None: 0}
        for column in columns:
            used, places = factorized(column.codes)
            for written in (column.table.written[code] for code in used.tolist()):
                if written is not None and written not in code_of:
                    code_of[written] = table.add(written)
            codes = [code_of[column.table.written[code]] for code in used.tolist()]
            parts.append(np.array(codes, np.int64)[places])
        return SketchColumn(np.concatenate(parts), table)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """The codes, and every sketch in use once."""
        used = factorized(self.codes)[0].tolist()
        return int(self.codes.nbytes) + sum(len(self.table.written[code] or b"") for code in used)

    def take(self, positions: NDArray[Any]) -> SketchColumn:
        return SketchColumn(self.codes[positions], self.table)

    def _equal_until(self, places: NDArray[Any]) -> NDArray[Any]:
        """The first place behind each given one that has another sketch."""
        changes = np.flatnonzero(np.diff(self.codes)) + 1
        ends: NDArray[Any] = np.append(changes, len(self.codes))
        return ends[np.searchsorted(changes, places, side="right")]

    def over_runs(self, low: NDArray[Any], high: NDArray[Any]) -> SketchColumn:
        """The merges of runs that follow each other; runs of the same sketches share one."""
        codes, table = self.codes, self.table
        runs = np.repeat(np.arange(len(low)), high - low)
        present = np.flatnonzero(codes)
        size = len(table)
        pairs = runs[present] * size + codes[present]
        if table.kind.idempotent:
            pairs = pa.array(pairs).unique().to_numpy()
        pairs = np.sort(pairs)
        runs, parts = np.divmod(pairs, size)
        first = np.flatnonzero(np.diff(runs, prepend=-1))
        beyond = np.append(first[1:], len(runs))
        merged = np.zeros(len(low), np.int64)
        merged[runs[first]] = parts[first]
        for run in np.flatnonzero(beyond - first > 1).tolist():
            merged[runs[first[run]]] = table.merged(parts[first[run] : beyond[run]])
        return SketchColumn(merged, table)

    def over_ranges(self, low: NDArray[Any], high: NDArray[Any]) -> SketchColumn:
        """The merges of ranges. Many hold the same sketch throughout, which merging does not change."""
        merged = self.codes[low]
        single = self._equal_until(low) if self.table.kind.idempotent else low + 1
        rest = np.flatnonzero(single < high)
        if len(rest):
            merging = Merging(self.table)
            (merged[rest],) = combine_ranges(merging, (self.codes,), low[rest], high[rest])
        return SketchColumn(merged, self.table)

    def written(self) -> tuple[list[bytes | None], NDArray[Any]]:
        """The distinct sketches as bytes, None for none, and which of them each row has."""
        used, places = factorized(self.codes)
        return [self.table.written[code] for code in used.tolist()], places

    def distinct(self) -> tuple[list[Any], NDArray[Any]]:
        """The distinct sketches themselves, None for none, and which of them each row has."""
        used, places = factorized(self.codes)
        return [self.table.sketch(code) for code in used.tolist()], places

    def estimates(self) -> NDArray[np.int64]:
        """The rounded estimates of distinct values, 0 for no sketch."""
        distinct, places = self.distinct()
        by_sketch = [0 if sketch is None else round(sketch.get_estimate()) for sketch in distinct]
        estimates: NDArray[np.int64] = np.array(by_sketch, np.int64)[places]
        return estimates

    def to_arrow(self) -> pa.Array:
        """The sketches as bytes, as state files have them."""
        written, places = self.written()
        return pa.array(written, pa.binary()).take(pa.array(places))


class Merging:
    """Merging as an operation on columns of codes (`operations.Operation`)."""

    costly = True

    def __init__(self, table: SketchTable) -> None:
        self._table = table

    def identity(self, shape: tuple[int, ...]) -> tuple[Codes]:
        return (np.zeros(shape, np.int64),)

    def combine(self, left: tuple[Codes, ...], right: tuple[Codes, ...]) -> tuple[Codes]:
        return (self._table.combined(left[0], right[0]),)

    def scan(self, blocks: tuple[Codes, ...]) -> tuple[Codes]:
        (codes,) = blocks
        scanned = codes.copy()
        for position in range(1, codes.shape[-1]):
            scanned[..., position] = self._table.combined(
                scanned[..., position - 1], codes[..., position]
            )
        return (scanned,)


Sketches = SketchColumn | SketchSets
"""A column of sketches in either form."""


def column_of(kind: str, written: Sequence[bytes | None], places: NDArray[Any]) -> Sketches:
    """The column of sketches at the given places of a list, which has each once."""
    sets = SketchSets.of(kind, written, places) if KINDS[kind].idempotent else None
    return SketchColumn.of(kind, written, places) if sets is None else sets


def from_arrow(kind: str, values: pa.Array) -> Sketches:
    """The column of an Arrow array of serialized sketches."""
    encoded = values.dictionary_encode(null_encoding="encode")
    places = encoded.indices.to_numpy(zero_copy_only=False)
    return column_of(kind, encoded.dictionary.to_pylist(), places)


def absent(kind: str, length: int) -> Sketches:
    """A column without sketches."""
    return column_of(kind, [None], np.zeros(length, np.int64))


def of_single_values(values: pa.Array, log_k: int) -> Sketches:
    """Sketches of one value each, as Spark's `hll_sketch_agg` would make them; none for NULL."""

    def make(value: Any) -> bytes | None:
        if value is None:
            return None
        sketch = ds.hll_sketch(log_k, ds.tgt_hll_type.HLL_8)
        sketch.update(value)
        return bytes(sketch.serialize_updatable())

    encoded = values.dictionary_encode(null_encoding="encode")
    places = encoded.indices.to_numpy(zero_copy_only=False)
    return column_of("hll", [make(value) for value in encoded.dictionary.to_pylist()], places)


def concatenated(columns: Sequence[Sketches]) -> Sketches:
    """Columns of one kind one after the other."""
    sets = [column for column in columns if isinstance(column, SketchSets)]
    joined = SketchSets.concatenated(sets) if len(sets) == len(columns) else None
    return (
        SketchColumn.concatenated([_coded(column) for column in columns])
        if joined is None
        else joined
    )


def _coded(column: Sketches) -> SketchColumn:
    if isinstance(column, SketchColumn):
        return column
    return SketchColumn.of(column.bases.kind, *column.written())


def quantiles(sketch: Any, percentages: Sequence[float]) -> list[Any]:
    """The values at the given ranks, none for an empty sketch."""
    if sketch is None or sketch.is_empty():
        return []
    return [sketch.get_quantile(percentage, True) for percentage in percentages]
