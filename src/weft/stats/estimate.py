"""A figure, where it comes from, and on how much data it rests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Basis = Literal["measured", "sketched", "sampled", "assumed"]
"""Counted on all rows; a sketch of all rows of a micro-batch; a sample; a stated default."""

_FADE = 0.7


@dataclass(frozen=True, slots=True)
class Estimate:
    """`rows` is the number of rows behind the value; 0 if it is assumed."""

    value: float
    source: Basis
    rows: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Estimate:
        return Estimate(float(body["value"]), body["source"], float(body["rows"]))


@dataclass(frozen=True, slots=True)
class Selectivity:
    """Rows that a predicate was tried on and those it kept; older ones count less.

    Each new sample multiplies what was known by 0.7, the weight that the moving averages of
    `runtime.replanning` give to the past. NULL is not kept, as in WHERE.

    >>> Selectivity(matched=2.0, rows=10.0).then(8, 10).share
    0.552...
    """

    matched: float
    rows: float

    def then(self, matched: int, rows: int) -> Selectivity:
        return Selectivity(_FADE * self.matched + matched, _FADE * self.rows + rows)

    @property
    def share(self) -> float:
        return self.matched / self.rows

    @property
    def estimate(self) -> Estimate:
        return Estimate(self.share, "sampled", self.rows)
