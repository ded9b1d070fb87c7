"""Groups in fewer rows than were sampled: the average over all runs of n consecutive rows.

A fragment holds consecutive rows, and keys come and go (auctions end, sessions expire), so rows must
not be treated as exchangeable. The sample is a stretch of the stream in the order of event time, and
D(n) is its average working set (Denning and Schwartz, CACM 1972, equation 4), without the error
that they neglect at both ends: of all m - n + 1 runs of n rows, a run counts row i as the last of its
value if it holds i but not the next row of that value, next(i). That is the case for the starts s with

    max(0, i - n + 1) <= s <= min(i, next(i) - n, m - n),

and D(n) is the number of such (i, s) over the number of runs.

Exact for the sample, no model. D(1) = 1, D(m) = the distinct values; D rises with n: a run of n + 1
rows holds two of n rows, and the average of the larger of neighbours is at least the average. A
finer key has later next rows, so at least as many groups. Between whole n linear. O(m log m) to order
the rows, O(m) for every n.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class WorkingSet:
    """For every row of a stretch the place of the next row of the same value, far off if none.

    >>> pairs = WorkingSet.of_values(np.array([1, 1, 2, 2]))
    >>> pairs.groups(2), pairs.groups(4)  # runs of two rows: 11, 12, 22
    (1.333..., 2.0)
    """

    nexts: NDArray[np.int64]

    @staticmethod
    def of_values(column: NDArray[Any]) -> WorkingSet:
        """From the values of consecutive rows."""
        codes = pa.array(column).dictionary_encode().indices.to_numpy()
        few = len(codes) < 1 << 16  # then codes are sorted by counting
        order = np.argsort(codes.astype(np.uint16) if few else codes, kind="stable")
        same = codes[order[1:]] == codes[order[:-1]]
        nexts = np.full(len(codes), 2 * len(codes), np.int64)
        nexts[order[:-1][same]] = order[1:][same]
        return WorkingSet(nexts)

    @property
    def rows(self) -> int:
        return len(self.nexts)

    def groups(self, rows: float) -> float:
        """The average number of groups in `rows` consecutive rows, 1 <= rows <= self.rows."""
        whole = floor(rows)
        low = self._average(whole)
        if rows == whole:
            return low
        return low + (rows - whole) * (self._average(whole + 1) - low)

    def _average(self, rows: int) -> float:
        places = np.arange(self.rows)
        runs = self.rows - rows + 1
        first = np.maximum(places - rows + 1, 0)
        last = np.minimum(np.minimum(places, self.nexts - rows), runs - 1)
        return float(np.maximum(last - first + 1, 0).sum() / runs)
