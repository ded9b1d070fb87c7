"""Small trees, statistics and brute-force allocations."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, GroupBySet
from weft.optimizer.groupby.trees.statistics import GroupStatistics

A_B, B_C, C_D, A_D = (frozenset(pair) for pair in ("ab", "bc", "cd", "ad"))
A_B_C, B_C_D, A_B_C_D = frozenset("abc"), frozenset("bcd"), frozenset("abcd")
A, B = frozenset("a"), frozenset("b")
ALL = (A_B, B_C, C_D, A_D)

TREES = (
    AggregateTree.flat(ALL).merged(None, A_B_C_D),
    AggregateTree.flat(ALL).merged(None, A_B_C_D).merged(A_B_C_D, A_B_C),
    AggregateTree.flat(ALL).merged(None, A_B_C).merged(None, frozenset("acd")),
    AggregateTree.flat(ALL)
    .merged(None, A_B_C_D)
    .merged(A_B_C_D, A_B_C)
    .merged(A_B_C_D, frozenset("acd")),
    # A query with an intermediate below it, and one below that.
    AggregateTree.of(
        [A_B_C_D, A, B, frozenset("c")],
        {A_B_C_D: None, A_B_C: A_B_C_D, A_B: A_B_C, A: A_B, B: A_B, frozenset("c"): A_B_C},
    ),
)


@st.composite
def statistics(draw: st.DrawFn, tree: AggregateTree, skewed: bool) -> GroupStatistics:
    """Groups that fall from parents to children."""
    tuples = draw(st.integers(100, 100_000))
    groups: dict[GroupBySet, float] = {}
    alpha: dict[GroupBySet, float] = {}
    sizes: dict[GroupBySet, float] = {}
    for parent, branch in tree.walk():
        most = tuples if parent is None else groups[parent]
        groups[branch.node] = max(1.0, most * draw(st.floats(0.01, 1.0)))
        alpha[branch.node] = (
            draw(st.sampled_from((0.0, 0.2, 0.5, 0.85, 1.0, 1.3))) if skewed else 0.0
        )
        sizes[branch.node] = draw(st.sampled_from((1.0, 2.0, 5.0)))
    return GroupStatistics(tuples, groups, alpha, sizes)


def leaving(
    entries: NDArray[np.float64], groups: float, alpha: float, rows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Equation 1 with Lemma 6.1, written once more."""
    share = np.clip(entries / groups, 0, 1)
    if alpha < 1:
        kept = share ** (1 - alpha)
    elif groups <= 1:
        kept = np.zeros_like(share)
    elif alpha == 1:
        kept = np.log(np.maximum(entries, 1)) / np.log(groups)
    else:
        kept = (1 - np.maximum(entries, 1) ** (1 - alpha)) / (1 - groups ** (1 - alpha))
    kept = np.where(share >= 1, 1.0, kept)
    out = np.minimum(entries, groups) + (1 - kept) * rows
    return np.minimum(rows, np.maximum(np.minimum(groups, rows), out))


def brute_force(tree: AggregateTree, given: GroupStatistics, memory: float, steps: int) -> float:
    """The least cost over all divisions of the memory into so many parts."""
    nodes = tree.intermediates()
    parts = np.array(
        [split for split in product(range(steps + 1), repeat=len(nodes)) if sum(split) <= steps],
        dtype=np.float64,
    ).reshape(-1, len(nodes))
    held = {
        node: parts[:, column] / steps * memory / given.entry_size(node)
        for column, node in enumerate(nodes)
    }
    total = np.full(len(parts), given.tuples * len(tree.children))
    out: dict[GroupBySet | None, NDArray[np.float64]] = {None: np.full(len(parts), given.tuples)}
    for parent, branch in tree.walk():
        came, groups = out[parent], given.groups(branch.node)
        if branch.asked:
            out[branch.node] = np.minimum(groups, came)
        else:
            alpha = given.alpha(branch.node)
            out[branch.node] = leaving(held[branch.node], groups, alpha, came)
        total = total + len(branch.children) * out[branch.node]
    return float(total.min())
