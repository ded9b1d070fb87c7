"""Placements as shared plans whose groups have their lanes, over one stream of fragments.

A tree of a placement is a weave group with coarse fragments of its own, a node is a lane that computes its trees for all
key buckets. Queries with equal edges are one item (the paper's preprocessing), since weft never reads the same
fragments twice. A tree reads the fragments of the stream's node, not its rows: so λ, what every tree pays once in
equation 1, is the rate of these fragments here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from weft.algebra.aggregate import Aggregate
from weft.algebra.plan import Node, SharedPlan, Sharing
from weft.algebra.query import Field, OutputColumn, Query, StreamSchema
from weft.algebra.scalar import Expression, Ref
from weft.algebra.window import Window
from weft.kernel.fragments.buckets import buckets
from weft.kernel.windows.program import Program, compile_program
from weft.optimizer.cost import SECOND, fragment_rate
from weft.optimizer.gtweave import share
from weft.optimizer.placement.placement import Placement
from weft.optimizer.weaving import OnePart, Parts
from weft.optimizer.windows.calibration import calibrated
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.level1 import statefiles
from weft.runtime.level1.fragments import BUCKETS
from weft.runtime.level1.tiles import write_tiles
from weft.runtime.planning.versions import ALWAYS
from weft.runtime.windows.placement import Share, group_cost
from weft.workloads.sharing import WindowTable

STREAM = "events"
_FIELDS = (Field("ts", "timestamp"), Field("key", "bigint"), Field("value", "bigint"))


@dataclass(frozen=True)
class Stream:
    """How many keys there are, and the seconds of event time that a step covers."""

    keys: int
    step_seconds: int


@dataclass(frozen=True)
class LanePlan:
    """A placement as it runs."""

    version: int
    shares: tuple[tuple[Share, ...], ...]
    """By lane."""
    paper: tuple[float, ...]
    """By lane: the cost of its trees by equation 1."""
    ours: tuple[float, ...]
    """By lane: seconds of a step, by weft's own model."""


@dataclass(frozen=True)
class _Trees:
    """Weaves the queries as a placement says."""

    sharing: Sharing
    tree_of: Mapping[str, int]

    def parts(self, queries: Sequence[Query]) -> Parts:
        members: dict[int, list[Query]] = {}
        for query in queries:
            members.setdefault(self.tree_of[query.id], []).append(query)
        return Parts(3, list(members.values()), coarse=True)

    def tree(self, plan: SharedPlan, readers: Mapping[str, Sequence[Query]]) -> Sequence[Node]:
        return plan.nodes


class Prepared:
    """A workload as queries, with the fragments of a step in files."""

    def __init__(self, table: WindowTable, stream: Stream, folder: Path) -> None:
        self.stream = stream
        self.log = StreamLog(Storage(folder), STREAM)
        self._schema = StreamSchema(STREAM, _FIELDS, "ts", 0)
        self._queries = [
            _query(name, int(length), int(slide))
            for name, length, slide in zip(table.names, table.ranges, table.slides, strict=True)
        ]
        self._sharing = replace(
            Sharing(), optimizer="given", keys=float(stream.keys), step=float(stream.step_seconds)
        )
        self._versions = 0
        plan = self._put(OnePart(self._sharing))
        self.node = plan.nodes[0]
        self.longest = int(table.ranges.max())
        self.before = (BEGINNING + self.longest) * SECOND
        self.now = self.before + stream.step_seconds * SECOND
        self._file = self._fragments(plan.version)

    @property
    def rate(self) -> float:
        """Fragments of a key in a second: what every tree reads."""
        return fragment_rate(self.node.fragments).per_second

    def files(self, version: int) -> list[Entry]:
        """The fragments, as if this version had made them: all have the same node."""
        return [{**self._file, "version": version}]

    def planned(self, placement: Placement) -> LanePlan:
        """A placement as it runs."""
        tree_of = dict(zip((q.id for q in self._queries), placement.tree_of.tolist(), strict=True))
        plan = self._put(_Trees(self._sharing, tree_of))
        if plan.nodes[0].id != self.node.id or plan.nodes[0].fragments != self.node.fragments:
            raise ValueError("a placement changes what the stream is made into")
        program = compile_program(plan)
        groups = _groups_by_tree(program, tree_of)
        by_lane: list[list[int]] = [[] for _ in placement.weights]
        for tree, lane in enumerate(placement.node_of.tolist()):
            by_lane[lane].append(groups[tree])
        costs = [group_cost(program, group, calibrated()) for group in program.groups]
        every_bucket = tuple(range(BUCKETS))
        return LanePlan(
            plan.version,
            tuple((Share(tuple(lane), every_bucket),) if lane else () for lane in by_lane),
            tuple(placement.node_costs.tolist()),
            tuple(
                sum(costs[group] for group in lane) * self.stream.step_seconds for lane in by_lane
            ),
        )

    def _put(self, weaving: OnePart | _Trees) -> SharedPlan:
        self._versions += 1
        from_always = {query.id: ALWAYS for query in self._queries}
        plan = share(self._versions, self._schema, self._queries, from_always, weaving)
        self.log.put_plan(plan)
        return plan

    def _fragments(self, version: int) -> Entry:
        """A fragment of every key wherever one ends in the span of the step's windows."""
        ends: list[int] = []
        time = BEGINNING * SECOND
        while time < self.now:
            time = self.node.fragments.end_of(time)
            ends.append(time)
        rows = len(ends) * self.stream.keys
        keys = pa.array(np.tile(np.arange(self.stream.keys), len(ends)))
        values = pa.array(np.random.default_rng(1).integers(0, 1000, rows))
        ones, zeros = pa.array(np.ones(rows, np.int64)), pa.array(np.zeros(rows, np.int64))
        wide = pa.StructArray.from_arrays([zeros, values], ["high", "low"])
        columns = {
            "fragment_end": pa.array(np.repeat(np.array(ends), self.stream.keys)),
            "n": ones,
            "k0": keys,
        }
        by_kind = {"add_wide": wide, "max": values}
        columns |= {p.name: by_kind.get(p.combine.name, ones) for p in self.node.partials}
        columns["bucket"] = pa.array(buckets([keys], rows, BUCKETS))
        name = f"{self.log.folder('state')}/fragments/part.parquet"
        write_tiles(self.log.storage, name, pa.table(columns))
        return statefiles.describe(self.log, name, self.node.id, version)


BEGINNING = 1_600_000_000
"""The second of event time at which fragments begin."""


def _query(name: str, length: int, slide: int) -> Query:
    """A count, a sum and a maximum by key."""
    key, value = (Expression(f"`{column}`", "bigint", (column,)) for column in ("key", "value"))
    aggregates = (
        Aggregate("count", (), "bigint"),
        Aggregate("sum", (value,), "bigint"),
        Aggregate("max", (value,), "bigint"),
    )
    columns = (
        OutputColumn("key", "bigint", Ref("k0", "bigint")),
        OutputColumn("end", "timestamp", Ref("window_end", "timestamp")),
        *(OutputColumn(f"a{i}", "bigint", Ref(f"a{i}", "bigint")) for i in range(3)),
    )
    window = Window(length * SECOND, slide * SECOND)
    return Query(f"{name}@0", name, "", STREAM, window, (key,), None, aggregates, None, columns)


def _groups_by_tree(program: Program, tree_of: Mapping[str, int]) -> dict[int, int]:
    """The group of the program that each tree is. Trees with equal edges would be one group."""
    groups: dict[int, int] = {}
    for number, group in enumerate(program.groups):
        trees = {tree_of[query.id] for shape in group.shapes for query in shape.queries}
        if len(trees) != 1 or trees & groups.keys():
            raise ValueError("a tree is not a group of its own")
        groups[trees.pop()] = number
    return groups
