"""The bucket of a group: Spark's `hash` of its keys (Murmur3, seed 42), on Arrow columns.

Fragments that Spark writes and those that are derived on the driver must agree on it: lanes own
buckets, and all fragments of a group belong to one lane. A NULL leaves the hash as it is; the hash of
one key is the seed of the next. Vectorized over rows; strings are hashed word by word.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernel.columns.operations import Array

_SEED = 42
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)


def can_hash(types: Sequence[pa.DataType]) -> bool:
    """Whether the keys are of types whose hash is known here."""
    return all(
        pa.types.is_integer(type_)
        or pa.types.is_boolean(type_)
        or pa.types.is_float32(type_)
        or pa.types.is_float64(type_)
        or pa.types.is_date32(type_)
        or pa.types.is_string(type_)
        for type_ in types
    )


def buckets(keys: Sequence[pa.Array], rows: int, count: int) -> Array:
    """The buckets of groups."""
    if not keys:
        return np.zeros(rows, np.int32)
    return np.mod(hashes(keys), np.int32(count)).astype(np.int32)


def hashes(keys: Sequence[pa.Array]) -> Array:
    """Spark's hash of key columns.

    >>> hashes([pa.array([1, None]), pa.array(["abc", "abc"])]).tolist()
    [186153577, 1322437556]
    """
    hashed_so_far = np.full(len(keys[0]), _SEED, np.uint32)
    with np.errstate(over="ignore"):
        for column in keys:
            hashed = _hash(column, hashed_so_far)
            if column.null_count:
                valid = column.is_valid().to_numpy(zero_copy_only=False)
                hashed = np.where(valid, hashed, hashed_so_far)
            hashed_so_far = hashed
    return hashed_so_far.view(np.int32)


def _hash(column: pa.Array, seed: Array) -> Array:
    type_ = column.type
    if pa.types.is_string(type_):
        return _strings(column, seed)
    if pa.types.is_float64(type_) or pa.types.is_int64(type_):
        numbers = _filled(column)
        if pa.types.is_float64(type_):
            numbers = _one_of_each(numbers).view(np.int64)
        words = numbers.view(np.uint64)
        low, high = words.astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32)
        return _mixed_in(_step(_step(seed, low), high), np.uint32(8))
    numbers = _filled(column)
    if pa.types.is_float32(type_):
        numbers = _one_of_each(numbers).view(np.int32)
    return _mixed_in(_step(seed, numbers.astype(np.int32).view(np.uint32)), np.uint32(4))


def _filled(column: pa.Array) -> Array:
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    zero = False if pa.types.is_boolean(column.type) else 0
    numbers: Array = pc.fill_null(column, zero).to_numpy(zero_copy_only=False)
    return numbers


def _one_of_each(numbers: Array) -> Array:
    """With one zero and one NaN, of the many that there are."""
    numbers = np.where(numbers == 0, numbers.dtype.type(0), numbers)
    return np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers)


def _strings(column: pa.Array, seed: Array) -> Array:
    """Words of four bytes, then single bytes as signed numbers."""
    encoded = column.dictionary_encode()
    texts = [value.encode() for value in encoded.dictionary.to_pylist()]
    places = pc.fill_null(encoded.indices, 0).to_numpy()
    if not texts:
        return seed
    lengths = np.array([len(text) for text in texts])[places]
    longest = max(len(text) for text in texts)
    whole = longest // 4 * 4 + 4
    table = np.frombuffer(b"".join(text.ljust(whole, b"\0") for text in texts), np.uint8)
    table = table.reshape(len(texts), whole)
    state = seed.copy()
    for start in range(0, longest - 3, 4):
        words = np.ascontiguousarray(table[:, start : start + 4]).view("<u4")[:, 0]
        inside = lengths >= start + 4
        state = np.where(inside, _step(state, words[places]), state)
    for position in range(longest):
        single = table[:, position].view(np.int8).astype(np.int32).view(np.uint32)
        inside = (position >= lengths // 4 * 4) & (position < lengths)
        state = np.where(inside, _step(state, single[places]), state)
    return _mixed_in(state, lengths.astype(np.uint32))


def _step(state: Array, word: Array) -> Array:
    word = word * _C1
    word = _rotated(word, 15)
    word *= _C2
    word ^= state
    state = _rotated(word, 13)
    state *= np.uint32(5)
    state += np.uint32(0xE6546B64)
    return state


def _rotated(words: Array, left: int) -> Array:
    """The words rotated; the array given is used up."""
    low = words >> np.uint32(32 - left)
    words <<= np.uint32(left)
    low |= words
    return low


def _mixed_in(state: Array, length: Array | np.uint32) -> Array:
    state = state ^ length
    state ^= state >> np.uint32(16)
    state *= np.uint32(0x85EBCA6B)
    state ^= state >> np.uint32(13)
    state *= np.uint32(0xC2B2AE35)
    state ^= state >> np.uint32(16)
    return state
