"""Group-by keys as small integers.

An encoder gives every distinct key tuple a code, in the order of first sight, and gives the tuples
back as Arrow columns. Each column has codes of its own, found by Arrow's dictionaries; only its
distinct values pass through Python. A tuple's code is found column by column: the code of its
beginning and that of the next value, packed into one integer, are looked up in a sorted array. Time
per batch of n rows and k known keys: O(n log k) without Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from weft.kernel.arrow import factorized
from weft.kernel.operations import Array

_HALF = 32


class KeyEncoder:
    """Codes for key tuples of the given Arrow types.

    >>> encoder = KeyEncoder([pa.string()])
    >>> encoder.encode([pa.array(["b", None, "b"])]).tolist()
    [0, 1, 0]
    >>> encoder.decode(0, np.array([1, 0])).to_pylist()
    [None, 'b']
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.types = tuple(types)
        self._values = [_Values(type_) for type_ in self.types]
        self._pairs = [_Pairs() for _ in self.types[1:]]

    def __len__(self) -> int:
        return len(self._pairs[-1]) if self._pairs else len(self._values[0]) if self.types else 0

    def encode(self, columns: Sequence[pa.Array]) -> Array:
        """The code of every row; new tuples get new codes."""
        if not self.types:
            raise ValueError("a key without columns has no rows to count")
        codes = self._values[0].encode(columns[0])
        for pairs, values, column in zip(self._pairs, self._values[1:], columns[1:], strict=True):
            codes = pairs.encode(codes, values.encode(column))
        return codes

    def decode(self, index: int, codes: Array) -> pa.Array:
        """A key column of the given codes."""
        for place in range(len(self._pairs), 0, -1):
            first, second = self._pairs[place - 1].decode(codes)
            if place == index:
                return self._values[place].decode(second)
            codes = first
        return self._values[0].decode(codes)


class _Values:
    """Codes for the values of one column."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._codes: dict[Any, int] = {}
        self._column: pa.Array | None = None

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, column: pa.Array) -> Array:
        encoded = hashable(column).dictionary_encode(null_encoding="encode")
        known = self._codes
        distinct = encoded.dictionary.to_pylist()
        codes = np.fromiter(
            (known.setdefault(value, len(known)) for value in distinct), np.int64, len(distinct)
        )
        places: Array = encoded.indices.to_numpy(zero_copy_only=False)
        return codes[places]

    def decode(self, codes: Array) -> pa.Array:
        if self._column is None or len(self._column) != len(self._codes):
            self._column = _restore(list(self._codes), self._type)
        return self._column.take(pa.array(codes))


class _Pairs:
    """Codes for pairs of codes."""

    def __init__(self) -> None:
        self._packed = np.zeros(0, np.int64)
        """By code."""
        self._sorted = np.zeros(0, np.int64)
        self._order = np.zeros(0, np.int64)
        """The codes of the sorted ones."""

    def __len__(self) -> int:
        return len(self._packed)

    def encode(self, first: Array, second: Array) -> Array:
        packed, local = factorized((first << _HALF) | second)
        places = np.searchsorted(self._sorted, packed)
        inside = np.minimum(places, max(len(self._sorted) - 1, 0))
        known = np.zeros(len(packed), bool)
        if len(self._sorted):
            known = self._sorted[inside] == packed
        codes = np.empty(len(packed), np.int64)
        codes[known] = self._order[inside[known]]
        new = np.flatnonzero(~known)
        codes[new] = len(self) + np.arange(len(new))
        if len(new):
            self._add(packed[new])
        return codes[local]

    def _add(self, packed: Array) -> None:
        self._packed = np.concatenate([self._packed, packed])
        self._order = np.argsort(self._packed, kind="stable")
        self._sorted = self._packed[self._order]

    def decode(self, codes: Array) -> tuple[Array, Array]:
        packed = self._packed[codes]
        return packed >> _HALF, packed & ((1 << _HALF) - 1)


def hashable(column: pa.Array) -> pa.Array:
    """The same values in a type whose Python form is hashable and compares as Spark groups."""
    type_ = column.type
    if pa.types.is_float64(type_):
        return column.view(pa.int64())
    if pa.types.is_float32(type_):
        return column.view(pa.int32())
    if pa.types.is_date32(type_):
        return column.view(pa.int32())
    if pa.types.is_timestamp(type_):
        return column.view(pa.int64())
    return column


def _restore(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_float64(type_) or pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).view(type_)
    if pa.types.is_float32(type_) or pa.types.is_date32(type_):
        return pa.array(values, pa.int32()).view(type_)
    return pa.array(values, type_)
