"""What a stream has counted so far, as stored in its commits."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from weft.algebra.plan import SharedPlan
from weft.runtime.checkpoint.commits import Commit
from weft.runtime.planning.replanning import updated_measures
from weft.runtime.protocol.step import StepWork
from weft.runtime.tasks import lane_totals
from weft.runtime.windows.weaving import WindowOutcome


def totals_after(
    last: Commit | None, work: StepWork, outcome: WindowOutcome, plan: SharedPlan
) -> dict[str, Any]:
    """The totals after a step: rows, results, operations, seconds, and averages of the last steps."""
    totals = dict(last.metrics) if last else {}
    for name in ("rows", "null_times", "late_rows"):
        totals[name] = totals.get(name, 0) + work.count(name)
    for name, count in {"results": outcome.rows, **outcome.operations}.items():
        totals[name] = totals.get(name, 0) + count
    seen = work.counted.get("max_event")
    before = last.engine["latest"] if last else None
    advance = seen - before if seen is not None and before is not None else 0
    fragments = sum(entry["rows"] for entry in outcome.derived.new_files)
    totals |= updated_measures(totals, advance, work.count("rows"), fragments, plan)
    totals["seconds"] = totals.get("seconds", 0.0) + time.perf_counter() - work.started
    placement = outcome.placement
    if placement is not None:
        totals |= lane_totals(totals, placement.weights, outcome.lane_seconds)
        totals["lane_costs"] = list(placement.costs)
    if seen is not None and "first_event" not in totals:
        totals |= {"first_event": seen, "first_rows": totals["rows"]}
    return totals


def late_after(last: Commit | None, late: Mapping[str, int], plan: SharedPlan) -> dict[str, int]:
    """How many (row, window) pairs came too late so far, by query of the plan."""
    before = last.late if last else {}
    so_far = {name: before.get(name, 0) + late.get(name, 0) for name in plan.query_by_id}
    return {name: pairs for name, pairs in so_far.items() if pairs}
