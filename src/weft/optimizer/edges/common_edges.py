"""Rates of single edge sets, and of the edges that two of them have in common, in bulk.

Two classes of slides a and b with gcd g meet if their residues agree modulo g, and then at the rate
1 / lcm = g / (a·b) (Chinese remainder theorem). The two classes of one edge set are disjoint, so
the common edges of two sets are the sum over their (at most four) pairs of classes.
Time and space: O(rows · edge sets), in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weft.algebra.window import EdgeClass

Floats = NDArray[np.float64]


class CommonEdges:
    """Edge sets as columns: slide, residue, and the other residue or -1."""

    def __init__(self, edge_sets: Sequence[tuple[EdgeClass, ...]], unit: int = 1) -> None:
        self._unit = unit
        self._slides = np.array([edge_set[0].slide for edge_set in edge_sets], dtype=np.int64)
        self._first = np.array([edge_set[0].residue for edge_set in edge_sets], dtype=np.int64)
        self._second = np.array([edge_set[-1].residue for edge_set in edge_sets], dtype=np.int64)
        self._double = np.array([len(edge_set) == 2 for edge_set in edge_sets])
        self.rates: Floats = (1.0 + self._double) * unit / self._slides

    def rows(self, low: int, high: int, begin: int = 0) -> Floats:
        """Rates of the edges that sets [low, high) have in common with those from `begin` on.

        >>> pair = (EdgeClass(5, 0), EdgeClass(5, 3)), (EdgeClass(4, 0), EdgeClass(4, 1))
        >>> CommonEdges(pair).rows(0, 2)
        array([[0.4, 0.2],
               [0.2, 0.5]])
        """
        slides, others = self._slides[low:high, None], self._slides[None, begin:]
        divisors = np.gcd(slides, others)
        ours = self._first[low:high, None], self._second[low:high, None]
        theirs = self._first[None, begin:], self._second[None, begin:]
        meeting = _meet(ours[0], theirs[0], divisors)
        if self._double.any():
            doubles = self._double[None, begin:]
            meeting += _meet(ours[0], theirs[1], divisors) * doubles
            second = _meet(ours[1], theirs[0], divisors)
            second += _meet(ours[1], theirs[1], divisors) * doubles
            meeting += second * self._double[low:high, None]
        return meeting * (divisors / slides) * (self._unit / others)


def _meet(
    ours: NDArray[np.int64], theirs: NDArray[np.int64], divisors: NDArray[np.int64]
) -> NDArray[np.int8]:
    """Where classes with these residues have common times."""
    apart = ours - theirs
    if not apart.any():
        return np.ones(apart.shape, dtype=np.int8)
    agree: NDArray[np.int8] = (apart % divisors == 0).astype(np.int8)
    return agree
