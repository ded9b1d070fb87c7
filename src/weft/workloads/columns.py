"""Arrow columns from NumPy arrays, for generators that make whole tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Integers = NDArray[np.int64]
DAY = 86_400_000_000
"""Microseconds."""


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970."""
    return round(moment.timestamp() * 1_000_000)


def decimals(unscaled: Integers, precision: int, scale: int) -> pa.Array:
    """Decimals of these digits, none of them negative.

    >>> decimals(np.array([12345]), 14, 2)[0].as_py()
    Decimal('123.45')
    """
    words = np.zeros((len(unscaled), 2), dtype=np.int64)
    words[:, 0] = unscaled
    buffers = [None, pa.py_buffer(words)]
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(unscaled), buffers)


def dates(days: Integers) -> pa.Array:
    """Dates from days since 1970."""
    return pa.array(days.astype(np.int32), pa.int32()).cast(pa.date32())


def timestamps(micros: Integers) -> pa.Array:
    """Instants from microseconds since 1970."""
    return pa.array(micros, pa.timestamp("us", tz="UTC"))


def strings(words: Sequence[str], index: Integers) -> pa.Array:
    """The word of every index."""
    return pa.array(words, pa.string()).take(pa.array(index))


def zipf(values: int, skew: float) -> NDArray[np.float64]:
    """Shares of the values 0, 1, …: that of k falls as (k + 1)^-skew."""
    weights = np.arange(1, values + 1, dtype=np.float64) ** -skew
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def drawn(random: np.random.Generator, shares: NDArray[np.float64], count: int) -> Integers:
    """`count` indexes by their shares."""
    bounds = np.cumsum(shares)
    index = np.searchsorted(bounds, random.random(count) * bounds[-1], side="right")
    inside: Integers = np.minimum(index, len(shares) - 1).astype(np.int64)
    return inside
