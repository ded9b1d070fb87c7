"""The constants of the cost functions, from what the prototype did and how long it took.

The paper tunes them for each set of experiments. Here they are the least squares solution of

    seconds ≈ P · probes + U · window updates + U_g · groups looked at

over all plans and points of a sweep, with relative errors, and none below 0. They are fitted to counted
operations, not to the model, so that what is wrong in the model stays visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from weft.experiments.aggjoin.prototype.measuring import PlanRun
from weft.optimizer.joinagg.papers_costs import Constants

_LEAST = 1e-12
"""Seconds: constants are positive."""


def tuned(runs: Sequence[PlanRun], join: str) -> Constants:
    """The constants of a hash or nested loop join, in seconds."""
    counted = np.array(
        [
            (
                run.operations.probes,
                run.operations.window_updates,
                run.operations.groups_looked_at,
            )
            for run in runs
        ]
    )
    seconds = np.array([run.seconds for run in runs])
    probe, update, group = (
        max(value, _LEAST) for value in not_negative(counted / seconds[:, None])
    )
    if join == "nested":
        return Constants(P_n=probe, U_n=update, U_g=group)
    return Constants(P_h=probe, U_h=update, U_g=group)


def not_negative(parts: NDArray[np.float64]) -> list[float]:
    """Weights w ≥ 0 for which parts · w is nearest to 1: the best solution over all subsets of the columns, of
    which there are few.

    >>> not_negative(np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]]))
    [0.5, 0.5]
    >>> not_negative(np.array([[1.0, -1.0], [1.0, -2.0]]))
    [1.0, 0.0]
    """
    columns = parts.shape[1]
    best, least = [0.0] * columns, float(len(parts))
    for size in range(1, columns + 1):
        for chosen in combinations(range(columns), size):
            weights = np.linalg.lstsq(parts[:, chosen], np.ones(len(parts)), rcond=None)[0]
            error = float(((parts[:, chosen] @ weights - 1) ** 2).sum())
            if (weights >= 0).all() and error < least - 1e-12:
                best, least = [0.0] * columns, error
                for column, weight in zip(chosen, weights, strict=True):
                    best[column] = round(float(weight), 15)
    return best
