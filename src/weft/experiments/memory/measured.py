"""Statistics measured on an epoch: groups and Zipf parameter of any attribute set, exactly, when
first asked for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from weft.experiments.memory.node_codes import Attribute, NodeCodes, node_codes
from weft.experiments.memory.zipf_fit import zipf_exponent

Floats = NDArray[np.float64]


class MeasuredStatistics:
    """As the planner takes them; every set is grouped once."""

    def __init__(self, attributes: Mapping[str, Attribute], rows: int) -> None:
        self._attributes = attributes
        self._rows = rows
        self._known: dict[frozenset[str], tuple[float, float, Floats, Floats]] = {}

    @property
    def tuples(self) -> float:
        return float(self._rows)

    def groups(self, node: frozenset[str]) -> float:
        return self._measured(node)[0]

    def alpha(self, node: frozenset[str]) -> float:
        return self._measured(node)[1]

    def entry_size(self, node: frozenset[str]) -> float:
        return 1.0

    def codes(self, node: frozenset[str]) -> NodeCodes:
        """The group of every row."""
        return node_codes(node, self._attributes, None, self._rows)

    def frequencies(self, node: frozenset[str]) -> NDArray[np.int64]:
        """Rows of every group, the most frequent first."""
        return np.sort(np.bincount(self.codes(node).groups))[::-1]

    def frequency_table(self, node: frozenset[str]) -> tuple[Floats, Floats]:
        """Frequencies, and how many groups have each."""
        return self._measured(node)[2:]

    def _measured(self, node: frozenset[str]) -> tuple[float, float, Floats, Floats]:
        if node not in self._known:
            counts = np.bincount(self.codes(node).groups)
            frequency, groups = np.unique(counts, return_counts=True)
            table = frequency.astype(np.float64), groups.astype(np.float64)
            self._known[node] = float(len(counts)), zipf_exponent(counts), *table
        return self._known[node]
