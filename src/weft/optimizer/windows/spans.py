"""Groups by how long their fragments stay open: the optimizer for weft's own cost.

weft's own. The kernel is incremental, so a result costs the same whatever its range, and the
overlap factor Ω leaves the cost. What is left: at every step each group scans its open fragments.
A group of edge rate Eᵢ whose longest range is Rᵢ keeps Eᵢ·(Rᵢ + T) of them for every key, T being
the event time of a step, and there are 1/T steps in a second. With K keys, in seconds per second:

    λ·row + m·F·K·coalesce + Σ Eᵢ·K·(Rᵢ + T)/T·scan + Σ_q K/slide_q·result

where F is the rate of the fragments that level 1 writes: E, or that of base panes if there are
many edge classes. One group may also read these as they are, without level 2 (`as_written`):
then F stands in the place of Eᵢ, and there is no second term.
Only the second and third term depend on the grouping. Sharing is free among windows of like
ranges (edge rates are subadditive); it is not between a one-second alert and a one-day report,
which would keep a day of one-second fragments.

Preconditions: none. Computes the cheapest cut of the windows, in order of their ranges by powers
of two, into runs; optimal among these, not among all partitions. Windows of equal edges are put
where the longest of them is, which costs nothing.
Time: O(b²) edge rates for b powers of two that occur, rarely more than ten; none at all where
ranges differ too little for any cut to pay.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows.calibration import Constants
from weft.optimizer.windows.search.search_rates import search_rates

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class OpenSpans:
    """The cost above, for a workload whose times are in ticks."""

    workload: Workload
    ranges: tuple[int, ...]
    """The longest range of each edge set, in ticks."""
    keys: float
    step: float
    """Units of event time in a step."""
    constants: Constants
    written: float | None = None
    """Fragments that level 1 writes per unit of time, if they are more than the edges."""

    def cost(self, groups: Groups) -> float:
        """Seconds per unit of time at levels 2 and 3, as far as the grouping decides them.

        >>> from weft.algebra.window import Window
        >>> from weft.optimizer.edges.workload import Windowed
        >>> workload = Workload.of([Windowed("a", Window(10, 1)), Windowed("b", Window(1000, 50))])
        >>> costs = OpenSpans(workload, (10, 1000), 1, 1, Constants(1, 1, 1, 1))
        >>> costs.cost(((0, 1),)), round(costs.cost(((0,), (1,))), 3)
        (1001.0, 33.02)
        """
        if len(groups) == 1:
            return min(self._as_written(), self._price() + self._level3(groups[0]))
        return len(groups) * self._price() + sum(self._level3(group) for group in groups)

    @property
    def as_written(self) -> bool:
        """Whether one group does best to read fragments as level 1 writes them."""
        whole = tuple(range(len(self.workload.edge_sets)))
        return self._as_written() <= self._price() + self._level3(whole)

    def _level3(self, group: tuple[int, ...]) -> float:
        longest = max(self.ranges[edge_set] for edge_set in group)
        return search_rates(self.workload).union(group) * self._scans(longest) * self.keys

    def _as_written(self) -> float:
        return self._written * self._scans(max(self.ranges)) * self.keys

    def _scans(self, longest: int) -> float:
        """Seconds for the scans of a fragment of one key while it is open."""
        return (longest / self.workload.unit + self.step) / self.step * self.constants.scan

    @cached_property
    def _written(self) -> float:
        if self.written is not None:
            return self.written
        return search_rates(self.workload).union(range(len(self.workload.edge_sets)))

    def _price(self) -> float:
        return self._written * self.keys * self.constants.coalesce

    def groups(self) -> Groups:
        """The cheapest cut into runs."""
        whole = (tuple(range(len(self.workload.edge_sets))),)
        if self._never_pays():
            return whole
        runs = self._by_magnitude()
        price = self._price()
        least: list[float] = [0.0]
        begin: list[int] = [0]
        for end in range(1, len(runs) + 1):
            costs = [
                least[start] + price + self._level3(tuple(chain.from_iterable(runs[start:end])))
                for start in range(end)
            ]
            begin.append(int(np.argmin(costs)))
            least.append(costs[begin[-1]])
        cut: list[tuple[int, ...]] = []
        end = len(runs)
        while end:
            cut.append(tuple(sorted(chain.from_iterable(runs[begin[end] : end]))))
            end = begin[end]
        return min((whole, tuple(reversed(cut))), key=self.cost)

    def _never_pays(self) -> bool:
        """Whether nothing can cost less than one group that reads fragments as they are written,
        whatever the edge rates. Level 2 costs F for every group. If F is E, two groups or more
        have Σ Eᵢ ≥ E and ranges of at least the shortest; else all of level 3 may be saved."""
        if self.written is None:
            saved = self._scans(max(self.ranges)) - self._scans(min(self.ranges))
            return saved <= 2 * self.constants.coalesce
        return self._scans(max(self.ranges)) <= self.constants.coalesce

    def _by_magnitude(self) -> list[tuple[int, ...]]:
        """Edge sets by the power of two of their ranges, ascending."""
        groups: dict[int, tuple[int, ...]] = {}
        for edge_set, length in enumerate(self.ranges):
            magnitude = length.bit_length()
            groups[magnitude] = (*groups.get(magnitude, ()), edge_set)
        return [groups[magnitude] for magnitude in sorted(groups)]
