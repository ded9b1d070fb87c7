"""Values as integers of the same order, so that min and max of any type are min and max of int64.

Numbers, dates, times and booleans map directly; strings, wide decimals and structs are
ranked among the values at hand. The lowest and highest int64 are kept free: they are the
identities of max and min, and stand for "no value".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernel.operations import HIGHEST, LOWEST, Array

Decode = Callable[[Array, Array], pa.Array]


@dataclass(frozen=True)
class Codes:
    """The codes of an array and the way back: `decode(codes, missing)` gives values."""

    codes: Array
    decode: Decode


def encode(values: pa.Array, missing: int) -> Codes:
    """Codes in the order of the values; NULL becomes `missing` (LOWEST or HIGHEST)."""
    if pa.types.is_struct(values.type):
        return _ranked(values, _struct_order(values), missing)
    direct = _direct(values)
    if direct is None:
        return _ranked(values, _sort_order([values]), missing)
    codes, valid, decode = direct
    if len(codes) and (codes[valid] == LOWEST).any() | (codes[valid] == HIGHEST).any():
        return _ranked(values, _sort_order([values]), missing)
    return Codes(np.where(valid, codes, missing), decode)


def _direct(values: pa.Array) -> tuple[Array, Array, Decode] | None:
    type_ = values.type
    valid = validity(values)
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        codes = pc.fill_null(values.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    elif pa.types.is_date32(type_):
        codes = pc.fill_null(values.cast(pa.int32()).cast(pa.int64()), 0).to_numpy()
    elif pa.types.is_timestamp(type_):
        codes = pc.fill_null(values.cast(pa.int64()), 0).to_numpy()
    elif pa.types.is_floating(type_):
        return _float_codes(values, valid)
    else:
        return None

    def decode(chosen: Array, missing: Array) -> pa.Array:
        integers = pa.array(np.where(missing, 0, chosen), pa.int64(), mask=missing)
        if pa.types.is_date32(type_):
            return integers.cast(pa.int32()).cast(type_)
        return integers.cast(type_)

    return codes, valid, decode


def _float_codes(values: pa.Array, valid: Array) -> tuple[Array, Array, Decode]:
    """The bits of a float, flipped so that they order as Spark orders: NaN above all."""
    type_ = values.type
    numbers = pc.fill_null(values.cast(pa.float64()), 0.0).to_numpy().copy()
    numbers[np.isnan(numbers)] = np.nan
    numbers = numbers + 0.0
    bits = numbers.view(np.int64)
    codes = np.where(bits < 0, bits ^ np.int64(HIGHEST), bits)

    def decode(chosen: Array, missing: Array) -> pa.Array:
        plain = np.where(chosen < 0, chosen ^ np.int64(HIGHEST), chosen)
        plain = np.where(missing, 0, plain)
        return pa.array(plain.view(np.float64), pa.float64(), mask=missing).cast(type_)

    return codes, valid, decode


def _ranked(values: pa.Array, order: Array, missing: int) -> Codes:
    """Positions in sorted order as codes. Ties have different codes, which is as good."""
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
        direct = _direct(column)
        if direct is not None:
            codes, valid, _ = direct
            keys += [valid, np.where(valid, codes, 0)]
        else:
            keys.append(_ranks(column))
    return np.lexsort(keys[::-1])


def ranks(values: pa.Array) -> Array:
    """The rank of each value among the distinct ones, as Spark orders them; NULLs have any."""
    direct = _direct(values)
    ordered = _ranks(values) if direct is None else direct[0]
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
