"""What a grouping costs: the papers' two models, and weft's own, calibrated on the machine.

From: the TriOps paper, equations 1 to 4. With λ rows per unit of time, m groups of edge rates Eᵢ
and overlap factors Ωᵢ = Σ range / slide, and E the edge rate of all queries together:

    TwoOps (3):  m·λ + Σ Eᵢ·Ωᵢ           one sub-aggregation for each group
    TriOps (4):  λ + m·E + Σ Eᵢ·Ωᵢ       one for all, and the intercede level

weft's final aggregation is incremental: a result costs the same whatever its range, and each
fragment of a group is scanned once. With K keys, in seconds per second:

    Calibrated:  λ·row + [m > 1] m·E·K·coalesce + Σ Eᵢ·K·scan + Σ_q K/slide_q·result
    with two levels:   m·λ·row                  + Σ Eᵢ·K·scan + Σ_q K/slide_q·result

All have one form, which is all that an optimizer sees:

    cost = constant + price·m + Σ Eᵢ·(per_fragment + per_overlap·Ωᵢ)

with `lone_price` instead of the price if there is only one group. E does not depend on the
grouping, so TriOps is λ plus TwoOps at the price E instead of λ: its best grouping does not depend
on the rate. A merge of groups i and j gains price - δ, and
δ = E_ij·w_ij - Eᵢ·wᵢ - E_j·w_j (w the bracket above) does not depend on the rate or the price.

TriOps beats TwoOps on m groups if λ + m·E < m·λ. So with λ ≤ E, or with one group, it loses: then
TwoOps is the plan (`triops_pays`). The paper calls E = λ = 1 the only exception; any λ ≤ E is.
With `per_overlap` 0 every merge gains (edge rates are subadditive), so one group is the optimum
of the calibrated model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, lcm
from typing import ClassVar, Protocol

Number = Fraction | float

_MOST_BITS = 4096


class CostModel(Protocol):
    """A cost of the form above. Rates are per unit of time."""

    @property
    def name(self) -> str: ...

    @property
    def per_overlap(self) -> Number:
        """Cost of a group's fragment for each unit of its overlap factor."""
        ...

    @property
    def per_fragment(self) -> Number:
        """Cost of a group's fragment, whatever the queries of the group."""
        ...

    def price(self, rate: Number, edge_rate: Number) -> Number:
        """Cost of one more group, given the rows and the edges of all queries."""
        ...

    def lone_price(self, rate: Number, edge_rate: Number) -> Number:
        """Cost of a group that is the only one."""
        ...

    def constant(self, rate: Number, result_rate: Number) -> Number:
        """Cost that no grouping changes; `result_rate` is the sum of 1 / slide over queries."""
        ...


@dataclass(frozen=True, slots=True)
class TwoOps:
    """Equation 3: operations per unit of time with a sub-aggregation for each group."""

    name: ClassVar[str] = "twoops"
    per_overlap: ClassVar[int] = 1
    per_fragment: ClassVar[int] = 0

    def price(self, rate: Number, edge_rate: Number) -> Number:
        return rate

    def lone_price(self, rate: Number, edge_rate: Number) -> Number:
        return rate

    def constant(self, rate: Number, result_rate: Number) -> Number:
        return Fraction(0)


@dataclass(frozen=True, slots=True)
class TriOps:
    """Equation 4: operations per unit of time with one sub-aggregation and the intercede level."""

    name: ClassVar[str] = "triops"
    per_overlap: ClassVar[int] = 1
    per_fragment: ClassVar[int] = 0

    def price(self, rate: Number, edge_rate: Number) -> Number:
        return edge_rate

    def lone_price(self, rate: Number, edge_rate: Number) -> Number:
        return edge_rate

    def constant(self, rate: Number, result_rate: Number) -> Number:
        return rate


@dataclass(frozen=True, slots=True)
class Calibrated:
    """weft's own cost in seconds per second, from constants measured on the machine, with every
    fragment scanned once. `spans` adds that it is scanned at every step while it is open.

    `row`, `coalesce`, `scan` and `result` are seconds for one row at level 1, one fragment of one
    key at level 2, one at level 3, and one result; `levels` is 3, or 2 without the intercede level.
    """

    keys: float
    row: float
    coalesce: float
    scan: float
    result: float
    levels: int = 3
    per_overlap: ClassVar[int] = 0

    def __post_init__(self) -> None:
        if self.levels not in (2, 3):
            raise ValueError(f"there are two or three levels, not {self.levels}")
        if min(self.keys, self.row, self.coalesce, self.scan, self.result) < 0:
            raise ValueError(f"costs cannot be negative: {self}")

    @property
    def name(self) -> str:
        return f"calibrated-{'triops' if self.levels == 3 else 'twoops'}"

    @property
    def per_fragment(self) -> float:
        return self.keys * self.scan

    def price(self, rate: Number, edge_rate: Number) -> Number:
        return edge_rate * self.keys * self.coalesce if self.levels == 3 else rate * self.row

    def lone_price(self, rate: Number, edge_rate: Number) -> Number:
        return 0.0 if self.levels == 3 else rate * self.row

    def constant(self, rate: Number, result_rate: Number) -> Number:
        results = result_rate * self.keys * self.result
        return results + rate * self.row if self.levels == 3 else results


MODELS: dict[str, CostModel] = {model.name: model for model in (TwoOps(), TriOps())}
"""The papers' models, by the names of the command line."""


def plan_cost(
    model: CostModel,
    rate: Number,
    edge_rate: Number,
    result_rate: Number,
    groups: Iterable[tuple[Number, Number]],
) -> Number:
    """The cost of groups given as (edge rate, overlap factor); see `total`.

    >>> plan_cost(TriOps(), 10, Fraction(7, 10), 0, [(Fraction(7, 10), Fraction(57, 20))])
    Fraction(2539, 200)
    """
    members = list(groups)
    alone = len(members) == 1
    prices = model.lone_price(rate, edge_rate) if alone else model.price(rate, edge_rate)
    terms = [
        model.constant(rate, result_rate),
        prices * len(members),
        *(
            edge_rate * (model.per_fragment + model.per_overlap * overlap)
            for edge_rate, overlap in members
        ),
    ]
    return total(terms)


def total(terms: Sequence[Number]) -> Number:
    """The sum, exact if all terms are and the result has no thousands of digits.

    >>> total([Fraction(1, 3), Fraction(1, 6)]), total([Fraction(1, 3), 0.5])
    (Fraction(1, 2), 0.8333333333333333)
    """
    denominator = 1
    for term in terms:
        if isinstance(term, float):
            return fsum(terms)
        denominator = lcm(denominator, Fraction(term).denominator)
        if denominator.bit_length() > _MOST_BITS:
            return fsum(terms)
    return sum(terms, Fraction(0))


def triops_pays(rate: Number, edge_rate: Number, groups: int) -> bool:
    """Whether `groups` groups cost less under TriOps than under TwoOps.

    >>> triops_pays(1000, 1, 2), triops_pays(1000, 1, 1), triops_pays(0.5, 0.6, 9)
    (True, False, False)
    """
    return rate + groups * edge_rate < groups * rate
