"""What it costs to test a joined entry for one more query (`TEST` in `kernel/joinagg/together`), measured.

K queries over the same two late inputs, each with a selection that a fraction f of the first input's rows passes, are evaluated as one physical join and
as K joins of their own rows. Joining the entries of one query costs f·c, if c is what joining all of them costs; groups cost the same either way. As one join
there is a test for every query and entry, and what passes is copied, so that

    one by one - as one ≈ a·(K·f - TEST·K - ONCE)

with a below c by what copying costs. All three are the least squares solution over several K and f. Entries are many beside rows: what it costs to make contents
once or K times is no part of this.
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
from weft.kernel.joinagg.together import Member, Side, evaluated_together
from weft.optimizer.joinagg.statistics import InputStatistics

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


def tested(cases: Sequence[Uniting]) -> tuple[float, float]:
    """TEST and ONCE: what a test of an entry costs, and joining all of them once, as parts of joining an entry.

    >>> cost = lambda k, f: 10 + 2 * k  # a join of 10, tests of 2
    >>> tested([Uniting(k, f, cost(k, f), 10 * k * f) for k in (2, 8) for f in (0.5, 1.0)])
    (0.2, 1.0)
    """
    parts = np.array([(case.queries * case.fraction, -case.queries, -1) for case in cases])
    saved = np.array([case.alone - case.together for case in cases])
    join, test, once = np.linalg.lstsq(parts, saved, rcond=None)[0]
    return round(float(test / join), 12), round(float(once / join), 12)


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
