"""The combine operations on arrays.

A column of partials is a tuple of equally long arrays. An `Operation` combines two such
columns element by element, has an identity, and scans blocks along their last axis; that
is all that `ranges` needs. `combine` is associative and commutative up to float rounding. Of a
`costly` one, scans are given as few values as will do. Sketches have theirs in `sketches`.

| operation | arrays |
|---|---|
| add_float | sum |
| min, max | codes whose order is the order of the values (see `codes`) |
| moments | n, mean, m2 (Chan's parallel update) |
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = tuple[Array, ...]

LOWEST: Final = np.iinfo(np.int64).min
HIGHEST: Final = np.iinfo(np.int64).max


class Operation(Protocol):
    """An associative operation with identity on columns."""

    @property
    def costly(self) -> bool: ...
    def identity(self, shape: tuple[int, ...]) -> Arrays: ...
    def combine(self, left: Arrays, right: Arrays) -> Arrays: ...
    def scan(self, blocks: Arrays) -> Arrays: ...


class UfuncOperation:
    """An operation that NumPy has: one array, one ufunc.

    A sum of floats may be infinite or NaN: that is its value, as in Spark, and no case to warn of.
    NumPy's settings belong to a thread, so they are made where the ufunc is called.
    """

    costly = False

    def __init__(self, ufunc: np.ufunc, neutral: float | int, dtype: type) -> None:
        self._ufunc, self._neutral, self._dtype = ufunc, neutral, dtype

    def identity(self, shape: tuple[int, ...]) -> Arrays:
        return (np.full(shape, self._neutral, self._dtype),)

    def combine(self, left: Arrays, right: Arrays) -> Arrays:
        with np.errstate(over="ignore", invalid="ignore"):
            return (self._ufunc(left[0], right[0]),)

    def scan(self, blocks: Arrays) -> Arrays:
        with np.errstate(over="ignore", invalid="ignore"):
            return (self._ufunc.accumulate(blocks[0], axis=-1),)

    def over_runs(self, column: Arrays, starts: Array) -> Arrays:
        """The combination of each run, from its start to the next one's."""
        with np.errstate(over="ignore", invalid="ignore"):
            return (self._ufunc.reduceat(column[0], starts),)


class Moments:
    """Count, mean and sum of squared differences, combined by Chan's formula."""

    costly = False

    def identity(self, shape: tuple[int, ...]) -> Arrays:
        return (np.zeros(shape), np.zeros(shape), np.zeros(shape))

    def combine(self, left: Arrays, right: Arrays) -> Arrays:
        (n1, mean1, m2_1), (n2, mean2, m2_2) = left, right
        n = n1 + n2
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            delta = mean2 - mean1
            share = np.where(n > 0, n2 / np.where(n > 0, n, 1), 0.0)
            mean = mean1 + delta * share
            m2 = m2_1 + m2_2 + delta * delta * n1 * share
        empty1, empty2 = n1 == 0, n2 == 0
        mean = np.where(empty1, mean2, np.where(empty2, mean1, mean))
        m2 = np.where(empty1, m2_2, np.where(empty2, m2_1, m2))
        return (n, mean, m2)

    def scan(self, blocks: Arrays) -> Arrays:
        """Hillis and Steele: log2(length) rounds of vectorized combines."""
        result = tuple(array.copy() for array in blocks)
        step, length = 1, blocks[0].shape[-1]
        while step < length:
            shifted = tuple(array[..., :-step] for array in result)
            tail = tuple(array[..., step:] for array in result)
            combined = self.combine(shifted, tail)
            result = tuple(
                np.concatenate([array[..., :step], new], axis=-1)
                for array, new in zip(result, combined, strict=True)
            )
            step *= 2
        return result


OPERATIONS: Final[dict[str, Operation]] = {
    "add_float": UfuncOperation(np.add, 0.0, np.float64),
    "min": UfuncOperation(np.minimum, HIGHEST, np.int64),
    "max": UfuncOperation(np.maximum, LOWEST, np.int64),
    "moments": Moments(),
}
