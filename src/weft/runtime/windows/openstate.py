"""The open fragments in memory: what the kernel reads, on the driver or in a lane.

They are loaded from the files that a commit names. On the driver they stay in memory, and each step
adds its new files. A step works on a new value (`after`), which replaces the old one only when the step
is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from weft.algebra.plan import Node, base_of, node_id
from weft.kernel.columns.side_by_side import side_by_side
from weft.kernel.fragments.slots import NO_SLOTS, Slots
from weft.kernel.fragments.state import BUCKET, Encoders, NodeState, Shards, load
from weft.kernel.windows.intercede import pool_fragments
from weft.kernel.windows.program import Program
from weft.kernel.windows.weave import Step
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog

_FEW_KEYS = 4096


@dataclass(frozen=True)
class Lane:
    """One of `count` shares of the key buckets."""

    index: int
    count: int

    def owns(self, entry: Entry) -> bool:
        return entry["lane"] is None or entry["lane"] == self.index

    def rows(self, table: pa.Table, entry: Entry) -> pa.Table:
        """The lane's rows of a file, which may hold those of all lanes."""
        if entry["lane"] is not None:
            return table
        return table.filter(table.column(BUCKET).to_numpy() % self.count == self.index)


@dataclass(frozen=True)
class OpenState:
    """Open fragments by pool, and encoders by the keys of nodes."""

    pools: Mapping[str, Slots] = field(default_factory=dict)
    encoders: Mapping[str, Encoders] = field(default_factory=dict)

    @property
    def crowded(self) -> bool:
        """Whether most encoded keys have no open fragment any more, so that loading again saves memory."""
        return any(
            len(encoders.keys) > max(_FEW_KEYS, 4 * self._open_rows(name))
            for name, encoders in self.encoders.items()
        )

    def _open_rows(self, base: str) -> int:
        sizes = (len(slots) for name, slots in self.pools.items() if base_of(name) == base)
        return max(sizes, default=0)

    def read(
        self, log: StreamLog, files: Iterable[Entry], lane: Lane | None = None
    ) -> tuple[OpenState, dict[str, list[Shards]]]:
        """This state with encoders that hold the keys of these files, and the files' shards by node."""
        encoders = dict(self.encoders)
        entries: dict[tuple[int, str], list[Entry]] = {}
        for entry in files:
            if lane is None or lane.owns(entry):
                entries.setdefault((entry["version"], entry["node"]), []).append(entry)
        nodes = [log.plan(version).node_by_id[name] for version, name in entries]
        parts_by_group: dict[str, list[tuple[Node, list[Entry]]]] = {}
        for node, node_files in zip(nodes, entries.values(), strict=True):
            if node.base not in encoders:
                encoders[node.base] = _encoders(node, encoders)
            parts_by_group.setdefault(encoders[node.base].group, []).append((node, node_files))

        def load_parts(parts: list[tuple[Node, list[Entry]]]) -> list[Shards]:
            """The shards of nodes that share encoders, loaded one after the other."""
            return [
                load(_tables(log, node_files, lane), node, encoders[node.base])
                for node, node_files in parts
            ]

        shards_by_node: dict[str, list[Shards]] = {}
        for loaded in side_by_side(load_parts, parts_by_group.values()):
            for shards in loaded:
                shards_by_node.setdefault(shards.node.id, []).append(shards)
        return replace(self, encoders=encoders), shards_by_node

    def with_rows(self, program: Program, new: Mapping[str, Sequence[Shards]]) -> OpenState:
        """This state with new shards of nodes, as fragments of the pools that read them."""
        pools = dict(self.pools)
        for name, pool in program.pools.items():
            slots = pools.get(name, NO_SLOTS)
            for shards in new.get(pool.node, ()):
                encoder = self.encoders[shards.node.base].keys
                slots = slots.added(pool_fragments(shards, pool, encoder))
            pools[name] = slots
        return replace(self, pools=pools)

    def due(self, program: Program, step: Step) -> tuple[OpenState, dict[str, NodeState]]:
        """The fragments of each pool that due windows may need, and this state after they were read."""
        pools = dict(self.pools)
        states: dict[str, NodeState] = {}
        for name, pool in program.pools.items():
            span = pool.windows.span(step.before, step.now)
            if span is not None:
                pools[name], states[name] = pools.get(name, NO_SLOTS).read(*span)
        return replace(self, pools=pools), states

    def after(self, program: Program, watermark: int) -> OpenState:
        """This state without what no open window needs."""
        pools: dict[str, Slots] = {}
        for name, pool in program.pools.items():
            slots = self.pools.get(name, NO_SLOTS).expired(pool.windows.horizon(watermark))
            pools[name] = slots.narrowed(pool.partials)
        return replace(self, pools=pools)


def _tables(log: StreamLog, files: Sequence[Entry], lane: Lane | None) -> list[pa.Table]:
    tables = [log.storage.read_table(entry["name"]) for entry in files]
    if lane is None:
        return tables
    return [lane.rows(table, entry) for table, entry in zip(tables, files, strict=True)]


def _encoders(node: Node, encoders_by_keys: Mapping[str, Encoders]) -> Encoders:
    """New encoders of a node. A group's node and its distinct nodes share their group codes."""
    group = node_id(node.keys[: node.group_keys], node.group_keys)
    for name, encoders in encoders_by_keys.items():
        if name == group or encoders.group == group:
            return Encoders(node, group, encoders.groups)
    return Encoders(node, group)
