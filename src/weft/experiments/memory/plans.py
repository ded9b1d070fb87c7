"""A tree for some queries and so much memory, under each configuration: predicted and counted hash
operations.

Configurations: `fptas` plans with weft's model of evictions (`recency`), `fptas, Lemma 6.1` with
the paper's, both on tables that evict the least recently used entry; `slc` is the baseline on its
own tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from weft.experiments.memory.bounded_table import Measures, bounded, colliding
from weft.experiments.memory.measured import MeasuredStatistics
from weft.experiments.memory.node_codes import Attribute, NodeCodes, encode
from weft.experiments.memory.tree_run import TreeRun, run_tree
from weft.optimizer.groupby.memory.tables import TableModel, recency_tables, zipf_tables
from weft.optimizer.groupby.planner import PlannedTree, plan_tree
from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, GroupBySet
from weft.workloads.flows import ATTRIBUTES

OURS, PAPER, SLC = "fptas", "fptas, Lemma 6.1", "slc"
CONFIGURATIONS = (OURS, PAPER, SLC)


@dataclass(frozen=True)
class TreeOutcome:
    """Hash operations of an epoch on average: what the plan predicted, what was counted."""

    configuration: str
    queries: int
    memory: float
    intermediates: int
    predicted: float
    during: float
    at_end: float

    @property
    def counted(self) -> float:
        return self.during + self.at_end

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"counted": self.counted}


class Trace:
    """Epochs of flows, encoded; statistics are those of the first."""

    def __init__(self, epochs: Sequence[pa.Table]) -> None:
        self._tables = epochs

    @cached_property
    def epochs(self) -> list[dict[str, Attribute]]:
        return [encode(table, ATTRIBUTES) for table in self._tables]

    @cached_property
    def statistics(self) -> MeasuredStatistics:
        return MeasuredStatistics(self.epochs[0], self._tables[0].num_rows)

    @cached_property
    def models(self) -> dict[str, TableModel]:
        return {OURS: recency_tables(self.statistics), PAPER: zipf_tables(self.statistics)}

    @cached_property
    def _codes(self) -> list[dict[GroupBySet, NodeCodes]]:
        return [{} for _ in self._tables]

    def run(
        self, tree: AggregateTree, allocation: dict[GroupBySet, float], configuration: str
    ) -> list[TreeRun]:
        """Every epoch with empty tables at its start."""
        table = colliding if configuration == SLC else bounded
        return [
            run_tree(tree, allocation, attributes, _counts(given.num_rows), table, codes)
            for given, attributes, codes in zip(self._tables, self.epochs, self._codes)
        ]

    def plan(self, queries: Sequence[GroupBySet], memory: float, configuration: str) -> PlannedTree:
        if configuration == SLC:
            return plan_tree(queries, self.statistics, memory, "slc")
        return plan_tree(
            queries, self.statistics, memory, "fptas", model=self.models[configuration]
        )

    def outcome(
        self, queries: Sequence[GroupBySet], memory: float, configuration: str
    ) -> TreeOutcome:
        """Plan, run and count."""
        planned = self.plan(queries, memory, configuration)
        runs = self.run(planned.tree, dict(planned.allocation), configuration)
        return TreeOutcome(
            configuration=configuration,
            queries=len(queries),
            memory=memory,
            intermediates=len(planned.tree.intermediates()),
            predicted=planned.cost,
            during=sum(run.during for run in runs) / len(runs),
            at_end=sum(run.at_end for run in runs) / len(runs),
        )


def _counts(rows: int) -> Measures:
    return Measures.of(rows, {"records": ("count", None)})
