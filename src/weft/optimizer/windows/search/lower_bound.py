"""A cost that no grouping is below, so that a plan can state how far it is from the optimum at most.

weft's own. Cost of a grouping: price·m + Σ_g E_g·(f + Σ_{q∈g} w_q) over edge sets q, with f the
model's `per_fragment` and w_q = per_overlap·Ω_q. Three bounds hold for every number of groups m:

Shares. Let x = E_g be the rate of a group, and suppose numbers a_q(x) with Σ_{q∈g} a_q(x) ≤ x for
every group of rate x. Then price + x·(f + Σ w_q) ≥ Σ_{q∈g} (x·w_q + a_q(x)·(price / x + f)): each
member pays for being read at rate x, and a share of the group's price. Whatever the groups, each q
pays at least the least of that over x ≥ E_q, so
    cost ≥ B(price),  B(μ) = Σ_q min over x ∈ [E_q, E] of x·w_q + a_q(x)·(μ / x + f).
With another μ than the price, m groups cost at least m·(price - μ) + B(μ).

Numbers a_q. Give each edge t of a group to its members that have it, in some way; a_q is the rate
of what q gets, so the a_q add up to E_g = x. Let ρ_qr be the share of q's edges that r has, too.
- equally: q gets 1 / c(t) of t, where c counts the members that have it. c is a whole number of mean
  1 + Σ_{r∈g, r≠q} ρ_qr over q's edges, and 1/c is convex: q gets at least E_q·h(1 + Σ ρ_qr), where h
  joins the points (k, 1/k) by lines.
- by rank: t goes to the member of highest rank that has it; q gets at least
  E_q·(1 - Σ_{r∈g of higher rank} ρ_qr), and never less than 0. Ranks: by rate, up or down.
Members of g are unknown, but Σ ρ_qr over them is at most a knapsack: maximize Σ ρ_qr·y_r over
0 ≤ y_r ≤ 1 with E_r ≤ x and Σ a_r·y_r ≤ x, for numbers a that are already known to be valid; its
Lagrangian bound θ·x + Σ max(0, ρ_qr - θ·a_r) holds for any θ ≥ 0. The first numbers are those without
a knapsack. Mixtures of valid numbers are valid.
Rates are split into levels X_k ≤ x ≤ X_{k+1}; within one the numbers are taken for X_{k+1}, which
only makes them smaller, and x is free.

Nesting. E_g is at least the largest E_q in it. With that in its place the best grouping cuts the
sets, in order of rate, into m runs: dynamic programming gives the least cost for each m.

One group. Its cost is known.

The bound is the least over m of the largest of these.
Time: O(levels · n²) in NumPy for n ≤ `MOST_REFINED` edge sets; above, one pass without knapsacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.windows.search.search_rates import SearchRates

MOST_REFINED = 2000
_LEVELS = 48
_MULTIPLIERS = (1.2, 2.0, 3.5, 7.0, 20.0)
_COUNTED_GROUPS = 24
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Level:
    """Groups of rates [low, high]: the sets they may hold, by rate, and ways to share."""

    low: float
    high: float
    count: int
    shares: tuple[Floats, ...]


def lower_bound(
    rates: SearchRates,
    price: float,
    lone_price: float,
    per_overlap: float,
    per_fragment: float,
    least_edge_rate: float,
    most_edge_rate: float,
) -> float:
    """Less than or equal to the cost of every grouping, without the model's constant.

    The rate of all sets together is between the last two numbers.
    """
    weights = per_overlap * rates.overlaps
    single = lone_price + least_edge_rate * (per_fragment + float(weights.sum()))
    if len(rates) == 1:
        return single * (1 - _ROUNDING)
    order = np.argsort(rates.rates, kind="stable")
    set_rates = rates.rates[order]
    weights = weights[order]
    levels = _known_levels(rates, order, set_rates, max(most_edge_rate, float(set_rates[-1])))
    payments = _Payments(levels, set_rates, weights, per_fragment)
    shares = payments.bound(price)
    runs = _runs(set_rates, weights, price, per_fragment, min(len(set_rates), _COUNTED_GROUPS))
    # For at least `_COUNTED_GROUPS` groups: B(price), and the nesting bound without a count.
    bounds = [max(shares, runs.any_number)]
    smaller = [(mu, payments.bound(mu)) for mu in price * np.array([0.1, 0.25, 0.5, 0.75])]
    larger = [(mu, payments.bound(mu)) for mu in price * np.array([1.3, 2.0, 4.0, 10.0])]
    for count in range(2, min(len(set_rates), _COUNTED_GROUPS) + 1):
        counted = [count * (price - mu) + least for mu, least in (*smaller, *larger)]
        bounds.append(max(shares, runs.counted[count], *counted))
    return min(single, *bounds) * (1 - _ROUNDING)


_known: WeakKeyDictionary[SearchRates, tuple[float, list[_Level]]] = WeakKeyDictionary()


def _known_levels(
    rates: SearchRates, order: NDArray[np.int64], set_rates: Floats, edge_rate: float
) -> list[_Level]:
    """Levels do not depend on the price, so one computation serves all of a workload."""
    if rates not in _known or _known[rates][0] != edge_rate:
        _known[rates] = edge_rate, _levels(rates, order, set_rates, edge_rate)
    return _known[rates][1]


def _levels(
    rates: SearchRates, order: NDArray[np.int64], set_rates: Floats, edge_rate: float
) -> list[_Level]:
    """Levels from the least rate to that of all sets, with the shares of each."""
    edges = np.geomspace(set_rates[0], edge_rate * (1 + 1e-12), _LEVELS + 1)
    counts = np.searchsorted(set_rates, edges[1:] * (1 + 1e-12), side="right")
    plain: list[tuple[Floats, ...]]
    if len(set_rates) > MOST_REFINED:
        sums = _summed_meetings(rates, order, set_rates, counts)
        plain = [(set_rates[:n] * _harmonic(1 + sums[:n, k]),) for k, n in enumerate(counts)]
    else:
        meetings = np.minimum(rates.common()[np.ix_(order, order)] / set_rates[:, None], 1.0)
        np.fill_diagonal(meetings, 0.0)
        plain = _refined(meetings, set_rates, edges[1:], counts)
    return [
        _Level(float(low), float(high), int(count), shares)
        for low, high, count, shares in zip(edges[:-1], edges[1:], counts, plain)
    ]


def _refined(
    meetings: Floats, set_rates: Floats, most: Floats, counts: NDArray[np.int64]
) -> list[tuple[Floats, ...]]:
    """The shares of each level: equal, by rank down and up, and mixed.

    From the highest level down: shares that are valid for all groups up to a rate are so for all
    up to a lower one, and a knapsack with them improves on both.
    """
    levels: list[tuple[Floats, ...]] = []
    equal = set_rates * _harmonic(1 + meetings.sum(axis=1))
    for rate, count in zip(most[::-1].tolist(), counts[::-1].tolist()):
        meeting, rates = meetings[:count, :count], set_rates[:count]
        met = _most_met(meeting, equal[:count], rate)
        equal = np.maximum(equal[:count], rates * _harmonic(1 + met))
        # Sets are in order of rate: above the diagonal are those of higher rate.
        down = rates * np.maximum(0, 1 - _most_met(np.triu(meeting), equal, rate))
        up = rates * np.maximum(0, 1 - _most_met(np.tril(meeting), equal, rate))
        levels.append((equal, down, up, (equal + down) / 2, (equal + up) / 2))
    return levels[::-1]


def _most_met(meetings: Floats, shares: Floats, rate: float) -> Floats:
    """For each set an upper bound of how often members of one group meet it."""
    most = meetings.sum(axis=1)
    surplus = np.empty_like(meetings)
    for multiplier in _MULTIPLIERS:
        np.subtract(meetings, multiplier * shares, out=surplus)
        over = np.maximum(surplus, 0, out=surplus).sum(axis=1)
        # The set's own share is not left for the others.
        most = np.minimum(most, multiplier * np.maximum(rate - shares, 0) + over)
    return np.asarray(most)


def _harmonic(mean: Floats) -> Floats:
    """The largest convex function that is 1/k at every whole k.

    >>> _harmonic(np.array([1.0, 1.5, 2.0, 3.5]))
    array([1.        , 0.75      , 0.5       , 0.29166667])
    """
    whole = np.floor(mean)
    part = mean - whole
    return np.asarray((1 - part) / whole + part / (whole + 1))


def _summed_meetings(
    rates: SearchRates, order: NDArray[np.int64], set_rates: Floats, counts: NDArray[np.int64]
) -> Floats:
    """For each set and level the sum of ρ over all others of the level."""
    sums = np.empty((len(set_rates), len(counts)))
    for position, edge_set in enumerate(order.tolist()):
        meeting = np.minimum(rates.common_row(edge_set)[order] / set_rates[position], 1.0)
        sums[position] = np.cumsum(meeting)[counts - 1] - 1.0
    return np.maximum(sums, 0.0)


class _Payments:
    """What each set pays at least at each level, for any price."""

    def __init__(
        self, levels: Sequence[_Level], set_rates: Floats, weights: Floats, per_fragment: float
    ) -> None:
        self._levels = levels
        self._own = set_rates
        self._weights = weights
        self._fixed = per_fragment

    def bound(self, price: float) -> float:
        """B(price), with the ways to share chosen level by level."""
        ways = len(self._levels[0].shares)
        table = np.full((ways, len(self._levels), len(self._own)), np.inf)
        for number, level in enumerate(self._levels):
            for way, shares in enumerate(level.shares):
                table[way, number, : level.count] = self._least(level, shares, price)
        return _choose(table)

    def _least(self, level: _Level, shares: Floats, price: float) -> Floats:
        set_rates, weights = self._own[: level.count], self._weights[: level.count]
        low = np.maximum(level.low, np.minimum(set_rates, level.high))
        # Where the weight is 0 the largest rate is best.
        ideal = np.sqrt(price * shares / np.maximum(weights, 1e-300))
        at = np.clip(ideal, low, level.high)
        return np.asarray(at * weights + shares * (price / at + self._fixed))


def _choose(table: Floats) -> float:
    """The largest Σ_q min over levels, one way to share for each level: any choice is valid."""
    ways, levels, _ = table.shape
    totals = table.min(axis=1).sum(axis=1)
    chosen = [int(np.argmax(totals))] * levels
    best = float(totals.max())
    for number in range(levels):
        others = [k for k in range(levels) if k != number]
        rest = table[[chosen[k] for k in others], others].min(axis=0) if others else np.inf
        for way in range(ways):
            total = float(np.minimum(rest, table[way, number]).sum())
            if total > best:
                best, chosen[number] = total, way
    return best


@dataclass(frozen=True)
class _Runs:
    """Least costs if a group's rate were that of its largest set."""

    any_number: float
    counted: Sequence[float]
    """By number of groups; the last entries are those of that many or more."""


def _runs(
    set_rates: Floats, weights: Floats, price: float, per_fragment: float, most: int
) -> _Runs:
    """Cut the sets, in order of rate, into runs that each pay their largest rate."""
    total = np.append(0.0, np.cumsum(weights))

    def extend(previous: Floats) -> Floats:
        """The least cost of the first k sets, the last run added to `previous`."""
        return np.array(
            [np.inf]
            + [
                float(
                    np.min(previous[:k] + set_rates[k - 1] * (total[k] - total[:k] + per_fragment))
                )
                + price
                for k in range(1, len(total))
            ]
        )

    free = np.full(len(total), np.inf)
    free[0] = 0.0
    for k in range(1, len(total)):
        runs = set_rates[k - 1] * (total[k] - total[:k] + per_fragment)
        free[k] = float(np.min(free[:k] + runs)) + price
    counted = [np.inf]
    if len(set_rates) <= MOST_REFINED:
        row = np.full(len(total), np.inf)
        row[0] = 0.0
        for _ in range(most):
            row = extend(row)
            counted.append(float(row[-1]))
    else:
        counted += [float(free[-1])] * most
    return _Runs(float(free[-1]), counted)
