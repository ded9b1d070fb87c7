"""What the paper's cost functions know of a join, and what they derive from it.

From: the AggJoin paper, tables II and III and Appendix A. Of every input: its rate λ, the rows w of
its window, the groups g of its grouping attributes (1 if it has none), and its selectivity σ, the
reciprocal of the number of its join values. B is the largest number of buckets of a hash table.

    α   = Π min(wᵢ, gᵢ)         groups of the result
    αᵢ  = min(wᵢ, gᵢ/σᵢ)        groups of the aggregation set of input i
    mᵢ  = σᵢ·wᵢ                 rows of window i that match a row of another input
    nᵢ  = min(σᵢ·wᵢ, gᵢ)        groups of set i that match one
    Bᵢ  = min(1/σᵢ, B)          buckets by the join attribute of input i
    B_g = min(g₁, B)            buckets of the result, by the grouping attribute of the first input

Preconditions: grouping, join and aggregation attributes are independent and uniform, and all
inputs join on one attribute each, which all are equal.

What was found in the printed derivations:

1. Appendix A prints m₁ = α₁·w₁. The sentence after it, and m₂ = σ₂·w₂, say σ₁·w₁.
2. mᵢ takes every join value of another input to be one of input i. If input j has more join values
   than i, only the share σⱼ/σᵢ of its rows meets anything. The experiments have equal selectivities.
3. α and αᵢ are upper bounds. The result has no more groups than the join has rows,
   Π wᵢ·σ^(m-1) for equal σ; of gᵢ/σᵢ equally likely groups wᵢ rows hit fewer than the minimum of both.
4. B_g singles out the first input: with g₁ = 1 the result is one bucket of α groups. So the cost of
   a join depends on the order of its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from weft.errors import QepError

_LEAST = 1.0


@dataclass(frozen=True, slots=True)
class InputStatistics:
    """An input: rows per unit of time, rows of its window, groups, and selectivity.

    The rate of a table is 0: its rows neither come nor go.
    """

    rate: float
    window: float
    groups: float
    selectivity: float

    def __post_init__(self) -> None:
        if not 0 <= self.rate < math.inf:
            raise QepError("BAD_QEP", detail=f"the rate {self.rate:g} must not be negative")
        for name in ("window", "groups"):
            if not _LEAST <= getattr(self, name) < math.inf:
                detail = f"{name} {getattr(self, name):g} must be 1 or more"
                raise QepError("BAD_QEP", detail=detail)
        if not 0 < self.selectivity <= 1:
            detail = f"the selectivity {self.selectivity:g} must be above 0, and 1 or less"
            raise QepError("BAD_QEP", detail=detail)

    @property
    def set_size(self) -> float:
        """αᵢ: the groups of its aggregation set."""
        return min(self.window, self.groups / self.selectivity)

    @property
    def matching_rows(self) -> float:
        """mᵢ: rows of its window that a row of another input matches."""
        return self.selectivity * self.window

    @property
    def matching_groups(self) -> float:
        """nᵢ: groups of its aggregation set that a row of another input matches."""
        return min(self.selectivity * self.window, self.groups)

    def buckets(self, most: float) -> float:
        """Bᵢ: buckets of its hash table, by join attribute."""
        return min(1 / self.selectivity, most)


@dataclass(frozen=True, slots=True)
class JoinStatistics:
    """A join of several inputs, and the largest number of buckets of its hash tables."""

    inputs: tuple[InputStatistics, ...]
    buckets: float

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            detail = f"a join has two inputs or more, not {len(self.inputs)}"
            raise QepError("BAD_QEP", detail=detail)
        if not _LEAST <= self.buckets < math.inf:
            raise QepError("BAD_QEP", detail=f"buckets {self.buckets:g} must be 1 or more")

    @property
    def result_size(self) -> float:
        """α: the groups of the result."""
        return math.prod(min(given.window, given.groups) for given in self.inputs)

    @property
    def result_buckets(self) -> float:
        """B_g: buckets of the result."""
        return min(self.inputs[0].groups, self.buckets)


def join_statistics(
    rows: Sequence[tuple[float, float, float, float]], buckets: float
) -> JoinStatistics:
    """Statistics from rows of (rate, window, groups, selectivity).

    The default setting of the paper's two-way experiments:

    >>> join = join_statistics([(300, 5000, 150, 0.1), (300, 5000, 1, 0.1)], buckets=1021)
    >>> join.result_size, [given.set_size for given in join.inputs]
    (150, [1500.0, 10.0])
    """
    return JoinStatistics(tuple(InputStatistics(*row) for row in rows), buckets)
