"""The sequence of merges that WeaveShare and TriWeave make, lazily and once for all prices.

From: the TriOps paper, Algorithm 1, which is WeaveShare's. Groups start apart; in each step the
pair whose merge lowers the cost most is merged, until none does.

One sequence serves every rate: merging i and j gains price - δ with
δ = E_ij·w_ij - Eᵢ·wᵢ - E_j·w_j, where w is the model's cost of a fragment of the group, and δ
does not depend on the price. So each step takes the least δ, and a plan is the sequence up to the
first merge with δ ≥ price.

Ties: of pairs with equal δ, rounded to 2⁻⁴⁰ of the largest cost, the first in the order of the
groups' first edge sets is merged. Edge sets are in a fixed order, so a workload has one sequence.

Lazy, so that about one exact edge rate is needed for each merge:
1. The common edges of groups A∪B and C are at most those of A and C plus those of B and C, hence
   E_ABC ≥ E_AB + E_C - I_AC - I_BC. A matrix keeps such upper bounds I; for single edge
   sets they are exact. A pair's exact rate is computed when its bound is the least δ.
2. Each group remembers the least bound of its row. When a partner disappears, the old value stays
   as a lower bound, and the row is looked through again only when it comes up.
Both give exactly the merges of looking at all pairs in each step.
Time: O(n²) for the matrix and O(n) per merge and evaluation, in NumPy, plus the edge rates.
Space: n² · 9 bytes (5 above 4096 edge sets).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import frexp, inf
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows.cost import CostModel
from weft.optimizer.windows.search.search_rates import FLOAT64_SETS, SearchRates, search_rates

_TICK = 2.0**-40
MOST_KEPT = 4096
"""Sequences of more edge sets take too much memory to be kept."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Group `second` joins group `first`; groups are named by their place at the start."""

    first: int
    second: int
    increase: float
    """δ: what the cost of fragments grows by."""


class MergeSequence:
    """Merges from given groups on, made as far as they are asked for.

    Groups are tuples of edge sets; without any, each edge set starts alone. `meeting` has, for each
    group, the rates of the edges it has in common with every edge set, or more.
    """

    def __init__(
        self,
        rates: SearchRates,
        per_overlap: float,
        per_fragment: float,
        start: Iterable[Sequence[int]] | None = None,
        meeting: NDArray[np.floating] | None = None,
    ) -> None:
        self._search = rates
        single = [(edge_set,) for edge_set in range(len(rates))]
        self._start = single if start is None else [tuple(group) for group in start]
        self._members: list[frozenset[int]] = [frozenset(group) for group in self._start]
        self._fixed = per_fragment
        count = len(self._start)
        matrix: NDArray[np.floating]
        if start is None:
            matrix = rates.common().copy() if count <= FLOAT64_SETS else rates.common()
            self._rates = rates.rates.copy()
            self._weights = per_fragment + per_overlap * rates.overlaps
            self._exact = np.ones((count, count), dtype=np.bool_)
        else:
            self._rates = np.array([rates.union(group) for group in self._members])
            self._weights = np.array(
                [per_fragment + per_overlap * rates.overlaps[list(g)].sum() for g in self._start]
            )
            matrix = self._between_groups(meeting)
            alone = np.array([len(group) == 1 for group in self._start])
            self._exact = alone[:, None] & alone[None, :]
        self._common = matrix
        np.fill_diagonal(self._exact, False)
        self._alive = np.ones(count, dtype=np.bool_)
        self._place = np.arange(count)
        largest = float(self._weights.sum() * max(self._rates.sum(), 1e-300))
        self._tick = _TICK * 2.0 ** frexp(largest)[1]
        self._least = np.empty(count)
        self._partner = np.zeros(count, dtype=np.int64)
        self._stale = np.zeros(count, dtype=np.bool_)
        for row in range(count):
            self._look_through(row)
        self.merges: list[Merge] = []
        self._next: tuple[int, int] | None = None

    def cut(self, price: float) -> list[tuple[int, ...]]:
        """The groups after all merges up to the first that does not gain at this price."""
        while (pair := self._upcoming()) is not None and self._least[pair[0]] < price:
            self._apply(*pair)
        groups = {number: list(group) for number, group in enumerate(self._start)}
        for merge in self.merges:
            if merge.increase >= price:
                break
            groups[merge.first] += groups.pop(merge.second)
        return [tuple(sorted(group)) for group in groups.values()]

    def _between_groups(self, meeting: NDArray[np.floating] | None) -> NDArray[np.floating]:
        """Upper bounds of common edges between groups, from those with edge sets."""
        if meeting is None:
            common = self._search.common()
            meeting = np.stack([common[list(group)].sum(axis=0) for group in self._start])
        order = [edge_set for group in self._start for edge_set in group]
        bounds = meeting[:, order]
        if len(order) > len(self._start):
            begins = np.cumsum([0, *(len(group) for group in self._start[:-1])])
            bounds = np.add.reduceat(bounds, begins, axis=1)
        smaller = np.minimum(self._rates[:, None], self._rates[None, :])
        return np.asarray(np.minimum(bounds, smaller))

    def _increases(self, row: int) -> NDArray[np.float64]:
        """Lower bounds of δ for one group with every other, rounded; inf where there is none."""
        rate, weight = self._rates[row], self._weights[row]
        union = rate + self._rates - self._common[row]
        increase = union * (weight + self._weights - self._fixed)
        increase -= rate * weight + self._rates * self._weights
        increase = np.rint(increase / self._tick) * self._tick
        increase[~self._alive] = inf
        increase[row] = inf
        return np.asarray(increase, dtype=np.float64)

    def _look_through(self, row: int) -> None:
        increases = self._increases(row)
        self._partner[row] = partner = int(np.argmin(increases))
        self._least[row] = increases[partner]
        self._stale[row] = False

    def _upcoming(self) -> tuple[int, int] | None:
        """The rows of the next merge, which is exact; None if one group is left."""
        while self._next is None:
            row = int(np.argmin(self._least))
            if self._least[row] == inf:
                return None
            if self._stale[row]:
                self._look_through(row)
                continue
            other = int(self._partner[row])
            if self._exact[row, other]:
                self._next = row, other
            else:
                union = self._search.union(self._members[row] | self._members[other])
                common = self._rates[row] + self._rates[other] - union
                # A guessed union may be smaller than a part.
                common = max(0.0, min(common, self._rates[row], self._rates[other]))
                self._common[row, other] = self._common[other, row] = common
                self._exact[row, other] = self._exact[other, row] = True
                self._look_through(row)
                self._look_through(other)
        return self._next

    def _apply(self, row: int, other: int) -> None:
        kept, gone = min(row, other), max(row, other)
        places = int(self._place[kept]), int(self._place[gone])
        self.merges.append(Merge(*places, float(self._least[row])))
        self._next = None
        rate = self._rates[kept] + self._rates[gone] - self._common[kept, gone]
        bounds = self._common[kept] + self._common[gone]
        bounds = np.minimum(bounds, np.minimum(rate, self._rates))
        self._members[kept] |= self._members[gone]
        self._rates[kept] = rate
        self._weights[kept] += self._weights[gone] - self._fixed
        self._common[kept, :] = bounds
        self._common[:, kept] = bounds
        self._exact[kept, :] = False
        self._exact[:, kept] = False
        self._alive[gone] = False
        self._least[gone] = inf
        # A row that lost its partner keeps its old least as a bound.
        self._stale |= (self._partner == kept) | (self._partner == gone)
        increases = self._increases(kept)
        self._look_through(kept)
        better = increases < self._least
        better |= (increases == self._least) & (kept < self._partner) & ~self._stale
        better[kept] = False
        self._least[better] = increases[better]
        self._partner[better] = kept
        self._stale[better] = False
        if 2 * np.count_nonzero(self._alive) < len(self._alive):
            self._compact()

    def _compact(self) -> None:
        """Forget the rows of groups that are gone."""
        live = np.flatnonzero(self._alive)
        row_of = np.full(len(self._alive), -1)
        row_of[live] = np.arange(len(live))
        self._members = [self._members[row] for row in live.tolist()]
        self._common = self._common[np.ix_(live, live)]
        self._exact = self._exact[np.ix_(live, live)]
        self._rates, self._weights = self._rates[live], self._weights[live]
        self._least, self._stale = self._least[live], self._stale[live]
        self._place, self._alive = self._place[live], self._alive[live]
        self._partner = row_of[self._partner[live]]
        self._stale |= self._partner < 0


_sequences: WeakKeyDictionary[Workload, dict[tuple[float, float], MergeSequence]] = (
    WeakKeyDictionary()
)


def merge_sequence(workload: Workload, model: CostModel) -> MergeSequence:
    """The workload's sequence from single edge sets on; kept, so that a new rate is a new cut."""
    weights = float(model.per_overlap), float(model.per_fragment)
    sequences = _sequences.setdefault(workload, {})
    if weights in sequences:
        return sequences[weights]
    sequence = MergeSequence(search_rates(workload), *weights)
    if len(workload.edge_sets) <= MOST_KEPT:
        sequences[weights] = sequence
    return sequence
