"""Whether queries with different selections join as one, or one by one: the rule (`worth_uniting` in `kernel/joinagg/together`) beside what both take.

K queries over the same two late inputs, each with a selection that a fraction f of the first input's rows passes, are evaluated as one physical join and
as K joins of their own rows. The rule knows K and f; its constant TEST is what it costs to test a joined entry for one more query, as part of joining it.
The TEST that suits the measured cases best is searched for, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from weft.experiments.aggjoin.kernel_run import PARTIALS, SECOND, KernelJoin
from weft.experiments.aggjoin.parameters import Point
from weft.kernel.columns.column import column
from weft.kernel.joinagg.together import TEST, Member, Side, evaluated_together, worth_uniting
from weft.optimizer.joinagg.statistics import InputStatistics

_IN_QUESTION: Final = tuple(hundredths / 100 for hundredths in range(31))
QUERIES: Final = (2, 4, 8)
FRACTIONS: Final = (0.1, 0.3, 0.6, 1.0)
POINT: Final = Point(
    "uniting", 0, (InputStatistics(2000, 10_000, 50, 0.01), InputStatistics(2000, 10_000, 1, 0.01))
)
"""A million joined entries."""


@dataclass(frozen=True)
class Uniting:
    """A number of queries with selections of a fraction: seconds as one join, and one by one."""

    queries: int
    fraction: float
    together: float
    alone: float


def measured(rounds: int) -> list[Uniting]:
    """All cases in turns, the least of each one's times."""
    cases = [
        (count, fraction, *_evaluations(count, fraction))
        for count in QUERIES
        for fraction in FRACTIONS
    ]
    seconds: dict[tuple[int, float], list[list[float]]] = {}
    for _ in range(rounds):
        for count, fraction, together, alone in cases:
            times = seconds.setdefault((count, fraction), [[], []])
            for place, evaluate in enumerate((together, alone)):
                started = time.process_time()
                evaluate()
                times[place].append(time.process_time() - started)
    return [
        Uniting(count, fraction, min(together), min(alone))
        for (count, fraction), (together, alone) in seconds.items()
    ]


def losses(cases: Sequence[Uniting], test: float = TEST) -> list[float]:
    """How much more what the rule chooses takes than the better of both, in each case.

    >>> losses([Uniting(2, 1.0, together=3.0, alone=4.0), Uniting(8, 0.1, together=5.0, alone=4.0)])
    [0.0, 0.0]
    >>> losses([Uniting(2, 1.0, together=5.0, alone=4.0)])
    [0.25]
    """
    found = []
    for case in cases:
        united = worth_uniting([case.fraction] * case.queries, test)
        taken = case.together if united else case.alone
        found.append(taken / min(case.together, case.alone) - 1)
    return found


def best_test(cases: Sequence[Uniting]) -> float:
    """The TEST, of those in question, with which the rule loses least.

    >>> best_test([Uniting(8, 0.3, together=1.0, alone=2.0), Uniting(4, 0.3, together=2.0, alone=1.0)])
    0.05
    """
    return min(_IN_QUESTION, key=lambda test: (round(sum(losses(cases, test)), 6), test))


def _evaluations(count: int, fraction: float) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Evaluates so many queries as one join, and one by one."""
    join = KernelJoin(POINT, instants=1, seed=1)
    at, random = np.array([SECOND]), np.random.default_rng(1)
    first, second = join.rows
    names = [f"s{number}" for number in range(count)]
    chosen = {name: random.random(len(first)) < fraction for name in names}
    queries = [replace(join.query, id=name) for name in names]
    partials = [PARTIALS] * 2

    def together() -> None:
        selections = {name: column(pa.array(bits)) for name, bits in chosen.items()}
        sides = [
            Side(replace(first, columns={**first.columns, **selections}), False, PARTIALS),
            Side(replace(second), False, PARTIALS),
        ]
        members = [
            Member(query, partials, {0: name}) for query, name in zip(queries, names, strict=True)
        ]
        evaluated_together(members, sides, at, ansi=False)

    def alone() -> None:
        for query, name in zip(queries, names, strict=True):
            own = first.take(np.flatnonzero(chosen[name]))
            sides = [Side(own, False, PARTIALS), Side(replace(second), False, PARTIALS)]
            evaluated_together([Member(query, partials)], sides, at, ansi=False)

    return together, alone
