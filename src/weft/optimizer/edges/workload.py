"""The windows of many queries, with those of equal edges taken together.

Two windows with the same edges always belong into one group: put both into the one of the two
groups that has fewer edges; its edges stay the same, the other group's become no more, and both
queries now pay for the fewer. So an optimizer sees distinct *edge sets* only, each with the sum of
its queries' overlap factors: a million queries over a hundred slides are a hundred edge sets.

An edge set has one class, or two of the same slide. Two residues half a slide apart are one class
of half the slide, so that equal sets have equal classes. Edge sets are in order of their classes,
whatever the order of the queries; ties between plans are broken by this order.
Time: O(n log n) in NumPy for n queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.algebra.window import EdgeClass, Window
from weft.errors import TableError
from weft.optimizer.edges.edges import EdgeRate, edge_rate

LARGEST = 1 << 61
"""Ranges and slides are below this, so that their sums fit 64 bits."""

MOST_EDGE_SETS = 11_000
"""More are refused: the optimizers' memory and time grow with the square, to 1 GiB here."""


@dataclass(frozen=True, slots=True)
class Windowed:
    """A query as far as window sharing goes."""

    name: str
    window: Window


@dataclass(frozen=True, eq=False)
class Workload:
    """Queries by name, the edge set of each, and for each edge set its classes and weight.

    Times are whole ticks, `unit` of them in the unit of time that rates refer to.
    """

    names: Sequence[str]
    edge_set_of: NDArray[np.int64]
    overlap_of: NDArray[np.float64]
    """range / slide of each query."""
    edge_sets: tuple[tuple[EdgeClass, ...], ...]
    overlaps: tuple[Fraction, ...]
    result_rate: float
    unit: int = 1

    @classmethod
    def of(cls, queries: Iterable[Windowed], unit: int = 1) -> Workload:
        """From queries.

        >>> workload = Workload.of([Windowed("a", Window(8, 5)), Windowed("b", Window(13, 5))])
        >>> workload.edge_sets, workload.overlaps
        (((EdgeClass(slide=5, residue=0), EdgeClass(slide=5, residue=3)),), (Fraction(21, 5),))
        """
        listed = list(queries)
        windows = [query.window for query in listed]
        return cls.of_columns(
            [query.name for query in listed],
            [window.range for window in windows],
            [window.slide for window in windows],
            [window.start for window in windows],
            unit,
        )

    @classmethod
    def of_columns(
        cls,
        names: Sequence[str],
        ranges: Sequence[int] | NDArray[np.int64],
        slides: Sequence[int] | NDArray[np.int64],
        starts: Sequence[int] | NDArray[np.int64] | None = None,
        unit: int = 1,
    ) -> Workload:
        """From columns of whole numbers; they must make valid windows."""
        length = np.asarray(ranges, dtype=np.int64)
        slide = np.asarray(slides, dtype=np.int64)
        start = np.zeros_like(slide) if starts is None else np.asarray(starts, dtype=np.int64)
        if not len(names):
            raise ValueError("a workload has at least one query")
        if not len(names) == len(length) == len(slide) == len(start):
            raise ValueError("the columns differ in length")
        if length.min() <= 0 or slide.min() <= 0 or max(length.max(), slide.max()) >= LARGEST:
            raise ValueError(f"ranges and slides must be positive and below {LARGEST}")
        if (np.abs(start) >= slide).any():
            raise ValueError("a start must be shorter than the slide")
        keys = _canonical(slide, start % slide, (start + length) % slide)
        distinct, edge_set_of = _distinct_rows(keys)
        return cls(
            names=names,
            edge_set_of=edge_set_of,
            overlap_of=length / slide,
            edge_sets=tuple(_classes(*row) for row in distinct.T.tolist()),
            overlaps=_overlaps(edge_set_of, distinct.shape[1], length, slide),
            result_rate=float((unit / slide).sum()),
            unit=unit,
        )

    @cached_property
    def set_rates(self) -> NDArray[np.float64]:
        """The edge rate of each edge set alone, per unit of time."""
        return np.array([self.unit * len(classes) / classes[0].slide for classes in self.edge_sets])

    @property
    def queries(self) -> int:
        return len(self.names)

    def require_plannable(self) -> None:
        """Refuse what would take too much memory."""
        if len(self.edge_sets) > MOST_EDGE_SETS:
            raise TableError("TOO_MANY_WINDOWS", count=len(self.edge_sets), most=MOST_EDGE_SETS)

    @cached_property
    def edge_rate(self) -> EdgeRate:
        """Of all queries together (E of equation 4), per unit of time."""
        self.require_plannable()
        return self.edge_rate_of(range(len(self.edge_sets)))

    def edge_rate_of(self, edge_sets: Iterable[int]) -> EdgeRate:
        """Of some edge sets, per unit of time."""
        key = frozenset(edge_sets)
        rate = self._edge_rates.get(key)
        if rate is None:
            classes = {edge for edge_set in key for edge in self.edge_sets[edge_set]}
            rate = self._edge_rates[key] = edge_rate(classes).per(self.unit)
        return rate

    @cached_property
    def _edge_rates(self) -> dict[frozenset[int], EdgeRate]:
        return {}

    @cached_property
    def members(self) -> tuple[NDArray[np.int64], ...]:
        """The queries of each edge set, by position."""
        order = np.argsort(self.edge_set_of, kind="stable")
        counts = np.bincount(self.edge_set_of, minlength=len(self.edge_sets))
        return tuple(np.split(order, np.cumsum(counts)[:-1]))


def _canonical(
    slide: NDArray[np.int64], opening: NDArray[np.int64], closing: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows (slide, residue, other residue or -1) that are equal where the edges are."""
    low, high = np.minimum(opening, closing), np.maximum(opening, closing)
    halves = (high - low) * 2 == slide
    slide = np.where(halves, slide // 2, slide)
    return np.stack([slide, low, np.where(halves | (low == high), -1, high)])


def _distinct_rows(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct columns of `keys` in order, and for each column which of them it is."""
    order = np.lexsort(keys[::-1])
    ordered = keys[:, order]
    changes = np.append(True, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0))
    column_of = np.empty(keys.shape[1], dtype=np.int64)
    column_of[order] = np.cumsum(changes) - 1
    return ordered[:, changes], column_of


def _classes(slide: int, low: int, high: int) -> tuple[EdgeClass, ...]:
    first = EdgeClass(slide, low)
    return (first,) if high < 0 else (first, EdgeClass(slide, high))


def _overlaps(
    edge_set_of: NDArray[np.int64],
    count: int,
    ranges: NDArray[np.int64],
    slides: NDArray[np.int64],
) -> tuple[Fraction, ...]:
    """The sum of range / slide for each edge set (equation 2), exactly."""
    distinct, column_of = _distinct_rows(np.stack([edge_set_of, slides]))
    kind: Any = np.int64 if int(ranges.max()) * len(ranges) < LARGEST else object
    totals = np.zeros(distinct.shape[1], dtype=kind)
    np.add.at(totals, column_of, ranges.astype(kind))
    overlaps = [Fraction(0)] * count
    for (edge_set, slide), total in zip(distinct.T.tolist(), totals.tolist()):
        overlaps[edge_set] += Fraction(total, slide)
    return tuple(overlaps)
