"""The window of an input of an aggregation join, and the instants at which a row is inside it.

A query is evaluated at instants, the multiples of a step. At an instant `at`
- a *sliding* window of length L holds the rows of [at - L, at);
- a *tumbling* one those of [m, at), where m is the last multiple of L before `at`;
- a *landmark* one all rows before `at`.

So a row, or all rows between two neighbouring edges, count from a first instant to a last one. Rows are gathered by
*pane*: the greatest common divisor of the step and the window's length, so that no window begins or ends inside one.

>>> sliding = InputWindow("sliding", 30)
>>> sliding.pane(20)
10
>>> sliding.instants(10, 20)
(20, 20)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

WindowKind = Literal["sliding", "tumbling", "landmark"]
FOR_EVER: Final = 1 << 62
"""The last instant of what never leaves a window."""


@dataclass(frozen=True, slots=True)
class InputWindow:
    """A window over one input; lengths are in microseconds of event time."""

    kind: WindowKind
    length: int = 0

    def __post_init__(self) -> None:
        if (self.length <= 0) != (self.kind == "landmark"):
            raise ValueError(f"a {self.kind} window of length {self.length}")

    def pane(self, step: int) -> int:
        """The length of the panes between which no window has an edge."""
        return step if self.kind == "landmark" else math.gcd(self.length, step)

    def instants(self, pane_end: int, step: int) -> tuple[int, int]:
        """The first and the last instant at which the pane that ends here counts; the first is after the
        last if it never does."""
        first = -(-pane_end // step) * step
        if self.kind == "landmark":
            return first, FOR_EVER
        if self.kind == "tumbling":
            last = -(-pane_end // self.length) * self.length
        else:
            last = pane_end - self.pane(step) + self.length
        return first, last // step * step
