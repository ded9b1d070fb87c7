"""The coalescing rule (AggJoin, definition 5): partials that stand for n joined copies of their rows.

Counts, sums and moments multiply. Extremes and sketches of distinct values do not change. Sketches of
quantiles have no such operation: an input with one is joined late.

Preconditions: copies are positive. Sums of BIGINT are wide (`add_wide`), so that overflow is judged on
the final value; beyond 2^94 a product is refused here. Groups add products up, which must not wrap around unseen either (`check_sums`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.algebra.partial import Partial
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import LIMBS, Stored
from weft.kernel.failure import QueryFailure

UNCHANGED: Final = frozenset({"min", "max", "hll"})
SCALABLE: Final = UNCHANGED | {"add", "add_wide", "add_decimal", "add_float", "moments"}
"""The operations whose partials can stand for many copies."""

_TWO_32 = 1 << 32
_FEW = 1 << 31
_MOST = 1 << 62
"""What a count of joined rows is below."""
_LIMIT = float(1 << 63)


def scaled(partial: Partial, stored: Stored, copies: Array) -> Stored:
    """The partials of so many copies of each row."""
    name = partial.combine.name
    if name in UNCHANGED or (copies == 1).all():
        return stored
    if name == "add":
        return (counted(stored[0], copies),)
    if name == "add_wide":
        return _wide(stored, copies)
    if name == "add_decimal":
        return _decimal(stored, copies)
    factors = copies.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if name == "add_float":
            return (stored[0] * factors,)
        if name == "moments":
            count, mean, squares = stored
            return (count * factors, mean, squares * factors)
    raise ValueError(f"no copies of {name}")


def counted(counts: Array, copies: Array) -> Array:
    """Products of counts.

    >>> counted(np.array([2, 3]), np.array([5, 1])).tolist()
    [10, 3]
    """
    largest = max(abs(int(counts.max(initial=0))), abs(int(counts.min(initial=0))))
    if largest * int(copies.max(initial=0)) >= _MOST:
        with np.errstate(over="ignore"):
            if (np.abs(counts.astype(np.float64)) * copies.astype(np.float64) >= _MOST).any():
                raise _too_large()
    product: Array = counts * copies
    return product


def _wide(stored: Stored, copies: Array) -> Stored:
    """High and low halves. The low ones carry first, so that few copies cannot overflow."""
    high, low = stored[0] + (stored[1] >> 32), stored[1] & (_TWO_32 - 1)
    if int(copies.max(initial=0)) < _FEW and int(np.abs(high).max(initial=0)) < _TWO_32:
        # Low halves carry again, so that many of them can be added up.
        low = low * copies
        return high * copies + (low >> 32), low & (_TWO_32 - 1)
    values = (high.astype(object) * _TWO_32 + low) * copies.astype(object)
    _check(values, 94)
    return (
        np.array([value >> 32 for value in values], np.int64),
        np.array([value & (_TWO_32 - 1) for value in values], np.int64),
    )


def _decimal(stored: Stored, copies: Array) -> Stored:
    values = np.zeros(len(copies), object)
    for place in range(LIMBS):
        values = values + stored[place].astype(object) * (1 << 32 * place)
    values = values * copies.astype(object)
    _check(values, 32 * LIMBS + 30)
    digits = [
        np.array([(value >> 32 * place) & (_TWO_32 - 1) for value in values], np.int64)
        for place in range(LIMBS - 1)
    ]
    last = np.array([value >> 32 * (LIMBS - 1) for value in values], np.int64)
    return (*digits, last, counted(stored[LIMBS], copies))


def _check(values: Array, bits: int) -> None:
    if any(abs(value) >> bits for value in values):
        raise _too_large()


def check_sums(partial: Partial, stored: Stored, low: Array) -> None:
    """Raises if what is added up in runs, which begin at `low`, could wrap around."""
    if partial.combine.name not in ("add", "add_wide", "add_decimal") or not len(low):
        return
    for values in stored:
        largest = max(abs(int(values.max())), abs(int(values.min())))
        if largest * len(values) >= _LIMIT:
            sums = np.add.reduceat(np.abs(values.astype(np.float64)), low)
            if (sums >= _LIMIT).any():
                raise _too_large()


def _too_large() -> QueryFailure:
    message = "a count or a sum of joined rows is too large: more than 64 bits can hold"
    return QueryFailure("ARITHMETIC_OVERFLOW", message)
