"""Group-by keys as small integers.

An encoder gives every distinct key tuple a code, in the order of first sight, and gives the tuples
back as Arrow columns. Each column has codes of its own. Integers, and what is stored as integers, are
looked up in a sorted array; of other types the distinct values pass through Python. A tuple's code
is found column by column: the code of its beginning and that of the next value, packed into one
integer, are looked up in the same way. Time per batch of n rows, d of them distinct, and k known keys:
O(n + d log² k), and amortized O(log k) for every new key.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernel.columns.arrow import factorized
from weft.kernel.columns.operations import Array
from weft.kernel.columns.sorting import ordered

_HALF = 32
_GROWTH = 4
_LEAST_ROOM = 64
_MANY = 1 << 20
"""From so many rows on, distinct values are found by sorting: a hash table is slow where its
entries leave the processor's caches."""
_MOST_BYTES = 1 << 30
"""Arrow's strings in one array are less than twice as many bytes."""


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
    """Codes for 64-bit integers.

    Sorted values are kept in runs, the largest first. A run that is not much smaller than the one before
    is merged with it, so there are few of them, and adding keys costs what they are, not what there is.
    """

    def __init__(self) -> None:
        self._values = np.zeros(_LEAST_ROOM, np.int64)
        """By code, with room for more."""
        self._count = 0
        self._runs: list[tuple[Array, Array]] = []
        """Sorted values, and their codes."""

    def __len__(self) -> int:
        return self._count

    def encode(self, numbers: Array) -> Array:
        if len(numbers) < _MANY:
            distinct, local = factorized(numbers)
            missing = ordered(distinct)[0]  # ascending: searches come by the same places again
        else:
            distinct, local = np.unique(numbers, return_inverse=True)
            missing = np.arange(len(distinct))
        codes = np.empty(len(distinct), np.int64)
        for values, of_values in self._runs:
            wanted = distinct[missing]
            places = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
            seen = values[places] == wanted
            codes[missing[seen]] = of_values[places[seen]]
            missing = missing[~seen]
        if len(missing):
            new = np.sort(missing)
            codes[new] = self._count + np.arange(len(new))
            self._add(distinct[new], (distinct[missing], codes[missing]))
        return codes[local]

    def decode(self, codes: Array) -> Array:
        return self._values[codes]

    def _add(self, values: Array, run: tuple[Array, Array]) -> None:
        """Add new values in the order of their codes, and as a run."""
        while self._runs and len(self._runs[-1][0]) < _GROWTH * len(run[0]):
            run = _merged(self._runs.pop(), run)
        self._runs.append(run)
        needed = self._count + len(values)
        if needed > len(self._values):
            room = np.zeros(max(needed, 3 * len(self._values) // 2), np.int64)
            room[: self._count] = self._values[: self._count]
            self._values = room
        self._values[self._count : needed] = values
        self._count = needed


def _merged(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    places = np.searchsorted(first[0], second[0])
    return np.insert(first[0], places, second[0]), np.insert(first[1], places, second[1])


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
        values = self._integers.decode(np.maximum(codes - 1, 0))
        numbers = pa.array(np.where(missing, 0, values), mask=missing if missing.any() else None)
        return numbers.cast(_integer_type(self._type)).view(self._type)


class _Values:
    """Codes for the values of a column of any other type. The values by code are in chunks that
    grow by a factor, as the runs of integers do."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._codes: dict[Any, int] = {}
        self._chunks: list[pa.Array] = []

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, column: pa.Array) -> Array:
        """The codes of values, or of those of a dictionary."""
        if isinstance(column, pa.DictionaryArray):
            distinct = column.dictionary.to_pylist()
            places = pc.fill_null(column.indices, len(distinct))
            distinct += [None] * bool(column.null_count)
        else:
            encoded = column.dictionary_encode(null_encoding="encode")
            distinct, places = encoded.dictionary.to_pylist(), encoded.indices
        codes: Array = self._of_distinct(distinct)[places.to_numpy(zero_copy_only=False)]
        return codes

    def _of_distinct(self, distinct: list[Any]) -> Array:
        code_of = self._codes
        known = len(code_of)
        codes = np.fromiter(
            (code_of.setdefault(value, len(code_of)) for value in distinct), np.int64, len(distinct)
        )
        if len(code_of) > known:
            self._add(
                [
                    value
                    for value, code in zip(distinct, codes.tolist(), strict=True)
                    if code >= known
                ]
            )
        return codes

    def _add(self, values: list[Any]) -> None:
        chunk = pa.array(values, self._type)
        while (
            self._chunks
            and len(self._chunks[-1]) < _GROWTH * len(chunk)
            and self._chunks[-1].nbytes + chunk.nbytes < _MOST_BYTES
        ):
            chunk = pa.concat_arrays([self._chunks.pop(), chunk])
        self._chunks.append(chunk)

    def decode(self, codes: Array) -> pa.Array:
        column = pa.chunked_array(self._chunks, self._type)
        return column.take(pa.array(codes)).combine_chunks()


class _Pairs:
    """Codes for pairs of codes."""

    def __init__(self) -> None:
        self._packed = _Integers()

    def __len__(self) -> int:
        return len(self._packed)

    def encode(self, first: Array, second: Array) -> Array:
        return self._packed.encode((first << _HALF) | second)

    def decode(self, codes: Array) -> tuple[Array, Array]:
        packed = self._packed.decode(codes)
        return packed >> _HALF, packed & ((1 << _HALF) - 1)


def hashable(column: pa.Array) -> pa.Array:
    """The same values in a type that compares as Spark groups: zeros of either sign are one value, and all NaN are.

    >>> hashable(pa.array([0.0, -0.0, float("nan"), -float("nan")])).value_counts().field(1).to_pylist()
    [2, 2]
    """
    stored = _integer_type(column.type)
    if pa.types.is_floating(column.type):
        positive = pc.add(column, pa.scalar(0.0, column.type))
        nan = pa.scalar(math.nan, column.type)
        column = pc.if_else(pc.is_nan(positive), nan, positive)
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
