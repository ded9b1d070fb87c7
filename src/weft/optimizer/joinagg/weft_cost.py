"""What a plan costs in weft, in microseconds of the driver for each instant.

The paper's operators update sets row by row (`generic_cost`). Weft evaluates all instants of a step together (`kernel/joinagg`), so other
things are paid for. Of an instant, with w rows in the window of an input, r of them new, k keys, e entries in panes, of which n are new:

    early    AGGREGATED·r + ENTRY·n + MERGED·e       rows to fragments in Spark, panes published, panes merged by key
    late     ROW·r + COPIED·w                        rows published, each an entry at every instant
    join     PROBED·Σ c + JOINED·(Π c · Π 1/d)       contents c = k if early, w if late; d join values of each pair of inputs

Rows of a table cost nothing to bring; merging them is paid once for each step. The constants are microseconds on a core of the machine that
weft was developed on. COPIED and JOINED are fitted at points drawn at random (`weft bench aggjoin --only fit`); of MERGED and PROBED the fit finds nothing beside
them, so they are small. AGGREGATED is level 1's rate with a warm scan, ROW and ENTRY are estimates of what writing, reading and loading costs. Only their ratios matter.

Time: O(m²) for a plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.optimizer.joinagg.choice import MOST_PRICED, Choice, PricedPlan
from weft.optimizer.joinagg.plans import Plan, all_plans, with_input
from weft.optimizer.joinagg.possible import Fixed, is_possible, nearest

AGGREGATED = 0.08
"""A row into a fragment: one native aggregation, shared by all that read the node."""
ROW = 0.25
"""A row published, read again and lifted."""
ENTRY = 0.5
"""An entry of a pane published and read again."""
MERGED = 0.01
"""An entry of a pane merged by key."""
COPIED = 0.06
"""A row of a late input at an instant."""
PROBED = 0.01
"""An entry sorted or searched in a join."""
JOINED = 0.16
"""A joined entry tested, scaled and grouped."""


@dataclass(frozen=True, slots=True)
class InputLoad:
    """One input at an instant: rows in the window and new ones, keys, and entries in panes and new ones."""

    rows: float
    new_rows: float
    keys: float
    entries: float
    new_entries: float

    def contents(self, early: bool) -> float:
        return min(self.keys, self.rows) if early else self.rows

    def bringing(self, early: bool) -> float:
        """The cost of its contents."""
        if early:
            coming = AGGREGATED * self.new_rows + ENTRY * self.new_entries
            return coming + MERGED * self.entries
        return ROW * self.new_rows + COPIED * self.rows


@dataclass(frozen=True)
class JoinLoad:
    """A join at an instant. `values` are the join values of pairs of inputs that are joined on equal keys."""

    inputs: tuple[InputLoad, ...]
    values: Mapping[tuple[int, int], float]

    def joined(self, plan: Plan) -> float:
        """How many entries are joined, each input connected to the first one that it has a key with."""
        count = math.prod(i.contents(early) for i, early in zip(self.inputs, plan, strict=True))
        for slot in range(1, len(self.inputs)):
            pairs = [values for (_, right), values in sorted(self.values.items()) if right == slot]
            count /= max(pairs, default=1.0)
        return count


def weft_cost(load: JoinLoad, plan: Plan) -> float:
    """Microseconds for each instant.

    >>> bids, people = InputLoad(3600, 10, 100, 400, 5), InputLoad(50, 1, 50, 50, 1)
    >>> load = JoinLoad((bids, people), {(0, 1): 50.0})
    >>> weft_cost(load, (True, True)) < weft_cost(load, (False, False))
    True
    """
    sides = list(zip(load.inputs, plan, strict=True))
    probed = sum(side.contents(early) for side, early in sides)
    brought = math.fsum(side.bringing(early) for side, early in sides)
    return brought + PROBED * probed + JOINED * load.joined(plan)


def choose_plan(load: JoinLoad, fixed: Fixed) -> Choice:
    """The cheapest plan that can be run; with many inputs a good one, by changing one input at a time."""
    if len(load.inputs) <= MOST_PRICED:
        plans: Sequence[Plan] = [p for p in all_plans(len(fixed)) if is_possible(p, fixed)]
    else:
        plans = _descent(load, fixed)
    priced = tuple(PricedPlan(plan, weft_cost(load, plan)) for plan in plans)
    best = min(priced, key=lambda plan: plan.cost)
    return Choice(best, priced, exact=len(load.inputs) <= MOST_PRICED)


def _descent(load: JoinLoad, fixed: Fixed) -> list[Plan]:
    plans = [nearest((True,) * len(fixed), fixed)]
    while True:
        neighbours = [
            with_input(plans[-1], slot, not plans[-1][slot])
            for slot, must in enumerate(fixed)
            if must is None
        ]
        if not neighbours:
            return plans
        cheapest = min(neighbours, key=lambda plan: weft_cost(load, plan))
        if weft_cost(load, cheapest) >= weft_cost(load, plans[-1]):
            return plans
        plans.append(cheapest)
