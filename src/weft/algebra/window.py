"""Windows and their edges (paired windows of the TriOps paper, section II-B).

A window of range r, slide s and start o covers [o + k*s, o + k*s + r) for every integer k.
Its edges, the times where a partial aggregate must end, are the times congruent to o and
to o + r modulo s: one class if s divides r, else two. All times are UTC microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class EdgeClass:
    """All times congruent to `residue` modulo `slide`.

    >>> EdgeClass(5, 3).contains(EdgeClass(10, 8))
    True
    """

    slide: int
    residue: int

    def contains(self, other: EdgeClass) -> bool:
        """Whether every time of `other` is also a time of this class."""
        return other.slide % self.slide == 0 and other.residue % self.slide == self.residue


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A sliding (range > slide), tumbling (equal) or sampling (range < slide) window.

    >>> Window(8, 5).edges(1, 14)       # example 2 of the TriOps paper
    [3, 5, 8, 10, 13]
    >>> Window(5, 4).edges(1, 13)
    [1, 4, 5, 8, 9, 12]
    """

    range: int
    slide: int
    start: int = 0

    def __post_init__(self) -> None:
        if self.range <= 0 or self.slide <= 0:
            raise ValueError(f"window range and slide must be positive: {self}")
        if abs(self.start) >= self.slide:
            raise ValueError(f"window start must be shorter than the slide: {self}")

    @property
    def edge_classes(self) -> tuple[EdgeClass, ...]:
        opening = EdgeClass(self.slide, self.start % self.slide)
        closing = EdgeClass(self.slide, (self.start + self.range) % self.slide)
        return (opening,) if opening == closing else (opening, closing)

    @property
    def end_residue(self) -> int:
        return (self.start + self.range) % self.slide

    @property
    def overlap(self) -> float:
        """How many windows a row is in: range / slide."""
        return self.range / self.slide

    def first_end_after(self, time: int) -> int:
        """The smallest window end that is greater than `time`.

        >>> Window(10, 4).first_end_after(10)
        14
        """
        return time + self.slide - (time - self.end_residue) % self.slide

    def edges(self, low: int, high: int) -> list[int]:
        """All edges t with low <= t < high, in order (for small spans: tests and drawings)."""
        residues = {edge.residue for edge in self.edge_classes}
        return [t for t in range(low, high) if t % self.slide in residues]
