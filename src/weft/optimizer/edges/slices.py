"""Shared time slices: one sequence of fragments for any set of windows.

From: the TriOps paper, section II-C (Shared). Computes the fragments whose ends include
every edge of every window, so that each window is a union of whole fragments.

Preconditions: none. Sound because (1) a class contained in another adds no edge, and
(2) the pane length divides every difference of edges, so every edge ends a pane.
Chooses between two forms: the next edge over the remaining classes, which gives the fewest
fragments and costs one remainder per class and row; or, above `MOST_CLASSES`, base panes,
which cost one remainder per row whatever the number of windows.
Time: O(k²) for k distinct classes, after removing multiples O(k log k) in practice.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from weft.algebra.plan import Fragments
from weft.algebra.window import EdgeClass, Window

MOST_CLASSES = 12
"""Above this many classes one division by a base pane is cheaper (see docs/benchmarks.md)."""


def slices(windows: Iterable[Window]) -> Fragments:
    """The fragments that serve all windows.

    >>> slices([Window(60, 20), Window(30, 10)])
    Fragments(classes=(EdgeClass(slide=10, residue=0),), pane=0, offset=0)
    """
    classes = irreducible(edge for window in windows for edge in window.edge_classes)
    if len(classes) <= MOST_CLASSES:
        return Fragments(classes=classes)
    pane, offset = base_pane(classes)
    return Fragments(pane=pane, offset=offset)


def irreducible(classes: Iterable[EdgeClass]) -> tuple[EdgeClass, ...]:
    """The classes without those that another one contains.

    >>> irreducible([EdgeClass(10, 0), EdgeClass(5, 0), EdgeClass(10, 3)])
    (EdgeClass(slide=5, residue=0), EdgeClass(slide=10, residue=3))
    """
    kept: list[EdgeClass] = []
    for candidate in sorted(set(classes)):
        if not any(other.contains(candidate) for other in kept):
            kept.append(candidate)
    return tuple(kept)


def base_pane(classes: Iterable[EdgeClass]) -> tuple[int, int]:
    """The longest pane and its offset such that every edge ends a pane.

    >>> base_pane([EdgeClass(10, 3), EdgeClass(4, 1)])
    (2, 1)
    """
    first, *rest = classes
    pane = first.slide
    for other in rest:
        pane = gcd(pane, other.slide, other.residue - first.residue)
    return pane, first.residue % pane
