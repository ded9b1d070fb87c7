"""Group-by keys as small integers.

An encoder gives every distinct key tuple a code, in the order of first sight, and gives the tuples
back as Arrow columns. Each column has codes of its own. Integers, and what is stored as integers, are
looked up in a sorted array; of other types the distinct values pass through Python. A tuple's code
is found column by column: the code of its beginning and that of the next value, packed into one
integer, are looked up in the same way. Time per batch of n rows, d of them distinct, and k known keys:
O(n + d log k), and O(k) if there are new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from weft.kernel.columns.arrow import factorized
from weft.kernel.columns.operations import Array
from weft.kernel.columns.sorting import ordered

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
        self._values = [_column_codes(type_) for type_ in self.types]
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
        for number in range(len(self._pairs), 0, -1):
            first, second = self._pairs[number - 1].decode(codes)
            if number == index:
                return self._values[number].decode(second)
            codes = first
        return self._values[0].decode(codes)


class _Integers:
    """Codes for 64-bit integers."""

    def __init__(self) -> None:
        self.values = np.zeros(0, np.int64)
        """By code."""
        self._sorted = np.zeros(0, np.int64)
        self._order = np.zeros(0, np.int64)
        """The codes of the sorted ones."""

    def __len__(self) -> int:
        return len(self.values)

    def encode(self, numbers: Array) -> Array:
        distinct, local = factorized(numbers)
        places = np.searchsorted(self._sorted, distinct)
        codes = np.empty(len(distinct), np.int64)
        seen = np.zeros(len(distinct), bool)
        if len(self):
            inside = np.minimum(places, len(self) - 1)
            seen = self._sorted[inside] == distinct
            codes[seen] = self._order[inside[seen]]
        new = np.flatnonzero(~seen)
        if len(new):
            codes[new] = len(self) + np.arange(len(new))
            self._add(distinct[new], places[new])
        return codes[local]

    def _add(self, values: Array, places: Array) -> None:
        """Add new values, given their places among the sorted ones."""
        order, ascending = ordered(values)
        self._sorted = np.insert(self._sorted, places[order], ascending)
        self._order = np.insert(self._order, places[order], len(self) + order)
        self.values = np.concatenate([self.values, values])


class _Numbers:
    """Codes for the values of a column that are integers, or stored as such; NULL has code 0."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._integers = _Integers()

    def __len__(self) -> int:
        return len(self._integers)

    def encode(self, column: pa.Array) -> Array:
        numbers = hashable(column).cast(pa.int64())
        if not numbers.null_count:
            return self._integers.encode(numbers.to_numpy()) + 1
        codes = np.zeros(len(numbers), np.int64)
        valid = numbers.is_valid().to_numpy(zero_copy_only=False)
        codes[valid] = self._integers.encode(numbers.drop_null().to_numpy()) + 1
        return codes

    def decode(self, codes: Array) -> pa.Array:
        missing = codes == 0
        by_code = np.append(self._integers.values, 0)
        numbers = pa.array(by_code[codes - 1], mask=missing if missing.any() else None)
        return numbers.cast(_integer_type(self._type)).view(self._type)


class _Values:
    """Codes for the values of a column of any other type."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._codes: dict[Any, int] = {}
        self._column: pa.Array | None = None

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, column: pa.Array) -> Array:
        encoded = column.dictionary_encode(null_encoding="encode")
        code_of = self._codes
        distinct = encoded.dictionary.to_pylist()
        codes = np.fromiter(
            (code_of.setdefault(value, len(code_of)) for value in distinct), np.int64, len(distinct)
        )
        places: Array = encoded.indices.to_numpy(zero_copy_only=False)
        return codes[places]

    def decode(self, codes: Array) -> pa.Array:
        if self._column is None or len(self._column) != len(self._codes):
            self._column = pa.array(list(self._codes), self._type)
        return self._column.take(pa.array(codes))


class _Pairs:
    """Codes for pairs of codes."""

    def __init__(self) -> None:
        self._packed = _Integers()

    def __len__(self) -> int:
        return len(self._packed)

    def encode(self, first: Array, second: Array) -> Array:
        return self._packed.encode((first << _HALF) | second)

    def decode(self, codes: Array) -> tuple[Array, Array]:
        packed = self._packed.values[codes]
        return packed >> _HALF, packed & ((1 << _HALF) - 1)


def hashable(column: pa.Array) -> pa.Array:
    """The same values in a type that compares as Spark groups."""
    stored = _integer_type(column.type)
    return column if stored is None else column.view(stored)


def _column_codes(type_: pa.DataType) -> _Numbers | _Values:
    return _Values(type_) if _integer_type(type_) is None else _Numbers(type_)


def _integer_type(type_: pa.DataType) -> pa.DataType | None:
    """The integers that a type's values are stored as, None if they are not."""
    if pa.types.is_integer(type_):
        return type_
    if pa.types.is_float64(type_) or pa.types.is_timestamp(type_):
        return pa.int64()
    if pa.types.is_float32(type_) or pa.types.is_date32(type_):
        return pa.int32()
    return None
