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

from weft.optimizer.windows.cost import CostModel, Number, TwoOps
from weft.optimizer.windows.grouping import Grouping, grouping
from weft.optimizer.windows.merge_sequence import MergeSequence
from weft.optimizer.windows.search_rates import SearchRates, search_rates
from weft.optimizer.windows.workload import Workload

LARGE_GROUP = 24


def insert_then_weave(workload: Workload, rate: Number, model: CostModel | None = None) -> Grouping:
    """The groups of Insert-then-Weave; TwoOps unless told otherwise."""
    used = model or TwoOps()
    price = float(used.price(Fraction(rate), workload.edge_rate.value))
    rates = search_rates(workload)
    weights = float(used.per_overlap), float(used.per_fragment)
    inserted = insert(rates, price, *weights, first_come(workload))
    groups = MergeSequence(rates, *weights, inserted).cut(price)
    return grouping("insert-then-weave", workload, rate, used, groups)


def first_come(workload: Workload) -> list[int]:
    """The edge sets in the order of their first queries."""
    return sorted(range(len(workload.edge_sets)), key=lambda each: int(workload.members[each][0]))


def insert(
    rates: SearchRates,
    price: float,
    per_overlap: float,
    per_fragment: float,
    order: Sequence[int],
) -> list[tuple[int, ...]]:
    """Groups after every edge set, in the given order, joined the cheapest or a new one."""
    common = rates.common()
    pool = rates.pool if len(order) > LARGE_GROUP else None
    groups: list[list[int]] = []
    group_rates = np.empty(len(order))
    group_weights = np.empty(len(order))
    meeting = np.empty_like(common)
    held = np.zeros((pool.size if pool else 0, 16), dtype=np.bool_)
    for edge_set in order:
        rate = float(rates.rates[edge_set])
        overlap = per_overlap * float(rates.overlaps[edge_set])
        count = len(groups)
        known, weights = group_rates[:count], group_weights[:count]
        shared = np.minimum(np.minimum(meeting[:count, edge_set], known), rate)
        if pool:
            sample, share = pool.samples[edge_set], pool.sample_weights[edge_set]
            large = np.array([len(group) > LARGE_GROUP for group in groups], dtype=np.bool_)
            shared[large] = share @ held[sample, :count][:, large]
        bounds = (known + rate - shared) * (weights + overlap) - known * weights
        best, chosen = price + rate * (per_fragment + overlap), count
        chosen_rate = rate
        for place in np.argsort(bounds, kind="stable").tolist():
            if bounds[place] > best:
                break
            if len(groups[place]) > LARGE_GROUP:
                union = float(known[place] + rate - shared[place])
            else:
                union = rates.union([*groups[place], edge_set])
            increase = union * (weights[place] + overlap) - known[place] * weights[place]
            if increase < best or (increase == best and place < chosen):
                best, chosen, chosen_rate = float(increase), place, union
        if chosen == count:
            groups.append([])
            meeting[count] = 0
            group_weights[count] = per_fragment
            if count == held.shape[1]:
                held = np.concatenate([held, np.zeros_like(held)], axis=1)
        groups[chosen].append(edge_set)
        group_rates[chosen] = chosen_rate
        group_weights[chosen] += overlap
        meeting[chosen] += common[edge_set]
        if pool:
            held[pool.points[edge_set], chosen] = True
    return [tuple(sorted(group)) for group in groups]
