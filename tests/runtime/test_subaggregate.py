"""Which node may count the rows of a batch."""

from __future__ import annotations

from tests.explain.support import BIDS, explained

from weft.algebra.plan import Sharing
from weft.kernel.windows.program import compile_program
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import WindowWeaving, assumed_groups
from weft.runtime.level1.subaggregate import counting_node

SAFE = """-- name: safe
    SELECT auction, channel, COUNT(*) AS n FROM bids
    GROUP BY auction, channel, window(ts, '10 seconds')"""
RISKY = """;
    -- name: risky
    SELECT auction, SUM(1000 / price) AS n FROM bids GROUP BY auction, window(ts, '10 seconds')"""


def counted_by(sql: str) -> tuple[str | None, int]:
    """The node, and how many there are at the first level."""
    (made,) = explained(sql).plans
    weaving = WindowWeaving(Sharing(rate=1e6), assumed_groups(10))
    plan = share(1, BIDS, made.queries, dict.fromkeys((q.id for q in made.queries), 0), weaving)
    return counting_node(compile_program(plan)), sum(node.parent is None for node in plan.nodes)


def test_a_node_that_carries_what_can_raise_for_others_does_not_count() -> None:
    """It would evaluate 1000 / price on rows without event time, which no query reaches."""
    assert counted_by(SAFE)[0] is not None
    assert counted_by(SAFE + RISKY) == (None, 1)
