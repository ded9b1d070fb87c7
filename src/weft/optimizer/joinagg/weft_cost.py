"""What a plan costs in weft, in microseconds of the driver for each instant.

The paper's operators update sets row by row (`generic_cost`). Weft evaluates all instants of a step together (`kernel/joinagg`), so other
things are paid for. Of an instant, with w rows in the window of an input, r of them new, k keys, e entries in panes, of which n are new:

    early    AGGREGATED·r + ENTRY·n + MERGED·e        rows to fragments in Spark, panes published, panes merged by key
    late     ROW·r                                    rows published, each an entry at every instant
    join     PROBED·Σ c + CARRIED·Σ i                 contents c = k if early, w if late; i joined so far, before the last input
    groups   (GROUPED + LIFTED·a + SCALED·s)·j        j joined entries, a aggregates, s of them scaled

The kernel joins small contents first, each connected to those before it (`kernel/joinagg/together`); here the order is the same. c entries
joined with i entries give i·c/d, where d are the join values of the pair. An aggregate is scaled if another input than its own is early: then
an entry of that input stands for several rows.

Late inputs that equality keys connect may be joined by the query network instead (`matches`), which looks at new rows only and finds each match once. For
that rows are published twice, each match is written and read, and the network takes a step. With m matches in the windows, of which n are new, that
saves

    PROBED·Σ w + CARRIED·Σ i - NETWORK_ROW·r - MATCH·n - NETWORK_STEP

Groups are made of matches at every instant, as they are of joined entries. Where many rows match, matches cost more than finding them again. A plan costs
what is less.

Rows of a table cost nothing to bring; merging them is paid once for each step. The constants are microseconds on a core of the machine that
weft was developed on; only their ratios matter. Those of the kernel (`KERNEL`) are fitted at points drawn at random (`weft bench aggjoin --only fit`);
AGGREGATED is level 1's rate with a warm scan; ROW and ENTRY are estimates of what writing, reading and loading costs, to be compared with `weft bench aggjoin --only publish`; those of the network are from
whole runs (`--only matches`).

Time: O(m²) for a plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from weft.optimizer.joinagg.choice import MOST_PRICED, Choice, PricedPlan
from weft.optimizer.joinagg.plans import Plan, all_plans, with_input
from weft.optimizer.joinagg.possible import Fixed, is_possible, nearest

AGGREGATED = 0.08
"""A row into a fragment: one native aggregation, shared by all that read the node."""
ROW = 0.25
"""A row published, read again and lifted."""
ENTRY = 0.5
"""An entry of a pane published and read again."""
NETWORK_ROW = 1.5
"""A row published for the network, too, read there, and looked up."""
MATCH = 3.0
"""A match found by the network, written, and read again."""
NETWORK_STEP = 100_000.0
"""A step of the network and what follows of it, as if each had one instant."""
KERNEL: Final[Mapping[str, float]] = MappingProxyType(
    {
        "MERGED": 0.205,  # an entry of a pane encoded, sorted and merged by key
        "PROBED": 0.397,  # a key or row of the contents, encoded, and sorted or searched in a join
        "CARRIED": 0.047,  # an entry joined of some inputs, to be joined with the next
        "GROUPED": 0.009,  # an entry joined of all inputs, put into its group
        "LIFTED": 0.037,  # an aggregate of a joined entry
        "SCALED": 0.027,  # the same for as many rows as the other inputs' entries stand for
    }
)
"""What the kernel does, by its name in the sums above."""


@dataclass(frozen=True, slots=True)
class InputLoad:
    """One input at an instant: rows in the window and new ones, keys, entries in panes and new ones, and the aggregates that read it."""

    rows: float
    new_rows: float
    keys: float
    entries: float
    new_entries: float
    aggregates: int = 1
    is_table: bool = False

    def contents(self, early: bool) -> float:
        return min(self.keys, self.rows) if early else self.rows

    def published(self, early: bool) -> float:
        """The cost of what comes new."""
        if early:
            return AGGREGATED * self.new_rows + ENTRY * self.new_entries
        return ROW * self.new_rows


@dataclass(frozen=True)
class JoinLoad:
    """A join at an instant. `values` are the join values of pairs of inputs that are joined on equal keys; `counts` are the aggregates that
    count joined rows."""

    inputs: tuple[InputLoad, ...]
    values: Mapping[tuple[int, int], float]
    counts: int = 0
    matchable: frozenset[int] = frozenset()
    """The inputs that the network may join while they are late."""

    def joined(self, plan: Plan) -> list[float]:
        """How many entries there are after each join, the last one being that of all inputs."""
        contents = [i.contents(early) for i, early in zip(self.inputs, plan, strict=True)]
        rest = set(range(len(contents)))
        first = min(rest, key=lambda slot: (self.inputs[slot].is_table, contents[slot], slot))
        rest.remove(first)
        done, sizes = {first}, [contents[first]]
        while rest:
            values = {slot: self._values(slot, done) for slot in rest}
            slot = min(rest, key=lambda slot: (values[slot] is None, contents[slot], slot))
            sizes.append(sizes[-1] * contents[slot] / (values[slot] or 1.0))
            rest.remove(slot)
            done.add(slot)
        return sizes[1:]

    def _values(self, slot: int, others: set[int]) -> float | None:
        """The join values of an input with others; None if no key connects them."""
        pairs = (self.values.get((min(slot, o), max(slot, o))) for o in others)
        return max((count for count in pairs if count is not None), default=None)

    def scaled(self, plan: Plan) -> int:
        """How many aggregates are scaled."""
        early = sum(plan)
        others = (early - is_early for is_early in plan)
        of_inputs = zip(self.inputs, others, strict=True)
        return sum(i.aggregates for i, count in of_inputs if count) + (self.counts if early else 0)


def kernel_work(load: JoinLoad, plan: Plan) -> dict[str, float]:
    """How often the kernel pays each of its constants for an instant."""
    sides = list(zip(load.inputs, plan, strict=True))
    *carried, joined = load.joined(plan)
    aggregates = sum(side.aggregates for side in load.inputs) + load.counts
    return {
        "MERGED": sum(side.entries for side, early in sides if early),
        "PROBED": sum(side.contents(early) for side, early in sides),
        "CARRIED": sum(carried),
        "GROUPED": joined,
        "LIFTED": joined * aggregates,
        "SCALED": joined * load.scaled(plan),
    }


def weft_cost(load: JoinLoad, plan: Plan) -> float:
    """Microseconds for each instant; late inputs are joined where it costs less.

    >>> bids, people = InputLoad(3600, 10, 100, 400, 5), InputLoad(50, 1, 50, 50, 1)
    >>> load = JoinLoad((bids, people), {(0, 1): 50.0})
    >>> weft_cost(load, (True, True)) < weft_cost(load, (False, False))
    True
    """
    published = (side.published(early) for side, early in zip(load.inputs, plan, strict=True))
    in_kernel = (KERNEL[name] * count for name, count in kernel_work(load, plan).items())
    late = {slot for slot in load.matchable if not plan[slot]}
    saved = saved_by_matches(load, largest_connected(map(set, load.values), late))
    return sum(published) + sum(in_kernel) - max(0.0, saved)


def saved_by_matches(load: JoinLoad, slots: Sequence[int], counted: float | None = None) -> float:
    """What it saves that the network joins some late inputs; nothing or less if it does not pay. `counted`: the matches in the windows, if they
    have been counted. Else every row is assumed to match one, if values are as many as rows."""
    if not slots:
        return 0.0
    inputs = [load.inputs[slot] for slot in slots]
    places = {slot: place for place, slot in enumerate(slots)}
    values = {
        (places[one], places[other]): count
        for (one, other), count in load.values.items()
        if one in places and other in places
    }
    *carried, matches = JoinLoad(tuple(inputs), values).joined((False,) * len(inputs))
    matches = matches if counted is None else counted
    new_matches = sum(matches * min(1.0, i.new_rows / i.rows) for i in inputs)
    at_instants = KERNEL["PROBED"] * sum(i.rows for i in inputs) + KERNEL["CARRIED"] * sum(carried)
    new_rows = sum(i.new_rows for i in inputs)
    return at_instants - NETWORK_ROW * new_rows - MATCH * new_matches - NETWORK_STEP


def largest_connected(pairs: Iterable[Collection[int]], slots: Collection[int]) -> tuple[int, ...]:
    """The largest group of inputs that pairs of them connect, in their order; none if it is one alone.

    >>> largest_connected([{0, 1}, {1, 2}, {3, 4}], {0, 1, 3, 4})
    (0, 1)
    """
    groups = [{slot} for slot in sorted(slots)]
    for pair in pairs:
        if {*pair} <= {*slots}:
            joined = [group for group in groups if group & {*pair}]
            groups = [group for group in groups if group not in joined]
            groups.append(set().union(*joined))
    largest = max(groups, key=lambda group: (len(group), -min(group)), default=set())
    return tuple(sorted(largest)) if len(largest) > 1 else ()


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
