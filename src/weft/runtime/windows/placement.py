"""Which lane computes what.

A unit of work is one group of the program and one key bucket, with its predicted cost in seconds of work per second
of event time. `optimizer.placement.units` gives every unit a lane, so that costs are in proportion to the lanes' weights. The buckets of a group cost
the same, so a lane's buckets are neighbours: it then reads few row groups of state files that others read, too (`level1/tiles`). Any placement gives the same results, and files
know nothing of it, so it may change from step to step, with the number of lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.kernel.windows.program import GroupProgram, Program
from weft.optimizer.cost import SECOND, fragment_rate
from weft.optimizer.placement.units import Unit, place_units
from weft.optimizer.windows.calibration import Constants, calibrated
from weft.runtime.level1.fragments import BUCKETS


@dataclass(frozen=True)
class Share:
    """Groups that a lane computes for the same buckets."""

    groups: tuple[int, ...]
    buckets: tuple[int, ...]


@dataclass(frozen=True)
class Placement:
    """What each lane computes, and the predicted cost of each."""

    weights: tuple[float, ...]
    shares: tuple[tuple[Share, ...], ...]
    costs: tuple[float, ...]
    """In seconds of work per second of event time, whatever the weight of the lane."""


def placed(program: Program, weights: Sequence[float]) -> Placement:
    """The placement of all units of a program on lanes of these weights."""
    units = units_of(program, calibrated())
    placement = place_units(units, weights)
    lanes_of: dict[int, list[int]] = {}
    for unit, lane in zip(units, placement.lane_of, strict=True):
        lanes_of.setdefault(int(unit.group), []).append(lane)
    buckets: list[dict[int, list[int]]] = [{} for _ in weights]
    for group, lanes in lanes_of.items():
        for bucket, lane in enumerate(sorted(lanes)):
            buckets[lane].setdefault(group, []).append(bucket)
    costs = (load * weight for load, weight in zip(placement.loads, weights, strict=True))
    return Placement(tuple(weights), tuple(map(_shares, buckets)), tuple(costs))


def _shares(buckets_by_group: dict[int, list[int]]) -> tuple[Share, ...]:
    """Groups with the same buckets read the same rows, so they are computed together."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for group, buckets in buckets_by_group.items():
        groups.setdefault(tuple(sorted(buckets)), []).append(group)
    return tuple(Share(tuple(members), buckets) for buckets, members in groups.items())


def units_of(program: Program, constants: Constants) -> list[Unit]:
    """All units of a program; a group is named by its place in it. Groups without keys have all their rows in
    one bucket."""
    units: list[Unit] = []
    for number, group in enumerate(program.groups):
        cost = group_cost(program, group, constants)
        buckets = BUCKETS if program.plan.node_by_id[group.node].group_keys else 1
        units += [Unit(str(number), bucket, cost / buckets) for bucket in range(buckets)]
    return units


def group_cost(program: Program, group: GroupProgram, constants: Constants) -> float:
    """Levels 2 and 3 and the results of a group, by the calibrated model (`optimizer.cost.seconds`). Files hold the node's
    fragments, so a lane makes a group's coarse fragments anew in every step, for the whole span that it reads."""
    sharing = program.plan.sharing
    windows = [query.window for shape in group.shapes for query in shape.queries]
    coarse = program.pools[group.pools[0]].fragments
    rate = fragment_rate(program.plan.node_by_id[group.node].fragments)
    span = (max(window.range for window in windows) / SECOND + sharing.step) / sharing.step
    scanned = rate.per_second * span * constants.scan
    if coarse is not None:
        scanned = rate.per_second * span * constants.coalesce
        scanned += fragment_rate(coarse).per_second * span * constants.scan
    results = sum(SECOND / window.slide for window in windows) * constants.result
    return (scanned + results) * sharing.keys
