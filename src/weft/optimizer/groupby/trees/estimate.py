"""The number of groups, and the skew, of attribute sets that nobody measured.

**Groups.** Bounds that always hold, for a set S and n tuples: at least the groups of any known
subset; at most n, at most those of any known superset, at most the product over known sets that
cover S. Between them, the estimate. Start with the known subset of most groups; add, one after
another, the known set K that brings new attributes at the smallest growth g(K) / g(K ∩ covered) per
new attribute, as if the new attributes depended on the covered ones only through the shared ones.
(With pairs known this is a Chow–Liu tree of the attributes; with single attributes alone it is
their product.) The result d is how many combinations there may be; n tuples that draw from d
equally likely ones show d·(1 - (1 - 1/d)^n) of them (Cardenas). An attribute of which nothing is
known may have n values.

**Skew.** α(S) is that of the known subset with most groups, times ln(n/g(S)) / ln(n/g(subset)): the
same where S has no more groups than the subset, 0 where every tuple is a group of its own. 0
(uniform) if no subset is known, and 0 for one group.

The formulas are ours; the Memory paper leaves both to samples (its footnote 3). Time: O(known ·
|S|) for each set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from weft.optimizer.groupby.trees.aggregate_tree import GroupBySet, node_name


def estimated_groups(node: GroupBySet, counts: Mapping[GroupBySet, float], tuples: float) -> float:
    """How many groups a set probably has.

    >>> pairs = {frozenset("ab"): 12.0, frozenset("bc"): 12.0, frozenset("b"): 4.0}
    >>> round(estimated_groups(frozenset("abc"), pairs, 1e6))
    36
    """
    if not node or tuples <= 1:
        return min(1.0, tuples)
    least, most = groups_bounds(node, counts, tuples)
    return min(max(cardenas(_combinations(node, counts, tuples), tuples), least), most)


def groups_bounds(
    node: GroupBySet, counts: Mapping[GroupBySet, float], tuples: float
) -> tuple[float, float]:
    """What the number of groups cannot be below or above."""
    least = max((count for subset, count in counts.items() if subset <= node), default=1.0)
    most = min((count for subset, count in counts.items() if subset >= node), default=tuples)
    product, covered = 1.0, set[str]()
    parts = [(count, subset) for subset, count in counts.items() if subset and subset <= node]
    while len(covered) < len(node):
        fresh = [(c ** (1 / len(e - covered)), node_name(e), c, e) for c, e in parts if e - covered]
        if not fresh:
            product = tuples
            break
        _, _, count, subset = min(fresh)
        product *= count
        covered |= subset
    return least, max(least, min(most, product, tuples))


def cardenas(values: float, draws: float) -> float:
    """How many different values are seen in a number of draws, if all values are equally likely.

    >>> round(cardenas(10, 1000), 6), round(cardenas(1e12, 1000), 3)
    (10.0, 1000.0)
    """
    if values <= 1:
        return min(values, draws)
    return min(-values * math.expm1(draws * math.log1p(-1 / values)), draws)


def estimated_alpha(
    node: GroupBySet,
    alphas: Mapping[GroupBySet, float],
    groups: Callable[[GroupBySet], float],
    tuples: float,
) -> float:
    """The Zipf parameter that a set probably has."""
    node_groups = groups(node)
    subsets = [subset for subset in alphas if subset < node and groups(subset) > 1]
    if node_groups <= 1 or node_groups >= tuples or not subsets:
        return 0.0
    nearest = max(subsets, key=lambda subset: (groups(subset), node_name(subset)))
    theirs = groups(nearest)
    if theirs >= tuples:
        return 0.0
    return alphas[nearest] * min(1.0, math.log(tuples / node_groups) / math.log(tuples / theirs))


def _combinations(node: GroupBySet, counts: Mapping[GroupBySet, float], tuples: float) -> float:
    inside = {subset: count for subset, count in counts.items() if subset and subset <= node}
    if not inside:
        return _many(tuples, len(node))
    start = max(inside, key=lambda subset: (inside[subset], len(subset), node_name(subset)))
    covered, groups = start, inside[start]
    while covered != node:
        growths = [
            (max(1.0, count / _shared(subset & covered, inside)), len(subset - covered), subset)
            for subset, count in inside.items()
            if subset - covered
        ]
        if not growths:
            return groups * _many(tuples, len(node - covered))
        growth, _, chosen = min(
            growths, key=lambda growth: (growth[0] ** (1 / growth[1]), node_name(growth[2]))
        )
        groups = min(groups * growth, 1e300)
        covered |= chosen
    return groups


def _shared(part: GroupBySet, inside: Mapping[GroupBySet, float]) -> float:
    """The groups of the part that two sets share, at least those of what is known inside it."""
    if part in inside:
        return inside[part]
    return max((count for subset, count in inside.items() if subset <= part), default=1.0)


def _many(tuples: float, attributes: int) -> float:
    most: float = min(tuples, 1e300 ** (1 / attributes)) ** attributes
    return most
