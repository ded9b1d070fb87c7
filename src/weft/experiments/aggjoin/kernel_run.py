"""The kernel at a point: what weft's runtime computes for every instant of an aggregation join.

weft does not run Algorithm 1 (`docs/decisions/0015`): at every instant it joins the contents of the windows anew,
vectorized, with the rows of late inputs and the aggregation sets of early ones. The query is the paper's: SUM of
every input's attribute, grouped by the grouping attributes of all inputs. It is evaluated once per unit of time.

Entries are as the runtime has them when it evaluates: rows of late inputs, and of early ones the panes of their
aggregation sets. Making panes is no part of the time: Spark does it for all queries together. Merging the panes of
a window is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from weft.algebra.aggregate import Aggregate
from weft.algebra.joinagg.query import (
    AggregationInput,
    AggregationJoin,
    Attribute,
    JoinedAggregate,
)
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.partial import Partial
from weft.algebra.predicates.canonical import predicate_set
from weft.algebra.scalar import Call, Expression, Ref
from weft.experiments.aggjoin.parameters import Budget, Point
from weft.kernel.columns.column import column
from weft.kernel.joinagg.entries import Entries, entries_of
from weft.kernel.joinagg.evaluation import Side, evaluated
from weft.optimizer.joinagg.plans import Plan, all_plans
from weft.workloads.aggjoin.streams import GROUP, JOIN, VALUE, StreamShape, stream

SECOND: Final = 1_000_000
_SUM: Final = Aggregate("sum", (Expression(f"`{VALUE}`", "bigint", (VALUE,)),), "bigint")
PARTIALS: Final[tuple[Partial, ...]] = JoinedAggregate(_SUM, 0).partials("0")


@dataclass(frozen=True)
class KernelRun:
    """A plan in the kernel: seconds for an instant."""

    plan: Plan
    seconds: float


class PointKernel:
    """All plans at a point, in the order of their case numbers. In each round every plan evaluates the next instant, unless it
    has used up its seconds. The least of its times counts, that of the quietest moment."""

    def __init__(self, point: Point, budget: Budget, seed: int) -> None:
        self._budget = budget
        self._join = KernelJoin(point, budget.rounds, seed)
        self._seconds: dict[Plan, list[float]] = {plan: [] for plan in all_plans(len(point.inputs))}

    def round(self) -> None:
        for plan, times in self._seconds.items():
            if sum(times) < self._budget.seconds:
                started = time.process_time()
                self._join.at(len(times) + 1, plan)
                times.append(time.process_time() - started)

    @property
    def runs(self) -> tuple[KernelRun, ...]:
        return tuple(KernelRun(plan, min(times)) for plan, times in self._seconds.items())


class KernelJoin:
    """The query of a point, and the entries of its inputs, as rows and as panes."""

    def __init__(self, point: Point, instants: int, seed: int) -> None:
        self.query = _query(len(point.inputs))
        self.rows = [_entries(point, number, instants, seed) for number in range(len(point.inputs))]
        self.panes = [rows.combined(PARTIALS) for rows in self.rows]

    def at(self, instant: int, plan: Plan) -> pa.Table:
        """The result at an instant: groups `k0…` and sums `a0…`."""
        # Copies: a step of the runtime has new entries beside the old ones, so it knows nothing about them yet.
        sides = [
            Side(replace(panes if early else rows), early, PARTIALS)
            for rows, panes, early in zip(self.rows, self.panes, plan, strict=True)
        ]
        at = np.array([instant * SECOND])
        return evaluated(self.query, sides, [PARTIALS] * len(sides), at, ansi=False)


def _entries(point: Point, number: int, instants: int, seed: int) -> Entries:
    """The rows of an input. At instant n its window was filled, and n units of time have passed since."""
    given = point.inputs[number]
    rate, window = round(given.rate), int(given.window)
    shape = StreamShape(given.rate, int(given.groups), round(1 / given.selectivity))
    table = stream(shape, window + instants * rate, number, seed)
    # At instant n the window holds the last rows of those that had come by then: window + n·rate.
    places = np.arange(table.num_rows)
    first = np.maximum(-(-(places + 1 - window) // rate), 0)
    last = places // rate
    values = table[VALUE].combine_chunks()
    halves = pa.StructArray.from_arrays(
        [pa.array(np.zeros(table.num_rows, np.int64)), values], ["high", "low"]
    )
    ones = np.ones(table.num_rows, np.int64)
    lifted = [halves if p.combine.name == "add_wide" else pa.array(ones) for p in PARTIALS]
    partials = pa.table(lifted, names=[partial.name for partial in PARTIALS])
    columns = {name: column(table[name].combine_chunks()) for name in (JOIN, GROUP)}
    return entries_of(partials, first * SECOND, last * SECOND, columns, ones, PARTIALS)


def _query(inputs: int) -> AggregationJoin:
    attributes = tuple(
        Attribute(name, Expression(f"`{name}`", "string", (name,))) for name in (JOIN, GROUP)
    )
    equal = tuple(
        Call("=", (Ref(f"{slot}.{JOIN}", "string"), Ref(f"{slot + 1}.{JOIN}", "string")), "boolean")
        for slot in range(inputs - 1)
    )
    # Contents are given by their instants, so the window of an input is never asked for its length.
    window = InputWindow("sliding", SECOND)
    return AggregationJoin(
        id="aggjoin",
        name="aggjoin",
        sql="",
        inputs=tuple(
            AggregationInput(f"s{slot}", f"s{slot}", window, None, attributes)
            for slot in range(inputs)
        ),
        predicates=predicate_set(equal[0] if len(equal) == 1 else Call("and", equal, "boolean")),
        keys=tuple(Ref(f"{slot}.{GROUP}", "string") for slot in range(inputs)),
        aggregates=tuple(JoinedAggregate(_SUM, slot) for slot in range(inputs)),
        having=None,
        columns=(),
        step=SECOND,
    )
