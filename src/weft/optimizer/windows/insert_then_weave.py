"""Insert-then-Weave: queries join groups one by one, then groups are merged as in WeaveShare.

From: Guirguis et al. (CIKM 2011), as the Placement paper describes it in section 6.3: "every ACQ
is either weaved in an existing tree or assigned to a new tree, whichever results in the smallest
increase in the total cost". Queries come in the workload's order, those with equal edges together;
on a tie the older group is taken, and an existing one before a new one.

Lazy: with upper bounds of the common edges (see `merge_sequence`) each group has a lower bound
of its increase, and exact edge rates are computed from the least bound on, until no bound is below
the best. The result is that of looking at every group. For groups of more than `LARGE_GROUP` edge
sets the common edges are guessed from sample times (`cover_pool`) instead.
Time: O(n·m) for n edge sets and m groups, in NumPy, plus the edge rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.workload import Workload
from weft.optimizer.windows.cost import CostModel, Number, TwoOps
from weft.optimizer.windows.grouping import Grouping, grouping
from weft.optimizer.windows.search.merge_sequence import MergeSequence
from weft.optimizer.windows.search.search_rates import SearchRates, search_rates

LARGE_GROUP = 24


def insert_then_weave(workload: Workload, rate: Number, model: CostModel | None = None) -> Grouping:
    """The groups of Insert-then-Weave; TwoOps unless told otherwise."""
    used = model or TwoOps()
    price = float(used.price(Fraction(rate), workload.edge_rate.value))
    rates = search_rates(workload)
    weights = float(used.per_overlap), float(used.per_fragment)
    groups = MergeSequence(
        rates, *weights, *insert(rates, price, *weights, first_come(workload))
    ).cut(price)
    return grouping("insert-then-weave", workload, rate, used, groups)


def first_come(workload: Workload) -> list[int]:
    """The edge sets in the order of their first queries."""
    return sorted(
        range(len(workload.edge_sets)), key=lambda edge_set: int(workload.members[edge_set][0])
    )


def insert(
    rates: SearchRates,
    price: float,
    per_overlap: float,
    per_fragment: float,
    order: Sequence[int],
) -> tuple[list[tuple[int, ...]], Floats]:
    """Groups after every edge set, in the given order, joined the cheapest or a new one.

    With, for each group, an upper bound of the edges that it has in common with every edge set.
    """
    groups: list[list[int]] = []
    group_rates = np.empty(len(order))
    group_weights = np.empty(len(order))
    meeting = np.zeros((16, len(rates)))
    large = _LargeGroups(rates)
    for edge_set in order:
        rate = float(rates.rates[edge_set])
        overlap = per_overlap * float(rates.overlaps[edge_set])
        count = len(groups)
        current_rates, weights = group_rates[:count], group_weights[:count]
        shared = np.minimum(np.minimum(meeting[:count, edge_set], current_rates), rate)
        large.guess(edge_set, shared)
        bounds = (current_rates + rate - shared) * (weights + overlap) - current_rates * weights
        best, chosen = price + rate * (per_fragment + overlap), count
        chosen_rate = rate
        for group in np.argsort(bounds, kind="stable").tolist():
            if bounds[group] > best:
                break
            if group in large:
                union = float(current_rates[group] + rate - shared[group])
            else:
                union = rates.union([*groups[group], edge_set])
            increase = union * (weights[group] + overlap) - current_rates[group] * weights[group]
            if increase < best or (increase == best and group < chosen):
                best, chosen, chosen_rate = float(increase), group, union
        if chosen == count:
            groups.append([])
            group_weights[count] = per_fragment
            if count == len(meeting):
                meeting = np.concatenate([meeting, np.zeros_like(meeting)])
        groups[chosen].append(edge_set)
        group_rates[chosen] = chosen_rate
        group_weights[chosen] += overlap
        meeting[chosen] += rates.common_row(edge_set)
        large.joined(chosen, groups[chosen])
    return [tuple(sorted(group)) for group in groups], meeting[: len(groups)]


class _LargeGroups:
    """Groups with too many sets to count each time: which sample times they cover."""

    def __init__(self, rates: SearchRates) -> None:
        self._rates = rates
        self._covered: dict[int, NDArray[np.bool_]] = {}

    def __contains__(self, group: int) -> bool:
        return group in self._covered

    def guess(self, edge_set: int, shared: Floats) -> None:
        """Replace what a set has in common with large groups by a guess."""
        if self._covered:
            pool = self._rates.pool
            sample = pool.samples[edge_set]
            covered = np.stack(
                [covered_points[sample] for covered_points in self._covered.values()]
            )
            shared[list(self._covered)] = covered @ pool.sample_weights[edge_set]

    def joined(self, number: int, group: list[int]) -> None:
        """The last of the group has just joined."""
        if number in self._covered:
            self._covered[number][self._rates.pool.points[group[-1]]] = True
        elif len(group) > LARGE_GROUP:
            self._covered[number] = np.zeros(self._rates.pool.size, dtype=np.bool_)
            for edge_set in group:
                self._covered[number][self._rates.pool.points[edge_set]] = True
