"""Time split into atoms, so that the edge rate of any union of edge sets is a short sum.

weft's own. An *atom* is a set of times that every edge set covers as a whole or not at all, or with
one chance that is independent of everything else. Then the rate of a union is

    Σ over atoms g   weight(g) · (1 - Π over families f that cover g (1 - chance(f)))

where a *family* is a factor u that its slides have in common and no other slide has: of the times of
an atom the share 1 / u are multiples of u, independently of the atom and of all other families
(Chinese remainder theorem). So an edge set is: its atoms, its family, and the family's chance; family
0 is that of slides without such a factor, and has the chance 1.

Three ways, by the edge sets:
1. All edges are multiples of the slides: the atoms are the patterns of the powers that divide a time. With
   slides up to 50 these are 216 atoms (powers of 2, 3, 5, 7) and 11 families (11 to 47). Exact.
2. A composite slide of up to 65,536: its times, those that the same sets cover together. Exact.
3. Else the points of a `CoverPool`: a guess of about one per cent, to lead a search with.
Time and space: O(edge sets · atoms).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from weft.algebra.window import EdgeClass
from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.coprime_base import coprime_base
from weft.optimizer.edges.cover_pool import CoverPool
from weft.optimizer.edges.edge_bitset import composite_slide
from weft.optimizer.edges.slices import base_pane
from weft.optimizer.edges.workload import Workload

MOST_ATOMS = 4096
_MOST_MARKS = 1 << 24
_LONGEST_PERIOD = 1 << 16

Integers = NDArray[np.int64]
Classes = tuple[EdgeClass, ...]


@dataclass(frozen=True, eq=False)
class EdgeAtoms:
    """The atoms of a workload: edge set e covers `atoms[begins[e]:begins[e + 1]]`."""

    weights: Floats
    """The rate of the times of each atom, per unit of time."""
    begins: Integers
    atoms: Integers
    family: Integers
    """Of each edge set."""
    chances: Floats
    """Of each family."""
    rates: Floats
    """The edge rate of each edge set alone, always exact."""
    exact: bool
    """Whether rates of unions are exact, but for rounding."""

    def union(self, edge_sets: Iterable[int]) -> float:
        """The edge rate of some sets together: plain, to check faster code against.

        >>> from weft.algebra.window import Window
        >>> from weft.optimizer.edges.workload import Windowed
        >>> windows = [Windowed("a", Window(4, 2)), Windowed("b", Window(9, 3))]
        >>> round(edge_atoms(Workload.of(windows)).union([0, 1]), 9)
        0.666666667
        """
        covered = np.zeros((len(self.chances), len(self.weights)), dtype=np.bool_)
        for edge_set in edge_sets:
            atoms = self.atoms[self.begins[edge_set] : self.begins[edge_set + 1]]
            covered[self.family[edge_set], atoms] = True
        missed = np.prod(1 - covered * self.chances[:, None], axis=0)
        return float(self.weights @ (1 - missed))


_atoms: WeakKeyDictionary[Workload, EdgeAtoms] = WeakKeyDictionary()


def edge_atoms(workload: Workload) -> EdgeAtoms:
    """The atoms of a workload, made once."""
    if workload not in _atoms:
        _atoms[workload] = _made(workload)
    return _atoms[workload]


def _made(workload: Workload) -> EdgeAtoms:
    pane, offset = base_pane(edge for edge_set in workload.edge_sets for edge in edge_set)
    sets: list[Classes] = [
        tuple(EdgeClass(e.slide // pane, (e.residue - offset) // pane) for e in edge_set)
        for edge_set in workload.edge_sets
    ]
    rates = workload.set_rates
    if all(len(classes) == 1 and not classes[0].residue for classes in sets):
        lattice = _Lattice([classes[0].slide for classes in sets])
        if lattice.size <= MOST_ATOMS:
            weights = lattice.weights() * (workload.unit / pane)
            return _of_rows(weights, lattice.covers(), lattice.family, lattice.chances, rates)
    plain = np.zeros(len(sets), dtype=np.int64), np.ones(1)
    longest = min(_LONGEST_PERIOD, _MOST_MARKS // len(sets))
    period = composite_slide([edge for classes in sets for edge in classes], longest)
    if period is not None:
        weights, covers = _of_one_period(sets, period)
        return _of_rows(weights * (workload.unit / pane), covers, *plain, rates)
    pool = CoverPool(sets, rates * (pane / workload.unit))
    counts = [len(points) for points in pool.points]
    return EdgeAtoms(
        weights=pool.weights * (workload.unit / pane),
        begins=np.cumsum([0, *counts]),
        atoms=np.concatenate(pool.points),
        family=plain[0],
        chances=plain[1],
        rates=rates,
        exact=False,
    )


def _of_rows(
    weights: Floats, covers: NDArray[np.bool_], family: Integers, chances: Floats, rates: Floats
) -> EdgeAtoms:
    begins = np.append(0, np.cumsum(np.count_nonzero(covers, axis=1)))
    # A copy, since compiled loops would be compiled once more for strided columns.
    atoms = np.ascontiguousarray(np.nonzero(covers)[1])
    return EdgeAtoms(weights, begins, atoms, family, chances, rates, exact=True)


def _of_one_period(sets: Sequence[Classes], period: int) -> tuple[Floats, NDArray[np.bool_]]:
    """All times of one composite slide; those that the same sets cover are one atom."""
    times = np.arange(period)
    covers = np.zeros((len(sets), period), dtype=np.bool_)
    for row, classes in zip(covers, sets):
        for edge in classes:
            row |= times % edge.slide == edge.residue
    patterns = np.ascontiguousarray(np.packbits(covers, axis=0).T)
    keys = patterns.view([("", patterns.dtype)] * patterns.shape[1]).ravel()
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return counts / period, covers[:, first]


class _Lattice:
    """Slides whose edges are their multiples: patterns of the powers that divide a time."""

    def __init__(self, slides: Sequence[int]) -> None:
        parts = coprime_base(slides)
        self._slides = slides
        self._powers = {slide: dict(parts[slide]) for slide in slides}
        levels: dict[int, set[int]] = {}
        for powers in self._powers.values():
            for element, power in powers.items():
                levels.setdefault(element, set()).add(power)
        families = self._families(levels)
        self._levels = {
            element: sorted(powers)
            for element, powers in sorted(levels.items())
            if element not in families
        }
        self.size = int(np.prod([len(powers) + 1.0 for powers in self._levels.values()] or [1.0]))
        numbers = {element: number for number, element in enumerate(families, 1)}
        self.family = np.array(
            [max(numbers.get(element, 0) for element in (0, *self._powers[s])) for s in slides]
        )
        self.chances = np.array([1.0, *(1 / next(iter(levels[element])) for element in families)])

    def _families(self, levels: dict[int, set[int]]) -> list[int]:
        """Elements of one power only, no two of them in one slide; the rarest are taken first."""
        slides_of: dict[int, set[int]] = {element: set() for element in levels}
        for slide in set(self._slides):
            for element in self._powers[slide]:
                slides_of[element].add(slide)
        taken: set[int] = set()
        families: list[int] = []
        for element in sorted(levels, key=lambda element: (len(slides_of[element]), -element)):
            if len(levels[element]) == 1 and not slides_of[element] & taken:
                families.append(element)
                taken |= slides_of[element]
        return families

    def weights(self) -> Floats:
        """The share of times with each pattern."""
        shares = np.ones(1)
        for powers in self._levels.values():
            reach = [1.0, *(1 / power for power in powers), 0.0]
            exactly = np.array([more - less for more, less in pairwise(reach)])
            shares = np.multiply.outer(shares, exactly).ravel()
        return shares

    def covers(self) -> NDArray[np.bool_]:
        """For each slide the patterns of its multiples, without regard to its family."""
        rows = np.ones((len(self._slides), 1), dtype=np.bool_)
        for element, powers in self._levels.items():
            needed = np.array([self._powers[slide].get(element, 1) for slide in self._slides])
            reached = np.array([1, *powers])[None, :] >= needed[:, None]
            rows = (rows[:, :, None] & reached[:, None, :]).reshape(len(rows), -1)
        return rows
