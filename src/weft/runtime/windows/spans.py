"""Which fragments of a node a step reads: those in due windows, and new ones that came too late."""

from __future__ import annotations

from weft.kernel.windows.program import Program
from weft.runtime.level1.tiles import ALL_TIMES, Span


def due_spans(program: Program, before: int, now: int) -> dict[str, Span]:
    """By node, the span of its due windows; nodes without any are left out."""
    spans: dict[str, Span] = {}
    for pool in program.pools.values():
        span = pool.windows.span(before, now)
        if span is not None:
            low, high = spans.get(pool.node, span)
            spans[pool.node] = (min(low, span[0]), max(high, span[1]))
    return spans


def late_spans(program: Program, before: int) -> dict[str, Span]:
    """By node that groups read, the span of fragments that a watermark has passed."""
    return dict.fromkeys((group.node for group in program.groups), (ALL_TIMES[0], before))
