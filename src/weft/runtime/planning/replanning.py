"""When to choose weave groups again: what a stream's steps measured, and whether new groups pay.

Steps measure rows per second of event time, seconds of event time per step, and groups per fragment,
as moving averages over the last few steps. The optimizer runs again if one of these measures has
changed by a factor. It also runs again if samples show that the groups per fragment of a node have.
The new weave groups are used if they cost clearly less than those in use. Nothing else changes with
them: the files of a node hold fine fragments, whatever its weave groups.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from weft.algebra.plan import SharedPlan, Sharing
from weft.optimizer.cost import fragment_rate, node_costs, seconds
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import (
    CALIBRATED,
    GroupCounts,
    WindowWeaving,
    arranging,
    parts_of,
)
from weft.optimizer.windows.calibration import calibrated
from weft.runtime.checkpoint.commits import Commit
from weft.runtime.settings import Settings
from weft.stats import StreamStatistics

_WEIGHT_OF_LAST = 0.3
_WORTH_IT = 0.9
_MICROS = 1_000_000


def updated_measures(
    averages: dict[str, Any], advance: int, rows: int, fragments: int, plan: SharedPlan
) -> dict[str, float]:
    """The averages after a step in which event time advanced by `advance` microseconds."""
    if advance <= 0 or not rows:
        return {}
    passed = advance / _MICROS
    ends = sum(fragment_rate(node.fragments).per_second for node in plan.nodes) * passed
    now = {"rate": rows / passed, "step": passed, "keys": max(fragments / max(ends, 1.0), 1.0)}
    before = {name: averages.get(name, value) for name, value in now.items()}
    return {
        name: before[name] + _WEIGHT_OF_LAST * (value - before[name]) for name, value in now.items()
    }


def measured_sharing(settings: Settings, last: Commit | None) -> Sharing:
    """The choices of the user, with the measures so far, for the optimizer."""
    measures = last.metrics if last is not None else {}
    assumed = Sharing(
        settings.optimizer,
        settings.model,
        rate=settings.assumed_rate,
        passes=tuple(settings.passes),
        allocator=settings.allocator,
        memory_budget=settings.memory_budget,
    )
    if "rate" not in measures:
        return assumed
    return replace(
        assumed,
        rate=measures["rate"],
        keys=measures["keys"],
        step=measures["step"],
        measured=True,
    )


def drifted(then: Sharing, now: Sharing, factor: float) -> bool:
    """Whether weave groups chosen for `then` should be chosen again."""
    if _user_choice(then) != _user_choice(now):
        return True
    if not now.measured:
        return False
    pairs = ((then.rate, now.rate), (then.keys, now.keys), (then.step, now.step))
    return not then.measured or any(max(a, b) > factor * min(a, b) for a, b in pairs)


def groups_drifted(
    then: StreamStatistics, now: StreamStatistics, plan: SharedPlan, factor: float
) -> bool:
    """Whether the groups in a fragment of some node have changed by a factor since `then`. Nodes count
    only if both statistics know their keys."""
    if then is now:
        return False
    for node in plan.nodes:
        keys = [key.sql for key in node.keys]
        ends_per_second = fragment_rate(node.fragments).per_second
        estimates = [
            statistics.estimate(keys, max(statistics.rate.value / ends_per_second, 1.0))
            for statistics in (then, now)
        ]
        if any(estimate.source == "assumed" for estimate in estimates):
            continue
        lower, higher = sorted(estimate.value for estimate in estimates)
        if higher > factor * lower:
            return True
    return False


def pays(plan: SharedPlan, sharing: Sharing, statistics: StreamStatistics | None = None) -> bool:
    """Whether new weave groups cost clearly less than those of the plan, or the user has chosen another
    optimizer or model."""
    if _user_choice(sharing) != _user_choice(plan.sharing):
        return True
    counts = group_counts(statistics)
    woven = share(0, plan.stream, plan.queries, {}, WindowWeaving(sharing, counts))
    if _mapping(woven) == _mapping(plan) and _tree(woven) == _tree(plan):
        return False
    return _cost(woven, sharing, counts) < _WORTH_IT * _cost(plan, sharing, counts)


def group_counts(statistics: StreamStatistics | None) -> GroupCounts | None:
    """The estimate of how many groups a set of keys has; None before it is known."""
    return statistics.groups if statistics is not None and statistics.known else None


def _user_choice(sharing: Sharing) -> tuple[object, ...]:
    """What the user chose."""
    chosen = (sharing.optimizer, sharing.model, sharing.passes)
    return (*chosen, sharing.allocator, sharing.memory_budget)


def _cost(plan: SharedPlan, sharing: Sharing, counts: GroupCounts | None) -> float:
    """The cost per second of event time: operations, or seconds in weft's own model. That model prices
    level 1 as the aggregate tree does."""
    costs = node_costs(plan, sharing.rate).values()
    if sharing.model == CALIBRATED:
        took = seconds(costs, sharing, calibrated())
        return took.total - took.level1 + arranging(sharing, counts).seconds(plan.nodes)
    return sum(cost.total for cost in costs)


def _tree(plan: SharedPlan) -> set[tuple[str, str | None]]:
    return {(node.id, node.parent) for node in plan.nodes}


def _mapping(plan: SharedPlan) -> set[tuple[frozenset[str], bool]]:
    """The group-mapping table: the members of every part, and whether the part has its own node."""
    members = {node.id for node in plan.nodes if node.members}
    return {
        (frozenset(query.id for query in part), node in members)
        for (node, _), part in parts_of(plan).items()
    }
