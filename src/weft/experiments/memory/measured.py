"""Statistics measured on an epoch: groups and Zipf parameter of any attribute set, exactly, when first asked for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weft.experiments.memory.zipf_fit import zipf_exponent
from weft.kernel.node_codes import Attribute, NodeCodes, node_codes


class MeasuredStatistics:
    """As the planner takes them; every set is grouped once."""

    def __init__(self, attributes: Mapping[str, Attribute], rows: int) -> None:
        self._attributes = attributes
        self._rows = rows
        self._known: dict[frozenset[str], tuple[float, float]] = {}

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

    def frequencies(self, node: frozenset[str]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Rows of every group, the most frequent first."""
        return np.sort(np.bincount(self.codes(node).groups))[::-1]

    def _measured(self, node: frozenset[str]) -> tuple[float, float]:
        if node not in self._known:
            counts = np.bincount(self.codes(node).groups)
            self._known[node] = float(len(counts)), zipf_exponent(counts)
        return self._known[node]
