"""Values as integers of the same order, so that min and max of any type are min and max of int64.

Numbers, dates, times and booleans map directly, and are kept as codes (`Extremes`); strings, wide
decimals and structs are ranked among the values at hand. The lowest and highest int64 are kept free:
they are the identities of max and min, and stand for "no value".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernel.columns.operations import HIGHEST, LOWEST, Array

Decode = Callable[[Array, Array], Any]


@dataclass(frozen=True)
class Codes:
    """The codes of a column and the way back: `decode(codes, missing)` gives a column."""

    codes: Array
    decode: Decode


@dataclass(frozen=True)
class Extremes:
    """A column of minima or maxima as codes; `missing` (LOWEST or HIGHEST) stands for NULL."""

    codes: Array
    missing: int
    type: pa.DataType

    @staticmethod
    def of(values: pa.Array, missing: int) -> Extremes | pa.Array:
        """The column of an array; the array itself if its values must be ranked."""
        codes = _direct(values)
        if codes is None:
            return values
        if not values.null_count:
            if len(codes) and (codes.min() == LOWEST or codes.max() == HIGHEST):
                return values
            return Extremes(codes, missing, values.type)
        valid = validity(values)
        if (codes[valid] == LOWEST).any() or (codes[valid] == HIGHEST).any():
            return values
        return Extremes(np.where(valid, codes, missing), missing, values.type)

    @staticmethod
    def absent(length: int, missing: int, type_: pa.DataType) -> Extremes | pa.Array:
        """A column of NULL."""
        return Extremes.of(pa.nulls(length, type_), missing)

    @staticmethod
    def concatenated(columns: Sequence[Extremes | pa.Array]) -> Extremes | pa.Array:
        """Columns one after the other."""
        direct = [column for column in columns if isinstance(column, Extremes)]
        if len(direct) < len(columns):
            return pa.concat_arrays([to_arrow(column) for column in columns])
        return replace(direct[0], codes=np.concatenate([column.codes for column in direct]))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        return int(self.codes.nbytes)

    def take(self, positions: Array) -> Extremes:
        return replace(self, codes=self.codes[positions])


def to_arrow(column: Extremes | pa.Array) -> pa.Array:
    """The values of a column of extremes."""
    if not isinstance(column, Extremes):
        return column
    return _values(column.codes, column.codes == column.missing, column.type)


def encode(values: Extremes | pa.Array, missing: int) -> Codes:
    """Codes in the order of the values; NULL becomes `missing` (LOWEST or HIGHEST)."""
    if isinstance(values, Extremes):
        return Codes(values.codes, lambda chosen, _: replace(values, codes=chosen))
    if pa.types.is_struct(values.type):
        return _ranked(values, _struct_order(values), missing)
    return _ranked(values, _sort_order([values]), missing)


def _direct(values: pa.Array) -> Array | None:
    """Codes that do not depend on other values, of NULL any; None for types that have none."""
    type_ = values.type
    if pa.types.is_date32(type_):
        values = values.cast(pa.int32())
    elif pa.types.is_floating(type_):
        return float_codes(values)
    elif not (
        pa.types.is_boolean(type_) or pa.types.is_integer(type_) or pa.types.is_timestamp(type_)
    ):
        return None
    integers = values.cast(pa.int64())
    filled = pc.fill_null(integers, 0) if integers.null_count else integers
    codes: Array = filled.to_numpy(zero_copy_only=False)
    return codes


def _values(codes: Array, missing: Array, type_: pa.DataType) -> pa.Array:
    """The values of direct codes."""
    mask = missing if missing.any() else None
    if pa.types.is_floating(type_):
        bits = np.where(codes < 0, codes ^ np.int64(HIGHEST), codes)
        return pa.array(bits.view(np.float64), pa.float64(), mask=mask).cast(type_)
    integers = pa.array(codes, pa.int64(), mask=mask)
    return (
        integers.cast(pa.int32()).cast(type_) if pa.types.is_date32(type_) else integers.cast(type_)
    )


def float_codes(values: pa.Array) -> Array:
    """The bits of a float, flipped so that they order as Spark orders: NaN above all.

    >>> zero, minus_zero, one, nan, other = float_codes(pa.array([0.0, -0.0, 1.0, np.nan, -np.nan]))
    >>> bool(zero == minus_zero < one < nan == other)
    True
    """
    numbers = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy().copy()
    numbers[np.isnan(numbers)] = np.nan
    numbers = numbers + 0.0
    bits = numbers.view(np.int64)
    codes: Array = np.where(bits < 0, bits ^ np.int64(HIGHEST), bits)
    return codes


def _ranked(values: pa.Array, order: Array, missing: int) -> Codes:
    """Positions in sorted order as codes. Equal values get different codes: any of them will do."""
    codes = np.empty(len(values), dtype=np.int64)
    codes[order] = np.arange(len(values))
    codes = np.where(validity(values), codes, missing)

    def decode(chosen: Array, absent: Array) -> pa.Array:
        if not len(values):
            return pa.nulls(len(chosen), values.type)
        positions = order[np.where(absent, 0, chosen)]
        return values.take(pa.array(positions, mask=absent))

    return Codes(codes, decode)


def _struct_order(values: pa.Array) -> Array:
    """Sorted order of structs, field by field; fields of a NULL struct do not matter."""
    return _sort_order([values.field(index) for index in range(values.type.num_fields)])


def _sort_order(columns: list[pa.Array]) -> Array:
    """Positions in ascending order, NULLs first as Spark has them."""
    keys: list[Array] = []
    for column in columns:
        codes = _direct(column)
        if codes is not None:
            valid = validity(column)
            keys += [valid, np.where(valid, codes, 0)]
        else:
            keys.append(_ranks(column))
    return np.lexsort(keys[::-1])


def ranks(values: pa.Array) -> Array:
    """The rank of each value among the distinct ones, as Spark orders them; NULLs have any."""
    direct = _direct(values)
    ordered = _ranks(values) if direct is None else direct
    _, places = np.unique(ordered, return_inverse=True)
    return places


def _ranks(column: pa.Array) -> Array:
    """The rank of each value among the distinct ones; NULLs rank first."""
    encoded = column.dictionary_encode()
    ranks = np.empty(len(encoded.dictionary) + 1, dtype=np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    ranks[-1] = -1
    positions: Array = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return ranks[positions]


def validity(values: pa.Array) -> Array:
    """Whether each value is there."""
    valid: Array = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def missing_code(operation: str) -> int:
    return HIGHEST if operation == "min" else LOWEST
