"""A column of rows in the form that joins compute with.

Numbers, dates, times and booleans are NumPy arrays with a mark for NULL; decimals are their unscaled
integers: int64, or Python's integers where a value is larger. All other types stay Arrow arrays.

Strings that come again and again may be *coded*, as an Arrow dictionary, where they are kept, taken and grouped without being looked at: `coded`
makes such a column and `plain` the strings again. A dictionary that is large beside its column is given up, so that it does not keep what is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernel.columns.operations import Array

_EXACT = Context(prec=100)
_REPEATED = 4
"""How often each string of a dictionary occurs, at least, on average."""


@dataclass(frozen=True, slots=True)
class Column:
    """Values by position. `valid` says which are not NULL; None: all of them, or the values are an
    Arrow array, which knows itself."""

    values: Array | pa.Array
    valid: Array | None
    type: pa.DataType

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes) + (0 if self.valid is None else int(self.valid.nbytes))

    def take(self, positions: Array | slice) -> Column:
        """The values at positions."""
        if isinstance(self.values, np.ndarray):
            valid = None if self.valid is None else self.valid[positions]
            return Column(self.values[positions], valid, self.type)
        if isinstance(positions, slice):
            start, stop, _ = positions.indices(len(self.values))
            return _worth_coding(self.values.slice(start, stop - start))
        return _worth_coding(self.values.take(pa.array(positions)))

    @property
    def is_coded(self) -> bool:
        """Whether the values are a dictionary."""
        return isinstance(self.values, pa.DictionaryArray)


def column(values: pa.Array | pa.ChunkedArray) -> Column:
    """The column of an Arrow array.

    >>> column(pa.array([1, None])).valid.tolist()
    [True, False]
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    type_ = values.type
    if pa.types.is_dictionary(type_):
        return column(values.dictionary_decode())
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return Column(values.cast(pa.string()), None, pa.string())
    if pa.types.is_timestamp(type_) and type_.unit != "us":
        return column(values.cast(pa.timestamp("us", tz=type_.tz), safe=False))
    if pa.types.is_decimal128(type_):
        return _unscaled(values)
    if not is_plain(type_):
        return Column(values, None, type_)
    valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None
    if pa.types.is_date32(type_):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(type_):
        values = values.cast(pa.int64())
    if valid is not None:
        values = pc.fill_null(values, pa.scalar(0).cast(values.type))
    return Column(values.to_numpy(zero_copy_only=False), valid, type_)


def coded(values: pa.DictionaryArray) -> Column:
    """The column of a dictionary of strings, which it stays as long as its strings come again and again.

    >>> coded(pa.array(["a", "b"] * 4).dictionary_encode()).is_coded
    True
    >>> coded(pa.array(["a", "b"]).dictionary_encode()).is_coded
    False
    """
    return _worth_coding(values)


def plain(source: Column) -> Column:
    """The column without a dictionary."""
    return Column(to_arrow(source), None, source.type) if source.is_coded else source


def _worth_coding(values: pa.Array) -> Column:
    if not isinstance(values, pa.DictionaryArray):
        return Column(values, None, values.type)
    if _REPEATED * len(values.dictionary) > len(values):
        values = values.dictionary_decode()
        return Column(values, None, values.type)
    return Column(values, None, values.type.value_type)


def is_plain(type_: pa.DataType) -> bool:
    """Whether values of a type are numbers for NumPy."""
    return bool(
        pa.types.is_boolean(type_)
        or pa.types.is_integer(type_)
        or pa.types.is_date32(type_)
        or pa.types.is_timestamp(type_)
        or pa.types.is_float32(type_)
        or pa.types.is_float64(type_)
    )


def _unscaled(values: pa.Array) -> Column:
    """Decimals as integers. Arrow holds them as two words, the lower one first."""
    valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None
    words = np.frombuffer(values.buffers()[1], np.int64)
    words = words[2 * values.offset : 2 * (values.offset + len(values))].reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    if valid is not None:
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    if (high == low >> 63).all():
        return Column(np.ascontiguousarray(low), valid, values.type)
    wide = high.astype(object) * (1 << 64) + low.view(np.uint64).astype(object)
    return Column(wide, valid, values.type)


def to_arrow(source: Column) -> pa.Array:
    """The Arrow array of a column."""
    values, type_ = source.values, source.type
    if not isinstance(values, np.ndarray):
        return values.dictionary_decode() if source.is_coded else values
    mask = None if source.valid is None else ~source.valid
    if pa.types.is_decimal128(type_):
        return _decimals(values, mask, type_)
    if pa.types.is_date32(type_) or pa.types.is_timestamp(type_):
        stored = pa.int32() if pa.types.is_date32(type_) else pa.int64()
        return pa.array(values, stored, mask=mask).cast(type_)
    return pa.array(values, type_, mask=mask)


def _decimals(values: Array, mask: Array | None, type_: pa.DataType) -> pa.Array:
    if values.dtype == object:
        exact = [Decimal(int(value)).scaleb(-type_.scale, _EXACT) for value in values]
        return pa.array(exact, type_, mask=mask)
    words = np.empty((len(values), 2), np.int64)
    words[:, 0] = values
    words[:, 1] = values >> 63
    valid = None if mask is None else pa.array(~mask).buffers()[1]
    return pa.Array.from_buffers(type_, len(values), [valid, pa.py_buffer(words)])


def concatenated(columns: Sequence[Column]) -> Column:
    """Columns one after the other. A column of type null stands for NULLs of the others' type."""
    if len(columns) == 1:
        return columns[0]
    typed = [part for part in columns if not pa.types.is_null(part.type)]
    if len(typed) < len(columns):
        type_ = typed[0].type if typed else pa.null()
        columns = [
            column(pa.nulls(len(part), type_)) if pa.types.is_null(part.type) else part
            for part in columns
        ]
    first = columns[0]
    if not isinstance(first.values, np.ndarray):
        if any(part.is_coded for part in columns) and not all(part.is_coded for part in columns):
            columns = [plain(part) for part in columns]
        return _worth_coding(pa.concat_arrays([part.values for part in columns]))
    valid = None
    if any(part.valid is not None for part in columns):
        valid = np.concatenate(
            [np.ones(len(part), bool) if part.valid is None else part.valid for part in columns]
        )
    return Column(np.concatenate([part.values for part in columns]), valid, first.type)
