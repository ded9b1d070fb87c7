"""Group-by keys as small integers.

An encoder gives every distinct key tuple a code, in the order of first sight, and gives the
tuples back as Arrow columns. Codes are found column by column with Arrow's dictionaries; only
distinct tuples pass through Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from weft.kernel.operations import Array

Key = tuple[Any, ...]


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
        self._codes: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._columns: list[pa.Array] | None = None

    def __len__(self) -> int:
        return len(self._keys)

    def encode(self, columns: Sequence[pa.Array]) -> Array:
        """The code of every row; new tuples get new codes."""
        if not self.types:
            raise ValueError("a key without columns has no rows to count")
        plain = [hashable(column) for column in columns]
        local, first = _local_codes(plain)
        take = pa.array(first)
        distinct = zip(*(column.take(take).to_pylist() for column in plain), strict=True)
        known = np.fromiter((self._code(key) for key in distinct), np.int64, count=len(first))
        return known[local]

    def decode(self, index: int, codes: Array) -> pa.Array:
        """A key column of the given codes."""
        if self._columns is None or len(self._columns[0]) != len(self._keys):
            transposed = zip(*self._keys, strict=True) if self._keys else [()] * len(self.types)
            self._columns = [
                _restore(list(values), type_)
                for values, type_ in zip(transposed, self.types, strict=True)
            ]
        return self._columns[index].take(pa.array(codes))

    def _code(self, key: Key) -> int:
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = len(self._keys)
            self._keys.append(key)
        return code


def _local_codes(columns: Sequence[pa.Array]) -> tuple[Array, Array]:
    """Codes of the rows among themselves, and the first row of each code."""
    combined = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        combined = combined * max(len(encoded.dictionary), 1) + codes
        _, combined = np.unique(combined, return_inverse=True)
    _, first, local = np.unique(combined, return_index=True, return_inverse=True)
    return local, first


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
