"""How often values occur in a sample: f_j is the number of values that occur exactly j times.

All that can be told of the skew of a law from rows whose order does not matter (the "profile"; Good
1953). Time O(rows), space O(sqrt(rows)): m rows have at most sqrt(2 m) different counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Frequencies:
    """`values[i]` values occur `times[i]` times each; times ascend.

    >>> seen = Frequencies.of_counts([1, 1, 2, 5])
    >>> seen.rows, seen.distinct, seen.exactly(1)
    (9, 4, 2)
    """

    times: NDArray[np.int64]
    values: NDArray[np.int64]

    @staticmethod
    def of_counts(counts: Sequence[int] | NDArray[Any]) -> Frequencies:
        """From the number of rows of every value."""
        times, values = np.unique(np.asarray(counts, np.int64), return_counts=True)
        return Frequencies(times, values.astype(np.int64))

    @staticmethod
    def of_values(column: NDArray[Any]) -> Frequencies:
        """From a column of values, one per row."""
        counts = pc.value_counts(pa.array(column)).field("counts")
        return Frequencies.of_counts(counts.to_numpy(zero_copy_only=False))

    @cached_property
    def rows(self) -> int:
        return int(self.times @ self.values)

    @cached_property
    def distinct(self) -> int:
        return int(self.values.sum())

    def exactly(self, times: int) -> int:
        """f_j for one j."""
        return int(self.values[self.times == times].sum())
