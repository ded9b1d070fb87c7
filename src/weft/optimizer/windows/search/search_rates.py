"""Edge rates in floats for the optimizers' searches: fast, and always the same.

An optimizer asks for the rates of thousands of sets, most of them small. Rates are counted
(`edge_bitset`, `edge_counting`) and remembered; where counting takes too many steps the set is
guessed from sample times (`cover_pool`, about one per cent). A search may be led by such a guess: the
rates and the cost that a plan states are computed by `edges`, with its guarantees.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from weft.algebra.window import EdgeClass
from weft.optimizer.edges.common_edges import CommonEdges, Floats
from weft.optimizer.edges.cover_pool import CoverPool
from weft.optimizer.edges.edge_bitset import composite_slide, count_edges
from weft.optimizer.edges.edge_counting import EdgeCounter, OutOfSteps
from weft.optimizer.edges.edges import without_contained
from weft.optimizer.edges.slices import base_pane
from weft.optimizer.edges.workload import Workload

_SMALL_PERIOD = 1 << 12
_STEPS_OF_MULTIPLES = 40_000
_STEPS = 6_000
_STEPS_OF_A_GUESS = 1500
_MOST_UNLIKE_CLASSES = 150
FLOAT64_SETS = 4096


class SearchRates:
    """Rates, per unit of time, of the edge sets of one workload and of their unions."""

    def __init__(self, workload: Workload) -> None:
        self._unit = workload.unit
        pane, offset = base_pane(edge for edge_set in workload.edge_sets for edge in edge_set)
        self._pane = pane
        self._sets = [
            tuple(EdgeClass(e.slide // pane, (e.residue - offset) // pane) for e in edge_set)
            for edge_set in workload.edge_sets
        ]
        self._common = CommonEdges(workload.edge_sets, workload.unit)
        self._counter = EdgeCounter(1.0, {edge_set[0].slide for edge_set in self._sets})
        self._single = all(len(edge_set) == 1 for edge_set in self._sets)
        self._most_steps = _STEPS_OF_MULTIPLES if self._single else _STEPS
        self._known: dict[frozenset[int], float] = {}
        self.rates: Floats = self._common.rates
        self.overlaps: Floats = np.array([float(edge_set) for edge_set in workload.overlaps])
        self.guessed = False
        """Whether any rate so far was too long to count."""
        self.work = 0
        """Steps of counting so far: what a search has cost, the same on every machine."""

    def __len__(self) -> int:
        return len(self._sets)

    @cached_property
    def pool(self) -> CoverPool:
        """Sample edges of all sets."""
        return CoverPool(self._sets, self.rates)

    def common(self) -> NDArray[np.floating]:
        """The rates of the edges that any two sets have in common, not to be changed.

        For many sets in 32 bits, rounded up, so that they still are bounds.
        """
        return self._small_common if len(self) <= FLOAT64_SETS else self._common_matrix(np.float32)

    @cached_property
    def _small_common(self) -> NDArray[np.floating]:
        return self._common_matrix(np.float64)

    def _common_matrix(self, kind: type[np.floating]) -> NDArray[np.floating]:
        count = len(self)
        matrix = np.empty((count, count), dtype=kind)
        low = 0
        while low < count:
            high = min(low + max(1, (1 << 21) // (count - low)), count)
            rows = self._common.rows(low, high, begin=low).astype(kind)
            if kind is np.float32:
                rows = np.nextafter(rows, np.float32(np.inf))
            matrix[low:high, low:] = rows
            matrix[low:, low:high] = rows.T
            low = high
        return matrix

    def common_row(self, edge_set: int) -> NDArray[np.floating]:
        """One row of that matrix, in 64 bits."""
        if len(self) <= FLOAT64_SETS:
            row: NDArray[np.floating] = self._small_common[edge_set]
            return row
        return np.asarray(self._common.rows(edge_set, edge_set + 1)[0])

    def union(self, edge_sets: Iterable[int]) -> float:
        """The rate of all edges of the sets."""
        key = edge_sets if isinstance(edge_sets, frozenset) else frozenset(edge_sets)
        if len(key) == 1:
            return float(self.rates[next(iter(key))])
        rate = self._known.get(key)
        if rate is None:
            rate = self._share(key) * self._unit / self._pane
            self._known[key] = rate
        return rate

    def _share(self, edge_sets: frozenset[int]) -> float:
        self.work += len(edge_sets)
        classes = without_contained(edge for edge_set in edge_sets for edge in self._sets[edge_set])
        period = composite_slide(classes, _SMALL_PERIOD)
        if period is not None:
            return count_edges(classes, period) / period
        # So many classes of unlike residues would run out of steps.
        if self._single or len(classes) <= _MOST_UNLIKE_CLASSES:
            try:
                return self._counter.covered(classes, self._most_steps)
            except OutOfSteps:
                pass
            finally:
                self.work += self._counter.steps
        self.guessed = True
        self.work += _STEPS_OF_A_GUESS
        return self.pool.union(edge_sets) * self._pane / self._unit


_rates: WeakKeyDictionary[Workload, SearchRates] = WeakKeyDictionary()


def search_rates(workload: Workload) -> SearchRates:
    """The rates of a workload; all optimizers share what one of them has counted."""
    if workload not in _rates:
        _rates[workload] = SearchRates(workload)
    return _rates[workload]
