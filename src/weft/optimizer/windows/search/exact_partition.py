"""The cheapest of all partitions, for few edge sets.

Dynamic programming over subsets: best(S) = min over T ⊆ S that hold the first set of S of
cost(T) + best(S without T). Every partition of S has exactly one such T, so all are looked at.
Time: 2ⁿ edge rates and 3ⁿ / 2 sums in NumPy; thirteen sets take 8191 rates and 0.8 million sums.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.windows.search.search_rates import SearchRates

MOST_EDGE_SETS = 13


def exact_partition(
    rates: SearchRates, price: float, per_overlap: float, per_fragment: float
) -> list[tuple[int, ...]]:
    """The groups of least cost; of equal ones, the first found."""
    count = len(rates)
    if count > MOST_EDGE_SETS:
        raise ValueError(f"at most {MOST_EDGE_SETS} edge sets, not {count}")
    costs = _costs(rates, price, per_overlap, per_fragment)
    best = np.zeros(1 << count)
    choice = np.zeros(1 << count, dtype=np.int64)
    for whole in range(1, 1 << count):
        first = whole & -whole
        groups = _subsets(whole ^ first) | first
        totals = costs[groups] + best[whole ^ groups]
        least = int(np.argmin(totals))
        best[whole], choice[whole] = totals[least], groups[least]
    partition = []
    left = (1 << count) - 1
    while left:
        group = int(choice[left])
        partition.append(tuple(i for i in range(count) if group >> i & 1))
        left ^= group
    return partition


def _costs(
    rates: SearchRates, price: float, per_overlap: float, per_fragment: float
) -> NDArray[np.float64]:
    """The cost of every subset as a group."""
    count = len(rates)
    costs = np.zeros(1 << count)
    overlaps = np.zeros(1 << count)
    for subset in range(1, 1 << count):
        last = subset.bit_length() - 1
        overlaps[subset] = overlaps[subset ^ (1 << last)] + rates.overlaps[last]
        rate = rates.union(frozenset(i for i in range(count) if subset >> i & 1))
        costs[subset] = price + rate * (per_fragment + per_overlap * overlaps[subset])
    return costs


def _subsets(mask: int) -> NDArray[np.int64]:
    """All subsets of a mask.

    >>> _subsets(0b101).tolist()
    [0, 1, 4, 5]
    """
    subsets = np.zeros(1, dtype=np.int64)
    while mask:
        bit = mask & -mask
        subsets = np.concatenate([subsets, subsets | bit])
        mask ^= bit
    return subsets
