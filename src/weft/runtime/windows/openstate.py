"""The open fragments in memory: what the kernel reads, on the driver or in a lane.

They are loaded from the files that a commit names. On the driver they stay in memory, and each step
adds its new files. A step works on a new value (`after`), which replaces the old one only when the step
is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weft.algebra.plan import Node, base_of, node_id
from weft.kernel.columns.side_by_side import side_by_side
from weft.kernel.fragments.slots import NO_SLOTS, Slots
from weft.kernel.fragments.state import Encoders, NodeState, Shards, columns_of, load
from weft.kernel.windows.intercede import pool_fragments
from weft.kernel.windows.program import Program
from weft.kernel.windows.weave import Step
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.level1.tiles import Extract, StateFile

_FEW_KEYS = 4096


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
        self,
        log: StreamLog,
        files: Iterable[StateFile],
        extracts: Callable[[str], Extract | None] = lambda node: Extract(),
    ) -> tuple[OpenState, dict[str, list[Shards]]]:
        """This state with encoders that hold the keys of these files, and the files' shards by node:
        those of the extract for the node, if there is one."""
        encoders = dict(self.encoders)
        by_node: dict[tuple[int, str], list[StateFile]] = {}
        for file in files:
            extract = extracts(file.entry["node"])
            if extract is not None and extract.may_hold(file.entry):
                by_node.setdefault((file.entry["version"], file.entry["node"]), []).append(file)
        nodes = [log.plan(version).node_by_id[name] for version, name in by_node]
        parts_by_group: dict[str, list[tuple[Node, list[StateFile]]]] = {}
        for node, node_files in zip(nodes, by_node.values(), strict=True):
            if node.base not in encoders:
                encoders[node.base] = _encoders(node, encoders)
            parts_by_group.setdefault(encoders[node.base].group, []).append((node, node_files))

        def load_parts(parts: list[tuple[Node, list[StateFile]]]) -> list[Shards]:
            """The shards of nodes that share encoders, loaded one after the other."""
            loaded: list[Shards] = []
            for node, node_files in parts:
                extract = extracts(node.id)
                assert extract is not None, "files without an extract are left out"
                columns = columns_of(node)
                tables = [t for file in node_files for t in file.read(extract, columns)]
                if tables:
                    loaded.append(load(tables, node, encoders[node.base]))
            return loaded

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


def _encoders(node: Node, encoders_by_keys: Mapping[str, Encoders]) -> Encoders:
    """New encoders of a node. A group's node and its distinct nodes share their group codes."""
    group = node_id(node.keys[: node.group_keys], node.group_keys)
    for name, encoders in encoders_by_keys.items():
        if name == group or encoders.group == group:
            return Encoders(node, group, encoders.groups)
    return Encoders(node, group)
