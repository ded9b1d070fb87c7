"""Partial columns in memory.

A column of a state file is loaded into the arrays its operation works on. Extremes that need
ranking (strings, structs) stay in Arrow until a window asks for them.

| combine | arrays |
|---|---|
| add | int64 |
| add_wide | high and low halves |
| add_decimal | four 32-bit limbs (the last signed) and the count of overflows |
| add_float | float64, NULL as 0 |
| moments | n, mean, m2 |
| min, max | `Extremes`, or the Arrow array itself |
| sketches | a `SketchColumn` or `SketchSets` |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.partial import SKETCHES, Partial
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.codes import Extremes, missing_code, to_arrow
from weft.kernel.columns.operations import Array
from weft.kernel.columns.sketches import sketch_column

Stored = tuple[Any, ...]
LIMBS = 4


def load(partial: Partial, column: pa.Array) -> Stored:
    """The arrays of a column of a state file."""
    name = partial.combine.name
    if name == "add":
        return (_integers(column),)
    if name == "add_wide":
        return (_integers(column.field(0)), _integers(column.field(1)))
    if name == "add_decimal":
        return (*limbs(column.field(0)), _integers(column.field(1)))
    if name == "add_float":
        return (_floats(column),)
    if name == "moments":
        count, mean, m2 = (_floats(column.field(i).cast(pa.float64())) for i in range(3))
        return (count, mean, m2)
    if name in SKETCHES:
        return (sketch_column.from_arrow(name, column.cast(arrow_type(partial.type))),)
    return (Extremes.of(column.cast(arrow_type(partial.type)), missing_code(name)),)


def packed(partial: Partial, stored: Stored) -> pa.Array:
    """The arrays of a column as they are, in one Arrow array."""
    type_ = arrow_type(partial.packed_type)
    arrays = [
        _to_arrow(values).cast(field.type) for values, field in zip(stored, type_, strict=True)
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(type_))


def unpacked(partial: Partial, column: pa.Array) -> Stored:
    """The arrays of a packed column."""
    fields = [column.field(index) for index in range(column.type.num_fields)]
    name = partial.combine.name
    if name in SKETCHES:
        return (sketch_column.from_arrow(name, fields[0]),)
    if name in ("min", "max"):
        return (Extremes.of(fields[0], missing_code(name)),)
    return tuple(values.to_numpy(zero_copy_only=False) for values in fields)


def _to_arrow(values: Any) -> pa.Array:
    if isinstance(values, np.ndarray):
        return pa.array(values)
    return to_arrow(values) if isinstance(values, (Extremes, pa.Array)) else values.to_arrow()


def absent(partial: Partial, length: int) -> Stored:
    """The column for rows of a plan version that did not carry the partial."""
    name = partial.combine.name
    width = {"add": 1, "add_wide": 2, "add_decimal": LIMBS + 1}.get(name)
    if width:
        return tuple(np.zeros(length, np.int64) for _ in range(width))
    if name in ("add_float", "moments"):
        return tuple(np.zeros(length) for _ in range(3 if name == "moments" else 1))
    if name in SKETCHES:
        return (sketch_column.absent(name, length),)
    return (Extremes.absent(length, missing_code(name), arrow_type(partial.type)),)


def take(stored: Stored, positions: Array) -> Stored:
    return tuple(
        values[positions] if isinstance(values, np.ndarray) else _taken(values, positions)
        for values in stored
    )


def _taken(values: Any, positions: Array) -> Any:
    return values.take(pa.array(positions) if isinstance(values, pa.Array) else positions)


def concatenate(parts: Sequence[Stored]) -> Stored:
    return tuple(_concatenated(arrays) for arrays in zip(*parts, strict=True))


def _concatenated(arrays: Sequence[Any]) -> Any:
    if isinstance(arrays[0], np.ndarray):
        return np.concatenate(arrays)
    if isinstance(arrays[0], (Extremes, pa.Array)):
        return Extremes.concatenated(arrays)
    return sketch_column.concatenated(arrays)


def size(stored: Stored) -> int:
    return sum(int(values.nbytes) for values in stored)


def limbs(column: pa.Array) -> tuple[Array, ...]:
    """The unscaled values of a decimal column as base 2^32 digits, the last one signed."""
    column = column.cast(pa.decimal128(38, column.type.scale))
    words = np.frombuffer(column.buffers()[1], dtype=np.uint64)
    words = words[2 * column.offset : 2 * (column.offset + len(column))].reshape(-1, 2)
    low, high = words[:, 0], words[:, 1].view(np.int64)
    mask = np.uint64(0xFFFFFFFF)
    digits = (low & mask, low >> np.uint64(32), high.view(np.uint64) & mask, high >> 32)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return tuple(np.where(valid, digit.astype(np.int64), 0) for digit in digits)


def _integers(column: pa.Array) -> Array:
    filled = pc.fill_null(column, 0) if column.null_count else column
    numbers: Array = filled.to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64, copy=False)


def _floats(column: pa.Array) -> Array:
    filled = pc.fill_null(column, 0.0) if column.null_count else column
    numbers: Array = filled.to_numpy(zero_copy_only=False)
    return numbers.astype(np.float64, copy=False)
