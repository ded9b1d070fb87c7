"""Units of work on lanes: what the runtime asks for.

weft's own. A unit is (weave group, key bucket) with a cost that is predicted or measured. Units share nothing with
each other but what a lane pays once for each weave group that it has a unit of (`group_cost`: reading the group's
fragments, starting its kernel); 0 if there is no such cost. Lanes have weights; the slowest lane is the step's
time, so the largest load, cost divided by weight, is what is minimized.

1. Without a placement before: expensive units first, each to the lane where the load after it is least (LPT; the
   largest load is at most 4/3 of the best for equal lanes and no group cost). With a group cost whole groups are
   placed so as well, and the better of both is kept.
2. With one: units stay on their lanes as far as these are kept; those without a lane are placed as in 1.
3. Then units leave the most loaded lane, by a move or an exchange for a cheaper unit, while that lowers the largest
   load, up to `most_moves` units and not once it is within `tolerance` of the average.
Every unit is on exactly one lane; equal inputs give equal placements.
Time: O(n · lanes) in NumPy for n units, O(n) for each move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.errors import PlacementError
from weft.optimizer.edges.common_edges import Floats
from weft.optimizer.edges.edge_atoms import Integers
from weft.optimizer.placement.demand import node_weights

TOLERANCE = 0.02
_MOST_MOVES_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of work: a weave group's share of a key bucket, and its predicted cost."""

    group: str
    bucket: int
    cost: float


@dataclass(frozen=True)
class UnitPlacement:
    """The lane of each unit, in the order they were given, and the lanes' loads."""

    lane_of: tuple[int, ...]
    loads: tuple[float, ...]
    moved: int
    """Units that had a lane before that is kept, and are on another one now."""

    @property
    def max_load(self) -> float:
        return max(self.loads)

    def units_of(self, lane: int) -> list[int]:
        """The positions of a lane's units."""
        return [position for position, number in enumerate(self.lane_of) if number == lane]


def place_units(
    units: Sequence[Unit],
    lanes: int | Sequence[float],
    before: Mapping[tuple[str, int], int] | None = None,
    group_cost: float = 0.0,
    tolerance: float = TOLERANCE,
    most_moves: int | None = None,
) -> UnitPlacement:
    """Units on lanes.

    `lanes` is how many there are, or their weights. `before` is the lane of each (group, bucket); a lane that
    is lost is one that has no unit there, or a number out of range. `most_moves` bounds how many units leave a lane
    that they could stay on, by default one in twenty; without a placement before there is no bound.

    >>> units = [Unit("hourly", bucket, cost) for bucket, cost in enumerate((5, 4, 3, 2))]
    >>> place_units(units, 2).lane_of, place_units(units, [2, 1]).loads
    ((0, 1, 1, 0), (5.0, 4.0))
    >>> place_units(units, 2, before={("hourly", 0): 0, ("hourly", 1): 0, ("hourly", 2): 1}).lane_of
    (0, 0, 1, 1)
    """
    weights = node_weights(lanes)
    _check(units, group_cost)
    stays = np.full(len(units), -1)
    if before is not None:
        for position, unit in enumerate(units):
            lane = before.get((unit.group, unit.bucket), -1)
            stays[position] = lane if 0 <= lane < len(weights) else -1
    if before is None:
        most_moves = 2 * len(units)
    elif most_moves is None:
        most_moves = max(1, round(_MOST_MOVES_SHARE * len(units)))
    tried = [_Lanes(units, weights, group_cost) for _ in range(2 if group_cost else 1)]
    for work, whole_groups in zip(tried, (False, True)):
        work.place(stays, whole_groups)
        work.improve(most_moves, tolerance)
    work = min(tried, key=lambda work: float(work.loads.max()))
    moved = int(np.count_nonzero((stays >= 0) & (stays != work.lane_of)))
    return UnitPlacement(tuple(work.lane_of.tolist()), tuple(work.loads.tolist()), moved)


def _check(units: Sequence[Unit], group_cost: float) -> None:
    for unit in units:
        if not 0 <= unit.cost < float("inf"):
            detail = (
                f"the cost {unit.cost} of unit ({unit.group}, {unit.bucket}) must not be negative"
            )
            raise PlacementError("BAD_PLACEMENT", detail=detail)
    if len({(unit.group, unit.bucket) for unit in units}) < len(units):
        raise PlacementError(
            "BAD_PLACEMENT", detail="a unit (weave group, key bucket) is given twice"
        )
    if not 0 <= group_cost < float("inf"):
        detail = f"the cost of a group {group_cost} must not be negative"
        raise PlacementError("BAD_PLACEMENT", detail=detail)


class _Lanes:
    """Units on lanes while they are placed."""

    def __init__(self, units: Sequence[Unit], weights: Floats, group_cost: float) -> None:
        numbers: dict[str, int] = {}
        self.costs: Floats = np.array([float(unit.cost) for unit in units])
        self._group = np.array(
            [numbers.setdefault(unit.group, len(numbers)) for unit in units], dtype=np.int64
        )
        self._members = np.zeros((len(weights), len(numbers)), dtype=np.int64)
        self._weights = weights
        self._group_cost = group_cost
        self.lane_of: Integers = np.full(len(units), -1)
        self.loads: Floats = np.zeros(len(weights))

    def place(self, stays: Integers, whole_groups: bool) -> None:
        """Units stay where they are; the others come expensive first, or by group, expensive groups first."""
        for position in np.flatnonzero(stays >= 0).tolist():
            self.put(position, int(stays[position]))
        waiting = np.flatnonzero(stays < 0)
        if not whole_groups:
            for position in waiting[np.argsort(-self.costs[waiting], kind="stable")].tolist():
                self.put(position, int(self.loads_with(position).argmin()))
            return
        group_costs = np.zeros(self._members.shape[1])
        np.add.at(group_costs, self._group[waiting], self.costs[waiting])
        for group in np.argsort(-group_costs, kind="stable").tolist():
            first = self._group_cost * (self._members[:, group] == 0)
            lane = int((self.loads + (group_costs[group] + first) / self._weights).argmin())
            for position in waiting[self._group[waiting] == group].tolist():
                self.put(position, lane)

    def loads_with(self, position: int) -> Floats:
        """What each lane's load would be with one more unit."""
        first = self._members[:, self._group[position]] == 0
        return np.asarray(
            self.loads + (self.costs[position] + self._group_cost * first) / self._weights
        )

    def put(self, position: int, lane: int) -> None:
        self.loads[lane] = self.loads_with(position)[lane]
        self._members[lane, self._group[position]] += 1
        self.lane_of[position] = lane

    def _take(self, position: int) -> None:
        """Take a unit off its lane, whose load is summed up anew: a difference would leave a rest where
        loads differ by many powers of ten."""
        lane = int(self.lane_of[position])
        self._members[lane, self._group[position]] -= 1
        self.lane_of[position] = -1
        left = self.costs[self.lane_of == lane].sum()
        left += self._group_cost * np.count_nonzero(self._members[lane])
        self.loads[lane] = left / self._weights[lane]

    def improve(self, most_moves: int, tolerance: float) -> None:
        """Units leave the most loaded lane while that lowers the largest load of the lanes concerned."""
        while most_moves > 0:
            highest = int(self.loads.argmax())
            mean = float(self.loads @ self._weights / self._weights.sum())
            if self.loads[highest] <= mean * (1 + tolerance):
                return
            if self._move(highest):
                most_moves -= 1
            elif most_moves > 1 and self._exchange(highest):
                most_moves -= 2
            else:
                return

    def _move(self, highest: int) -> bool:
        """The unit whose move to the least loaded lane leaves the larger of both loads least."""
        lowest = int(self.loads.argmin())
        own = np.flatnonzero(self.lane_of == highest)
        left = self.loads[highest] - self._leaving(own) / self._weights[highest]
        right = self.loads[lowest] + self._coming(own, lowest) / self._weights[lowest]
        larger = np.maximum(left, right)
        best = int(larger.argmin())
        if larger[best] >= self.loads[highest] * (1 - 1e-12):
            return False
        position = int(own[best])
        self._take(position)
        self.put(position, lowest)
        return True

    def _exchange(self, highest: int) -> bool:
        """A unit for a cheaper one of another lane, where no single move helps."""
        own = np.flatnonzero(self.lane_of == highest)
        for lane in np.argsort(self.loads, kind="stable")[:8].tolist():
            other = np.flatnonzero(self.lane_of == lane)
            if lane == highest or not len(other) or len(own) * len(other) > 4_000_000:
                continue
            given = self.costs[own][:, None] - self.costs[other][None, :]
            fixed = self._group_cost
            left = self.loads[highest] - (given - fixed) / self._weights[highest]
            right = self.loads[lane] + (given + fixed) / self._weights[lane]
            larger = np.maximum(left, right)
            row, column = divmod(int(larger.argmin()), len(other))
            if larger[row, column] < self.loads[highest] * (1 - 1e-9):
                first, second = int(own[row]), int(other[column])
                self._take(first)
                self._take(second)
                self.put(first, lane)
                self.put(second, highest)
                return True
        return False

    def _leaving(self, own: Integers) -> Floats:
        last = self._members[self.lane_of[own], self._group[own]] == 1
        return np.asarray(self.costs[own] + self._group_cost * last)

    def _coming(self, own: Integers, lane: int) -> Floats:
        first = self._members[lane, self._group[own]] == 0
        return np.asarray(self.costs[own] + self._group_cost * first)
