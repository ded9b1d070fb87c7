"""When to choose weave groups again: what a stream's steps measured, and whether it pays.

Steps measure, as moving averages over the last few of them: rows per second of event time, seconds
of event time per step, and groups per fragment. The optimizer runs again if one of them has
changed by a factor, or, where samples know them, the groups per fragment of a node; its groups are taken if they cost clearly less than those in use. Nothing else
changes with them: the files of a node hold fine fragments, whatever the groups.
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
from weft.runtime.protocol.commits import Commit
from weft.runtime.settings import Settings
from weft.stats import StreamStatistics

_WEIGHT_OF_LAST = 0.3
_WORTH_IT = 0.9
_MICROS = 1_000_000


def updated_measures(
    known: dict[str, Any], advance: int, rows: int, fragments: int, plan: SharedPlan
) -> dict[str, float]:
    """The averages after a step in which event time went on by `advance` microseconds."""
    if advance <= 0 or not rows:
        return {}
    passed = advance / _MICROS
    made = sum(fragment_rate(node.fragments).per_second for node in plan.nodes) * passed
    now = {"rate": rows / passed, "step": passed, "keys": max(fragments / max(made, 1.0), 1.0)}
    return {
        name: value if name not in known else known[name] + _WEIGHT_OF_LAST * (value - known[name])
        for name, value in now.items()
    }


def measured_sharing(settings: Settings, last: Commit | None) -> Sharing:
    """What an optimizer should know now."""
    measures = last.metrics if last is not None else {}
    asked = Sharing(
        settings.optimizer,
        settings.model,
        rate=settings.assumed_rate,
        passes=tuple(settings.passes),
        allocator=settings.allocator,
        memory_budget=settings.memory_budget,
    )
    if "rate" not in measures:
        return asked
    return replace(
        asked,
        rate=measures["rate"],
        keys=measures["keys"],
        step=measures["step"],
        measured=True,
    )


def drifted(then: Sharing, now: Sharing, factor: float) -> bool:
    """Whether groups chosen for `then` should be looked at again."""
    if _asked(then) != _asked(now):
        return True
    if not now.measured:
        return False
    pairs = ((then.rate, now.rate), (then.keys, now.keys), (then.step, now.step))
    return not then.measured or any(max(a, b) > factor * min(a, b) for a, b in pairs)


def groups_drifted(
    then: StreamStatistics, now: StreamStatistics, plan: SharedPlan, factor: float
) -> bool:
    """Whether the groups in a fragment of some node have changed by a factor since `then`; nodes
    whose keys are not known in both do not count."""
    if then is now:
        return False
    for node in plan.nodes:
        keys = [key.sql for key in node.keys]
        made = fragment_rate(node.fragments).per_second
        groups = [each.estimate(keys, max(each.rate.value / made, 1.0)) for each in (then, now)]
        if any(each.source == "assumed" for each in groups):
            continue
        few, many = sorted(each.value for each in groups)
        if many > factor * few:
            return True
    return False


def pays(plan: SharedPlan, sharing: Sharing, statistics: StreamStatistics | None = None) -> bool:
    """Whether the optimizer's groups for what is known now cost clearly less than the plan's, or
    another optimizer or model was asked for."""
    if _asked(sharing) != _asked(plan.sharing):
        return True
    counts = group_counts(statistics)
    woven = share(0, plan.stream, plan.queries, {}, WindowWeaving(sharing, counts))
    if _mapping(woven) == _mapping(plan) and _tree(woven) == _tree(plan):
        return False
    return _cost(woven, sharing, counts) < _WORTH_IT * _cost(plan, sharing, counts)


def group_counts(statistics: StreamStatistics | None) -> GroupCounts | None:
    """How many groups sets of keys have, once it is known."""
    return statistics.groups if statistics is not None and statistics.known else None


def _asked(sharing: Sharing) -> tuple[object, ...]:
    """What the user chose."""
    chosen = (sharing.optimizer, sharing.model, sharing.passes)
    return (*chosen, sharing.allocator, sharing.memory_budget)


def _cost(plan: SharedPlan, sharing: Sharing, counts: GroupCounts | None) -> float:
    """Operations, or by weft's own model seconds, per second of event time; level 1 by the prices
    of the aggregate tree."""
    costs = node_costs(plan, sharing.rate).values()
    if sharing.model == CALIBRATED:
        took = seconds(costs, sharing, calibrated())
        return took.total - took.level1 + arranging(sharing, counts).seconds(plan.nodes)
    return sum(cost.total for cost in costs)


def _tree(plan: SharedPlan) -> set[tuple[str, str | None]]:
    return {(node.id, node.parent) for node in plan.nodes}


def _mapping(plan: SharedPlan) -> set[tuple[frozenset[str], bool]]:
    """The group-mapping table: the members of every part, and whether it has its own node."""
    members = {node.id for node in plan.nodes if node.members}
    return {
        (frozenset(query.id for query in part), node in members)
        for (node, _), part in parts_of(plan).items()
    }
