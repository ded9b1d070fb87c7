"""Which plans of an aggregation join can be run at all.

1. An input whose expressions may raise an error is early: level 1 finds the query that fails, and leaves it out.
2. An input with a sketch is early: a sketch of one row has no native form.
3. Quantile sketches cannot stand for copies (`kernel/joinagg/groups/scaling`): where an aggregate has one, all other inputs
   are late, so that every joined entry has one row of each of them.
4. The rows of a table are there all the time; merged or not, they are read once. A sketch of them has no form.
"""

from __future__ import annotations

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sources import source_of
from weft.algebra.partial import QUANTILES
from weft.optimizer.joinagg.plans import Plan

Fixed = tuple[bool | None, ...]
"""Of every input whether it must be early, must be late, or may be either (None)."""


def fixed_inputs(query: AggregationJoin) -> Fixed | None:
    """What is not a matter of costs; None if no plan can be run."""
    fixed: list[bool | None] = []
    with_quantiles: set[int] = set()
    for slot, entry in enumerate(query.inputs):
        source = source_of(query, slot)
        is_table = entry.window is None
        if is_table and source.has_sketches:
            return None
        if any(p.combine.name in QUANTILES for p in source.partials(None)):
            with_quantiles.add(slot)
        must_be_early = not is_table and (source.can_raise or source.has_sketches)
        fixed.append(True if must_be_early else None)
    for slot in range(len(fixed)):
        if with_quantiles - {slot}:
            if fixed[slot]:
                return None
            fixed[slot] = False
    return tuple(fixed)


def is_possible(plan: Plan, fixed: Fixed) -> bool:
    """Whether a plan can be run.

    >>> is_possible((True, False), (None, False)), is_possible((True, True), (None, False))
    (True, False)
    """
    return all(must in (None, early) for early, must in zip(plan, fixed, strict=True))


def nearest(plan: Plan, fixed: Fixed) -> Plan:
    """The plan with what is fixed put right."""
    return tuple(early if must is None else must for early, must in zip(plan, fixed, strict=True))
