"""Which lane computes what.

A unit of work is one group of the program and one key bucket. A *placer* gives every unit a lane, from the
units' predicted costs and the lanes' weights (a lane of weight 2 can do twice as much). Any placement gives
the same results, and files know nothing of it, so it may change from step to step, with the number of lanes.

`largest_first` is the default: the most expensive unit first, each to the lane with the least to do
(Graham's rule, at most 4/3 of the best possible for lanes of equal weight). Time: O(n log n) for n units.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.kernel.windows.program import GroupProgram, Program
from weft.optimizer.cost import SECOND, fragment_rate
from weft.optimizer.windows.calibration import Constants, calibrated
from weft.runtime.level1.fragments import BUCKETS


@dataclass(frozen=True)
class Unit:
    """The windows of a group, by its place in the program, for the keys of one bucket. `cost` is in
    seconds of work per second of event time."""

    group: int
    bucket: int
    cost: float


Placer = Callable[[Sequence[Unit], Sequence[float]], Sequence[int]]
"""The lane of each unit, given the weights of the lanes."""


@dataclass(frozen=True)
class Share:
    """Groups that a lane computes for the same buckets."""

    groups: tuple[int, ...]
    buckets: tuple[int, ...]


@dataclass(frozen=True)
class Placement:
    """What each lane computes, and the predicted cost of each."""

    shares: tuple[tuple[Share, ...], ...]
    costs: tuple[float, ...]


def largest_first(units: Sequence[Unit], weights: Sequence[float]) -> list[int]:
    """The lanes of units, the most expensive units first.

    >>> largest_first([Unit(0, b, cost) for b, cost in enumerate((3.0, 2.0, 2.0, 1.0))], [1.0, 1.0])
    [0, 1, 1, 0]
    """
    lanes = [0] * len(units)
    loads = [(0.0, lane) for lane in range(len(weights))]
    for place in sorted(range(len(units)), key=lambda place: -units[place].cost):
        load, lane = heapq.heappop(loads)
        heapq.heappush(loads, (load + units[place].cost / weights[lane], lane))
        lanes[place] = lane
    return lanes


def placed(program: Program, lanes: int, placer: Placer = largest_first) -> Placement:
    """The placement of all units of a program on lanes of equal weight."""
    units = units_of(program, calibrated())
    lane_of = placer(units, [1.0] * lanes)
    if len(lane_of) != len(units) or any(not 0 <= lane < lanes for lane in lane_of):
        raise ValueError("a placer gives every unit a lane")
    costs = [0.0] * lanes
    buckets: list[dict[int, list[int]]] = [{} for _ in range(lanes)]
    for unit, lane in zip(units, lane_of, strict=True):
        costs[lane] += unit.cost
        buckets[lane].setdefault(unit.group, []).append(unit.bucket)
    return Placement(tuple(map(_shares, buckets)), tuple(costs))


def _shares(buckets_by_group: dict[int, list[int]]) -> tuple[Share, ...]:
    """Groups with the same buckets read the same rows, so they are computed together."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for group, buckets in buckets_by_group.items():
        groups.setdefault(tuple(sorted(buckets)), []).append(group)
    return tuple(Share(tuple(members), buckets) for buckets, members in groups.items())


def units_of(program: Program, constants: Constants) -> list[Unit]:
    """All units of a program. Groups without keys have all their rows in one bucket."""
    units: list[Unit] = []
    for number, group in enumerate(program.groups):
        cost = _cost(program, group, constants)
        buckets = BUCKETS if program.plan.node_by_id[group.node].group_keys else 1
        units += [Unit(number, bucket, cost / buckets) for bucket in range(buckets)]
    return units


def _cost(program: Program, group: GroupProgram, constants: Constants) -> float:
    """Level 3 and the results of a group, by the calibrated model (`optimizer.cost.seconds`)."""
    sharing = program.plan.sharing
    windows = [query.window for shape in group.shapes for query in shape.queries]
    fragments = program.pools[group.pools[0]].fragments
    rate = fragment_rate(fragments or program.plan.node_by_id[group.node].fragments)
    longest = max(window.range for window in windows) / SECOND
    scanned = rate.per_second * (longest + sharing.step) / sharing.step * constants.scan
    results = sum(SECOND / window.slide for window in windows) * constants.result
    return (scanned + results) * sharing.keys
