"""From a feasible allocation to a cheaper one close by.

At a minimum an entry's worth of memory saves the same at every node that is neither empty nor full.
With D_i = ∂cost/∂out_i = h_i + Σ_children f_c·D_c and input n_i that is D_i·(n_i·b_i^-α/S_i - 1) =
λ·s_i, S_i being the sum of all k^-α, so b_i = (n_i / (S_i·(1 + λ·s_i/D_i)))^(1/α)
(`Eviction.balanced`). Inputs and D are taken from the last allocation, λ is found by bisection so
that the memory is used up; repeated, and whatever is cheapest is kept. What is left in the end goes
to nodes that are not full: it can only save (`eviction`: out falls with b).

Nothing here is needed for a guarantee: the result is never dearer than what came in.
"""

from __future__ import annotations

import numpy as np

from weft.optimizer.groupby.memory.eviction import Floats
from weft.optimizer.groupby.memory.forest import Forest

_ROUNDS = 12
_BISECTIONS = 60
_CLOSE = 1e-3
_UNIFORM = 0.01
"""Below this skew the best number of entries is nothing or all."""


def refine(forest: Forest, entries: Floats, memory: float) -> tuple[Floats, float]:
    """An allocation that is at least as good, and its cost."""
    best = current = entries
    cost = forest.cost(best)
    for _ in range(_ROUNDS):
        moved = _balanced(forest, current, memory)
        if moved is None:
            break
        moved_cost = forest.cost(moved)
        if moved_cost < cost:
            best, cost = moved, moved_cost
        if np.allclose(moved, current, rtol=_CLOSE):
            break
        current = moved
    filled = _filled(forest, best, memory)
    return filled, forest.cost(filled)


def _balanced(forest: Forest, entries: Floats, memory: float) -> Floats | None:
    """All savings per memory equal, at the inputs and weights of the given allocation."""
    incoming, _ = forest.inputs(entries)
    weight = _weights(forest, entries)
    if forest.zipf is None:
        return None
    eviction, alpha = forest.zipf
    groups = forest.groups
    smooth = alpha > _UNIFORM
    left = memory - float(forest.size @ np.where(smooth, 0.0, entries))
    if not smooth.any() or left <= 0:
        return None
    most = eviction.needed(groups, groups, alpha, incoming)

    def at(price: float) -> Floats:
        worth = 1 / (1 + price * forest.size / weight)
        wanted = eviction.balanced(groups, alpha, incoming, worth)
        return np.where(smooth, np.minimum(wanted, most), entries)

    low, high = 1e-12, 1e18
    if forest.used(at(low)) <= memory:
        return at(low)
    for _ in range(_BISECTIONS):
        middle = float(np.sqrt(low * high))
        if forest.used(at(middle)) > memory:
            low = middle
        else:
            high = middle
    return at(high)


def _weights(forest: Forest, entries: Floats) -> Floats:
    """How much the cost grows with what leaves each node."""
    weight = forest.children.copy()
    _, rates = forest.lines(entries)
    for number in reversed(range(len(forest.nodes))):
        for child in forest.below[number]:
            weight[number] += rates[child] * weight[child]
    return weight


def _filled(forest: Forest, entries: Floats, memory: float) -> Floats:
    """With what is left given to the nodes that are not full, upper ones first.

    First as much as saves something by the model, then all of its groups to a node that can have them.
    """
    filled = np.minimum(entries, forest.groups)
    left = memory - forest.used(filled)
    for number in range(len(filled)):
        if left <= 0:
            return filled
        incoming = forest.inputs(filled)[0][number]
        groups = forest.groups[number]
        useful = forest.tables[number].needed(groups, incoming)
        more = min(float(useful) - filled[number], left / forest.size[number])
        if more > 0:
            filled[number] += more
            left -= more * forest.size[number]
    for number in range(len(filled)):
        more = forest.groups[number] - filled[number]
        if 0 < more * forest.size[number] <= left:
            filled[number] = forest.groups[number]
            left -= more * forest.size[number]
    return filled
