"""How far two ways to price plans agree on their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

CLEAR = 1.1
"""Plans whose costs differ by less than this factor are in no order: the model gives many of them the same cost."""


@dataclass(frozen=True)
class Agreement:
    """The plans of one point, by a model and by a measure."""

    pairs: int
    """Pairs of plans that are in a clear order by the model."""
    agreeing: int
    """Those of them that are in the same order by the measure."""
    correlation: float
    """Kendall's, over all pairs: 1 for the same order, -1 for the opposite one."""
    loss: float
    """What the plan that the model would choose costs beside the best one by the measure: 0.1 is 10 % more."""

    @property
    def same(self) -> bool:
        return self.agreeing == self.pairs


def agreement(model: Sequence[float], measured: Sequence[float]) -> Agreement:
    """Of costs of the same plans.

    >>> agreement([4, 2, 1.95, 1], [40, 20, 21, 22])
    Agreement(pairs=5, agreeing=3, correlation=0.0, loss=0.1)
    """
    pairs = agreeing = balance = ranked = 0
    for one, other in combinations(range(len(model)), 2):
        cheap, dear = sorted((one, other), key=lambda plan: (model[plan], plan))
        if model[cheap] != model[dear] and measured[cheap] != measured[dear]:
            ranked += 1
            balance += 1 if measured[cheap] < measured[dear] else -1
        if model[dear] > CLEAR * model[cheap]:
            pairs += 1
            agreeing += measured[cheap] < measured[dear]
    chosen = min(range(len(model)), key=model.__getitem__)
    loss = measured[chosen] / min(measured) - 1
    return Agreement(pairs, agreeing, balance / ranked if ranked else 0.0, round(loss, 12))


def together(agreements: Sequence[Agreement]) -> str:
    """In words: points with the same order, clear pairs in the same order, mean correlation.

    >>> together([Agreement(5, 4, 0.5, 0.1), Agreement(6, 6, 1.0, 0.0)])
    'the same order at 1 of 2 points; 10 of 11 clear pairs; correlation 0.75'
    """
    same = sum(one.same for one in agreements)
    pairs = sum(one.pairs for one in agreements)
    agreeing = sum(one.agreeing for one in agreements)
    mean = sum(one.correlation for one in agreements) / len(agreements)
    return (
        f"the same order at {same} of {len(agreements)} points; {agreeing} of {pairs} clear pairs; "
        f"correlation {mean:.2f}"
    )
