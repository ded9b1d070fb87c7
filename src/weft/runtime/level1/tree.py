"""The aggregate tree of a step: every node's fragments, parents first.

Spark jobs compute the first-level nodes from the batch's rows, side by side. Every other node is
computed from the files of its parent, and needs no rows. If these files are small, that happens on the
driver, because a Spark job would cost more than the work, wherever the kernel runs. All fragments are written as state files;
those of intermediates live for this step only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from weft.algebra.plan import Node, SharedPlan
from weft.kernel.columns.side_by_side import side_by_side
from weft.kernel.fragments.derive import Parent
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.level1 import statefiles
from weft.runtime.level1.fragments import BUCKETS, coarser
from weft.runtime.level1.tiles import write_tiles
from weft.runtime.protocol.step import StepWork

_SMALL = 1_500_000
"""Up to this many fragments, children are computed on the driver, sooner than a job could begin."""
_ONE_TASK = 300_000
"""Up to this many fragments, Spark computes children in one task, without an exchange."""


def write_first(
    work: StepWork,
    log: StreamLog,
    plan: SharedPlan,
    from_rows: Callable[[Node], DataFrame],
) -> list[Entry]:
    """The files of the first-level nodes; `from_rows` gives the fragments of a node."""

    def write(node: Node) -> list[Entry]:
        return _by_spark(from_rows(node), work, log, plan, node)

    first = [node for node in plan.nodes if node.parent is None]
    return [entry for files in side_by_side(write, first) for entry in files]


def write_below(
    work: StepWork,
    log: StreamLog,
    plan: SharedPlan,
    files: Sequence[Entry],
) -> list[Entry]:
    """The files of all nodes below the first level. `files` are those of the first level."""
    written = {
        node.id: _Written(node, [entry for entry in files if entry["node"] == node.id])
        for node in plan.nodes
        if node.parent is None
    }

    def write(node: Node) -> _Written:
        assert node.parent is not None
        above = written[node.parent]
        if not above.files:
            return _Written(node, [])
        small = above.on_driver(log)
        if small is not None and small.can_derive(node):
            entry = _derive(small, node, work, log, plan.version)
            return _Written(node, [entry] if entry["rows"] else [])
        frame = coarser(above.frame(work.spark, log), above.node, node)
        return _Written(node, _by_spark(frame, work, log, plan, node))

    for level in _levels(plan.nodes)[1:]:
        written |= {output.node.id: output for output in side_by_side(write, level)}
    below = [node for node in plan.nodes if node.parent is not None]
    return [entry for node in below for entry in written[node.id].files]


def _by_spark(
    frame: DataFrame,
    work: StepWork,
    log: StreamLog,
    plan: SharedPlan,
    node: Node,
) -> list[Entry]:
    folder = f"{work.name}-{work.attempt}-{node.id}"
    return statefiles.write(frame, log, folder, node, plan.version)


class _Written:
    """A node, the files of its fragments, and these in memory once a child needs them."""

    def __init__(self, node: Node, files: list[Entry]) -> None:
        self.node, self.files = node, files
        self._lock = threading.Lock()
        self._parent: Parent | None = None

    def frame(self, spark: SparkSession, log: StreamLog) -> DataFrame:
        paths = [log.storage.spark_path(entry["name"]) for entry in self.files]
        frame = spark.read.parquet(*paths)
        return frame.coalesce(1) if self._rows <= _ONE_TASK else frame

    @property
    def _rows(self) -> int:
        return sum(int(entry["rows"]) for entry in self.files)

    def on_driver(self, log: StreamLog) -> Parent | None:
        """The fragments in memory, to compute children on the driver; None if they are too many."""
        if self._rows > _SMALL:
            return None
        with self._lock:
            if self._parent is None:
                tables = [log.storage.read_table(entry["name"]) for entry in self.files]
                self._parent = Parent(self.node, tables)
            return self._parent


def _derive(parent: Parent, node: Node, work: StepWork, log: StreamLog, version: int) -> Entry:
    name = f"{log.folder('state')}/{work.name}-{work.attempt}-{node.id}/part.parquet"
    write_tiles(log.storage, name, parent.derived(node, BUCKETS))
    return statefiles.describe(log, name, node.id, version)


def _levels(nodes: Sequence[Node]) -> list[list[Node]]:
    """The nodes by their depth in the aggregate tree."""
    depth: dict[str | None, int] = {None: -1}
    levels: list[list[Node]] = []
    for node in nodes:
        depth[node.id] = level = depth[node.parent] + 1
        if level == len(levels):
            levels.append([])
        levels[level].append(node)
    return levels
