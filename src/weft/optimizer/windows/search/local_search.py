"""Merge, split and move: from any grouping to one that no such step improves.

weft's own, after the issue that greedy merging leaves: a query that joined a group early may belong
into another one later. Three kinds of steps, each taken only if it lowers the cost:
- move an edge set into another group or one of its own;
- merge two groups;
- split a group: its edge sets are woven anew on their own (`merge_sequence` at the same price).
Between descents some edge sets leave their groups and are inserted again, one by one, each where it
costs least; the better of both groupings goes on (iterated local search).

Candidates are found with the guesses of a `CoverPool`; a step is taken only if edge rates from
`SearchRates` confirm it. So the cost never rises, and the result is never worse than the start.
Work is counted in steps of edge counting, not in seconds: the same workload gives the same groups.
Time: O(n · m · points per set) for one round of moves over n edge sets and m groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.cover_pool import CoverPool
from weft.optimizer.windows.search.merge_sequence import MergeSequence
from weft.optimizer.windows.search.search_rates import SearchRates

_ROUNDING = 1e-9
_STEPS_OF_A_GUESS = 20
"""A guess takes about as long as this many steps of counting."""
_MOST_SPLIT = 128
_MOST_LOOSE = 40


class LocalSearch:
    """A grouping that is being improved, at a fixed price of a group."""

    def __init__(
        self,
        rates: SearchRates,
        price: float,
        per_overlap: float,
        per_fragment: float,
        common: NDArray[np.floating],
    ) -> None:
        self._rates = rates
        self._pool: CoverPool = rates.pool
        self._price = price
        self._fixed = per_fragment
        self._per_overlap = per_overlap
        self._common = common
        self._own = per_overlap * rates.overlaps
        self._random = np.random.default_rng(len(rates))
        self._whole: set[frozenset[int]] = set()
        self._set([])

    def start(self, groups: Iterable[Sequence[int]]) -> None:
        """Begin with these groups."""
        self._set([set(group) for group in groups])

    @property
    def groups(self) -> list[tuple[int, ...]]:
        return [tuple(sorted(group)) for group in self._groups if group]

    @property
    def cost(self) -> float:
        """Without the part that no grouping changes."""
        live = [slot for slot, group in enumerate(self._groups) if group]
        return float(self._costs[live].sum() + self._price * len(live))

    def descend(self, work: int) -> None:
        """Take steps until none helps, or the work is used up."""
        limit = self._rates.work + work
        while self._rates.work < limit:
            taken = self._moves(limit)
            taken += self._merges(limit)
            taken += self._splits(limit)
            if not taken:
                return

    def iterate(self, work: int) -> None:
        """Descend, disturb, descend again, and keep what is better, until work is used up."""
        limit = self._rates.work + work
        self.descend(work)
        best, cost = self.groups, self.cost
        failures = 0
        while self._rates.work < limit and failures < 30:
            before = self._rates.work
            self._disturb()
            self.descend(limit - self._rates.work)
            if self.cost < cost - _ROUNDING * cost:
                best, cost, failures = self.groups, self.cost, 0
            else:
                failures += 1
                self.start(best)
            # A disturbance that needs no counting still counts, so that this ends.
            self._rates.work += max(0, len(self._rates) - (self._rates.work - before))
        self.start(best)

    def _set(self, groups: list[set[int]]) -> None:
        self._groups = groups
        spare = max(8 + _MOST_LOOSE, len(groups) // 4)
        size = len(groups) + spare
        self._groups += [set() for _ in range(spare)]
        self._counts = np.zeros((self._pool.size, size), dtype=np.uint16)
        self._edge_rates = np.zeros(size)
        self._weights = np.full(size, self._fixed)
        self._costs = np.zeros(size)
        self._group_of = np.zeros(len(self._rates), dtype=np.int64)
        for slot, group in enumerate(groups):
            for edge_set in group:
                self._counts[self._pool.points[edge_set], slot] += 1
                self._group_of[edge_set] = slot
            self._refresh(slot)

    def _refresh(self, slot: int) -> None:
        group = self._groups[slot]
        self._edge_rates[slot] = self._rates.union(group) if group else 0.0
        self._weights[slot] = self._fixed + sum(self._own[edge_set] for edge_set in group)
        self._costs[slot] = self._edge_rates[slot] * self._weights[slot]

    def _cost_of(self, group: Iterable[int]) -> float:
        """Price and fragments of a group; nothing if it is empty."""
        members = frozenset(group)
        if not members:
            return 0.0
        weight = self._fixed + float(sum(self._own[edge_set] for edge_set in members))
        return self._price + self._rates.union(members) * weight

    def _empty_slot(self) -> int:
        for slot, group in enumerate(self._groups):
            if not group:
                return slot
        self._set([group for group in self._groups if group])
        return self._empty_slot()

    def _transfer(self, edge_set: int, slot: int) -> None:
        old = int(self._group_of[edge_set])
        self._groups[old].remove(edge_set)
        self._counts[self._pool.points[edge_set], old] -= 1
        self._groups[slot].add(edge_set)
        self._counts[self._pool.points[edge_set], slot] += 1
        self._group_of[edge_set] = slot

    def _joining(self, edge_set: int) -> Floats:
        """Guesses of what the cost grows by if the set joins each group; inf for empty ones."""
        self._rates.work += _STEPS_OF_A_GUESS
        points, weights = self._pool.samples[edge_set], self._pool.sample_weights[edge_set]
        met = weights @ (self._counts[points] > 0)
        rate, weight = float(self._rates.rates[edge_set]), self._own[edge_set]
        joined = (self._edge_rates + rate - met) * (self._weights + weight) - self._costs
        joined[self._edge_rates == 0] = np.inf
        return np.asarray(joined)

    def _leaving(self, edge_set: int) -> float:
        """A guess of what the cost falls by if the set leaves its group."""
        slot = int(self._group_of[edge_set])
        rate, weight = float(self._rates.rates[edge_set]), self._own[edge_set]
        if len(self._groups[slot]) == 1:
            return self._price + float(self._costs[slot])
        points, weights = self._pool.samples[edge_set], self._pool.sample_weights[edge_set]
        met = float(weights @ (self._counts[points, slot] > 1))
        left = (self._edge_rates[slot] - rate + met) * (self._weights[slot] - weight)
        return float(self._costs[slot] - left)

    def _moves(self, limit: int) -> int:
        taken = 0
        for edge_set in range(len(self._rates)):
            if self._rates.work >= limit:
                break
            taken += self._move(edge_set)
        return taken

    def _move(self, edge_set: int) -> bool:
        """Move a set to where it costs least, if that helps."""
        old = int(self._group_of[edge_set])
        joining = self._joining(edge_set)
        joining[old] = np.inf
        saved = self._leaving(edge_set)
        slot = int(np.argmin(joining))
        lone_cost = float(self._rates.rates[edge_set]) * (self._fixed + self._own[edge_set])
        alone = self._price + lone_cost
        lone = len(self._groups[old]) == 1
        if min(joining[slot], np.inf if lone else alone) >= saved:
            return False
        if joining[slot] > alone and not lone:
            slot = self._empty_slot()
            old = int(self._group_of[edge_set])
        rest = self._groups[old] - {edge_set}
        target = self._groups[slot] | {edge_set}
        before = self._cost_of(self._groups[old]) + self._cost_of(self._groups[slot])
        after = self._cost_of(rest) + self._cost_of(target)
        if after >= before - _ROUNDING * before:
            return False
        self._transfer(edge_set, slot)
        self._refresh(old)
        self._refresh(slot)
        return True

    def _merges(self, limit: int) -> int:
        """Merge pairs of groups, the most promising first."""
        taken = 0
        live = np.array([slot for slot, group in enumerate(self._groups) if group])
        bounds = self._group_bounds(live)
        union = self._edge_rates[live][:, None] + self._edge_rates[live][None, :] - bounds
        weight = self._weights[live][:, None] + self._weights[live][None, :] - self._fixed
        costs = self._costs[live]
        change = union * weight - costs[:, None] - costs[None, :] - self._price
        change[np.tril_indices(len(live))] = np.inf
        hopeful = np.argwhere(change < 0)
        hopeful = hopeful[np.argsort(change[change < 0], kind="stable")]
        for first, second in live[hopeful].tolist():
            if self._rates.work >= limit:
                break
            if not self._groups[first] or not self._groups[second]:
                continue
            before = self._cost_of(self._groups[first]) + self._cost_of(self._groups[second])
            after = self._cost_of(self._groups[first] | self._groups[second])
            if after < before - _ROUNDING * before:
                for edge_set in list(self._groups[second]):
                    self._transfer(edge_set, first)
                self._refresh(first)
                self._refresh(second)
                taken += 1
        return taken

    def _group_bounds(self, live: NDArray[np.int64]) -> Floats:
        """Upper bounds of the edges that two groups have in common."""
        order = [edge_set for slot in live.tolist() for edge_set in self._groups[slot]]
        sizes = [len(self._groups[slot]) for slot in live.tolist()]
        begins = np.cumsum([0, *sizes[:-1]])
        bounds = np.add.reduceat(self._common[order], begins, axis=0)[:, order]
        bounds = np.add.reduceat(bounds, begins, axis=1)
        rates = self._edge_rates[live]
        return np.asarray(np.minimum(bounds, np.minimum(rates[:, None], rates[None, :])))

    def _splits(self, limit: int) -> int:
        """Weave the sets of one group anew."""
        taken = 0
        for slot in range(len(self._groups)):
            group = sorted(self._groups[slot])
            key = frozenset(group)
            small = 3 <= len(group) <= _MOST_SPLIT
            if not small or key in self._whole or self._rates.work >= limit:
                continue
            sequence = MergeSequence(
                self._rates,
                self._per_overlap,
                self._fixed,
                [(edge_set,) for edge_set in group],
                self._common[group],
            )
            parts = sequence.cut(self._price)
            before = self._cost_of(group)
            if sum(map(self._cost_of, parts)) >= before - _ROUNDING * before:
                self._whole.add(key)
                continue
            for part in parts[1:]:
                target = self._empty_slot()
                for edge_set in part:
                    self._transfer(edge_set, target)
                self._refresh(target)
            self._refresh(int(self._group_of[parts[0][0]]))
            taken += 1
        return taken

    def _disturb(self) -> None:
        """Take sets out of some near groups and insert them again, each where it costs least."""
        live = [slot for slot, group in enumerate(self._groups) if group]
        count = min(len(live), 2 + int(self._random.integers(0, 3)))
        seed = int(self._random.integers(0, len(self._rates)))
        near = self._joining(seed)
        near[self._group_of[seed]] = -np.inf
        chosen = np.argsort(near, kind="stable")[:count].tolist()
        loose = [edge_set for slot in chosen for edge_set in sorted(self._groups[slot])]
        drawn = self._random.permutation(len(loose))[:_MOST_LOOSE]
        loose = [loose[i] for i in drawn.tolist()]
        for edge_set in loose:
            slot = self._empty_slot()
            self._transfer(edge_set, slot)
            self._refresh(slot)
        for slot in chosen:
            self._refresh(slot)
        for edge_set in loose:
            old = int(self._group_of[edge_set])
            joining = self._joining(edge_set)
            joining[old] = np.inf
            slot = int(np.argmin(joining))
            lone_cost = float(self._rates.rates[edge_set]) * (self._fixed + self._own[edge_set])
            if joining[slot] < self._price + lone_cost:
                self._transfer(edge_set, slot)
                self._refresh(old)
                self._refresh(slot)
