"""Which node may count the rows of a batch, and which nodes need no Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from tests.explain.support import BIDS, explained

from weft.algebra.plan import Sharing
from weft.kernel.windows.program import compile_program
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import WindowWeaving, assumed_groups
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.level1 import statefiles
from weft.runtime.level1.subaggregate import counting_node, derive
from weft.runtime.level1.tiles import write_tiles
from weft.runtime.protocol.step import StepWork

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


TREE = """;
    -- name: auctions
    SELECT auction, COUNT(*) AS n FROM bids GROUP BY auction, window(ts, '10 seconds');
    -- name: channels
    SELECT channel, COUNT(*) AS n FROM bids GROUP BY channel, window(ts, '10 seconds')"""


def test_nodes_below_the_first_level_need_no_spark_while_fragments_are_few(tmp_path: Path) -> None:
    """Wherever the kernel runs: on the driver or in lanes."""
    (made,) = explained(SAFE + TREE).plans
    weaving = WindowWeaving(Sharing(rate=1e6), assumed_groups(10))
    plan = share(1, BIDS, made.queries, dict.fromkeys((q.id for q in made.queries), 0), weaving)
    (first,) = (node for node in plan.nodes if node.parent is None)
    assert len(plan.nodes) == 3
    log = StreamLog(Storage(tmp_path), "bids")
    keys = {f"k{number}": [f"{number}{row % 2}" for row in range(6)] for number in range(2)}
    by_name = {key.sql: key.type for key in first.keys}
    columns = {
        name: pa.array([int(text) for text in values]) if by_name[key] == "bigint" else values
        for (name, values), key in zip(keys.items(), by_name, strict=True)
    }
    counts = {partial.name: [1] * 6 for partial in first.partials}
    table = pa.table(
        {"fragment_end": [10_000_000] * 6, "n": [1] * 6, **columns, **counts, "bucket": [0] * 6}
    )
    write_tiles(log.storage, f"{log.folder('state')}/0/part.parquet", table)
    work = StepWork(0, "data", None, None, own_session=False)  # type: ignore[arg-type]
    name = f"{log.folder('state')}/0/part.parquet"
    work.files = [statefiles.describe(log, name, first.id, plan.version)]
    derived = derive(work, log, plan)
    rows = {entry["node"]: entry["rows"] for entry in derived.new_files}
    assert rows == {node.id: 6 if node is first else 2 for node in plan.nodes}
